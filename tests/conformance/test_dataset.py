"""The contract of every dataset. A new format adds a line to `DATASETS`."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.benchmarks.harbor.dataset import HarborDataset
from runner.protocols import Dataset
from runner.records import Task
from runner.resources import ROOT
from tests.support.project_factory import add_truth as record_truth
from tests.support.project_factory import make_project, project_bench
from tests.support.suite_factory import add_truth, add_upstream, make_folder, suite_dataset
from tests.support.tool_task_factory import make_tool_task, tool_dataset


def quickstart(_: Path) -> Dataset:
    return HarborDataset(name="quickstart", root=ROOT / "tasks" / "quickstart")


def broken(folder: Path) -> Dataset:
    """Make tasks that are each broken in another way, one by having the name of another."""
    texts = {
        "empty": "",
        "malformed": "[",
        "steps": "[[steps]]",
        "a": '[task]\nname="o/n"',
        "b": '[task]\nname="o/n"',
    }
    for name, text in texts.items():
        (folder / name).mkdir()
        (folder / name / "task.toml").write_text(text)
    return HarborDataset(name="broken", root=folder)


def tools(folder: Path) -> Dataset:
    """Make a good tool, one with a bad case, and one without content."""
    for name in ("good", "wrong"):
        make_tool_task(folder / "tasks", name)
    (folder / "tasks" / "wrong" / "cases.jsonl").write_text("{}")
    (folder / "tasks" / "silent").mkdir()
    (folder / "tasks" / "silent" / "task.toml").write_text("")
    return tool_dataset(folder / "tasks", folder / "cache")


def suites(folder: Path) -> Dataset:
    """Make a good suite, one without a document, and one whose tests are unknown."""
    dataset = suite_dataset(folder / "tasks", folder / "cache")
    for name in ("good", "silent", "unknown"):
        task = make_folder(folder / "tasks", name)
        if name != "unknown":
            add_upstream(task)
            add_truth(dataset, task)
    (folder / "tasks" / "silent" / "start.md").unlink()
    return dataset


def projects(folder: Path) -> Dataset:
    """Make a good project, one without content, and one whose tests have unknown results."""
    bench = project_bench(folder / "tasks", folder / "cache")
    for name in ("good", "silent", "unknown"):
        task = make_project(folder / "tasks", name)
        if name != "unknown":
            record_truth(bench, task)
    (folder / "tasks" / "silent" / "task.yaml").write_text("")
    return bench


DATASETS = (quickstart, broken, tools, suites, projects)


@pytest.fixture(params=DATASETS, ids=lambda make: make.__name__)
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> Dataset:
    created: Dataset = request.param(tmp_path)
    return created


@pytest.fixture
def tasks(dataset: Dataset) -> list[Task]:
    return list(dataset.tasks())


def test_tasks_are_the_same_each_time_and_in_the_same_order(dataset: Dataset, tasks: list[Task]) -> None:
    assert list(dataset.tasks()) == tasks
    assert tasks


def test_names_are_unique(tasks: list[Task]) -> None:
    assert len({task.name for task in tasks}) == len(tasks)


def test_tasks_know_their_dataset(dataset: Dataset, tasks: list[Task]) -> None:
    assert {task.dataset for task in tasks} == {dataset.name}
    assert 0 < dataset.pass_threshold <= 1


def test_every_task_has_a_digest_of_its_own(tasks: list[Task]) -> None:
    digests = [task.digest for task in tasks if not task.refused]
    assert all(task.digest.startswith("sha256:") for task in tasks)
    assert len(set(digests)) == len(digests)


def test_a_task_is_refused_with_a_sentence_or_complete(tasks: list[Task]) -> None:
    for task in tasks:
        if task.refused:
            assert task.refused.endswith("."), task
            continue
        assert task.instruction.strip(), task
        assert task.environment.digest, task
        assert task.environment.context or task.environment.image, task
        assert task.verifier.tests or task.verifier.environment or task.payload, task
        assert all(path.startswith("/") for path in task.artifacts), task


def test_every_stratum_is_said_or_unknown(tasks: list[Task]) -> None:
    assert all(task.tier and task.category and task.language for task in tasks)
