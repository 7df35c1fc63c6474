"""The section on suites of which upstream passes another number of tests here than is published."""

from __future__ import annotations

from metrics import nl2repo
from runner.report.blocks import Column, Section, Table, Value
from runner.report.findings import Findings
from runner.report.sections_scores import Measure, cell_table, figure


def counts(found: Findings) -> Section | None:
    """Show both numbers of each such suite, and the scores by either."""
    numbers = nl2repo.counts(found.trials)
    if numbers.empty:
        return None
    measures = [
        Measure(
            "score", "score", ".1%", "share of the tests that upstream passes here, over the tasks planned"
        ),
        Measure(
            "by published count",
            "by_published",
            ".1%",
            "the same, with the published number of tests as the denominator",
        ),
    ]
    scores = nl2repo.by_either_count(found.trials, found.scoring.attempts)
    columns = [
        Column("task", text=True),
        Column("counted", "tests that upstream passes here: the score is over these"),
        Column("published", "tests that the authors publish"),
    ]
    rows = [
        [Value(str(task)), figure(float(row["counted"]), ".0f"), figure(float(row["published"]), ".0f")]
        for task, row in numbers.to_dict("index").items()
    ]
    return Section(
        "suite-counts",
        "Hidden suites: counts that differ",
        [
            cell_table("Scores by either count", measures, scores, found),
            Table("Tasks flagged count_differs", columns, rows),
        ],
    )
