"""Make an NL2Repo-Bench task: a small library that counts, and upstream's seven tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.benchmarks.nl2repo.dataset import TRUTH, Nl2RepoBench
from runner.benchmarks.nl2repo.published_folder import read
from runner.benchmarks.nl2repo.suite import Truth
from runner.benchmarks.nl2repo.verifier import SuiteVerifier
from runner.benchmarks.sources.task_files import tree_digest
from runner.resources import ROOT

LIBRARY = """\
class Tally:
    def __init__(self, words=()):
        self.counts = {}
        for word in words:
            self.add(word)

    def add(self, word, times=1):
        self.counts[word] = self.counts.get(word, 0) + times
        return self.counts[word]


def most(words):
    tally = Tally(words)
    return max(tally.counts, key=tally.counts.get)
"""
TESTS = """\
import pytest
from tally import Tally
from tally.most import most


@pytest.mark.parametrize("times", [1, 2])
def test_add(times):
    assert Tally().add("a", times=times) == times


def test_counts():
    assert Tally(["a", "b", "a"]).counts == {"a": 2, "b": 1}


class TestMost:
    def test_of_many(self):
        assert most(["a", "b", "a"]) == "a"

    def test_of_one(self):
        assert most(["b"]) == "b"


@pytest.mark.skip(reason="not here")
def test_skipped():
    raise AssertionError


@pytest.mark.xfail(reason="known")
def test_of_none():
    assert most([])
"""
LAST = """\
from tally import Tally


def test_default():
    assert Tally().add("a") == 1


def test_empty():
    assert not Tally().counts
"""
MODULE, _, MOST = LIBRARY.partition("\n\ndef most")
UPSTREAM = {
    "tally/__init__.py": f"{MODULE}\n",
    "tally/most.py": f"from tally import Tally\n\n\ndef most{MOST}",
    "tests/test_tally.py": TESTS,
    "tests/test_zero.py": LAST,
    "pyproject.toml": '[project]\nname = "tally"\nversion = "1.0"\n[tool.setuptools]\npackages = ["tally"]\n'
    '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "README.md": "tally\n",
}
PASSED = (
    "tests/test_tally.py::TestMost::test_of_many",
    "tests/test_tally.py::TestMost::test_of_one",
    "tests/test_tally.py::test_add[1]",
    "tests/test_tally.py::test_add[2]",
    "tests/test_tally.py::test_counts",
    "tests/test_zero.py::test_default",
    "tests/test_zero.py::test_empty",
)
"""Sorted ids of the tests that upstream passes."""
COMMANDS = ("pytest --continue-on-collection-errors tests",)


def make_folder(root: Path, name: str = "tally", **changed: Any) -> Path:
    """Make the folder of a public task. `changed` maps files to other contents, or to None for no such file."""
    folder = root / name
    folder.mkdir(parents=True)
    files: dict[str, Any] = {
        "start.md": f"# {name}\n\nWrite the library {name}, which counts words.\n",
        "test_case_count.txt": "7",
        "test_commands.json": json.dumps(COMMANDS),
        "test_files.json": '["tests"]',
    }
    write(folder, {path: text for path, text in (files | changed).items() if text is not None})
    return folder


def add_upstream(folder: Path, files: Mapping[str, str] = UPSTREAM, **source: Any) -> None:
    """Write upstream's files beside the task, and a source that names them."""
    write(folder / "upstream", files)
    node = {"kind": "folder", "package": "upstream", "digest": tree_digest(folder / "upstream"), **source}
    (folder / "source.yaml").write_text(json.dumps(node))


def add_truth(dataset: Nl2RepoBench, folder: Path, passed: tuple[str, ...] = PASSED) -> None:
    """Write what `job=verify_ground_truth` would write; that job is tested on these files too."""
    source, _ = dataset.source(folder)
    suite = dataset.bare_suite(read(folder), source)
    digest = dataset.truth_digest(suite, source)
    truth = Truth(passed=passed, empty_passes=0, commands=suite.commands, digest=digest)
    (folder / TRUTH).write_text(truth.model_dump_json())


def suite_dataset(root: Path, cache: Path, **changed: Any) -> Nl2RepoBench:
    """Return the dataset of `conf/dataset/nl2repo.yaml`, except for `changed`."""
    options = {
        "name": "nl2repo",
        "root": root,
        "sources": root / "no-sources",
        "image": ROOT / "tasks" / "nl2repo" / "image",
        "published": ROOT / "tasks" / "nl2repo" / "Dockerfile.published",
        "pythons": [
            {
                "version": version,
                "image": ROOT / "tasks" / "nl2repo" / f"image-{version}",
                "build_args": {"BASE": f"assay-base-{suite}"},
            }
            for version, suite in (("3.11", "bookworm"), ("3.9", "bullseye"))
        ],
        "build_args": {"BASE": "assay-base"},
        "verifier": SuiteVerifier(cache=cache),
    }
    return Nl2RepoBench.model_validate(options | changed)


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write files by relative path, and make their folders."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
