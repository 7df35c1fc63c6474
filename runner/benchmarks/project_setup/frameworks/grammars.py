"""Grammars of the frameworks whose output is read line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from runner.benchmarks.project_setup.deliverables import Outcomes
from runner.benchmarks.project_setup.frameworks import test_trees
from runner.benchmarks.project_setup.frameworks.result_lines import Grammar, rest, words

_AUTOMAKE: Final = "PASS|FAIL|XFAIL|XPASS|SKIP|ERROR"
_AUTOMAKE_FOLD: Final = words(passed="PASS", failed="FAIL,XPASS,ERROR", skipped="SKIP,XFAIL")
_PYTEST_COUNT: Final = r"\d+ [a-z][a-z ]*"
_NODE_TOTALS: Final = "tests|suites|pass|fail|cancelled|skipped|todo"


def _unittest(counts: Mapping[str, int]) -> Outcomes:
    """Fold a total in which each failing subtest is a failure, and failures outside tests are not counted as run."""
    fold = rest("Ran", failed="failures,errors,unexpected successes", skipped="skipped,expected failures")
    return fold(
        {
            **counts,
            "Ran": counts.get("Ran", 0) + counts["outside"],
            "failures": counts.get("failures", 0) - counts["again"],
        }
    )


def _vitest(counts: Mapping[str, int]) -> Outcomes:
    """Fold a total, which has all numbers, or a file's line, which lacks that of passed tests."""
    fold = words(passed="passed", failed="failed", skipped="skipped,todo,expected fail")
    return (rest("test", failed="failed", skipped="skipped,todo") if "test" in counts else fold)(counts)


