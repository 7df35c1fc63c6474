"""Jobs for NL2Repo-Bench tasks from the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.benchmarks.nl2repo.construction import drafting
from runner.benchmarks.nl2repo.suite import Truth
from runner.errors import ConfigError
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from tests.support.module_proxy import served
from tests.support.package_index import publish_sdist
from tests.support.suite_factory import PASSED, UPSTREAM, make_folder, suite_dataset, write
from tests.support.sweeps import Cli


def test_an_inventory_is_printed_and_written(cli: Cli) -> None:
    write(cli.outputs / "package", UPSTREAM)
    into = cli.outputs / "inventory.json"
    ended = cli("job=spec_inventory", f"job.path={cli.outputs / 'package'}", f"job.into={into}")
    assert ended.code == 0, ended.err
    assert "method   tally/__init__.py:7  tally.Tally.add(self, word, times=1)" in ended.out
    assert "public: 1 classes, 1 functions, 2 methods, 2 modules; 12 lines of code" in ended.out
    assert {entry["name"] for entry in json.loads(into.read_text())} >= {"tally.Tally", "tally.most.most"}


def test_coverage_says_what_is_missing_and_may_fail(cli: Cli) -> None:
    write(cli.outputs / "package", {**UPSTREAM, "start.md": "`Tally(words)` has `add(word)`.\n"})
    words = [f"job.path={cli.outputs / 'package'}", f"job.document={cli.outputs / 'package' / 'start.md'}"]
    ended = cli("job=spec_coverage", *words)
    assert ended.code == 0, ended.err
    assert "not named: tally/most.py:4  tally.most.most(words)" in ended.out
    assert (
        "named with other parameters: tally/__init__.py:7  tally.Tally.add(self, word, times=1)" in ended.out
    )
    assert "50.0% of the public API: 2 of 4 are named with their signature" in ended.out
    assert cli("job=spec_coverage", *words, "job.least=0.9").code == 4


def test_only_known_tasks_of_hidden_suites_have_ground_truths(cli: Cli) -> None:
    ended = cli("job=verify_ground_truth", "dataset=cli_tool_bench")
    assert ended.code == 2
    assert "dataset cli_tool_bench has no known solutions to verify: choose dataset=execution," in ended.err
    folder = make_folder(cli.outputs / "tasks")
    words = ["dataset=nl2repo", f"dataset.root={folder.parent}", "job=verify_ground_truth"]
    ended = cli(*words, "job.tasks=[other]")
    assert ended.code == 2
    assert "has no task 'other'" in ended.err
    unused: Any = None
    with pytest.raises(ConfigError, match="verified with upstream's code"):
        suite_dataset(folder.parent, cli.outputs).find_truth(folder, folder, unused, print)


ABOUT = "Metadata-Version: 2.4\nName: tally\nVersion: 1.0\nLicense-Expression: MIT\n"
LONG = "".join(f"WORD_{number} = {number}\n" for number in range(300))
"""A module that makes the library as large as a task must be."""


@pytest.mark.parametrize(
    ("files", "word", "reason"),
    [
        ({}, "job.since=null", "It has 12 lines of code; a task has 300 to 120,000"),
        (
            {"tally/words.py": LONG},
            "job.since=2020-01-01",
            "The package index does not say when it was uploaded",
        ),
        (
            {"tally/words.py": LONG},
            "job.since=null",
            "Its metadata calls its licence '', which is not one of SPDX",
        ),
        (
            {"tally/words.py": LONG, "PKG-INFO": ABOUT.replace("MIT", "GPL-3.0-only")},
            "job.since=null",
            "GPL-3.0-only",
        ),
    ],
    ids=["small", "no date", "no licence", "copyleft"],
)
def test_a_release_outside_of_the_papers_criteria_becomes_no_task(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], word: str, reason: str
) -> None:
    tasks = cli.outputs / "tasks"
    tasks.mkdir()
    publish_sdist(cli.outputs / "index", "tally", "1.0", {**UPSTREAM, **files})
    with served(cli.outputs / "index") as (address, _):
        monkeypatch.setenv("UV_INDEX", address)
        words = ["job=make_nl2repo_task", "job.package=tally", "job.version='1.0'", word]
        ended = cli("dataset=nl2repo", f"dataset.root={tasks}", *words)
    assert ended.code == 2
    assert "tally 1.0 cannot become a task." in ended.err
    assert reason in ended.err
    assert not list(tasks.iterdir())


def test_a_command_that_was_stopped_left_half_of_a_task_which_the_next_took_for_one_made_by_hand(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(drafting, "write_document", stopped)
    tasks = cli.outputs / "tasks"
    tasks.mkdir()
    files = {**UPSTREAM, "tally/words.py": LONG, "PKG-INFO": ABOUT}
    publish_sdist(cli.outputs / "index", "tally", "1.0", files)
    with served(cli.outputs / "index") as (address, _):
        monkeypatch.setenv("UV_INDEX", address)
        words = ["job=make_nl2repo_task", "job.package=tally", "job.version='1.0'", "job.since=null"]
        assert cli("dataset=nl2repo", f"dataset.root={tasks}", *words).code == 130
    assert not list(tasks.iterdir())


@pytest.mark.docker
def test_a_task_is_made_from_an_sdist(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the whole job: index, inventory, counts, commands, deletion list, and upstream's tests, twice."""
    base_image.ensure(connect(), print)
    tasks = cli.outputs / "tasks"
    tasks.mkdir()
    broken = {"tests/test_broken.py": "def test_broken():\n    raise OSError\n"}
    files = {**UPSTREAM, **broken, "tally/words.py": LONG, "PKG-INFO": ABOUT}
    publish_sdist(cli.outputs / "index", "tally", "1.0", files)
    with served(cli.outputs / "index") as (address, _):
        monkeypatch.setenv("UV_INDEX", address)
        words = ["job=make_nl2repo_task", "job.package=tally", "job.version='1.0'", "job.since=null"]
        ended = cli("dataset=nl2repo", f"dataset.root={tasks}", *words)
    write(cli.outputs / "package", UPSTREAM)
    document = f"job.document={tasks / 'tally' / 'start.md'}"
    draft = cli("job=spec_coverage", f"job.path={cli.outputs / 'package'}", document, "job.least=1")
    assert (draft.code, draft.out.splitlines()[-1][:6]) == (0, "100.0%")
    assert ended.code == 0, ended.err
    assert "7 tests pass, twice; none in an empty workspace (1 skipped, 1 xfailed, 1 failed)" in ended.out
    folder = tasks / "tally"
    assert (folder / "test_case_count.txt").read_text() == "7"
    assert json.loads((folder / "test_files.json").read_text()) == ["tests"]
    commands = ["pip install -e .", "pytest --continue-on-collection-errors tests"]
    assert json.loads((folder / "test_commands.json").read_text()) == commands
    text = (folder / "start.md").read_text()
    assert "##### method `Tally.add(self, word, times=1)`\n\nTODO" in text
    assert "from tally.most import most\n" in text
    assert {entry["name"] for entry in json.loads((folder / "inventory.json").read_text())} >= {"tally.Tally"}
    truth = Truth.model_validate_json((folder / "truth.json").read_bytes())
    assert (truth.passed, truth.failed) == (PASSED, ("tests/test_broken.py::test_broken",))
    (task,) = suite_dataset(tasks, cli.outputs / "references").tasks()
    assert (task.refused, task.flags, task.tier) == (None, ("unreviewed",), "easy")


def test_a_version_that_reads_as_a_number_must_be_quoted(cli: Cli) -> None:
    words = ["job=make_nl2repo_task", "job.package=tally", "job.version=1.10"]
    ended = cli("dataset=nl2repo", f"dataset.root={cli.outputs}", *words)
    assert ended.code == 2
    assert "job.version=\"'1.10'\"" in ended.err


def test_a_complete_task_is_not_made_again(cli: Cli) -> None:
    folder = make_folder(cli.outputs / "tasks", **{"truth.json": "{}"})
    words = ["job=make_nl2repo_task", "job.package=tally", "job.version=1.0.0"]
    ended = cli("dataset=nl2repo", f"dataset.root={folder.parent}", *words)
    assert ended.code == 2
    assert "is a complete task already" in ended.err
