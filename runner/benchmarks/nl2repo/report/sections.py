"""Sections on NL2Repo-Bench: scores, failure taxonomy, interaction limits, documents against revealed tests."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from metrics import nl2repo
from metrics.failures import FAILURES
from runner.benchmarks.nl2repo.published_folder import PAPER_INSTRUCTION
from runner.benchmarks.nl2repo.report import figures
from runner.benchmarks.nl2repo.report.counts import counts
from runner.benchmarks.nl2repo.report.failed_tests import failed_tests
from runner.report.blocks import Block, Column, Picture, Section, Sections, Table, Text, Value, where
from runner.report.figures import grouped_bars, room
from runner.report.findings import Findings
from runner.report.leaderboard import lines
from runner.report.sections_scores import AGENT, MODEL, Measure, about, cell_table, figure
from runner.report.verdict_conditions import has
from runner.report.wording import model_name

REVEALED = "_revealed"
"""Suffix of the name of a dataset whose agents get the tests."""
PAPER = "_paper"
"""Suffix of the name of a dataset whose agents get the paper's instruction."""
OURS = "ours"
_ABOUT_PAPER = (
    "Our instruction warns of hidden tests and says that nobody answers questions; the paper's does neither. Cells "
    "whose instructions differ have different tasks."
)
_TURNS = re.compile(r"turns_(\d+|unlimited|none)(?:_|$)|^unlimited$")
"""Pattern of the budgets of Figure 9: as the experiment calls them, as swept limits are called, and the one without."""
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
    """Show the paper's Figure 3 and Tables 3 and 4."""
    table = nl2repo.overall(found.trials, found.scoring.attempts)
    values = lines(table)
    order = [cell for cell in found.names if cell in table.index]
    bars = (
        table.loc[order, ["score"]]
        .rename(index=found.names)
        .sort_values("score", ascending=False, kind="stable")
    )
    blocks: list[Block] = [
        Picture(
            "suite_scores",
            "Mean share of the published tests that pass, over the tasks planned, best first.",
            "Bars of the pass rate of each cell; the table has their values.",
            partial(grouped_bars, bars, ".1%", room(bars["score"]), "pass rate"),
        )
    ]
    instructed = _instructions(found)
    if set(instructed.values()) != {OURS}:
        blocks.append(Text(_ABOUT_PAPER))
    for stratum, caption in (("tier", "Table 3"), ("category", "Table 4")):
        names = _strata(table, stratum)
        heads = [
            Column("instruction", text=True),
            Column(
                "score",
                "mean share of the published tests that pass, over the tasks planned; no valid trial is 0",
            ),
            Column("whole", "Pass@1: tasks whose tests all pass, of the tasks planned"),
            *(Column(name.partition(" ")[2]) for name in names),
        ]
        rows = [
            [*about(cell, found), Value(instructed[at]), *_rates(values[at], names)]
            for at, cell in lines(found.cells).items()
        ]
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
    """Show the score by the limit on turns (Figure 9), from budgets named `turns_<n>` and those without a limit."""
    cells = found.contenders
    turns = cells["budget"].map(_turns).dropna()
    if turns.nunique() < 2:  # noqa: PLR2004 - one limit does not make a curve
        return None
    table = nl2repo.overall(found.trials, found.scoring.attempts)
    tiers = [name for name in ("tier easy", "tier medium", "tier hard", "tier unknown") if name in table]
    names = {cell: model_name(line) for cell, line in lines(cells).items()}
    points = pd.DataFrame({"agent": cells["agent"], "model": names, "turns": turns}).join(
        table[["score", *tiers]]
    )
    points = points.dropna(subset="turns").sort_values(["agent", "model", "turns"])
    columns = [
        AGENT,
        MODEL,
        Column("turns", "most that a trial may use"),
        Column("score"),
        *(Column(t[5:]) for t in tiers),
    ]
    rows = [
        [Value(line["agent"], line["agent"]), Value(line["model"], line["model"]), _limit(line["turns"]),
         *(figure(line[name], ".1%") for name in ("score", *tiers))]
        for line in lines(points).values()
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
        [picture, Table("Score by limit on turns (Figure 9)", columns, rows)],
    )


