"""What pages list of a sweep that is too large to list whole."""

from __future__ import annotations

import pandas as pd
import pytest

from runner.report.blocks import Matrix, Text
from runner.report.findings import Findings, find
from runner.report.sections_matrix import matrix
from runner.report.shown_trials import shown_trials
from runner.report.trial_pages import list_pages
from runner.report.trial_sources import sweep_trials
from tests.report.plans import record, row, write_sweep

CELLS, TASKS = 5, 12


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """The findings of five cells on twelve tasks: the first `n` cells solve task `n` modulo 6."""
    outputs = tmp_path_factory.mktemp("many")
    planned = [row(f"agent-{cell}", f"easy-{task:02d}") for task in range(TASKS) for cell in range(CELLS)]
    records = {
        each.key: record(each, passed=at % CELLS < (at // CELLS) % 6) for at, each in enumerate(planned)
    }
    sweep = write_sweep(outputs, planned, records)
    plan, _, trials = sweep_trials(sweep, outputs)
    return find(plan, sweep, trials, {"cells": {}, "tasks": {}})


def test_a_small_sweep_is_shown_whole(found: Findings) -> None:
    part = shown_trials(found, CELLS * TASKS)
    assert part.about == ""
    assert part.trials is found.trials
    assert part.cells == tuple(found.cells.index)


def test_of_a_large_sweep_whole_boxes_of_the_most_telling_tasks_are_shown_trials(found: Findings) -> None:
    part = shown_trials(found, CELLS * 4 + 3)
    # Two or three of five cells solve these; the others are solved by fewer or by more.
    assert sorted(part.trials["task"].unique()) == ["easy-02", "easy-03", "easy-08", "easy-09"]
    assert (part.trials.groupby(["task", "cell"]).size() == 1).all()
    assert len(part.trials) == 4 * CELLS
    assert "4 of 12 tasks" in part.about
    assert "All 60 trials are in trials.csv" in part.about


def test_one_task_is_shown_even_if_it_is_too_large(found: Findings) -> None:
    assert len(set(shown_trials(found, 1).trials["task"])) == 1


def test_of_many_cells_the_best_are_shown_trials(found: Findings) -> None:
    part = shown_trials(found, CELLS * TASKS - 1, columns=2)
    assert part.cells == tuple(found.cells.index[:2])
    assert set(part.trials["cell"]) == set(part.cells)
    assert "first 2 of 5 cells" in part.about


def test_pages_say_what_they_leave_out_and_do_not_grow(found: Findings) -> None:
    assert "All 60 trials" in listed(found, 60)
    page = listed(found, 20)
    assert "20 of 60 trials" in page
    assert page.count('<th scope="row"') == 20
    assert "trials.parquet" in page
    more = found.trials.assign(task=found.trials["task"] + "b")
    twice = found._replace(trials=pd.concat([found.trials, more]))
    assert "20 of 120 trials" in listed(twice, 20)
    assert len(listed(twice, 20)) < 1.05 * len(page)
    left_out, table, _ = matrix(found, 20).blocks
    assert isinstance(left_out, Text)
    assert "4 of 12 tasks" in left_out.text
    assert isinstance(table, Matrix)
    assert table.caption == "4 tasks × 5 cells"


def listed(found: Findings, most: int) -> str:
    return list_pages(found, most)["trials/index.html"].decode()
