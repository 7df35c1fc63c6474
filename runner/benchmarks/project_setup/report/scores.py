"""Sections on ExecutionAgent's benchmark: projects built and tested, overall, one by one and by language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import nan
from typing import Any

import pandas as pd

from metrics import execution
from metrics.deviations import CLOSE
from metrics.execution import OUTCOMES, STEPS
from runner.benchmarks.project_setup.report import work as agents_work
from runner.benchmarks.project_setup.report.trial_deliverables import deliverables
from runner.report import figures
from runner.report.blocks import Block, Column, Picture, Section, Sections, Table, Text, Value, where
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, Measure, about, cell_table, figure
from runner.report.wording import span, usd

WHOLE = "execution_agent"
"""Name of the whole agent; the names of its variants begin with it (Table 3)."""
_STEPS = (
    Column(
        "built", "of the projects planned: the image was built, and the project in it; beneath, the interval"
    ),
    Column("executed", "at least one of the project's tests was executed"),
    Column("close", f"mean deviation from the truth below {CLOSE:g} %"),
    Column(
        "close, passed",
        f"deviation of the passed tests alone below {CLOSE:g} %: the reading that gives the paper's 29",
    ),
    Column("identical", "passed, failed and skipped are the true numbers"),
)
_USD = Column("USD", "mean of a valid trial; a dash where one's cost is unknown")
_SETTING = Column("setting", "the paper's way or ours, and the values that differ from it", text=True)
_MARKS = {
    "in colour": "the true numbers",
    "+": "built, no test executed",
    "-": "not built",
    "not run": "no valid trial; counts as not built",
}
_PIECES = ("not built", "built only", "executed")

of_projects = where(execution.scored)


@of_projects
def effectiveness(found: Findings) -> Section:
    """Show the paper's Table 2; deviations, costs and sizes of scripts (sections 3.2, 3.3, 3.5.3)."""
    values = lines(_values(found))
    columns, ways = _ways(found)
    rows = [
        [*about(cell, found), *ways(at), *_reached(values[at]), figure(values[at]["usd"], usd),
         figure(values[at]["seconds"] / 60, ".1f")]
        for at, cell in lines(found.cells).items()
    ]  # fmt: skip
    minutes = Column("minutes", "of the agent's work, mean of a valid trial")
    note = (
        "A project without a valid trial counts as not built. Of several attempts "
        + ("the latest counts. " if found.scoring.attempts == "latest_completed" else "their mean counts. ")
        + f"Intervals: Wilson, {found.scoring.confidence:.0%}."
    )
    table = Table(
        "How far projects were brought (Table 2)", [AGENT, MODEL, *columns, *_STEPS, _USD, minutes], rows
    )
    measured = [part for part in (_distances(found), _agreement(found)) if part.rows]
    blocks: list[Block] = [table, Text(note), *measured, _scripts(found, values), *_costs(found)]
    return Section("projects", "Projects: built and tested", blocks)


def _ways(found: Findings) -> tuple[list[Column], Callable[[str], list[Value]]]:
    """Return the column of the agents' settings, and a cell's entry in it; both are empty if no agent has settings."""
    if "agent_setting" not in found.trials:
        return [], lambda _: []
    said = found.trials[found.trials["agent_setting"].fillna("") != ""]
    settings = {str(cell): "; ".join(sorted(set(own))) for cell, own in said.groupby("cell")["agent_setting"]}
    if not settings:
        return [], lambda _: []
    return [_SETTING], lambda cell: [Value(settings.get(cell, "-"), settings.get(cell, ""))]


def _values(found: Findings) -> pd.DataFrame:
    """Return `execution.overall` and `execution.spent`; index cell."""
    scoring = found.scoring
    reached = execution.overall(found.trials, scoring.attempts, scoring.confidence)
    return reached.join(execution.spent(found.trials))


def _reached(values: Mapping[str, float]) -> list[Value]:
    """Return `STEPS` of a cell: how many of the planned projects, with the interval of the share."""
    return [
        Value(f"{values[step]:.3g}/{values['planned']:g}", values[step] / values["planned"],
              span(values[f"{step}_low"], values[f"{step}_high"], ".0%"))
        for step in STEPS
    ]  # fmt: skip


