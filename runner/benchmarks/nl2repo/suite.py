"""A hidden pytest suite, as a dataset prepares it and a verifier runs it.

<suite>/suite.json      `Suite`
<suite>/hidden/         upstream's packaging files and tests, laid over the workspace
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import groupby, takewhile
from pathlib import Path
from typing import Literal

from pydantic import Field

from runner.records import Record

SUITE, HIDDEN = "suite.json", "hidden"
WORKSPACE = "/workspace"
"""Where a suite is run."""
_PYTEST = re.compile(r"(.*/)?(pytest|py\.test)")
"""The word that calls it."""
_ONLY_NAMING = re.compile("install|uninstall|add|remove|download|show|echo|which")
"""Words after which pytest is named and not called."""
_VALUED = re.compile(
    "-[kmpncorW]|--(assert|asyncio-mode|basetemp|capture|code-highlight|color|confcutdir|config-file|cov|cov-config"
    "|cov-context|cov-fail-under|cov-report|deselect|dist|doctest-glob|doctest-report|durations|durations-min"
    "|hypothesis-profile|ignore|ignore-glob|import-mode|junit-?prefix|junit-?xml|last-failed-no-failures|lfnf"
    "|log-cli-level|log-file|log-file-level|log-level|maxfail|maxprocesses|numprocesses|override-ini|pastebin"
    "|pythonwarnings|reruns|reruns-delay|rootdir|show-capture|tb|timeout|timeout-method|tx|verbosity)"
)
"""Options of pytest and of its usual plugins whose value may be the next word."""

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
    return next(_calls(command), None) is not None


def targets(command: str) -> list[str]:
    """Paths, from the workspace on, that a command's calls of pytest are given; the folder itself where none is."""
    found = []
    for folder, arguments in _calls(command):
        words = list(takewhile(lambda word: not re.match(r"\d*[<>]", word), arguments))
        before = ["", *words]
        given = [word for last, word in zip(before, words, strict=False) if _is_path(last, word)]
        found += [_inside(folder, word.partition("::")[0]) for word in given or [""]]
    return found


def _calls(command: str, folder: str = "") -> Iterator[tuple[str, list[str]]]:
    """Folder and arguments of each call of pytest in a shell's command."""
    for words in _simple_commands(command):
        if words[0] == "cd":
            folder = posixpath.join(folder, *words[1:2])
        for at, word in enumerate(words):
            if _ONLY_NAMING.fullmatch(word):
                break
            if _PYTEST.fullmatch(word):
                yield folder, words[at + 1 :]
                break
            if " " in word:  # as in bash -c "pytest tests"
                yield from _calls(word, folder)


def _simple_commands(command: str) -> Iterator[list[str]]:
    """Words of what stands between a shell's `;`, `&&`, `||`, `|`, `&` and parentheses."""
    signs, text = ";&|()", command.replace("\n", " ; ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=signs)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # a quote that is never closed
        words = text.split()
    for between, group in groupby(words, key=lambda word: not word.strip(signs)):
        if not between:
            yield list(group)


def _is_path(before: str, word: str) -> bool:
    return not word.startswith("-") and not _VALUED.fullmatch(before)


def _inside(folder: str, path: str) -> str:
    return posixpath.relpath(posixpath.join(WORKSPACE, folder, path), WORKSPACE)


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
