"""Readers of files that frameworks write, attacks on these readers, and the tables of programs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.benchmarks.project_setup.deliverables import Outcomes, Reading
from runner.benchmarks.project_setup.frameworks import (
    FILES,
    FRAMEWORKS,
    PROGRAMS,
    counted,
    read_file,
    read_tests,
    result_files,
)
from tests.benchmarks.project_setup.frameworks.framework_fixtures import FOLDER, WRITTEN, outcomes

CASE = b"<testsuite><testcase name='a'/></testsuite>"
LAUGHS = b"""<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""
OUTSIDE = b"""<!DOCTYPE t [<!ENTITY a SYSTEM "file:///etc/hostname">]>
<testsuite><testcase><failure>&a;</failure></testcase></testsuite>"""


@pytest.mark.parametrize("name", WRITTEN)
def test_files_have_their_numbers(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    own = name.partition("-")[0]
    assert read_file(own, data) == outcomes(WRITTEN[name])
    alike = {"surefire", "gradle"}
    for framework in set(FILES.values()) - {own} - (alike if own in alike else set()):
        assert read_file(framework, data) is None, framework


def test_every_file_has_its_numbers() -> None:
    assert set(WRITTEN) == {file.name for file in FOLDER.iterdir() if file.suffix in {".xml", ".trs"}}


def test_nested_suites_are_read_and_a_test_with_two_problems_is_one() -> None:
    inner = b"<testcase/><testcase><failure/><error/></testcase><testcase><error/><skipped/></testcase>"
    data = b"<testsuites><testsuite><testsuite>%b</testsuite></testsuite></testsuites>" % inner
    assert read_file("surefire", data) == Outcomes(passed=1, failed=2)


def test_a_test_that_passes_when_it_runs_again_passed() -> None:
    data = b"<testsuite><testcase><flakyFailure/></testcase></testsuite>"
    assert read_file("surefire", data) == Outcomes(passed=1)


@pytest.mark.parametrize(
    "data",
    [
        LAUGHS,
        LAUGHS.decode().encode("utf-16"),
        OUTSIDE,
        b"<!DOCTYPE t>" + CASE,
        b"<a>" * 100 + CASE + b"</a>" * 100,
        CASE[:-5],
        b"<testsuite/>",
        b"",
        b"\0",
        b"<?xml version='1.0' encoding='no-such'?>" + CASE,
    ],
)
def test_attacks_on_the_parser_and_truncated_files_give_no_result(data: bytes) -> None:
    assert read_file("surefire", CASE) == Outcomes(passed=1)
    assert read_file("surefire", data) is None


def test_a_file_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_files, "LARGEST", len(CASE))
    assert read_file("surefire", CASE) == Outcomes(passed=1)
    assert read_file("surefire", CASE + b" ") is None


@given(data=st.binary(max_size=200), cut=st.integers(0, 3000), name=st.sampled_from(sorted(WRITTEN)))
@settings(max_examples=100, deadline=None)
def test_no_bytes_raise(data: bytes, cut: int, name: str) -> None:
    whole = (FOLDER / name).read_bytes()
    for framework in set(FILES.values()):
        read_file(framework, data)
        read_file(framework, whole[:cut] + data + whole[cut:])


def test_programs_and_files_name_frameworks_that_have_readers() -> None:
    assert frozenset().union(*PROGRAMS.values()) == FRAMEWORKS
    assert set(FILES.values()) <= FRAMEWORKS
    assert {
        "make",
        "npm",
        "python3",
        "node",
        "ctest",
        "go",
        "cargo",
        "mvn",
        "gradle",
        "prove",
    } <= PROGRAMS.keys()


def _reading(framework: str, passed: int, *, printed: bool) -> Reading:
    way = "output" if printed else "file"
    return Reading(framework=framework, outcomes=Outcomes(passed=passed), way=way)


def test_files_count_and_not_the_output_of_the_same_framework() -> None:
    written = [_reading("surefire", 3, printed=False), _reading("surefire", 2, printed=False)]
    printed = [_reading("surefire", 10, printed=True), _reading("jest", 4, printed=True)]
    assert counted(written, printed) == (*written, printed[1])
    assert counted([], printed) == tuple(printed)


def test_output_counts_where_every_run_overwrites_the_files_of_the_one_before() -> None:
    written, printed = _reading("ctest", 2, printed=False), _reading("ctest", 5, printed=True)
    assert counted([written], [printed]) == (printed,)
    assert counted([written], []) == (written,)


def test_tests_of_junit_files_are_known_by_name() -> None:
    data = (
        b'<testsuite><testcase classname="A" name="one"/><testcase classname="A" name="two"><failure/></testcase>'
        b'<testcase classname="B" name="one"><skipped/></testcase></testsuite>'
    )
    assert read_tests("surefire", data, "TEST-A.xml") == {
        "A.one": "passed",
        "A.two": "failed",
        "B.one": "skipped",
    }
    assert read_tests("ctest", data, "Test.xml") == {}


def test_tests_of_automake_are_known_by_their_programs_and_parts() -> None:
    assert read_tests("automake", b":test-result: PASS\n", "/w/project/tests/one.trs") == {
        "tests/one": "passed"
    }
    parts = (FOLDER / "automake-parts.trs").read_bytes()
    found = read_tests("automake", parts, "/w/build/tests/parts.trs")
    assert len(found) == read_file("automake", parts).total  # type: ignore[union-attr]
    assert all(name.startswith("tests/parts ") for name in found)
