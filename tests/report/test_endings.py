"""Endings of trials in the terminal and in the report; they used to be in records and CSV alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from metrics.uncertainty import bootstrap
from runner.records import PlannedRow, Status, TrialRecord
from runner.report.blocks import Table
from runner.report.leaderboard import cell_scores, leaderboard_text
from runner.report.page import write_report
from runner.report.sections_endings import how_trials_ended
from runner.report.trial_endings import ending_lines
from runner.report.trials_table import trials_table
from tests.report.conftest import findings
from tests.report.plans import SCORING, TASKS, record, row, sweep_of_four

Plan = tuple[list[PlannedRow], dict[str, TrialRecord]]


@pytest.fixture
def flagged() -> Plan:
    planned, records = sweep_of_four()
    mini = [p for p in planned if p.agent == "mini_swe_agent" and p.key in records]
    changed = {
        p.key: record(p, passed=False, status=Status.AGENT_ERROR, flags=("out_of_memory", "egress_refused"))
        for p in mini[:2]
    }
    return planned, records | changed


def test_statuses_and_flags_stand_beneath_the_leaderboard(flagged: Plan) -> None:
    trials = trials_table(*flagged)
    draws = bootstrap(trials, SCORING)
    text = leaderboard_text(trials, cell_scores(trials, SCORING, draws), draws, SCORING)
    lines = " ".join(text.split())
    assert "How trials ended, where not all completed or some are flagged:" in lines
    assert (
        "mini_swe_agent·scripted_careful·quickstart·default: completed 3, agent_error 2, not run 1, refused 1; flags: "
        "out_of_memory 2, egress_refused 2"
    ) in lines
    assert (
        "codex·scripted_careful·quickstart·default: completed 4, timeout 1, infra_invalid 1, refused 1"
        in lines
    )


def test_statuses_and_flags_are_a_table_of_the_page(tmp_path: Path, flagged: Plan) -> None:
    found = findings(tmp_path, *flagged)
    table = how_trials_ended(found).blocks[0]
    assert isinstance(table, Table)
    heads = [column.title for column in table.columns]
    assert heads[2:] == [
        "completed", "agent_error", "timeout", "infra_invalid", "not run", "refused", "egress_refused", "out_of_memory"
    ]  # fmt: skip
    rows = {line[0].text: [value.text for value in line[2:]] for line in table.rows}
    assert rows["mini_swe_agent"] == ["3", "2", "-", "-", "1", "1", "2", "2"]
    assert 'id="endings"' in write_report(found).read_text()


def test_nothing_is_said_where_all_ended_well() -> None:
    planned = [row("codex", task) for task in TASKS]
    trials = trials_table(planned, {p.key: record(p) for p in planned})
    assert list(ending_lines(trials, trials["cell"].unique())) == []


def test_an_import_has_no_flags() -> None:
    planned = [row("codex", task) for task in TASKS]
    trials = trials_table(planned, {}).drop(columns="flags", errors="ignore")
    assert list(ending_lines(trials, trials["cell"].unique()))[1].endswith(": not run 6")
