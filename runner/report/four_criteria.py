"""Four criteria and their winners, for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import pandas as pd

from metrics.ranking import four_criteria
from metrics.uncertainty import Draws
from runner.report.wording import number, passes, short, span, usd

_CRITERIA: dict[str, tuple[str, str | Callable[[float], str]]] = {
    "passes": ("passes", passes),
    "tokens_per_pass": ("tokens/pass", short),
    "usd_per_pass": ("USD/pass", usd),
    "AMS": ("AMS", ".3f"),
}
"""Criterion -> its title, and how its values are written."""
_SUCCESSES = ("passes", "AMS")
_NUMBERS = ("no", "one", "two", "three", "four")


class Winner(NamedTuple):
    """The best cells by one criterion, by their index in the table of cells."""

    criterion: str
    best: tuple[str, ...]
    """Cells; several are tied."""
    value: str
    runner_up: str | None
    lead: str
    """Lead over the runner-up, in the criterion's unit."""
    interval: str
    clear: str
    """Answer to whether the best can be told apart from all others: yes, no, tie, few (too few tasks), - (no rival)."""
    unknown: int
    """Number of contenders without a value, such as a price; they cannot win."""
    alike: tuple[str, ...] = ()
    """Cells that cannot be told apart from the best."""
    rivals: int = 0
    """Number of contenders with a value, without the best one."""


def winners(
    contenders: pd.DataFrame, draws: Draws, confidence: float, few: Sequence[str] = ()
) -> list[Winner]:
    """Return the best of `contenders` by each criterion for which a cell has a finite value.

    `contenders` are the cells of one dataset that have a rank in `cell_scores`. Nobody wins without a pass, or with an
    AMS of 0. Where some tiers have too `few` tasks, no lead is clear.
    """
    if contenders.empty:
        return []
    found = four_criteria(contenders, draws, confidence)
    known = found[found["best"].notna() & found["value"].map(math.isfinite)]
    known = known[(known["value"] > 0) | ~known.index.isin(_SUCCESSES)]
    return [
        _winner(str(criterion), line, contenders, few=bool(few))
        for criterion, line in known.to_dict("index").items()
    ]


def verdict(found: Sequence[Winner]) -> str:
    """Return a headline with the smallest number of cells that win all criteria between them; tied cells all win."""
    if not found:
        return "No winner"
    cells = {cell for winner in found for cell in winner.best}
    fewest = next(
        count
        for count in range(len(found) + 1)
        if any(all(set(some) & set(winner.best) for winner in found) for some in combinations(cells, count))
    )
    criteria = f"{_NUMBERS[len(found)]} {'criterion' if len(found) == 1 else 'criteria'}"
    return f"{criteria.capitalize()}, {_NUMBERS[fewest]} {'winner' if fewest == 1 else 'winners'}"


def not_in_the_running(found: Sequence[Winner], contenders: int) -> str:
    """Return a sentence for each criterion for which some of the contenders have no value; empty if all have all."""
    return " ".join(
        f"By {each.criterion}, {each.unknown} of {contenders} cells are not in the running, as theirs is unknown."
        for each in found
        if each.unknown
    )


def _winner(criterion: str, line: Mapping[Any, Any], contenders: pd.DataFrame, *, few: bool) -> Winner:
    title, style = _CRITERIA[criterion]
    own = contenders[criterion]
    values = own.fillna(contenders.get(f"{criterion}_least", own))
    exact = values.notna() if line["bounded"] else own.notna()
    best = tuple(contenders.index[exact & (values == line["value"])])
    hidden = line["bounded"] or (
        criterion == "AMS" and contenders.loc[best[0], "AMS_most"] > line["value"] + 1e-9
    )
    total = f"/{contenders.loc[line['best'], 'planned']}" if criterion == "passes" else ""
    value = f"{'>=' if hidden else ''}{number(line['value'], style)}{total}"
    unknown, rivals = int(values.isna().sum()), int(values.notna().sum()) - 1
    if len(best) > 1:
        return Winner(title, best, value, None, "none", "", "tie", unknown, line["alike"], rivals)
    if pd.isna(line["runner_up"]):
        return Winner(title, best, value, None, "", "", "-", unknown)
    lead = "it has no pass" if math.isinf(line["lead"]) else number(line["lead"], style)
    interval = span(line["low"], line["high"], style, " to ")
    clear = "few" if few else "yes" if line["clear"] else "no"
    return Winner(
        title, best, value, line["runner_up"], lead, interval, clear, unknown, line["alike"], rivals
    )
