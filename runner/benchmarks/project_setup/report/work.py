"""Section on the work on projects: terminal commands, tool calls by kind, phases (ExecutionAgent, section 3.5)."""

from __future__ import annotations

from functools import partial

import pandas as pd

from metrics import behaviour, execution
from metrics.terminal import NO_PHASE, PHASES, SCRIPT
from runner.benchmarks.project_setup.report import figures as project_figures
from runner.report import figures
from runner.report.blocks import Block, Picture, Section, where
from runner.report.findings import Findings
from runner.report.sections_scores import Measure, cell_table

_MEANING = dict(
    zip(
        PHASES,
        ("looking at the project", "writing files, installing, building", "running tests"),
        strict=True,
    )
)


@where(execution.scored)
def work(found: Findings) -> Section | None:
    """Show the parts of the work that were recorded."""
    blocks = [*_programs(found), *_kinds(found), *_phases(found)]
    return Section("projects-work", "Projects: how agents worked", blocks) if blocks else None


def _best_first(table: pd.DataFrame, found: Findings) -> pd.DataFrame:
    """Return the rows of the cells, best first."""
    return table.loc[[cell for cell in found.cells.index if cell in table.index]]


def _programs(found: Findings) -> list[Block]:
    """Return Figure 10 of the paper."""
    shares = _best_first(behaviour.programs(found.trials), found)
    if shares.empty:
        return []
    names = [str(name) for name in shares if name != "commands"]
    picture = Picture(
        "projects_programs",
        f"The {len(names)} programs that terminals ran most often, as shares of all that a cell's ran. {SCRIPT}: a "
        "script of the project's or the agent's own.",
        "Bars of programs by cell; their values are in the table beneath.",
        partial(project_figures.programs, shares[names].rename(index=found.names)),
    )
    shares = shares.assign(others=1 - shares[names].sum(axis=1))
    measures = [
        Measure("commands", "commands", ".0f",
                "in valid trials, composite ones by their parts: the denominator"),
        *(Measure(name, name, ".1%") for name in names),
        Measure("all others", "others", ".1%"),
    ]  # fmt: skip
    return [picture, cell_table("Terminal commands (Figure 10)", measures, shares, found)]


def _kinds(found: Findings) -> list[Block]:
    """Return the table of section 3.5.1."""
    if not behaviour.recorded(found.trials):
        return []
    calls = behaviour.tool_calls(found.trials)
    shares = calls[list(behaviour.KINDS)].div(calls["total"], axis=0).assign(calls=calls["total"])
    measures = [
        Measure("calls", "calls", ".1f", "of a valid trial, mean; then the share of each kind"),
        *(Measure(kind, kind, ".1%") for kind in behaviour.KINDS),
    ]
    return [cell_table("Tool calls by kind (section 3.5.1)", measures, shares, found)]


def _phases(found: Findings) -> list[Block]:
    """Return a picture and a table of the phases of the agents' work (section 3.5.2)."""
    table = _best_first(behaviour.phases(found.trials), found)
    if table.empty:
        return []
    parts = table[list(PHASES)].assign(**{NO_PHASE: 1 - table[list(PHASES)].sum(axis=1)})
    picture = Picture(
        "projects_phases",
        "Shares of a trial's tool calls by phase of the work; other: planning, waiting, finishing.",
        "Stacked bars of phases by cell; their values are in the table beneath.",
        partial(
            figures.stacked, parts.rename(index=found.names), [*PHASES, NO_PHASE], "tool calls", ".0%", 1.0
        ),
    )
    where_at = "where its calls lie in a trial, 0 the first and 1 the last: median"
    measures = [
        Measure("trials", "trials", ".0f", "valid ones with tool calls: the denominator"),
        *(
            Measure(phase, phase, ".1%", f"{meaning}: share of a trial's calls, mean")
            for phase, meaning in _MEANING.items()
        ),
        *(
            Measure(f"{phase} at", f"{phase}_at", ".2f", "" if at else where_at)
            for at, phase in enumerate(PHASES)
        ),
        Measure("in order", "in_order", ".0%",
                "share of trials that have all three, their medians one after the other"),
    ]  # fmt: skip
    return [picture, cell_table("Phases of the work (section 3.5.2)", measures, table, found)]
