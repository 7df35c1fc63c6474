"""Shipped sources are pinned, and their ground truths have as many tests as are published, or say that they differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from runner.benchmarks.nl2repo.dataset import SOURCE, TRUTH
from runner.benchmarks.nl2repo.ground_truth import LEFT_OUT
from runner.benchmarks.nl2repo.published_folder import Published
from runner.benchmarks.nl2repo.suite import Truth
from runner.benchmarks.nl2repo.upstream import Source
from runner.resources import ROOT
from runner.sweeps.yaml_files import read_yaml
from tests.support.suite_factory import suite_dataset

SOURCES = ROOT / "tasks" / "nl2repo" / "sources"
PUBLISHED = {
    "asteval": 224,
    "autopep8": 564,
    "bleach": 448,
    "boltons": 423,
    "box": 147,
    "cerberus": 249,
    "cookiecutter": 381,
    "databases": 150,
    "dbutils": 140,
    "deepdiff": 970,
    "docopt-ng": 614,
    "emoji": 102,
    "flask-restful": 362,
    "freezegun": 133,
    "frontmatter": 55,
    "ftfy": 346,
    "funcy": 203,
    "humanize": 607,
    "icecream": 41,
    "jinja": 911,
    "jsonlines": 27,
    "justext": 61,
    "math-verify": 192,
    "mechanicalsoup": 140,
    "paillier": 234,
    "pandarallel": 217,
    "parse": 98,
    "pathlib2": 344,
    "plac": 25,
    "pyjwt": 299,
    "pysondb-v2": 96,
    "python-dotenv": 209,
    "python-fsutil": 152,
    "python-jose": 458,
    "python-pathspec": 112,
    "retrying": 23,
    "schedule-master": 52,
    "schema": 118,
    "six": 199,
    "sortedcontainers": 366,
    "sqlparse": 461,
    "stamina": 179,
    "tablib": 172,
    "tenacity": 124,
    "tinydb": 203,
    "tsfresh": 371,
    "typing_extensions": 507,
    "uiautomator": 101,
    "unidecode": 65,
    "voluptuous": 152,
    "wsgidav": 36,
    "xlrd": 84,
}
"""Task -> published number of tests."""


def test_every_source_is_known() -> None:
    assert {path.parent.name for path in SOURCES.glob(f"*/{SOURCE}")} == PUBLISHED.keys()


def test_a_task_runs_or_has_a_reason() -> None:
    """The page of the docs is made of both, and a task in both would be said to run and not to run."""
    reasons = yaml.safe_load((SOURCES.parent / "reasons.yaml").read_text())
    assert not reasons.keys() & PUBLISHED.keys()
    assert all(reason.endswith(".") for reason in reasons.values())


@pytest.fixture(params=PUBLISHED)
def place(request: pytest.FixtureRequest) -> Path:
    return SOURCES / str(request.param)


def test_a_source_is_pinned(place: Path) -> None:
    source = read_yaml(place / SOURCE, Source, SOURCE)
    assert source.kind in ("sdist", "debian")
    assert len(source.digest) == 71
    assert source.license
    assert source.lines
    assert all("==" in package and "--hash=sha256:" in package for package in source.packages)


def test_upstream_passes_as_many_tests_as_are_published_or_the_source_says_otherwise(place: Path) -> None:
    truth = Truth.model_validate_json((place / TRUTH).read_bytes())
    source = read_yaml(place / SOURCE, Source, SOURCE)
    assert len(set(truth.passed)) == PUBLISHED[place.name] or source.count == "truth"
    assert len(truth.left_out) <= LEFT_OUT * len(truth.passed)
    assert not truth.failed or source.count == "truth"


def test_an_empty_workspace_passes_none(place: Path) -> None:
    """A truth with any other value cannot be read. The job writes 0 only after it has run an empty workspace."""
    assert json.loads((place / TRUTH).read_bytes())["empty_passes"] == 0


def test_a_truth_belongs_to_the_present_source_commands_and_image(place: Path, tmp_path: Path) -> None:
    """A changed `tasks/nl2repo/image/` is noticed. Truths hold the authors' commands; their folders are not needed."""
    truth = Truth.model_validate_json((place / TRUTH).read_bytes())
    dataset = suite_dataset(tmp_path, tmp_path, sources=SOURCES)
    source, _ = dataset.source(place)
    published = Published(count=len(truth.passed), commands=truth.commands, deleted=(), flags=())
    assert truth.digest == dataset.truth_digest(dataset.bare_suite(published, source), source)
