"""Readers of output: each fixture with every reader, pairs of fixtures, and texts without results."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner.benchmarks.project_setup.deliverables import Outcomes
from runner.benchmarks.project_setup.frameworks import FRAMEWORKS, read_output, read_text
from tests.benchmarks.project_setup.frameworks.framework_fixtures import (
    FOLDER,
    PRINTED,
    QUOTED,
    outcomes,
    printed,
)

JUNK = """\
checking for gcc... gcc
checking whether the C compiler works... yes
   Compiling thing v1.0.0
[INFO] Scanning for projects...
added 12 packages in 3s
3 packages are looking for funding
- one of a list
  - another of it
  ✔ something was built
✓ built in 1.25s
PASS
FAIL
ok
not ok at all
ok, 3 of them
Tests: see below
Running 3 workers
{"Action": 1, "level": "info"}
{"not": "json
12 failed logins in the last hour
100% done, 0 errors
1..2..3 go
# a heading 3
ERROR: the disk is full
test me ... please
"""
ENDED = [name for name in PRINTED if "killed" not in name]
"""Texts of complete runs. The output of a killed run has no end, so later text may be taken for its rest."""


def sums(text: str) -> dict[str, Outcomes]:
    found: dict[str, Outcomes] = {}
    for reading in read_output(text):
        found[reading.framework] = found.get(reading.framework, Outcomes()) + reading.outcomes
    return found


def expected(*names: str) -> dict[str, Outcomes]:
    found: dict[str, Outcomes] = {}
    for name in names:
        for framework, numbers in PRINTED[name].items():
            found[framework] = found.get(framework, Outcomes()) + outcomes(numbers)
    return found


def test_every_text_has_its_numbers() -> None:
    assert set(PRINTED) == {file.stem for file in FOLDER.glob("*.txt")}
    assert {framework for found in PRINTED.values() for framework in found} == FRAMEWORKS


@pytest.mark.parametrize("name", PRINTED)
def test_only_its_own_reader_answers(name: str) -> None:
    text = printed(name)
    assert sums(text) == expected(name)
    own = PRINTED[name] | QUOTED.get(name, {})
    for framework in FRAMEWORKS:
        found = read_text(framework, text)
        assert found == (outcomes(own[framework]) if framework in own else None), framework


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_before_and_after_changes_nothing(name: str) -> None:
    assert sums(f"{JUNK}{printed(name)}\n{JUNK}") == expected(name)


def test_line_ends_do_not_matter() -> None:
    for name in PRINTED:
        assert sums(printed(name).replace("\n", "\r\n")) == expected(name), name


@given(names=st.lists(st.sampled_from(ENDED), min_size=2, max_size=3))
@example(names=["pytest-mixed-verbose", "automake-good", "prove-good"])  # prove seemed to begin within pytest
@settings(max_examples=60, deadline=None)
def test_runs_one_after_the_other_are_their_sum(names: list[str]) -> None:
    assert sums("\n".join(printed(name) for name in names)) == expected(*names)


@pytest.mark.parametrize("name", ENDED)
def test_the_same_run_twice_is_twice_its_numbers(name: str) -> None:
    assert sums(printed(name) * 2) == expected(name, name)


def test_runs_come_in_their_order() -> None:
    found = [reading.framework for reading in read_output(printed("mixture-tape-node-jest"))]
    assert list(dict.fromkeys(found)) == ["tap", "node", "jest"]
    assert [reading.outcomes.total for reading in read_output(printed("cargo-good"))] == [3, 2, 2]


def test_frameworks_that_a_program_cannot_run_are_left_out() -> None:
    text = printed("mixture-mocha-node")
    assert [reading.framework for reading in read_output(text, {"node"})] == ["node"]
    assert all(reading.way == "output" for reading in read_output(text))


def test_junk_gives_no_result() -> None:
    assert read_output(JUNK) == ()
    assert read_output("") == ()


def test_output_of_a_test_is_not_a_result_although_its_framework_is_not_asked_for() -> None:
    session, quoted = printed("pytest-mixed"), printed("unittest-good")
    text = session.replace("===== 99 passed in 0.01s =====\n", quoted)
    assert read_text("unittest", text) == Outcomes(passed=3)
    assert read_output(text, {"unittest"}) == ()
    assert sums(text) == expected("pytest-mixed")


def test_a_summary_that_a_test_prints_is_not_a_run() -> None:
    assert "===== 99 passed in 0.01s =====" in printed("pytest-mixed-quiet")
    assert sums(printed("pytest-mixed-quiet")) == expected("pytest-mixed-quiet")


def test_a_session_without_a_short_summary_does_not_hide_the_next_one() -> None:
    assert [reading.outcomes.total for reading in read_output(printed("pytest-no-summary"))] == [3, 3]


def test_a_test_whose_subtests_fail_is_one_test() -> None:
    assert "FAILED (failures=4, errors=1)" in printed("unittest-class")
    assert read_text("unittest", printed("unittest-class")) == Outcomes(passed=1, failed=2)


def test_the_last_of_ctests_repetitions_counts() -> None:
    failed = " 1/2 Test  #1: one ....***Failed    0.10 sec\n"
    text = f"Test project /x\n{failed}    Test  #1: one ....   Passed    0.10 sec\n"
    assert read_text("ctest", text) == Outcomes(passed=1)


def test_go_without_names_of_tests_counts_packages() -> None:
    assert read_text("go", "ok  \texample.org/a\t0.1s\nFAIL\texample.org/b [build failed]\n") == Outcomes(
        passed=1, failed=1
    )
    assert read_text("go", "ok  \texample.org/a\t0.1s [no tests to run]\n") is None
    named = "--- FAIL: TestOne (0.00s)\n--- FAIL: TestTwo (0.00s)\nFAIL\nFAIL\texample.org/a\t0.1s\n"
    assert read_text("go", named) == Outcomes(failed=1), "as many as it would be if they passed"


def test_a_test_of_go_without_an_end_shares_its_packages_outcome() -> None:
    begun = (
        "=== RUN   TestOne\n=== RUN   TestTwo\nnoise--- PASS: TestTwo (0.00s)\n--- PASS: TestOne (0.00s)\n"
    )
    assert read_text("go", f"{begun}PASS\nok  \texample.org/a\t0.1s\n") == Outcomes(passed=2)
    assert read_text("go", f"{begun}FAIL\texample.org/a\t0.1s\n") == Outcomes(passed=1, failed=1)
    assert read_text("go", begun) == Outcomes(passed=1)


def test_tests_of_the_next_run_do_not_count_for_the_previous_one() -> None:
    ended = "test_a (t.T.test_a) ... ok\n\nRan 1 test in 0.001s\n\nOK\n"
    assert read_text("unittest", f"{ended}test_b (t.T.test_b) ... ok\nKilled\n") == Outcomes(passed=2)


def test_a_session_that_was_killed_in_its_summary_keeps_its_tests() -> None:
    text = "=== test session starts ===\nt.py .F\n=== FAILURES ===\nt.py F\n=== short test summary info ===\n"
    assert read_text("pytest", text) == Outcomes(passed=1, failed=1)


def test_ranges_of_prove_are_read() -> None:
    text = (
        "a.t .. ok\na.t (Wstat: 0 Tests: 9 Failed: 0)\n  TODO passed:   2-4, 6\nFiles=1, Tests=9,  0 wall\n"
    )
    assert read_text("tap", text) == Outcomes(passed=5, failed=4)


def test_prove_may_print_the_time() -> None:
    text = "[10:20:30] t/a.t .. ok       18 ms\nFiles=1, Tests=4,  0 wallclock secs\nResult: PASS\n"
    assert read_text("tap", text) == Outcomes(passed=4)


def test_make_may_be_called_by_its_path() -> None:
    text = "/usr/bin/make  check-TESTS\nPASS: one.sh\nFAIL: two.sh\n"
    assert read_text("automake", text) == Outcomes(passed=1, failed=1)


LINES = sorted({line for name in PRINTED for line in printed(name).splitlines()})


@given(lines=st.lists(st.sampled_from(LINES), max_size=40), tail=st.text(max_size=40))
@settings(max_examples=60, deadline=None)
def test_no_order_of_lines_raises(lines: list[str], tail: str) -> None:
    for reading in read_output("\n".join([*lines, tail])):
        assert reading.outcomes.total


@given(
    text=st.text(
        alphabet=" .#:=[](){}-,\x1b\r\n\t0123456789okFAILpassedfailedTests\N{CHECK MARK}", max_size=300
    )
)
@settings(max_examples=100, deadline=None)
def test_no_text_raises(text: str) -> None:
    read_output(text)


@pytest.mark.parametrize(
    "line",
    [
        "1" * 9_000 + " passed in 1s",
        "{" * 9_000,
        '{"Action":[]}',
        '{"Action":[],"Package":"a"}',
        '{"Action":"pass","Package":"a","Test":3}',
        "[1]",
        "ok 1 # SKIP" * 900,
        "Tests: " + "1 passed, " * 900 + "1 total",
        "\x1b[" * 9_000,
        "1.." + "9" * 5_000,
        "ok 1" + " " * 9_000,
        " 1/1 Test  #1: " + "." * 9_000,
        "test " + "a ... " * 900,
        "  1) " + " (1ms)" * 900,
        "✔ a" + " (1" * 900,
    ],
)
def test_hostile_lines_break_no_reader(line: str) -> None:
    for framework in FRAMEWORKS:
        read_text(framework, f"TAP version 13\n{line}\nFiles=1, Tests={'9' * 5000},\n{line}")


NAMED = {
    "cargo-good": {
        "tests::is_ignored": "skipped",
        "tests::passes": "passed",
        "tests::is_to_panic - should panic": "passed",
        "two": "passed",
        "one": "passed",
        "src/lib.rs - add (line 7)": "skipped",
        "src/lib.rs - add (line 3)": "passed",
    },
    "ctest-mixed": {
        **dict.fromkeys(("passes", "passes_too", "to_fail_and_does"), "passed"),
        **dict.fromkeys(("fails", "crashes", "not_there", "late", "to_fail_and_passes"), "failed"),
        **dict.fromkeys(("skips", "disabled"), "skipped"),
    },
    "go-good-verbose": {
        f"example.org/project/text {name}": "passed"
        for name in ("TestOne", "TestTwo", "Example_hello", "Example_bye")
    },
    "mocha-mixed": {
        "mixed > passes": "passed",
        "mixed > passes too": "passed",
        "mixed > fails": "failed",
        "mixed > throws": "failed",
        "mixed > is skipped": "skipped",
        "mixed > is to be written": "skipped",
        'mixed > hooks > "before all" hook for "never runs"': "failed",
    },
    "node-mixed-tap": {
        "mixed > passes": "passed",
        "mixed > fails": "failed",
        "mixed > throws": "failed",
        "mixed > is skipped": "skipped",
        "mixed > is to be written": "skipped",
        "mixed > fails and is to do": "skipped",
        "passes too": "passed",
        "never ends by itself": "failed",
    },
    "prove-mixed-verbose": {
        "./a.t 1 - one": "passed",
        "./a.t 2 - two": "passed",
        "./a.t 3 - three": "passed",
        "./b.t 1 - passes": "passed",
        "./b.t 2 - fails": "failed",
        "./b.t 3": "skipped",
        "./b.t 4": "skipped",
        "./b.t 5 - known": "skipped",
        "./b.t 6 - known and passes": "failed",
        "./b.t 7 - parts": "passed",
        "./d.t 1 - one": "passed",
        "./d.t 2 - two": "passed",
        "./e.t 1 - one": "passed",
        "./e.t 2": "skipped",
        "./e.t 3": "skipped",
    },
    "tape-mixed": {
        "1 passes": "passed",
        "2 fails": "failed",
        "3 passes too": "passed",
        "4 is skipped": "skipped",
        "5 is to do": "skipped",
        "6 inside": "passed",
    },
}  # fmt: skip
"""Text -> its tests as the framework names them."""


def named(text: str) -> dict[str, str]:
    return {name: end for reading in read_output(text) for name, end in reading.tests.items()}


@pytest.mark.parametrize("name", NAMED)
def test_tests_are_known_by_their_names(name: str) -> None:
    assert named(printed(name)) == NAMED[name]
    if name != "mocha-mixed":  # its tests look like any list of points
        assert named(f"{JUNK}{printed(name)}\n{JUNK}") == NAMED[name]


@pytest.mark.parametrize(
    "other", ["node-mixed-spec", "node-mixed-colour", "node24-mixed-spec", "node24-mixed-tap"]
)
def test_node_names_its_tests_alike_in_all_of_its_forms(other: str) -> None:
    assert named(printed(other)) == NAMED["node-mixed-tap"]


def test_ctest_go_and_mocha_name_their_tests_alike_in_all_of_their_forms() -> None:
    assert (
        named(printed("ctest-mixed-parallel"))
        == named(printed("ctest-mixed-verbose"))
        == NAMED["ctest-mixed"]
    )
    assert named(printed("go-mixed-json")) == named(printed("go-mixed-verbose"))
    assert named(printed("mocha-mixed-colour")) == NAMED["mocha-mixed"]
    assert named(printed("mocha-mixed-debian")) == NAMED["mocha-mixed"]


@pytest.mark.parametrize("name", PRINTED)
def test_a_run_names_all_of_its_tests_or_none(name: str) -> None:
    for reading in read_output(printed(name)):
        ends = Counter(reading.tests.values())
        assert not ends or (ends["passed"], ends["failed"], ends["skipped"]) == tuple(
            reading.outcomes.model_dump().values()
        )


def test_two_tests_of_one_name_are_not_known_by_name() -> None:
    text = (
        "running 2 tests\ntest a ... ok\ntest a ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored;\n"
    )
    (reading,) = read_output(text)
    assert (reading.outcomes.passed, reading.tests) == (2, {})
