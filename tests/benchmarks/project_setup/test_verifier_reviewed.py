"""Honest set-ups whose tests the watcher must observe, on this machine."""

from __future__ import annotations

import pytest

from runner.benchmarks.project_setup.deliverables import Outcomes
from runner.benchmarks.project_setup.watch_inside.shim import reporting_env
from tests.support.watch_bench import TESTS, TRUE, results, watch

UNITTEST = "-m unittest discover tests"
OWN = 'mkdir -p own/bin; ln -s "$PY" own/bin/python3.19; export PATH="$PWD/own/bin:$PATH"'
"""A virtual environment that is put on PATH by hand, with a Python that was not there before."""
HANGS = {
    "tests/test_a.py": "def test_a(): pass\ndef test_b(): assert False\n",
    "tests/test_b.py": "import pathlib, time, unittest\nclass Hangs(unittest.TestCase):\n"
    "    def test_c(self): pass\n"
    "    def test_d(self):\n        pathlib.Path('hangs').touch()\n        time.sleep(1000)\n",
}


@pytest.mark.parametrize(
    "script",
    [
        "PYTHONPATH=. python3 -m pytest -q tests",
        "export PYTHONPATH=src; python3 -m pytest -q tests",
        "env FOO=1 PYTHONPATH=. python3 -m pytest -q tests",
        "unset PYTHONPATH; timeout 60 python3 -m pytest -q tests",
        "export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1; python3 -m pytest -q tests",
    ],
)
def test_pytest_is_seen_whatever_its_variables_are(script: str) -> None:
    assert results(watch(script)) == ([("pytest", TRUE)], "")


@pytest.mark.parametrize(
    "script",
    [
        f"{OWN}; python3.19 {UNITTEST}",
        f"{OWN}; timeout 60 python3.19 {UNITTEST}",
        f"main() {{ {OWN}; python3.19 {UNITTEST}; }}; set -u; IFS=$'\\n\\t'; main",
        f"python3 -W default -X utf8 {UNITTEST}",
        f"bash -lc 'python3 {UNITTEST}'",
    ],
    ids=["PATH", "timeout", "strict, in a function", "options of Python's", "a login shell"],
)
def test_unittest_is_seen_wherever_its_python_is(script: str) -> None:
    assert results(watch(script)) == ([("unittest", TRUE)], "")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("command -v no-such mocha", ""),
        ("type mocha", ""),
        ("hash mocha", ""),
        ("type -P python3", "file"),
        ("type python3", "file"),
        ("hash python3", ""),
        ("type cd", "cd is a shell builtin"),
    ],
)
def test_shell_lookups_find_a_program_only_if_it_exists(question: str, answer: str) -> None:
    watched = watch(
        f'IFS=,; said=$({question} 2> /dev/null); code=$?; [ -x "$said" ] && said=file; echo $code:$said'
    )
    assert watched.output.strip() == f"{int('mocha' in question)}:{answer}"


def test_a_suite_that_never_ends_keeps_what_its_tests_did() -> None:
    script = """
        python3 -m pytest -q tests &
        (cd tests; exec python3 -m unittest -v test_b) &
        until [ -e hangs ] && [ -e tests/hangs ]; do sleep 0.1; done
    """
    found, refused = results(watch(script, HANGS), files=HANGS)
    assert refused == ""
    assert dict(found) == {"pytest": Outcomes(passed=2, failed=1), "unittest": Outcomes(passed=1)}


def test_a_pytest_that_is_killed_keeps_what_its_tests_did() -> None:
    script = "python3 -m pytest -q tests & until [ -e hangs ]; do sleep 0.1; done; kill -9 %1"
    found, _ = results(watch(script, HANGS), files=HANGS)
    assert found == [("pytest", Outcomes(passed=2, failed=1))]


def test_what_a_silent_program_prints_last_is_read() -> None:
    files = {"tests/test_late.py": TESTS["tests/test_sums.py"] + "import time; time.sleep(2)\n"}
    assert results(watch(f"python3 {UNITTEST}", files), files=files) == ([("unittest", TRUE)], "")


def test_go_is_verbose_whatever_its_flags_are() -> None:
    assert reporting_env({})["GOFLAGS"] == "-v"
    assert reporting_env({"GOFLAGS": "-mod=vendor -v"})["GOFLAGS"] == "-mod=vendor -v"
    assert reporting_env({"GOFLAGS": "-mod=vendor"})["GOFLAGS"] == "-v -mod=vendor"


def test_a_conftest_that_only_workers_load_is_checked_too() -> None:
    script = "echo 'x = 1' > tests/conftest.py; python3 -m pytest -q --noconftest tests"
    found, refused = results(watch(script))
    assert found == []
    assert "conftest.py is not as the project published it" in refused
