"""Records and plan become a table whose denominator is the plan."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from runner.records import ErrorInfo, OwnUsage, Retry, Status, Usage, Verdict
from runner.report.projections import load_trials, what_ran
from runner.report.trials_table import trials_table
from tests.report.plans import record, row, sweep_of_four, write_sweep
from tests.support.records_factory import trial_record


def test_one_row_per_planned_trial_and_none_for_anything_else() -> None:
    planned, records = sweep_of_four()
    table = trials_table(planned[:5], records)
    assert table["key"].tolist() == [p.key for p in planned[:5]]


def test_a_trial_without_a_record_is_invalid_says_why_and_invents_no_figure() -> None:
    rows = [row("codex", "easy-1"), row("codex", "easy-2", refused="It needs a GPU.")]
    table = trials_table(rows, {})
    assert table["status"].tolist() == ["infra_invalid"] * 2
    assert table["reason"].tolist() == ["not run", "refused: It needs a GPU."]
    figures = ["reward", "passed", "tokens", "cost_usd", "turns", "wall_seconds", "finished_at", "retries"]
    assert table[figures].isna().all(axis=None)


def test_a_record_becomes_its_columns() -> None:
    planned = row("codex", "easy-1")
    retry = Retry(reason=ErrorInfo(type="EngineError", message="gone"), cost_usd=0.25)
    ended = record(
        planned,
        passed=False,
        status=Status.TIMEOUT,
        usage=Usage(input_tokens=100, cache_creation_tokens=20, cache_hit_tokens=30, output_tokens=7),
        verdict=Verdict(reward=0.0, components={"reward": 0.0, "build": 0.5, "turns": 3.0}),
        retries=(retry, retry),
        flags=("no_model_call", "verified_live"),
    )
    [line] = trials_table([planned], {planned.key: ended}).to_dict("records")
    assert line["cell"] == "codex·scripted_careful·quickstart·default"
    assert (line["tokens"], line["input_tokens"], line["cache_hit_tokens"]) == (107, 100, 30)
    assert (line["status"], line["outcome"], line["passed"]) == ("timeout", "failed (timeout)", False)
    assert (line["retries"], line["retry_cost_usd"]) == (2, 0.5)
    assert (line["build"], line["turns"], line["verifier_turns"]) == (0.5, 5, 3.0)
    assert (line["agent_seconds"], line["seconds_environment"], line["flags"]) == (
        15.0,
        1.0,
        "no_model_call verified_live",
    )
    assert "verifier_reward" not in line


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(OwnUsage(input_tokens=-3, output_tokens=1), -2), (OwnUsage(input_tokens=5), None), (None, None)],
)
def test_what_an_agent_does_not_say_of_its_tokens_is_no_agreement(
    difference: OwnUsage | None, expected: int | None
) -> None:
    planned = row("codex", "easy-1")
    table = trials_table([planned], {planned.key: record(planned, usage_difference=difference)})
    assert table["agent_tokens_difference"].equals(pd.Series([expected], dtype="Int64"))


def test_an_unknown_price_of_a_retry_is_unknown_and_not_zero() -> None:
    planned = row("codex", "easy-1")
    retries = tuple(Retry(reason=ErrorInfo(type="x", message="y"), cost_usd=cost) for cost in (0.25, None))
    table = trials_table([planned], {planned.key: record(planned, retries=retries, cost_usd=None)})
    assert table[["retry_cost_usd", "cost_usd"]].isna().all(axis=None)


def test_the_reason_is_one_line() -> None:
    planned = row("codex", "easy-1")
    error = ErrorInfo(type="ImageError", message="step 3\n  failed")
    ended = record(planned, passed=None, status=Status.INFRA_INVALID, error=error)
    assert trials_table([planned], {planned.key: ended})["reason"].tolist() == ["ImageError: step 3 failed"]


def test_csv_and_parquet_bring_back_what_is_missing_as_missing() -> None:
    table = trials_table(*sweep_of_four())
    again = pd.read_parquet(io.BytesIO(table.to_parquet(index=False)))
    pd.testing.assert_frame_equal(again, table, check_dtype=False)
    assert (
        pd.read_csv(io.StringIO(table.to_csv()))["passed"].isna().sum() == table["passed"].isna().sum() == 6
    )


def test_the_table_is_read_back_from_disk(tmp_path: Path) -> None:
    planned, records = sweep_of_four()
    _, trials = load_trials(write_sweep(tmp_path, planned, records), tmp_path)
    assert list(trials.index) == list(range(1, len(planned) + 1)), (
        "the rows of trials.csv, as a reader counts them"
    )
    pd.testing.assert_frame_equal(trials.reset_index(drop=True), trials_table(planned, records))


def test_the_lock_says_what_ran_by_cell_and_by_task() -> None:
    digests = {"agent": "a1", "model": "m1", "task": "t1", "image": "i1", "verifier_image": "a snapshot"}
    records = [
        trial_record("1" * 32, digests=digests),
        trial_record("2" * 32, digests=digests | {"image": "i2"}),
    ]
    assert what_ran(records) == {
        "cells": {"codex·glm·quickstart·default": {"agent": ["a1"], "model": ["m1"]}},
        "tasks": {"quickstart/a": {"image": ["i1", "i2"], "task": ["t1"]}},
    }
