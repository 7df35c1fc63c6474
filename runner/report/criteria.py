"""Four criteria and their winners, for the terminal and the page alike."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from metrics.errors import listed
from metrics.ranking import four_criteria
from metrics.uncertainty import Draws
from runner.report.wording import number, short, span, usd

_SAID: dict[str, tuple[str, str | Callable[[float], str]]] = {
    "passes": ("passes", ".3g"),
    "tokens_per_pass": ("tokens/pass", short),
    "usd_per_pass": ("USD/pass", usd),
    "AMS": ("AMS", ".3f"),
}
"""Criterion -> what people call it, and how its values are written."""
_COUNTS = ("no winner", "one winner", "two winners", "three winners", "four winners")


class Winner(NamedTuple):
    """The best by one criterion; cells are indices of the table that they were found in."""

    criterion: str
    best: tuple[str, ...]
    """More than one is a tie."""
    value: str
    runner_up: str | None
    lead: str
    """Over the runner-up, in the criterion's unit."""
    interval: str
    clear: str
    """Whether the lead is larger than its interval: yes, no, tie, or - without a rival."""


def winners(contenders: pd.DataFrame, draws: Draws, confidence: float) -> list[Winner]:
    """The best of `contenders` (`cell_scores` of one dataset, without bounds) by each criterion that any cell has a
    finite value of. Who planned other tasks than the others does not compete.
    """
    contenders = contenders[~contenders["other_tasks"]] if len(contenders) else contenders
    if contenders.empty:
        return []
    found = four_criteria(contenders, draws, confidence)
    known = found[found["best"].notna() & found["value"].map(math.isfinite)]
    return [_winner(str(criterion), line, contenders) for criterion, line in known.to_dict("index").items()]


def other_tasks(contenders: pd.DataFrame) -> dict[str, bool]:
    """Cell -> whether it planned other tasks than most cells of its dataset; of as frequent sets the larger is most's.

    `contenders` are trials, without those of bounds.
    """
    planned = {str(cell): tuple(sorted(set(of))) for cell, of in contenders.groupby("cell")["task"]}
    homes = {str(cell): str(name) for cell, name in contenders.groupby("cell")["dataset"].first().items()}
    sets: defaultdict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for cell, tasks in planned.items():
        sets[homes[cell]][tasks] += 1
    usual = {name: max((n, len(tasks), tasks) for tasks, n in of.items())[2] for name, of in sets.items()}
    return {cell: tasks != usual[homes[cell]] for cell, tasks in planned.items()}


def not_comparable(cells: pd.DataFrame) -> Iterator[str]:
    """A line when some of `cell_scores` planned other tasks than the others."""
    if others := int(cells["other_tasks"].sum()):
        yield (
            f"{others} of {len(cells)} cells planned other tasks than the others; not comparable, and so in none of "
            f"the four criteria and pairs: {listed(sorted(cells.index[cells['other_tasks']]))}."
        )


def verdict(found: Sequence[Winner]) -> str:
    """How many cells it takes to win by every criterion; who ties wins with whoever else does."""
    names = {winner.best[0] for winner in found if len(winner.best) == 1}
    for winner in found:
        if not names.intersection(winner.best):
            names.add(winner.best[0])
    return f"Four criteria, {_COUNTS[len(names)]}"


def _winner(criterion: str, line: Mapping[Any, Any], contenders: pd.DataFrame) -> Winner:
    title, style = _SAID[criterion]
    of = f"/{contenders.loc[line['best'], 'planned']}" if criterion == "passes" else ""
    value = f"{number(line['value'], style)}{of}"
    best = tuple(contenders.index[contenders[criterion] == line["value"]])
    if len(best) > 1:
        return Winner(title, best, value, None, "none", "", "tie")
    if pd.isna(line["runner_up"]):
        return Winner(title, best, value, None, "", "", "-")
    lead = "it has no pass" if math.isinf(line["lead"]) else number(line["lead"], style)
    interval = span(line["low"], line["high"], style, " to ")
    return Winner(title, best, value, line["runner_up"], lead, interval, "yes" if line["clear"] else "no")
