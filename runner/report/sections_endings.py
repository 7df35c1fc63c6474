"""The section on how trials ended."""

from __future__ import annotations

from runner.report.blocks import Column, Section, Table, Value
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, about
from runner.report.trial_endings import STATUSES, endings


def how_trials_ended(found: Findings) -> Section:
    """Show statuses and flags, a row for each cell."""
    by_cell = endings(found.trials)
    statuses = [word for word in STATUSES if any(own.statuses[word] for own in by_cell.values())]
    flags = sorted({flag for own in by_cell.values() for flag in own.flags})
    columns = (
        AGENT,
        MODEL,
        *(
            Column(word, "trials that ended so, of all planned" if not at else "")
            for at, word in enumerate(statuses)
        ),
        *(
            Column(flag, "trials with this flag, whatever their status" if not at else "")
            for at, flag in enumerate(flags)
        ),
    )
    rows = [
        [*about(cell, found), *(_count(by_cell[name].statuses[word]) for word in statuses),
         *(_count(by_cell[name].flags[flag]) for flag in flags)]
        for name, cell in lines(found.cells).items()
    ]  # fmt: skip
    return Section(
        "endings", "How trials ended", [Table("Statuses and flags of trials, by cell", columns, rows)]
    )


def _count(count: int) -> Value:
    return Value(str(count) if count else "-", float(count))
