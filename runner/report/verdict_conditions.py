"""Conditions of verdicts: the machine, the programs in it, and second verdicts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from metrics.table import valid

LIVE, PROGRAMS, UNKNOWN = "verified_live", "programs_changed", "programs_unknown"
NO_VERDICT, DIFFER = "no_verdict", "verdicts_differ"
UNLISTED = "ports_unlisted"
CONDITIONS = (LIVE, UNLISTED, PROGRAMS, UNKNOWN, NO_VERDICT, DIFFER, "artifacts_left_out")
"""Flags of a trial that limit its verdict."""


def has(trials: pd.DataFrame, *flags: str) -> pd.Series[bool]:
    """Return which trials have one of these flags. Imported trials have no flags."""
    if "flags" not in trials:
        return pd.Series(data=False, index=trials.index)
    codes, words = pd.factorize(trials["flags"].fillna(""))  # many trials have the same
    having = np.array([not set(flags).isdisjoint(own.split()) for own in words], dtype=bool)
    return pd.Series(having[codes], index=trials.index)


def passes(trials: pd.DataFrame) -> pd.Series[bool]:
    """Return which trials count as passed."""
    return valid(trials) & trials["passed"].astype("boolean").fillna(value=False).astype(bool)


def notes(trials: pd.DataFrame, most: int) -> Iterator[str]:
    """Yield lines beneath a leaderboard, with at most `most` trials of each kind."""
    passed = passes(trials)
    if live := int((passed & has(trials, LIVE)).sum()):
        yield (
            f"{live} of {passed.sum()} passes were verified in the agent's running container: what the agent left "
            "running could have written the reward."
        )
    if changed := int((passed & has(trials, PROGRAMS)).sum()):
        yield (
            f"{changed} of {passed.sum()} passes: tests ran with programs or start-up files that the agent had "
            "changed, by installing a package, say. The report lists them."
        )
    if unknown := int((passed & has(trials, UNKNOWN)).sum()):
        yield f"{unknown} of {passed.sum()} passes: what the agent changed in its machine could not be listed."
    differ = trials[has(trials, DIFFER)]
    yield from _each(
        f"Second verdicts that differ ({len(differ)}), reward and second one; only the first counts:",
        [
            f"{line['cell']} {line['task']}: {line['reward']:g} and {line['second_reward']:g}"
            for line in differ.to_dict("records")
        ],
        most,
    )
    without = trials[valid(trials) & has(trials, NO_VERDICT)]
    yield from _each(
        f"Tests without a usable reward ({len(without)} trials), which count as failed; where oracle ends so, the task "
        "is broken:",
        [f"{line['cell']} {line['task']}: {line['reason']}" for line in without.to_dict("records")],
        most,
    )


def _each(title: str, each: list[str], most: int) -> Iterator[str]:
    if each:
        yield title
        yield from (f"  {line[:200]}" for line in each[:most])
    if len(each) > most:
        yield f"  and {len(each) - most} more in trials.csv"
