"""Fixtures and settings of all tests."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from runner.__main__ import QUIET
from runner.resources import ROOT
from tests.support.sweeps import Door

os.environ.update(QUIET)
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it for its workers, which would make every table narrower
# An example may wait for a busy machine.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
# Tests send these signals to programs, and a parent such as `sh -c 'make test &'` may have set them to be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
# Imported modules and collected tests live to the end; garbage collection would take a fifth of their time.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests marked `serial` first. Later, all other workers would wait until the last of them has ended."""
    items.sort(key=lambda item: not item.get_closest_marker("serial"))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test marked `serial` while no other worker of xdist runs one.

    The lock is a readers-writer lock, taken through a turnstile so that a waiting serial test is not overtaken forever.
    This hook is the outermost, so waiting does not count towards a test's timeout.
    """
    if not hasattr(item.config, "workerinput"):
        return (yield)
    shared = Path(item.config.getoption("basetemp")).parent
    with (shared / "turnstile").open("w") as turnstile, (shared / "room").open("w") as room:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if item.get_closest_marker("serial") else fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        return (yield)


@pytest.fixture(scope="session")
def common(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers share, for files that are made once and found by their content."""
    here = tmp_path_factory.getbasetemp()
    return here.parent if hasattr(request.config, "workerinput") else here


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m runner ARGUMENT...` as its own process in an empty folder."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "runner", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    return run


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    """Call the command line from a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return Door(tmp_path, monkeypatch, capsys)
