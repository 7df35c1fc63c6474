"""The jobs around NL2Repo-Bench tasks, as they are typed; what runs suites is tested in tests/verifiers."""

from __future__ import annotations

import json

from tests.jobs.sweeps import Door
from tests.suite_factory import UPSTREAM, make_folder, write


def test_an_inventory_is_printed_and_written(door: Door) -> None:
    write(door.outputs / "package", UPSTREAM)
    into = door.outputs / "inventory.json"
    ended = door("job=spec_inventory", f"job.path={door.outputs / 'package'}", f"job.into={into}")
    assert ended.code == 0, ended.err
    assert "method   tally/__init__.py:7  tally.Tally.add(self, word, times=1)" in ended.out
    assert "public: 1 classes, 1 functions, 2 methods, 2 modules; 12 lines of code" in ended.out
    assert {entry["name"] for entry in json.loads(into.read_text())} >= {"tally.Tally", "tally.most.most"}


def test_coverage_says_what_is_missing_and_may_fail(door: Door) -> None:
    write(door.outputs / "package", {**UPSTREAM, "start.md": "`Tally(words)` has `add(word)`.\n"})
    words = [f"job.path={door.outputs / 'package'}", f"job.document={door.outputs / 'package' / 'start.md'}"]
    ended = door("job=spec_coverage", *words)
    assert ended.code == 0, ended.err
    assert "not named: tally/most.py:4  tally.most.most(words)" in ended.out
    assert (
        "named with other parameters: tally/__init__.py:7  tally.Tally.add(self, word, times=1)" in ended.out
    )
    assert "50.0% of the public API: 2 of 4 are named with their signature" in ended.out
    assert door("job=spec_coverage", *words, "job.least=0.9").code == 4


def test_ground_truths_are_of_hidden_suites_and_of_known_tasks(door: Door) -> None:
    ended = door("job=verify_ground_truth", "dataset=quickstart")
    assert ended.code == 2
    assert "dataset quickstart has no hidden suites: choose dataset=nl2repo" in ended.err
    folder = make_folder(door.outputs / "tasks")
    words = ["dataset=nl2repo", f"dataset.root={folder.parent}", "job=verify_ground_truth"]
    ended = door(*words, "job.tasks=[other]")
    assert ended.code == 2
    assert "has no task 'other'" in ended.err


def test_a_task_that_is_whole_is_not_made_again(door: Door) -> None:
    folder = make_folder(door.outputs / "tasks", **{"truth.json": "{}"})
    words = ["job=make_nl2repo_task", "job.package=tally", "job.version=1.0.0"]
    ended = door("dataset=nl2repo", f"dataset.root={folder.parent}", *words)
    assert ended.code == 2
    assert "is a whole task already" in ended.err
