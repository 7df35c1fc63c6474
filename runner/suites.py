"""A hidden pytest suite, as a dataset prepares it and a verifier runs it.

<suite>/suite.json      `Suite`
<suite>/hidden/         upstream's packaging files and tests, laid over the workspace
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from pydantic import Field

from runner.records import Record

SUITE, HIDDEN = "suite.json", "hidden"
TESTING = re.compile(r"(?<![\w.-])(pytest|py\.test)(?![\w-])")
"""In a command that runs tests."""

PACKAGING = (
    *("setup.py", "pyproject.toml", "setup.cfg", "requirements*.txt", "tox.ini", "pytest.ini", ".pytest.ini"),
    *(
        "poetry.lock",
        "Pipfile",
        "Pipfile.lock",
        "environment.yml",
        "conda-env.yaml",
        "MANIFEST.in",
        "manifest.in",
    ),
    *("pytest.toml", ".pytest.toml", "conftest.py", "sitecustomize.py", "usercustomize.py"),
)
"""Names that no candidate ships, anywhere: the authors' list, and what pytest or Python reads unasked."""


class Suite(Record):
    """What judges a repository."""

    commands: tuple[str, ...]
    """Run by a shell, one after the other, each with its own time limit."""
    deleted: tuple[str, ...]
    """Paths that are deleted from the workspace's copy, with what lies beneath them."""
    count: int = Field(gt=0)
    """Published number of tests: the denominator."""
    expected: tuple[str, ...] | None = None
    """Ids of the tests that upstream's own code passes; no other counts. None: there is no upstream code, so that every
    test in a hidden file counts."""
    plugins: tuple[str, ...] = ()
    """Modules of pytest plugins that the suite needs."""
    env: dict[str, str] = {}
    command_seconds: float = Field(default=600.0, gt=0)


class Truth(Record):
    """What upstream's own code does to its own tests here, the same twice (section 3.1.3); no code passes none."""

    passed: tuple[str, ...]
    """Ids, sorted."""
    skipped: tuple[str, ...] = ()
    xfailed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Not passed for any other reason; nobody is asked to pass them."""
    empty_passes: Literal[0]
    """How many of `passed` an empty workspace passes too. With one of those there is no truth."""
    commands: tuple[str, ...]
    """What was run."""
    digest: str
    """Of what was run: source, commands, image."""


def runs_tests(command: str) -> bool:
    """Whether a command runs tests; what comes before the first that does installs."""
    return TESTING.search(command) is not None


def targets(command: str) -> list[str]:
    """Paths that a command's pytest is given; none where it collects everything."""
    match = TESTING.search(command)
    words = command[match.end() :].split() if match else []
    ends = next(
        (at for at, word in enumerate(words) if re.fullmatch(r"&&|\|\||;|\||>.*|2>.*", word)), len(words)
    )
    return [
        word.partition("::")[0].strip("'\"").rstrip("/") for word in words[:ends] if _is_path(words, word)
    ]


def _is_path(words: list[str], word: str) -> bool:
    before = words[words.index(word) - 1] if words.index(word) else ""
    return not word.startswith("-") and before not in (
        "-k",
        "-m",
        "-p",
        "-n",
        "-c",
        "-o",
        "-W",
        "--timeout",
        "--maxfail",
    )


def covered(path: str, paths: tuple[str, ...]) -> bool:
    """Whether a relative path is one of these, or beneath one."""
    clean = [Path(of).as_posix().rstrip("/") for of in paths]
    return any(path == of or path.startswith(f"{of}/") or of == "." for of in clean)


def packaging(path: str) -> bool:
    """Whether a path has a name that no candidate ships."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(name, glob) for glob in PACKAGING)


def read_suite(folder: Path) -> Suite:
    """The suite in a folder. Raises `FileNotFoundError`."""
    return Suite.model_validate_json((folder / SUITE).read_bytes())
