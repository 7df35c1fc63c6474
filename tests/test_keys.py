"""Trial keys that must not change: a changed key runs everybody's finished trials again.

A test fails here when a task's content or its recipe of digests has changed. The first is a reason to write down the
new key; the second needs a reason of its own, and a line in the changelog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.benchmarks.nl2repo.verifier import SuiteVerifier
from runner.benchmarks.project_setup.verifier import ProjectSetupVerifier
from runner.resources import ROOT
from runner.sweeps.plan import trial_key
from tests.support import project_factory, suite_factory, tasks_factory, tool_task_factory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from runner.records import Task

SEPARATE = """
    artifacts = ["/app"]
    [agent]
    user = "1000"
    [verifier]
    environment_mode = "separate"
    [verifier.env]
    LEVEL = "2"
"""


class ProjectJudge(ProjectSetupVerifier):
    """A judge whose own sources are not part of a key: an edit of them is meant to change keys."""

    @property
    def shaping(self) -> dict[str, str]:
        return {"judge": "fixed"}


class SuiteJudge(SuiteVerifier):
    """The same for hidden suites."""

    @property
    def shaping(self) -> dict[str, str]:
        return super().shaping | {"judge": "fixed"}


def keys(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the key of each task's first attempt in a cell that never changes."""
    return {task.name: trial_key("cell", task, 1) for task in tasks if not task.refused}


def test_keys_of_quickstart() -> None:
    assert keys(tasks_factory.dataset(ROOT / "tasks" / "quickstart").tasks()) == {
        "decode-telemetry": "932613426adcb59bcd739c9eba5eb51a",
        "git-archaeology": "a04d7fb21a3c83168808c00e3703ab84",
        "logs-to-csv": "eaa433acead3cf1714723d7bd66148a1",
        "package-spans": "4460c6e652caad66bb5be384543c2127",
        "pipeline-talkers": "5ec2a2837ebcdcfa38594e400c236f05",
        "release-chores": "47e79e5ec3841c0f94629921781da576",
        "repair-till": "b265968d6ba4fe7e9fa2ae7453e9b294",
        "speed-up-rollup": "7003b67cfe61c670195d0e10c79c4048",
        "sqlite-shop": "ebdcfb2cb0086847300e870d8daf0436",
    }


def test_keys_of_a_harbor_task_that_is_judged_apart(tmp_path: Path) -> None:
    tasks_factory.make_task(tmp_path, "made", toml=SEPARATE)
    live = tasks_factory.dataset(tmp_path, keep_processes=("made",))
    datasets = (tasks_factory.dataset(tmp_path), live)
    assert [keys(dataset.tasks())["made"] for dataset in datasets] == [
        "972ab7010f28fefaa1b936d723040fb8",
        "6466e1d35465a37ec482de926a84db55",
    ]


def test_keys_of_projects_to_set_up(tmp_path: Path) -> None:
    bench = project_factory.project_bench(tmp_path, tmp_path / "cache", verifier=ProjectJudge())
    project_factory.add_truth(bench, project_factory.make_project(tmp_path))
    assert keys(bench.tasks()) == {"tally": "c8417a069e30123dda5bbb60b6cdb5c3"}
    shipped = bench.model_copy(update={"root": ROOT / "tasks" / "execution", "include": ("cjson", "toolz")})
    assert keys(shipped.tasks()) == {
        "cjson": "314b72f40b5f25040bd98eba75e8b517",
        "toolz": "73606116ddd87caaf8b05248a646f9c6",
    }


def test_keys_of_a_tool_to_write(tmp_path: Path) -> None:
    tool_task_factory.make_tool_task(tmp_path)
    assert keys(tool_task_factory.tool_dataset(tmp_path, tmp_path / "cache").tasks()) == {
        "tally": "62cdb4635925dfb4e93031c553def86f"
    }


def test_keys_of_a_library_to_write(tmp_path: Path) -> None:
    dataset = suite_factory.suite_dataset(tmp_path, tmp_path / "cache", verifier=SuiteJudge(cache=tmp_path))
    folder = suite_factory.make_folder(tmp_path)
    suite_factory.add_upstream(folder)
    suite_factory.add_truth(dataset, folder)
    assert keys(dataset.tasks()) == {"tally": "c00a3e413e487036335fa046285a6907"}