def _distances(found: Findings) -> Table:
    measures = [
        Measure("trials", "trials", ".0f", "valid ones that executed tests of a project with a known truth"),
        Measure("identical", "identical", ".0f",
                "of them, with the true numbers; the columns that follow are of the others"),
        Measure("deviation, %", "deviation", ".1f",
                "mean of passed, failed and skipped, |agent - truth| / truth each, where defined"),
        Measure("total deviation, %", "total_deviation", ".1f",
                "differences of all three / tests of the truth; always defined"),
        Measure("undefined", "undefined", ".0f",
                "trials with a number above 0 where the truth is 0, which their deviation leaves out"),
    ]  # fmt: skip
    return cell_table("How far off the truth", measures, execution.distances(found.trials), found)


def _agreement(found: Findings) -> Table:
    measures = [
        Measure("trials", "trials", ".0f", "valid ones whose tests and truth are known by name"),
        Measure("tests", "compared", ".0f", "of the trial or of the truth"),
        Measure("same", "share", ".2%", "with the same outcome in both"),
    ]
    title = "Agreement test by test (section 3.2)"
    return cell_table(title, measures, execution.agreement(found.trials), found)


def _costs(found: Findings) -> list[Picture]:
    """Return the paper's Figure 9, if any cost is known."""
    names = {"usd": "all", "usd_executed": "tests executed", "usd_rest": "not executed"}
    spent = execution.spent(found.trials)[list(names)].rename(columns=names).dropna(how="all")
    spent = spent.loc[[cell for cell in found.cells.index if cell in spent.index]]
    most = float(spent.max().max()) if not spent.empty else 0.0
    if not most:
        return []
    return [
        Picture(
            "projects_costs",
            "USD of a valid trial, mean: of all, of those that executed tests, and of the others (Figure 9).",
            "Groups of bars of costs by cell; their values are in the tables.",
            partial(figures.grouped_bars, spent.rename(index=found.names), ".2f", 1.1 * most, "USD"),
        )
    ]


def _scripts(found: Findings, values: Mapping[str, Mapping[str, float]]) -> Table:
    columns = [
        AGENT, MODEL, Column("commands", "of the scripts that executed tests, mean; without comments and echo"),
        Column("min"), Column("max"), Column("USD, executed", "mean of a valid trial that executed tests (Figure 9)"),
        Column("USD, not", "mean of the other valid trials"), Column("refused", "trials whose results do not count"),
        Column("wrong accounts", "the agent's own numbers are not those that were seen; of those that it gave"),
    ]  # fmt: skip
    rows = [
        [*about(cell, found), *(figure(row[name], ".3g") for name in ("script", "script_min", "script_max")),
         figure(row["usd_executed"], usd), figure(row["usd_rest"], usd), figure(row["refused"], ".0f"),
         Value(f"{row['wrong']:g}/{row['accounts']:g}", row["wrong"]) if row["accounts"] > 0 else figure(nan)]
        for cell, row in ((cell, values[at]) for at, cell in lines(found.cells).items())
    ]  # fmt: skip
    return Table("Scripts, what success costs, and what agents say", columns, rows)


@of_projects
def each_project(found: Findings) -> Section:
    """Show the paper's Table 1."""
    table = execution.projects(found.trials).loc[list(found.cells.index)]
    names = ("tests", *OUTCOMES)
    truth, agent = [Column(f"true {name}") for name in names], [Column(name) for name in names]
    columns = [Column("project", text=True), Column("language", text=True), *truth, AGENT, MODEL, *agent]
    rows = [
        [Value(task, task), Value(row["language"], row["language"]), *_numbers(row, "truth"),
         *about(found.cells.loc[at], found), *_results(row)]
        for (at, task), row in lines(table).items()
    ]  # fmt: skip
    rows.sort(key=lambda row: row[0].text)  # the cells of a project stay in their order
    note = Text("; ".join(f"{mark}: {meaning}" for mark, meaning in _MARKS.items()))
    table_1 = Table("Tests of each project (Table 1)", columns, rows)
    return Section("projects-each", "Projects: one by one", [table_1, note])


