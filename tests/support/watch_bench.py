"""Run scripts under the watcher on this machine, for tests that need no sandbox."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

from runner.benchmarks.project_setup import watch_inside
from runner.benchmarks.project_setup.deliverables import PROJECT, SCRIPT, Outcomes
from runner.benchmarks.project_setup.rerun import watch_command, watch_files
from runner.benchmarks.project_setup.watched_results import Watched, read, readings

TESTS = {
    "tests/test_sums.py": """
import unittest
class Sums(unittest.TestCase):
    def test_one(self): self.assertEqual(1 + 1, 2)
    def test_two(self): self.assertEqual(1 + 2, 3)
    def test_wrong(self): self.assertEqual(1 + 3, 5)
    @unittest.skip("later")
    def test_later(self): pass
""",
}
"""A project's only test file, for unittest and pytest."""
TRUE = Outcomes(passed=2, failed=1, skipped=1)
REPORT = (
    '<testsuite name="a" tests="2" failures="1" errors="0" skipped="0"><testcase name="a" classname="x"/>'
    '<testcase name="b" classname="x"><failure/></testcase></testsuite>'
)
"""Report of surefire with one passed and one failed test."""
DEADLINE_SECONDS = 60.0
PLAIN = " ".join(
    f"-p no:{name}" for name in ("cacheprovider", *(each.name for each in entry_points(group="pytest11")))
)
"""Plugins that are installed here and have nothing to do with the tests take a second to load."""


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def watch(
    script: str, files: Mapping[str, str] = TESTS, seconds: float = DEADLINE_SECONDS, machine: str = ""
) -> Watched:
    """Return the watcher's report on a script in a copy of these files; `machine` runs in its process first.

    `$BIN` is the first folder on PATH and empty; `python3` is this interpreter, and so is `$PY` by its path.
    """
    with tempfile.TemporaryDirectory(prefix="w") as short:  # a socket's path is
        root = Path(short)
        code, workspace, programs = root / "code", root / "space", root / "bin"
        place = code / "runner" / "benchmarks" / "project_setup" / "watch_inside"
        shutil.copytree(Path(watch_inside.__file__).parent, place)
        write_files(workspace / PROJECT, files)
        (workspace / SCRIPT).write_text(script)
        write_files(
            root,
            {
                str(Path(path).relative_to(root)): text
                for path, text in watch_files(str(place), str(workspace), seconds).items()
            },
        )
        programs.mkdir()
        env = {
            "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "BIN": str(programs),
            "PY": sys.executable,
            "PYTEST_ADDOPTS": PLAIN,
        }
        *python, start = watch_command(sys.executable, str(code))
        ended = subprocess.run(
            [*python, f"{machine}\n{start}"],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
            timeout=2 * DEADLINE_SECONDS,
        )
        _end_all(root)
        return read(ended.stdout)


def _end_all(root: Path) -> None:
    """End the processes that a script left: those that work in its folder or have it in their environment."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            known = str(root).encode() in (process / "environ").read_bytes()
            if known or (process / "cwd").readlink().is_relative_to(root):
                os.kill(int(process.name), signal.SIGKILL)


def results(
    watched: Watched, *scripts: str, files: Mapping[str, str] = TESTS
) -> tuple[list[tuple[str, Outcomes]], str]:
    """Return the results that count, and the reasons why others do not."""
    with tempfile.TemporaryDirectory() as folder:
        found, refused = readings(watched, write_files(Path(folder), files), scripts)
    return [(one.framework, one.outcomes) for one in found], " ".join(refused)
