"""The funnel from candidates to chosen tasks: how many were rejected at each stage, and why."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from runner.benchmarks.sources.rejections import Rejection
from runner.records import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Stage = Literal["candidates", "metadata", "entry", "task", "reviewed", "chosen"]
STAGES: dict[Stage, str] = {
    "candidates": "candidates",
    "metadata": "pass the metadata filters",
    "entry": "have a working command",
    "task": "are accepted tasks",
    "reviewed": "are confirmed by two people",
    "chosen": "are chosen",
}
"""Stage -> description of the candidates that reach it."""
MOST_REASONS = 4
"""Number of reasons that the picture names at each stage."""
LONGEST_REASON = 60
"""Length to which a reason is cut, in characters. Rejections are counted by the cut text, which fits the picture."""


class Outcome(Record):
    """Last stage that one candidate reached."""

    name: str
    reached: Stage
    task: str = ""
    """Name of the candidate's task folder, once there is a recipe."""
    unreviewed: bool = False
    """True if the candidate was chosen although fewer than two people have confirmed it."""
    rejection: Rejection | None = None
    """The rejection that stopped the candidate; None if there was none so far."""

    @property
    def reason(self) -> str:
        """The reason up to its colon, by which rejections are counted; empty if there is none. A long reason is cut."""
        return self.rejection.reason.partition(":")[0][:LONGEST_REASON] if self.rejection else ""


def counts(outcomes: Sequence[Outcome]) -> dict[Stage, int]:
    """Return how many candidates reached each stage. Candidates chosen without a review do not count as confirmed."""
    order = list(STAGES)
    reached = {
        stage: sum(order.index(one.reached) >= number for one in outcomes)
        for number, stage in enumerate(order)
    }
    return reached | {"reviewed": reached["reviewed"] - sum(one.unreviewed for one in outcomes)}


def chosen(outcomes: Sequence[Outcome], names: Collection[str]) -> list[Outcome]:
    """Return the outcomes after a choice of these tasks."""
    return [
        one.model_copy(update={"reached": "chosen", "unreviewed": one.reached != "reviewed"})
        if one.task and one.task in names
        else one
        for one in outcomes
    ]


def _words(outcomes: Sequence[Outcome], stage: Stage, count: int) -> str:
    unreviewed = sum(one.unreviewed for one in outcomes)
    remark = f", {unreviewed} of them unreviewed" if stage == "chosen" and unreviewed else ""
    return f"{count} {STAGES[stage]}{remark}"


def picture(outcomes: Sequence[Outcome]) -> Figure:
    """Draw a bar for each stage, with its count and, beneath it, the most frequent reasons for rejection."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second, and a terminal needs none

    from runner.report.figures import ACCENT, INK, MUTED  # noqa: PLC0415 - as above

    reached, order = counts(outcomes), list(STAGES)
    figure = Figure(figsize=(7.2, 0.62 * len(order) + 0.3), layout="constrained")
    axes = figure.add_subplot()
    most = max(1, *reached.values())
    for number, (stage, count) in enumerate(reached.items()):
        axes.barh(number, count, height=0.5, color=ACCENT)
        axes.text(
            count + most * 0.01, number, _words(outcomes, stage, count), va="center", fontsize=8, color=INK
        )
        fallen = Counter(one.reason for one in outcomes if one.reached == stage and one.rejection)
        words = ", ".join(f"{fell} {reason}" for reason, fell in fallen.most_common(MOST_REASONS))
        if others := sum(fallen.values()) - sum(fell for _, fell in fallen.most_common(MOST_REASONS)):
            words += f", {others} for other reasons"
        axes.text(
            0, number + 0.42, f"fell here: {words}" if words else "", va="center", fontsize=6.5, color=MUTED
        )
    axes.set(xlim=(0, most * 1.45), ylim=(len(order) - 0.3, -0.5))
    axes.axis("off")
    return figure


def text(outcomes: Sequence[Outcome]) -> str:
    """Return the funnel as lines for a terminal: each stage with its count, and beneath it the rejected candidates."""
    reached, order = counts(outcomes), list(STAGES)
    lines = []
    for number, (stage, count) in enumerate(reached.items()):
        words = _words(outcomes, stage, count).partition(" ")[2]
        lines.append(f"{count:>6}  {words}")
        here = [one for one in outcomes if one.reached == order[number]]
        reasons = Counter(f"{one.rejection.step}, {one.reason}" for one in here if one.rejection)
        lines += [f"{'':>8}- {fell} fell: {reason}" for reason, fell in reasons.most_common()]
        waiting = sum(one.rejection is None for one in here)
        if waiting and stage != "chosen":
            lines.append(f"{'':>8}- {waiting} wait for the next step")
    return "\n".join(lines)


def rejections_csv(outcomes: Sequence[Outcome]) -> str:
    """Return every rejection as CSV: candidate, stage reached, step, reason."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("candidate", "reached", "step", "reason"))
    writer.writerows(
        (one.name, one.reached, one.rejection.step, one.rejection.reason) for one in outcomes if one.rejection
    )
    return lines.getvalue()
