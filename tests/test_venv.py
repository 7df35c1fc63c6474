"""`.ci/venv`, with uv as the only package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.resources import ROOT

WRITES = """
import itertools, os, sys
for n in itertools.count():
    os.makedirs(f"{sys.argv[1]}/lib/package{n % 50}", exist_ok=True)
    open(f"{sys.argv[1]}/lib/package{n % 50}/{n}.pyc", "w").close()
"""
"""Makes files in a folder, as the compilation of its packages does."""


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return the folder of an environment whose only package is to be uv."""
    lines = (ROOT / "requirements.lock").read_text().splitlines(keepends=True)
    start = next(at for at, line in enumerate(lines) if line.startswith("uv=="))
    end = next(at for at in range(start, len(lines)) if not lines[at].endswith("\\\n"))
    (tmp_path / "requirements.lock").write_text("".join(lines[start : end + 1]))
    return tmp_path / "made"


def make(made: Path) -> subprocess.Popen[str]:
    """Begin to make an environment."""
    return subprocess.Popen(
        [ROOT / ".ci" / "venv", made],
        cwd=made.parent,
        env={**os.environ, "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_of_two_commands_that_made_one_environment_one_failed(made: Path) -> None:
    """The second one moved away what the first one was installing into."""
    both = [make(made) for _ in range(2)]
    printed = [each.communicate()[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], printed
    assert (made / "bin" / "uv").exists()


def test_a_second_environment_failed_while_the_packages_of_the_first_were_compiled(made: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITES, str(made)]) as writing:
        try:
            while len(list(made.glob("lib/*/*"))) < 1000:
                assert writing.poll() is None
            command = make(made)
            printed, _ = command.communicate()
        finally:
            writing.kill()
    assert command.returncode == 0, printed
    assert (made / "bin" / "uv").exists()
    assert [path.name for path in made.parent.iterdir() if "old" in path.name] == []
