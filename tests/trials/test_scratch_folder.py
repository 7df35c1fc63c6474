"""A runner's scratch folder goes with it, however it ends, and never while it lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from runner.trials.scratch_folder import scratch_folder

HOLDER = """
import sys, tempfile
from runner.trials.scratch_folder import scratch_folder
with scratch_folder():
    tempfile.mkstemp()
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def holder(temporary: Path) -> subprocess.Popen[bytes]:
    """A process that has a scratch folder, with a file in it."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline()
    return process


def test_the_sockets_of_a_killed_runner_stayed_for_ever(temporary: Path) -> None:
    with holder(temporary) as process:
        process.send_signal(signal.SIGKILL)
    assert len(list(temporary.rglob("*"))) == 2, "its folder and what lay in it"
    with scratch_folder() as folder:
        assert list(temporary.iterdir()) == [folder]


def test_the_folder_of_a_runner_at_work_stays(temporary: Path) -> None:
    with holder(temporary) as process:
        (other,) = temporary.iterdir()
        with scratch_folder() as folder:
            assert set(temporary.iterdir()) == {other, folder}
            assert len(list(other.iterdir())) == 1
        assert list(temporary.iterdir()) == [other]
        process.communicate()
    assert list(temporary.iterdir()) == [], "it removes its own"


def test_what_is_put_aside_meanwhile_lies_in_it(temporary: Path) -> None:
    with scratch_folder() as folder:
        assert Path(tempfile.mkdtemp()).parent == folder
        assert folder.stat().st_mode & 0o77 == 0
    assert tempfile.gettempdir() == str(temporary)
