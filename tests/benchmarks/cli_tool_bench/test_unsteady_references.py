"""The differential verifier on references that print the time or random values, on real containers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.verifier import DETAILS
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
RANDOM = TOOL.replace(COUNTED, "import uuid; print(len(words), uuid.uuid4())")
LONG_AGO = "2001-01-01"


@pytest.fixture
def bench_of(tmp_path: Path, common: Path) -> Callable[[str], Bench]:
    """Return a function that makes a bench whose reference is this tool."""

    def bench_of(tool: str) -> Bench:
        base_image.ensure(connect(), print)
        make_tool_task(tmp_path / "tasks", tool=tool)
        return Bench(tmp_path, furnished(tmp_path / "cache", common), DockerSandboxes())

    return bench_of


def outcome(verdict: Verdict) -> tuple[float | None, float, float]:
    """Return the reward, the number of moving cases, and the number of varying ones."""
    return (
        verdict.reward,
        verdict.components["moving_cases"],
        verdict.components["unstable_cases"],
    )


def test_a_reference_that_prints_the_date_is_compared_on_the_same_day_and_failing_on_purpose_gains_nothing(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    """Its first output was once stored forever, so every candidate failed from the next day on, unflagged."""
    bench = bench_of(DATED)
    assert outcome(bench.judge("true", tmp_path)) == (0.0, 0, 0)
    (file,) = (bench.cache / "results").glob("*.json")
    stored = json.loads(file.read_text())
    for case in stored["cases"].values():
        words, on, _ = case["result"]["stdout"].partition(" on ")
        case["result"]["stdout"] = f"{words}{on}{LONG_AGO}" if on else words
        case["first"] = case["last"] = 0
    file.write_text(json.dumps(stored))
    assert outcome(bench.judge(REFERENCE, tmp_path)) == (1.0, 4, 0)
    wrong = DATED.replace("words.count(word)", "9").replace('time.strftime("%Y-%m-%d")', f"'{LONG_AGO}'")
    verdict = bench.judge(written(wrong), tmp_path)
    assert outcome(verdict) == (0.125, 4, 0), (
        "right only for the empty file, and the stored output no longer counts"
    )
    assert json.loads((tmp_path / DETAILS).read_text())["moving_lines"] == [5, 6, 7, 8]
    assert "the reference changes with the clock in line 5, 6, 7, 8" in verdict.output


def test_a_task_with_few_valid_cases_is_refused_and_a_crash_in_a_varying_case_still_counts(
    bench_of: Callable[[str], Bench], tmp_path: Path
) -> None:
    """A script that printed a constant once passed a task with one valid case, whose other cases could crash."""
    bench = bench_of(RANDOM)
    with pytest.raises(TaskError) as refused:
        bench.judge("true", tmp_path)
    reason = (
        "in 4 of 10 cases and in 1 of 2 classes (4 cases vary from run to run, it fails in 2); 50% of both"
    )
    assert reason in str(refused.value)
    (task,) = tool_dataset(tmp_path / "tasks", bench.cache).tasks()
    assert f"tally: {task.refused}" == str(refused.value), (
        "the next plan refuses the task before anybody pays"
    )
    right = bench.judge(REFERENCE, tmp_path, valid_share=0.4)
    assert (right.reward, right.components["exec"], right.components["state"]) == (1.0, 1.0, 1.0)
    assert (outcome(right), right.components["ended_undecided"]) == ((1.0, 0, 4), 4)
    assert "class LOG counts for exit codes alone" in right.output
    assert "the output of the reference varies in line 5, 6, 7, 8 and is not judged there" in right.output
    crash = bench.judge(written(RANDOM.replace("import uuid", "sys.exit(3)")), tmp_path, valid_share=0.4)
    assert (crash.reward, crash.components["exec"]) == (0.5, 0.5)