def _turns(budget: str) -> float:
    """Return the limit on turns that a budget's name gives: infinite without one, NaN if the name does not say."""
    limit = _TURNS.search(budget)
    if limit is None:
        return math.nan
    return float(limit[1]) if limit[1] and limit[1].isdecimal() else math.inf


def _limit(turns: float) -> Value:
    """Return a limit on turns; the absence of one sorts last."""
    return Value("unlimited" if math.isinf(turns) else f"{turns:.0f}", turns)


@of_suites
def revealed(found: Findings) -> Section | None:
    """Compare the document alone with document and tests (Table 8), which are two datasets of the sweep."""
    caption = "Document alone, and with the tests (Table 8)"
    words = ("input", "document", "document and tests")
    return _compared(found, REVEALED, ("suite-revealed", "tests revealed", caption), words)


@of_suites
def instructions(found: Findings) -> Section | None:
    """Compare our instruction with the paper's, which are two datasets of the sweep."""
    about_section = ("suite-instructions", "instructions", "Our instruction, and the paper's")
    return _compared(found, PAPER, about_section, ("instruction", OURS, "paper"))


def _compared(
    found: Findings, suffix: str, titles: tuple[str, str, str], words: tuple[str, str, str]
) -> Section | None:
    """Return a section that compares each dataset with the one whose name has `suffix` added; None without a pair.

    `titles` are the section's name and title and the table's caption, `words` the head of the column in which the
    datasets differ, and the word in it for the one without the suffix and for the one with it.
    """
    own = found.cells[~found.cells["bound"]]
    known = set(own["dataset"])
    bases = {each.removesuffix(suffix) for each in known if each.endswith(suffix)} & known
    if not bases:
        return None
    values = lines(nl2repo.overall(found.trials, found.scoring.attempts))
    tiers = [
        tier
        for tier in ("tier easy", "tier medium", "tier hard")
        if any(tier in row for row in values.values())
    ]
    head, without, with_it = words
    own = own[own["dataset"].str.removesuffix(suffix).isin(bases)]
    rows = [
        [*about(cell, found), Value(with_it if str(cell["dataset"]).endswith(suffix) else without),
         *_rates(values[at], tiers)]
        for at, cell in lines(own.sort_values(["agent", "model", "budget", "dataset"])).items()
    ]  # fmt: skip
    columns = [
        AGENT,
        MODEL,
        Column(head, text=True),
        Column("score"),
        Column("whole"),
        *(Column(t[5:]) for t in tiers),
    ]
    name, title, caption = titles
    return Section(name, f"Hidden suites: {title}", [Table(caption, columns, rows)])


def _instructions(found: Findings) -> dict[str, str]:
    """Return cell -> whose instruction its agent got, by the flags of its trials; "-" if none has a record."""
    flagged = has(found.trials, PAPER_INSTRUCTION).groupby(found.trials["cell"]).any()
    ran = found.trials["ran"].groupby(found.trials["cell"]).any()
    return {cell: "paper" if flagged[cell] else OURS if ran[cell] else "-" for cell in found.cells.index}


def _rates(row: Mapping[str, Any], strata: Sequence[str]) -> list[Value]:
    """Return the score, the number of whole tasks, and the score of each stratum."""
    whole = Value(f"{row['whole']:g}/{row['tasks']}", float(row["whole"]))
    return [figure(row["score"], ".1%"), whole, *(figure(row[name], ".1%") for name in strata)]


def _strata(table: pd.DataFrame, stratum: str) -> list[str]:
    order = {"easy": 0, "medium": 1, "hard": 2}
    names = [str(name) for name in table.columns if str(name).startswith(f"{stratum} ")]
    return sorted(names, key=lambda name: (order.get(name.partition(" ")[2], 9), name))


SECTIONS = Sections(
    dataset=(scores, of_suites(counts), failures, rounds),
    sweep=(revealed, instructions),
    trial=(failed_tests,),
)
