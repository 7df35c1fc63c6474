"""Sections on NL2Repo-Bench: scores, failure taxonomy, interaction limits, documents against revealed tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from metrics import nl2repo
from metrics.failures import FAILURES
from runner.benchmarks.nl2repo.report import figures
from runner.benchmarks.nl2repo.report.counts import counts
from runner.benchmarks.nl2repo.report.failed_tests import failed_tests
from runner.report.blocks import Block, Column, Picture, Section, Sections, Table, Value, where
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, Measure, about, cell_table, figure

REVEALED = "_revealed"
"""Suffix of the name of a dataset whose agents get the tests."""
_TURNS = re.compile(r"turns_(\d+)")
_KINDS = {
    "import": "a module or dependency is missing",
    "signature": "an attribute, name or argument that the tests use is missing",
    "assertion": "the code runs and does something else",
    "timeout": "the suite's time limit",
    "other": "any other exception, and tests of which nothing was heard",
}


of_suites = where(nl2repo.scored)
"""Decorator of sections on datasets with hidden suites."""


@of_suites
def scores(found: Findings) -> Section:
    """Show the paper's Tables 3 and 4."""
    table = nl2repo.overall(found.trials, found.scoring.attempts)
    values = lines(table)
    blocks: list[Block] = []
    for stratum, caption in (("tier", "Table 3"), ("category", "Table 4")):
        names = _strata(table, stratum)
        heads = [
            Column(
                "score",
                "mean share of the published tests that pass, over the tasks planned; no valid trial is 0",
            ),
            Column("whole", "Pass@1: tasks whose tests all pass, of the tasks planned"),
            *(Column(name.partition(" ")[2]) for name in names),
        ]
        rows = [[*about(cell, found), *_rates(values[at], names)] for at, cell in lines(found.cells).items()]
        blocks.append(Table(f"Pass rate by {stratum} ({caption} of the paper)", [AGENT, MODEL, *heads], rows))
    return Section("suites", "Hidden suites: pass rates", blocks)


@of_suites
def failures(found: Findings) -> Section:
    """Show why tests fail (section 4.3.7)."""
    measures = [
        Measure("failed", "failed", ".0f", "expected tests that did not pass, over valid trials"),
        Measure("of", "of", ".0f", "tests expected in these trials"),
        *(Measure(kind, kind, ".1%", f"share of the failed ones: {_KINDS[kind]}") for kind in FAILURES),
    ]
    table = cell_table("Failures", measures, nl2repo.failures(found.trials), found)
    return Section("suite-failures", "Hidden suites: why tests fail", [table])


@of_suites
def rounds(found: Findings) -> Section | None:
    """Show the score by the limit on turns (Figure 9), from budgets named `turns_<n>`."""
    cells = found.contenders
    limits = cells["budget"].str.extract(_TURNS, expand=False)
    if limits.nunique() < 2:  # noqa: PLR2004 - one limit does not make a curve
        return None
    table = nl2repo.overall(found.trials, found.scoring.attempts)
    tiers = [name for name in ("tier easy", "tier medium", "tier hard", "tier unknown") if name in table]
    points = (
        cells[["agent", "model"]]
        .assign(turns=limits.astype(float))
        .join(table[["score", *tiers]])
        .dropna(subset="turns")
    )
    points = points.sort_values(["agent", "model", "turns"])
    columns = [
        AGENT,
        MODEL,
        Column("turns", "most that a trial may use"),
        Column("score"),
        *(Column(t[5:]) for t in tiers),
    ]
    rows = [
        [Value(str(row["agent"]), str(row["agent"])), Value(str(row["model"]), str(row["model"])),
         figure(float(row["turns"]), ".0f"), figure(float(row["score"]), ".1%"),
         *(figure(float(row[tier]), ".1%") for tier in tiers)]
        for row in points.to_dict("records")
    ]  # fmt: skip
    picture = Picture(
        "suite_rounds",
        "Score against the most turns that a trial may use, a line a tier; one panel an agent and model.",
        "Lines of the score against the limit on turns; their values are in the table beneath.",
        partial(figures.rounds, points, tiers),
    )
    return Section(
        "suite-rounds",
        "Hidden suites: limits on turns",
        [picture, Table("Score by limit on turns", columns, rows)],
    )


@of_suites
def revealed(found: Findings) -> Section | None:
    """Compare the document alone with document and tests (Table 8), which are two datasets of the sweep."""
    own = found.cells[~found.cells["bound"]]
    names = {
        name
        for name in own["dataset"]
        if name.endswith(REVEALED) and name.removesuffix(REVEALED) in set(own["dataset"])
    }
    if not names:
        return None
    values = lines(nl2repo.overall(found.trials, found.scoring.attempts))
    tiers = [
        tier
        for tier in ("tier easy", "tier medium", "tier hard")
        if any(tier in row for row in values.values())
    ]
    own = own[own["dataset"].str.removesuffix(REVEALED).isin({name.removesuffix(REVEALED) for name in names})]
    rows = [
        [*about(cell, found), Value("document and tests" if str(cell["dataset"]).endswith(REVEALED) else "document"),
         *_rates(values[at], tiers)]
        for at, cell in lines(own.sort_values(["agent", "model", "budget", "dataset"])).items()
    ]  # fmt: skip
    columns = [
        AGENT,
        MODEL,
        Column("input", text=True),
        Column("score"),
        Column("whole"),
        *(Column(t[5:]) for t in tiers),
    ]
    return Section(
        "suite-revealed",
        "Hidden suites: tests revealed",
        [Table("Document alone, and with the tests", columns, rows)],
    )


def _rates(row: Mapping[str, Any], strata: Sequence[str]) -> list[Value]:
    """Return the score, the number of whole tasks, and the score of each stratum."""
    whole = Value(f"{row['whole']:g}/{row['tasks']}", float(row["whole"]))
    return [figure(row["score"], ".1%"), whole, *(figure(row[name], ".1%") for name in strata)]


def _strata(table: pd.DataFrame, stratum: str) -> list[str]:
    order = {"easy": 0, "medium": 1, "hard": 2}
    names = [str(name) for name in table.columns if str(name).startswith(f"{stratum} ")]
    return sorted(names, key=lambda name: (order.get(name.partition(" ")[2], 9), name))


SECTIONS = Sections(
    dataset=(scores, of_suites(counts), failures, rounds), sweep=(revealed,), trial=(failed_tests,)
)
