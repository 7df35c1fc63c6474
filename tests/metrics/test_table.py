"""Validity, selection and figures of a cell, on tables small enough to work out by hand."""

from __future__ import annotations

import io
import math

import pandas as pd
import pytest

from metrics.table import other_tasks, per_task, select, summary, valid
from tests.metrics.tables import line, table, trial


@pytest.mark.parametrize(
    ("status", "counts"),
    [
        ("completed", True),
        ("agent_error", True),
        ("timeout", True),
        ("budget_exceeded", True),
        ("infra_invalid", False),
        ("cancelled", False),
    ],
)
def test_only_endings_of_the_cells_own_doing_count(status: str, *, counts: bool) -> None:
    assert valid(table(trial("easy-1", 0.0, status=status))).tolist() == [counts]


def test_a_trial_that_nobody_judged_does_not_count() -> None:
    assert not valid(table(trial("easy-1", None, status="completed"))).any()


def test_the_latest_valid_attempt_counts_and_an_invalid_later_one_does_not() -> None:
    trials = table(
        trial("easy-1", 0.0, attempt=1, finished_at="2026-01-03T00:00:00Z"),
        trial("easy-1", 1.0, attempt=2, finished_at="2026-01-02T23:00:00-02:00"),
        trial("easy-1", None, attempt=3, finished_at="2026-01-09T00:00:00Z"),
    )
    assert select(trials, "latest_completed")["attempt"].tolist() == [2]


def test_a_tie_in_time_goes_to_the_greater_attempt() -> None:
    trials = table(trial("easy-1", attempt=2), trial("easy-1", attempt=1))
    assert select(trials, "latest_completed")["attempt"].tolist() == [2]


def test_mean_weighs_the_valid_attempts_of_a_task_equally() -> None:
    trials = table(
        trial("easy-1", 1.0, attempt=1),
        trial("easy-1", 0.0, attempt=2),
        trial("easy-1", None, attempt=3),
        trial("easy-2", 1.0),
    )
    assert select(trials, "mean")["weight"].tolist() == [0.5, 0.5, 1.0]
    cell = line(summary(trials, "mean"), "a")
    assert (cell["planned"], cell["valid"], cell["passes"], cell["mean_reward"]) == (2, 2, 1.5, 0.75)


def test_summary_by_hand() -> None:
    trials = table(
        trial("easy-1", 1.0, 0.10, tokens=1000, turns=2),
        trial("easy-2", 0.5, 0.30, tokens=3000, turns=4),
        trial("hard-1", None, 5.00, tokens=9000),
        trial("hard-2", 1.0, 0.20, tokens=2000, turns=6),
    )
    cell = line(summary(trials, "latest_completed"), "a")
    assert cell[["planned", "valid", "coverage", "passes", "pass_rate"]].tolist() == [4, 3, 0.75, 2, 0.5]
    assert cell["mean_reward"] == 2.5 / 4
    assert cell["tokens_per_pass"] == 3000  # of the three valid trials; the invalid one is nobody's doing
    assert cell["usd_per_pass"] == pytest.approx(0.30)
    assert cell["turns"] == 4


def test_spend_per_pass_takes_passes_of_all_attempts_and_so_does_not_depend_on_the_selection() -> None:
    trials = table(trial("easy-1", 1.0, 0.1, attempt=1), trial("easy-1", 1.0, 0.3, attempt=2))
    assert line(summary(trials, "latest_completed"), "a")["usd_per_pass"] == pytest.approx(0.2)
    assert line(summary(trials, "mean"), "a")["usd_per_pass"] == pytest.approx(0.2)


def test_no_pass_is_infinitely_dear_even_if_nothing_was_spent() -> None:
    cell = line(summary(table(trial("easy-1", 0.0, 0.0, tokens=0)), "latest_completed"), "a")
    assert cell["usd_per_pass"] == cell["tokens_per_pass"] == math.inf


def test_one_unknown_cost_makes_usd_per_pass_unknown_and_not_cheaper() -> None:
    cell = line(summary(table(trial("easy-1"), trial("easy-2", cost=None)), "latest_completed"), "a")
    assert math.isnan(cell["usd_per_pass"])
    assert cell["tokens_per_pass"] == 100


def test_a_cell_without_any_valid_trial_is_still_there() -> None:
    trials = table(trial("easy-1"), trial("easy-1", None, None, cell="b"))
    cell = line(summary(trials, "latest_completed"), "b")
    assert cell[["planned", "valid", "passes"]].tolist() == [1, 0, 0]
    assert cell[["usd_per_pass", "tokens_per_pass"]].isna().all()  # unknown, not "no pass"
    assert math.isnan(cell["turns"])


def test_a_table_read_from_csv_gives_the_same() -> None:
    trials = table(trial("easy-1"), trial("easy-2", None, None), trial("hard-1", 0.0, cell="b"))
    again = pd.read_csv(io.StringIO(trials.to_csv(index=False)))
    pd.testing.assert_frame_equal(summary(again, "latest_completed"), summary(trials, "latest_completed"))


def test_of_tasks_that_equally_many_cells_planned_the_larger_set_is_the_others() -> None:
    rows = [
        trial(task, cell=cell) for cell, tasks in {"a": ("x", "y"), "b": ("x",)}.items() for task in tasks
    ]
    elsewhere = [trial("z", cell="c", dataset="other")]
    assert other_tasks(table(*rows, *elsewhere)) == {"b"}
    assert other_tasks(table(*rows, trial("x", cell="d"))) == {"a"}
    assert other_tasks(table(*rows, trial("y", cell="b"), trial("x", cell="b", attempt=2))) == frozenset()
    assert other_tasks(table(*rows, trial("x", cell="d"))[:0]) == frozenset()


def test_summary_of_parts_that_are_known_is_the_same() -> None:
    trials = table(trial("easy-1"), trial("easy-2", 0.0, None), trial("easy-1", 0.0, 0.2, cell="b"))
    parts = per_task(trials, select(trials, "mean"), ["reward", "passed"])
    pd.testing.assert_frame_equal(summary(trials, "mean", parts), summary(trials, "mean"))
    none = parts.assign(reward=0.0, passed=0.0)
    assert summary(trials, "mean", none)["passes"].sum() == 0  # they are read, and not computed again
