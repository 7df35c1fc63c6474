"""Trial keys that must not change: a changed key runs everybody's finished trials again.

A test fails here when a task's content, its recipe of digests or the version of its judge has changed. A changed task
or judge is a reason to write down the new key; a changed recipe needs a reason of its own, and a line in the changelog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.records import Model, Prices
from runner.resources import ROOT
from runner.sweeps.keys import TaskDigests, trial_keys
from runner.sweeps.plan import identity
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


def keys(tasks: Iterable[Task]) -> dict[str, str]:
    """Return the key of each task's first attempt in a cell that never changes."""
    return {task.name: trial_keys("cell", TaskDigests.of(task), [1])[0] for task in tasks if not task.refused}


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
    """A move of code changes no key, and a new version of the judge changes all."""
    bench = project_factory.project_bench(tmp_path, tmp_path / "cache")
    project_factory.add_truth(bench, project_factory.make_project(tmp_path))
    assert keys(bench.tasks()) == {"tally": "3c678b649569a55fa0c98e11648fe4c0"}
    shipped = bench.model_copy(update={"root": ROOT / "tasks" / "execution", "include": ("cjson", "toolz")})
    assert keys(shipped.tasks()) == {
        "cjson": "2f66a9bcd2f9f86b5ebfa7233a63a3b4",
        "toolz": "f21f0a944f662454b054bb14176e4b6b",
    }


def test_keys_of_a_tool_to_write(tmp_path: Path) -> None:
    tool_task_factory.make_tool_task(tmp_path)
    assert keys(tool_task_factory.tool_dataset(tmp_path, tmp_path / "cache").tasks()) == {
        "tally": "62cdb4635925dfb4e93031c553def86f"
    }


def test_keys_of_a_library_to_write(tmp_path: Path) -> None:
    """As for projects."""
    dataset = suite_factory.suite_dataset(tmp_path, tmp_path / "cache")
    folder = suite_factory.make_folder(tmp_path)
    suite_factory.add_upstream(folder)
    suite_factory.add_truth(dataset, folder)
    assert keys(dataset.tasks()) == {"tally": "8fd78472855f4b7f7c6584a0811ffd7b"}


def test_a_model_is_the_same_as_before_it_could_be_on_a_server_of_ones_own() -> None:
    """Its new fields are part of the key only where they are set."""
    prices = Prices(input=1.0, output=10.0, source="s", date="2026-01-01")
    limits = {"context_window": 272000, "max_output_tokens": 128000}
    model = Model(name="gpt", id="openai/gpt-5.4", api_key_env="OPENAI_API_KEY", prices=prices, **limits)
    assert identity(model) == "a125d93ffec59c6071659ee393a953d609e13ad61280dcab402afa2cd9f413b9"
    warm = Model(name="gpt", id="openai/gpt-5.4", params={"temperature": 0.7})
    assert identity(warm) == "b43677321c2f2bece30bd90b617ffe87f65fc5e3044c8104d0fc8699b2e1e2e3"
    assert identity(model.model_copy(update={"apis": ("chat",)})) != identity(model)
