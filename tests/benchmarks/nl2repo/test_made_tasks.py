"""The ten tasks that were made here are whole, meet the paper's criteria, and say that nobody has reviewed them."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest
import yaml

from runner.benchmarks.nl2repo.construction import document, eligibility
from runner.benchmarks.nl2repo.dataset import SOURCE, TRUTH
from runner.benchmarks.nl2repo.specification.coverage import coverage, unnamed
from runner.benchmarks.nl2repo.specification.inventory import assigned_attributes, inventory
from runner.benchmarks.nl2repo.specification.used_names import import_statements, read_tests, used_names
from runner.benchmarks.nl2repo.suite import Truth
from runner.benchmarks.nl2repo.upstream import Source, fetch_upstream
from runner.resources import ROOT
from runner.sweeps.yaml_files import read_yaml
from tests.support.suite_factory import suite_dataset

MADE = ROOT / "tasks" / "nl2repo" / "made"
COUNTS = {
    "blinker": 25,
    "deepmerge": 45,
    "genson": 111,
    "geojson": 69,
    "itsdangerous": 297,
    "python-json-logger": 218,
    "simpleeval": 160,
    "uritemplate": 58,
    "webcolors": 471,
    "xmltodict": 119,
}
"""Task -> number of its tests."""
CODE = {"webcolors": "src"}
"""Task -> folder of its code, where others hold tools of its developers."""


def test_there_are_ten_and_the_authors_have_none_of_them() -> None:
    assert {path.parent.name for path in MADE.glob(f"*/{SOURCE}")} == COUNTS.keys()
    assert len(COUNTS) == 10
    public = {path.name for path in (MADE.parent / "sources").iterdir()}
    public |= set(yaml.safe_load((MADE.parent / "reasons.yaml").read_text()))
    assert not COUNTS.keys() & public


def test_all_of_them_run_and_are_flagged(tmp_path: Path) -> None:
    tasks = suite_dataset(MADE, tmp_path).tasks()
    assert {task.name: task.refused for task in tasks} == dict.fromkeys(sorted(COUNTS))
    assert {flag for task in tasks for flag in task.flags} == {"unreviewed"}
    assert {task.tier for task in tasks} == {"easy"}


@pytest.fixture(params=COUNTS)
def place(request: pytest.FixtureRequest) -> Path:
    return MADE / str(request.param)


def test_a_release_meets_the_criteria(place: Path) -> None:
    source = read_yaml(place / SOURCE, Source, SOURCE)
    eligibility.check_size(source.lines or 0)
    assert eligibility.check_license(source.license, eligibility.PERMISSIVE) == source.license
    eligibility.check_age(source.uploaded, dt.date(2023, 11, 24))
    assert source.kind == "sdist"
    assert source.category != "unknown"


def test_upstream_passes_all_that_count_and_an_empty_workspace_none(place: Path) -> None:
    truth = Truth.model_validate_json((place / TRUTH).read_bytes())
    assert len(truth.passed) == COUNTS[place.name] == int((place / "test_case_count.txt").read_text())
    assert not truth.left_out
    assert truth.empty_passes == 0


def test_a_document_has_its_sections_and_an_author(place: Path) -> None:
    text = (place / "start.md").read_text()
    heads = ("Project Description", "Supports", "API Usage Guide", "Implementation Nodes")
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(heads)
    assert document.UNWRITTEN not in text
    authors = json.loads((place / "making" / "written_by.json").read_text())
    assert {name: author["by"] for name, author in authors.items()} == {"start.md": "by hand"}


def test_a_document_names_the_whole_api_and_all_that_the_tests_use(place: Path, tmp_path: Path) -> None:
    root = fetch_upstream(read_yaml(place / SOURCE, Source, SOURCE), place, tmp_path, print)
    tests = json.loads((place / "test_files.json").read_text())
    entries = inventory(root / CODE.get(place.name, "."))
    text = (place / "start.md").read_text()
    files = [file for path in tests for file in read_tests(root / path, root)]
    found = coverage(entries, text)
    assert (found.missing, found.otherwise) == ((), ())
    assert not unnamed(used_names(files, entries, assigned_attributes(root)), text)
    for line in (*import_statements(files, entries), *document.tree(root, tests)):
        assert line in text
