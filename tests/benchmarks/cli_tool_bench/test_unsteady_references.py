"""The differential verifier on references that print the time or draw lots, on real containers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.verifier import FOUND
from runner.errors import TaskError
from runner.records import Verdict
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.benchmarks.cli_tool_bench.test_verifier import REFERENCE, Bench, written
from tests.support.tool_task_factory import TOOL, furnished, make_tool_task, tool_dataset

pytestmark = pytest.mark.docker

COUNTED = 'print(len(words), "words")'
DATED = TOOL.replace(COUNTED, 'import time; print(len(words), "words on", time.strftime("%Y-%m-%d"))')
LOTS = TOOL.replace(COUNTED, "import uuid; print(len(words), uuid.uuid4())")
LONG_AGO = "2001-01-01"


@pytest.fixture
def bench_of(tmp_path: Path, common: Path) -> Callable[[str], Bench]:
    """Makes a bench whose reference is this tool."""

    def bench_of(tool: str) -> Bench:
        base_image.ensure(connect(), print)
        make_tool_task(tmp_path / "tasks", tool=tool)
        return Bench(tmp_path, furnished(tmp_path / "cache", common), DockerSandboxes())

    return bench_of


def found(verdict: Verdict) -> tuple[float | None, float, float]:
    """Reward, cases that are looked at beside the candidate, cases in which something decides nothing."""
    return (
        verdict.reward,
        verdict.components["moving_cases"],
        verdict.components["unstable_cases"],
    )


def test_a_reference_that_prints_the_date_is_judged_by_todays_and_who_differs_on_purpose_gains_nothing(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    """From the next day on everybody failed, unflagged: what it had printed was kept for ever."""
    bench = bench_of(DATED)
    assert found(bench.judge("true", tmp_path)) == (0.0, 0, 0)
    (kept,) = (bench.cache / "results").glob("*.json")
    today = json.loads(kept.read_text())
    for seen in today["cases"].values():
        words, on, _ = seen["result"]["stdout"].partition(" on ")
        seen["result"]["stdout"] = f"{words}{on}{LONG_AGO}" if on else words
        seen["first"] = seen["last"] = 0
    kept.write_text(json.dumps(today))
    assert found(bench.judge(REFERENCE, tmp_path)) == (1.0, 4, 0)
    wrong = DATED.replace("words.count(word)", "9").replace('time.strftime("%Y-%m-%d")', f"'{LONG_AGO}'")
    verdict = bench.judge(written(wrong), tmp_path)
    assert found(verdict) == (0.125, 4, 0), (
        "right in the empty file alone, and what is kept is no answer any more"
    )
    assert json.loads((tmp_path / FOUND).read_text())["moving_lines"] == [5, 6, 7, 8]
    assert "the reference moves with the clock in line 5, 6, 7, 8" in verdict.output


def test_a_task_that_rests_on_few_cases_is_refused_and_a_crash_where_lots_are_drawn_still_counts(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    """A script that printed a constant passed a task of which one case was left; a crash in the others was no loss."""
    bench = bench_of(LOTS)
    with pytest.raises(TaskError) as refused:
        bench.judge("true", tmp_path)
    said = "in 4 of 10 cases and in 1 of 2 classes (4 cases vary from run to run, it fails in 2); 50% of both"
    assert said in str(refused.value)
    (task,) = tool_dataset(tmp_path / "tasks", bench.cache).tasks()
    assert f"tally: {task.refused}" == str(refused.value), "the next plan says so before anybody pays"
    right = bench.judge(REFERENCE, tmp_path, valid_share=0.4)
    assert (right.reward, right.components["exec"], right.components["state"]) == (1.0, 1.0, 1.0)
    assert (found(right), right.components["ended_undecided"]) == ((1.0, 0, 4), 4)
    assert "class LOG counts for exit codes alone" in right.output
    assert "the output of the reference varies in line 5, 6, 7, 8" in right.output
    crash = bench.judge(written(LOTS.replace("import uuid", "sys.exit(3)")), tmp_path, valid_share=0.4)
    assert (crash.reward, crash.components["exec"]) == (0.5, 0.5)