GRAMMARS: Final[Mapping[str, Grammar]] = {
    "pytest": Grammar(
        begins=re.compile(r"=+ test session starts =+$"),
        ends=re.compile(r"(?:=+ )?no tests ran in "),
        # `-q` leaves the signs of equality out
        total=re.compile(
            rf"(?:=+ )?{_PYTEST_COUNT}(?:, {_PYTEST_COUNT})* in \d[\d.]*s(?: \([\d:]+\))?(?: =+)?$"
        ),
        pairs=re.compile(r"(?P<n>\d+) (?P<name>passed|failed|error|skipped|xfailed|xpassed)s?\b"),
        fold=words(passed="passed", failed="failed,error,xpassed", skipped="skipped,xfailed"),
        single=re.compile(
            r"(?:\S+\.py |(?=\S+ +\[ *\d+%\]$))(?P<signs>[.FEsxX]+)(?: +\[ *\d+%\])?$"
            r"|(?:\[gw\d+\] \[ *\d+%\]|(?:[^\s:]|:(?!:))+::.*?) (?P<word>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b"
        ),
        tests=words(passed=".,PASSED", failed="F,FAILED,E,ERROR,X,XPASS", skipped="s,SKIPPED,x,XFAIL"),
        quotes=(
            re.compile(r"=+ (?:ERRORS|FAILURES|PASSES|XPASSES|XFAILURES) =+$"),
            re.compile(r"=+ test session starts =+$|.*[.FEsxX] +\[ *\d+%\]$"),
            re.compile(r"=+ short test summary info =+$"),
        ),
    ),
    "unittest": Grammar(
        total=re.compile(
            r"Ran \d+ tests? in \d[\d.]*s$|(?:OK|FAILED|NO TESTS RAN)(?: \([a-z][a-z =\d,]*\))?$"
        ),
        gap=2,
        needs="Ran",
        pairs=re.compile(r"(?P<name>Ran|[a-z][a-z ]*)[ =](?P<n>\d+)"),
        fold=_unittest,
        single=re.compile(
            r"(?P<name>\w+ \([\w.]+\)) \.\.\. (?P<word>ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b"
        ),
        tests=words(passed="ok", failed="FAIL,ERROR,unexpected success", skipped="skipped,expected failure"),
        problem=re.compile(
            r"(?:FAIL|ERROR): (?:(?:setUp|tearDown)(?:Class|Module) \(|(?P<key>\w+ \([^)]*\)))"
        ),
    ),
    "jest": Grammar(
        total=re.compile(r"Tests: +(?:\d+ [a-z]+, )*\d+ total$"),
        fold=words(passed="passed", failed="failed", skipped="skipped,todo"),
    ),
    "mocha": Grammar(
        total=re.compile(r" +\d+ (?:passing|pending|failing)\b"),
        needs="passing",
        fold=words(passed="passing", failed="failing", skipped="pending"),
        names=test_trees.MOCHA,
    ),
    "vitest": Grammar(
        begins=re.compile(r" *RUN +v\d"),
        total=re.compile(r" *Tests +\d+ [a-z ]+(?: \| \d+ [a-z ]+)* \(\d+\)$"),
        pairs=re.compile(r"(?P<n>\d+) (?P<name>test|passed|failed|skipped|todo|expected fail)"),
        fold=_vitest,
        partial=re.compile(r" [✓❯×↓] \S.* \(\d+ tests?(?: \| \d+ [a-z ]+)*\)"),
        single=re.compile(r" (?P<word>[✓×↓□]) (?P<name>\S.* > .+?)(?: +\d+ms)?$"),
        tests=words(passed="✓", failed="×", skipped="↓,□"),
    ),
    "node": Grammar(
        total=re.compile(rf"(?:ℹ|#) (?:{_NODE_TOTALS}) \d+$"),
        needs="cancelled",
        pairs=re.compile(r"(?P<name>\w+) (?P<n>\d+)$"),
        fold=words(passed="pass", failed="fail,cancelled", skipped="skipped,todo"),
        single=re.compile(r"(?P<indent> *)(?P<word>[✔✖﹣⚠]) .* \(\d+\.\d+ms\)"),
        tests=words(passed="✔", failed="✖", skipped="﹣,⚠"),
        repeats=re.compile(r"(?:✖ failing|Failed) tests:$"),
        names=test_trees.node,
    ),
    "cargo": Grammar(
        begins=re.compile(r"running \d+ tests?$"),
        total=re.compile(r"test result: (?:ok|FAILED)\. \d+ passed; \d+ failed;"),
        fold=words(passed="passed,measured", failed="failed", skipped="ignored"),
        single=re.compile(r"test (?P<name>.+) \.\.\. (?P<word>ok|FAILED|ignored)\b"),
        tests=words(passed="ok", failed="FAILED", skipped="ignored"),
    ),
    "surefire": Grammar(
        begins=re.compile(r"(?:\[INFO\] )? *T E S T S$"),
        total=re.compile(
            r"(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+(?:, Flakes: \d+)?$"
        ),
        pairs=re.compile(r"(?P<name>Tests run|Failures|Errors|Skipped): (?P<n>\d+)"),
        fold=rest("Tests run", failed="Failures,Errors", skipped="Skipped"),
        partial=re.compile(r"(?:\[\w+\] )?Tests run: \d+, .*Time elapsed: "),
    ),
    "gradle": Grammar(
        begins=re.compile(r"(?:> Task )?:\S*[tT]est"),
        total=re.compile(r"\d+ tests? completed(?:, \d+ failed)?(?:, \d+ skipped)?$"),
        pairs=re.compile(r"(?P<n>\d+) (?:tests? )?(?P<name>completed|failed|skipped)"),
        fold=rest("completed", failed="failed", skipped="skipped"),
        single=re.compile(r"(?P<name>[^\s>][^>]* > .+) (?P<word>PASSED|FAILED|SKIPPED)$"),
        tests=words(passed="PASSED", failed="FAILED", skipped="SKIPPED"),
    ),
    "ctest": Grammar(
        begins=re.compile(r"Test project \S"),
        ends=re.compile(r"Total Test time \(real\) ="),
        # a repeated test has further lines, without the numbers in front
        single=re.compile(
            r" *(?:\d+/\d+)? +Test +#(?P<key>\d+): "
            r"(?=(?P<name>\S*)).*(?P<word>Passed|\*\*\*(?:Skipped|Not Run \(Disabled\))?)[^*]{0,60} \d+\.\d+ sec$"
        ),
        tests=words(passed="Passed", failed="***", skipped="***Skipped,***Not Run (Disabled)"),
    ),
    "automake": Grammar(
        begins=re.compile(r"(?:/\S*/)?g?make (?:\S* )*check-TESTS$"),
        ends=re.compile(r"g?make(?:\[\d+\])?: (?:Leaving directory|\*\*\*)"),
        total=re.compile(rf"# (?:TOTAL|{_AUTOMAKE}): +\d+$"),
        needs="TOTAL",
        pairs=re.compile(r"(?P<name>[A-Z]+): +(?P<n>\d+)"),
        fold=_AUTOMAKE_FOLD,
        single=re.compile(rf"(?P<word>{_AUTOMAKE}): \S+(?: (?:\d+|-)(?: .*)?)?$"),
        tests=_AUTOMAKE_FOLD,
        # VERBOSE=1 prints the log of tests that did not pass, which begins with the same total
        quotes=(
            re.compile(r" +\S.*: .*test-suite\.log$"),
            re.compile(r"(?:/\S*/)?g?make (?:\S* )*check-TESTS$"),
            re.compile(r"Testsuite summary for "),
        ),
    ),
}
"""Framework -> grammar of its output."""
