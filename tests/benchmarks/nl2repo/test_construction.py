"""What may become a task, what a suite uses of a package, and which tests no cell passes."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pytest

from runner.benchmarks.nl2repo.construction import eligibility
from runner.benchmarks.nl2repo.report.junit_files import read_junit
from runner.benchmarks.nl2repo.report.unsolved import Attempt, most_frequent, unsolved
from runner.benchmarks.nl2repo.specification.coverage import coverage, unnamed
from runner.benchmarks.nl2repo.specification.inventory import assigned_attributes, inventory
from runner.benchmarks.nl2repo.specification.used_names import import_statements, read_tests, used_names
from runner.benchmarks.nl2repo.suite_results import Reported, Result, junit
from runner.errors import ConfigError, TaskError
from runner.records import Verdict
from runner.sweeps import sweep_file
from runner.sweeps.store import Store
from tests.report.plans import SCORING, record, row
from tests.support.suite_factory import (
    PASSED,
    UPSTREAM,
    add_truth,
    add_upstream,
    make_folder,
    suite_dataset,
    write,
)
from tests.support.sweeps import Cli

TODAY = dt.date(2026, 2, 28)


@pytest.mark.parametrize("lines", [300, 120_000])
def test_sizes_of_the_paper_are_allowed(lines: int) -> None:
    eligibility.check_size(lines)


@pytest.mark.parametrize("lines", [0, 299, 120_001])
def test_smaller_and_larger_libraries_are_not(lines: int) -> None:
    with pytest.raises(TaskError, match=f"It has {lines:,} lines of code; a task has 300 to 120,000"):
        eligibility.check_size(lines)


def test_a_release_may_be_three_years_old() -> None:
    assert eligibility.years_before(dt.date(2028, 2, 29)) == dt.date(2025, 2, 28)
    since = eligibility.years_before(TODAY)
    assert eligibility.check_age("2023-02-28T23:59:00Z", since) == "2023-02-28"
    with pytest.raises(TaskError, match="uploaded on 2023-02-27, before 2023-02-28"):
        eligibility.check_age("2023-02-27T00:00:00Z", since)
    for unknown in ("", "yesterday"):
        with pytest.raises(TaskError, match=r"does not say when it was uploaded: job\.since=null"):
            eligibility.check_age(unknown, since)


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ("mit", "MIT"),
        ("BSD-3-Clause", "BSD-3-Clause"),
        ("Apache-2.0 OR GPL-3.0-only", "Apache-2.0 OR GPL-3.0-only"),
        ("MIT AND BSD-3-Clause", "MIT AND BSD-3-Clause"),
    ],
)
def test_permissive_licences_are_allowed(stated: str, found: str) -> None:
    assert eligibility.check_license(stated, eligibility.PERMISSIVE) == found


@pytest.mark.parametrize(
    ("stated", "fault"),
    [
        ("", "not one of SPDX: read the licence"),
        ("BSD License", "not one of SPDX: read the licence"),
        ("Copyright (c) 2021", "not one of SPDX"),
        ("GPL-3.0-only", "Its licence is GPL-3.0-only; job.licenses allows"),
        ("MIT AND GPL-3.0-only", "Its licence is MIT AND"),
        ("MIT OR (GPL-3.0-only AND MIT)", "Its licence is MIT OR"),
    ],
)
def test_other_and_unclear_licences_are_not(stated: str, fault: str) -> None:
    with pytest.raises(TaskError, match=fault):
        eligibility.check_license(stated, eligibility.PERMISSIVE)


PACKAGE = {
    "pkg/__init__.py": "from pkg.core import Box\nLIMIT = 3\n",
    "pkg/core.py": "class Box:\n    def __init__(self):\n        self._items = []\n    def put(self, item, *, at=0):\n"
    "        pass\n    def _pack(self):\n        pass\n\ndef _helper(): pass\n",
    "pkg/tests/test_inner.py": "from ..core import _helper\nfrom . import test_more\n",
    "tests/test_box.py": "import os\nimport pkg\nimport pkg.core as c\nfrom pkg import Box, LIMIT\n"
    "from pkg.core import *\n"
    "from unittest import mock\n\n\ndef test():\n    box = Box()\n    box.put(1, at=2)\n    box._pack()\n"
    "    assert box._items == []\n    c._helper()\n    print(other.upper(), end='')\n"
    "    mock.patch('pkg.core._helper')\n    pkg.core.Box\n",
}


def test_imports_attributes_and_keywords_of_a_suite_are_found_private_ones_too(tmp_path: Path) -> None:
    write(tmp_path, PACKAGE)
    entries = inventory(tmp_path)
    uses = used_names(read_tests(tmp_path / "tests", tmp_path), entries, assigned_attributes(tmp_path))
    assert {(use.kind, use.name) for use in uses} == {
        ("module", "pkg"),
        ("module", "pkg.core"),
        *(("name", name) for name in ("Box", "LIMIT", "put", "_pack", "_items", "_helper")),
        ("keyword", "at"),
    }
    inner = used_names(read_tests(tmp_path / "pkg" / "tests", tmp_path), entries, set())
    assert {(use.kind, use.name) for use in inner} == {("module", "pkg.core"), ("name", "_helper")}
    assert import_statements(read_tests(tmp_path / "tests", tmp_path), entries) == [
        "from pkg import Box",
        "from pkg import LIMIT",
        "from pkg.core import *",
        "import pkg",
        "import pkg.core as c",
    ]
    for path in ("nothing", "pkg/core.txt"):
        with pytest.raises(ConfigError):
            read_tests(tmp_path / path, tmp_path)


def test_an_import_statement_names_a_thing_and_says_nothing_of_it(tmp_path: Path) -> None:
    write(tmp_path, PACKAGE)
    entries = inventory(tmp_path)
    uses = used_names(read_tests(tmp_path / "tests", tmp_path), entries, set())
    imports = "import pkg.core as c\nfrom pkg import (\n    Box,\n    LIMIT,\n)\n"
    document = f"```python\n{imports}```\n`put(item, *, at=0)` of pkg\n"
    assert {use.name for use in unnamed(uses, document)} == {"pkg.core", "Box", "LIMIT", "_pack", "_helper"}


def test_a_method_below_a_heading_that_names_a_base_belongs_to_the_class(tmp_path: Path) -> None:
    code = "class A:\n    def f(self, x): pass\n\nclass B(A):\n    def f(self, x): pass\n\ndef f(x): pass\n"
    (tmp_path / "m.py").write_text(code)
    document = "#### class `A`\n`f(x)`\n#### class `B(A)`\n`f(self, x)`\n"
    assert coverage(inventory(tmp_path / "m.py"), document).missing == ()


def test_the_job_says_what_tests_use_and_a_document_lacks(cli: Cli) -> None:
    write(cli.outputs, UPSTREAM)
    document = cli.outputs / "start.md"
    document.write_text(
        "`Tally(words)` has `add(word, times)`, and `most(words)` is in `tally.most` of `tally`.\n"
    )
    words = [
        f"job.path={cli.outputs}",
        f"job.document={document}",
        f"job.tests={cli.outputs / 'tests'}",
        "job.least=1",
    ]
    ended = cli("job=spec_coverage", *words)
    assert ended.code == 4, ended.err
    assert "used by the tests, not named: test_tally.py:12  name counts" in ended.out
    assert "of what the tests use: 6 of 7 names are in the document" in ended.out
    document.write_text(document.read_text() + "`counts` is a dictionary.\n")
    assert cli("job=spec_coverage", *words).code == 0


def _result(id_: str, outcome: str = "passed", kind: str = "", message: str = "") -> Result:
    return Result.model_validate(
        {"id": id_, "file": "f", "outcome": outcome, "kind": kind, "message": message, "command": 0}
    )


REPORTS = {
    "codex": Reported(
        (
            *tuple(_result(id_) for id_ in PASSED[:3]),
            _result(PASSED[3], "failed", "AssertionError", "E  assert 1 == 2"),
        ),
        {(0, "tests/test_zero.py"): "E   ModuleNotFoundError: No module named 'tally'"},
        (),
        (),
    ),
    "mini_swe_agent": Reported(
        (_result(PASSED[2]), _result(PASSED[3], "failed", "AttributeError", "no x")), {}, (), ()
    ),
    "oracle": Reported(tuple(map(_result, PASSED)), {}, (), ()),
}


def test_a_test_is_unsolved_if_no_believed_trial_passes_it() -> None:
    attempts = [Attempt(name, report, believed=True, late=False) for name, report in REPORTS.items()]
    assert not unsolved("tally", PASSED, attempts)
    found = unsolved("tally", PASSED, attempts[:2])
    assert [one.test for one in found] == list(PASSED[3:])
    assert found[0].kinds == {"signature": 1, "assertion": 1}
    assert found[0].example == "AttributeError: no x"
    assert found[-1].kinds == {"import": 1, "other": 1}
    assert most_frequent(found) == {"import": 2, "signature": 1, "other": 1}
    forged = [attempts[0]._replace(believed=False)]
    assert len(unsolved("tally", PASSED, forged)) == len(PASSED)
    assert not unsolved("tally", PASSED, [])
    late = [Attempt("codex", Reported((), {}, (), ()), believed=True, late=True)]
    assert unsolved("tally", PASSED, late)[0].kinds == {"timeout": 1}


def test_junit_files_give_back_what_was_reported(tmp_path: Path) -> None:
    assert read_junit(tmp_path) is None
    report = REPORTS["codex"]
    (tmp_path / "junit-0.xml").write_bytes(junit("pytest", 0, report))
    (tmp_path / "junit-1.xml").write_text("<broken")
    found = read_junit(tmp_path)
    assert found is not None
    assert [(one.id, one.outcome, one.kind) for one in found.results] == [
        (one.id, one.outcome, one.kind) for one in report.results
    ]
    assert found.uncollected == report.uncollected


def test_the_list_of_unsolved_tests_leaves_out_bounds_and_counts_trials_without_a_verdict(cli: Cli) -> None:
    folder = make_folder(cli.outputs / "tasks")
    add_upstream(folder)
    add_truth(suite_dataset(folder.parent, cli.outputs / "references"), folder)
    planned = [
        row(agent, "tally", dataset="nl2repo", model="glm", tier="easy") for agent in (*REPORTS, "openhands")
    ]
    outputs = cli.outputs / "outputs" if (cli.outputs / "outputs").exists() else cli.outputs
    store = Store(outputs)
    for one in planned[:3]:
        report = REPORTS[one.agent]
        place = store.folder(one.key)
        place.mkdir(parents=True)
        (place / "junit-0.xml").write_bytes(junit("pytest", 0, report))
        verdict = Verdict(reward=0.5, components={"forged": 0.0})
        text = record(one, reward=0.5, passed=False, verdict=verdict).model_dump_json()
        (place / "record.json").write_text(text)
    content = sweep_file.SweepFile.model_validate(
        {
            "name": "s",
            "created": "2026-01-01T00:00:00Z",
            "planned": planned,
            "scoring": SCORING,
            "versions": {},
        }
    )
    (outputs / "s").mkdir()
    (outputs / "s" / "sweep.json").write_text(json.dumps(content.as_json()))
    ended = cli("job=unsolved", "name=s", "dataset=nl2repo", f"dataset.root={folder.parent}")
    assert ended.code == 0, ended.err
    assert "tally: 4 tests pass in none of 2 trials; 1 trials were not judged" in ended.out
    assert f"  {PASSED[3]}  (signature 1, assertion 1)" in ended.out
    lines = (outputs / "s" / "unsolved.csv").read_text().splitlines()
    assert lines[0] == "task,test,trials,cells,import,signature,assertion,timeout,other,example"
    assert lines[1].startswith(f"tally,{PASSED[3]},2,2,0,1,1,0,0,")
    other = cli("job=unsolved", "name=s", "dataset=nl2repo_revealed", f"dataset.root={folder.parent}")
    assert other.code == 2
    assert "s planned no trial of dataset nl2repo_revealed" in other.err
