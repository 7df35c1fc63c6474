"""The sources that are shipped: pinned, and with a ground truth of as many tests as are published."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.datasets.nl2repo import SOURCE, TRUTH
from runner.datasets.upstream import Source
from runner.door import ROOT
from runner.suites import Truth
from runner.yaml_files import read_yaml

SOURCES = ROOT / "tasks" / "nl2repo" / "sources"
PUBLISHED = {
    "boltons": 423,
    "dbutils": 140,
    "docopt-ng": 614,
    "emoji": 102,
    "jsonlines": 27,
    "python-pathspec": 119,
    "schema": 118,
    "unidecode": 65,
}
"""Task -> published number of tests."""


def test_every_source_is_known() -> None:
    assert {path.parent.name for path in SOURCES.glob(f"*/{SOURCE}")} == PUBLISHED.keys()


@pytest.fixture(params=PUBLISHED)
def place(request: pytest.FixtureRequest) -> Path:
    return SOURCES / str(request.param)


def test_a_source_is_pinned(place: Path) -> None:
    source = read_yaml(place / SOURCE, Source, SOURCE)
    assert (source.kind, len(source.digest)) == ("sdist", 71)
    assert source.license
    assert source.lines
    assert all("==" in package and "--hash=sha256:" in package for package in source.packages)


def test_upstream_passes_as_many_tests_as_are_published(place: Path) -> None:
    truth = Truth.model_validate_json((place / TRUTH).read_bytes())
    assert len(set(truth.passed)) == PUBLISHED[place.name]
    assert not truth.failed