def _numbers(row: Mapping[str, Any], whose: str) -> list[Value]:
    """Return the number of tests, and how many passed, failed and were skipped."""
    numbers = [row[f"{whose}_{name}"] for name in OUTCOMES]
    return [figure(number, ".0f") for number in (sum(numbers), *numbers)]


def _results(row: Mapping[str, Any]) -> list[Value]:
    """Return the agent's numbers, or its mark in the place of each as in the paper."""
    if row["mark"] != "":
        return [Value("not run" if pd.isna(row["mark"]) else row["mark"], tone="muted")] * (len(OUTCOMES) + 1)
    same = all(row[f"agent_{name}"] == row[f"truth_{name}"] for name in OUTCOMES)
    return [value._replace(tone="best" if same else "") for value in _numbers(row, "agent")]


@of_projects
def ablation(found: Findings) -> Section | None:
    """Show the paper's Table 3: the agent, and its variants that lack a part."""
    cells = found.contenders
    cells = cells[cells["agent"].str.startswith(WHOLE)]
    if cells["agent"].nunique() < 2:  # noqa: PLR2004 - one alone cannot be compared
        return None
    values = lines(_values(found))
    columns, ways = _ways(found)
    rows = [
        [*about(cell, found), *ways(at), *_reached(values[at]), figure(values[at]["usd"], usd)]
        for at, cell in lines(cells.sort_values(["model", "agent"])).items()
    ]
    table = Table(
        "The agent without one of its parts (Table 3)", [AGENT, MODEL, *columns, *_STEPS, _USD], rows
    )
    return Section("projects-ablation", "Projects: what each part of the agent is worth", [table])


@of_projects
def languages(found: Findings) -> Section:
    """Show the paper's Figure 8."""
    table = execution.by_language(found.trials, found.scoring.attempts).loc[list(found.cells.index)]
    columns = [Column("language", text=True), AGENT, MODEL, Column("projects", "planned, by their main language"),
               Column("built"), Column("executed", "at least one of their tests")]  # fmt: skip
    left = {"not": table["planned"] - table["built"], "only": table["built"] - table["executed"]}
    names = [f"{found.names[at]} · {language}" for at, language in table.index]
    parts = pd.DataFrame({**left, "all": table["executed"]}).set_axis(names)
    picture = Picture(
        "projects_languages",
        "Projects of each main language: not built, built without a test executed, tests executed.",
        "Stacked bars of projects by language; their values are in the table beneath.",
        partial(figures.stacked, parts, _PIECES, "projects", "g", float(table["planned"].max())),
    )
    return Section(
        "projects-languages",
        "Projects: by language",
        [picture, Table("By language (Figure 8)", columns, _reached_by_group(table, found))],
    )


@of_projects
def strata(found: Findings) -> Section:
    """Show projects by build tool, submodules and CI (sections 3.1.3 and 3.2)."""
    return Section(
        "projects-strata",
        "Projects: by what they bring",
        [_stratum(name, found) for name in execution.STRATA],
    )


def _stratum(name: str, found: Findings) -> Table:
    table = execution.by_stratum(found.trials, found.scoring.attempts, name).loc[list(found.cells.index)]
    columns = [Column(name, "read from the project's tree by the verifier", text=True), AGENT, MODEL,
               Column("projects", "planned"), Column("built"), Column("executed", "one test at least")]  # fmt: skip
    return Table(f"By {name}", columns, _reached_by_group(table, found))


def _reached_by_group(table: pd.DataFrame, found: Findings) -> list[list[Value]]:
    """Return a row for each group of projects and cell (the index of `table`), the cells of a group together."""
    rows = [
        [Value(group, group), *about(found.cells.loc[at], found), figure(row["planned"], ".0f"),
         figure(row["built"], ".3g"), figure(row["executed"], ".3g")]
        for (at, group), row in lines(table).items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: row[0].text)


SECTIONS = Sections(
    dataset=(effectiveness, each_project, ablation, languages, strata, agents_work.work),
    trial=(deliverables,),
)
