"""Read the results of a watched script's test programs, and refuse those that do not count, with a sentence each.

The script is root on its machine. This cannot exclude: a program that the script makes, names like a test program, and
lets print numbers that stand in no script; files of results that a background process writes while a test program
runs; a forged pytest that reports to our plugin, or code that hides from the plugin in pytest's process
(`sitecustomize`, a forged package); new tests for a runner other than pytest. Each takes more work than an honest
set-up. What is refused is tested in `tests/security`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter

from runner.benchmarks.project_setup.deliverables import MOST_NAMED, Ended, Outcomes, Reading
from runner.benchmarks.project_setup.frameworks import (
    FILES,
    FRAMEWORKS,
    PROGRAMS,
    counted,
    read_file,
    read_output,
    read_tests,
)
from runner.records import Record

LARGEST = 16 << 20
"""Largest unpacked size of one line of the watcher, in bytes."""
INTERPRETERS = frozenset({"python", "python3", "node", "nodejs", "perl"})
"""Programs whose output counts only if they run a file of the project or of a package."""
INLINE = frozenset({"-c", "-e", "-E", "-p", "-pe", "-", "--eval", "--print"})
VALUED = frozenset({"-W", "-X", "-I", "-M", "-r", "--require", "--import", "--loader"})
"""Options of interpreters whose value is the next word."""
MODULES = frozenset({"unittest", "nose2", "coverage", "tox", "nox"})
"""Modules that `python -m` may run although they are not the project's."""
LAUNCHED = frozenset(
    {
        "tox",
        "nox",
        "coverage",
        "nose2",
        "uv",
        "poetry",
        "pdm",
        "hatch",
        "pipenv",
        "meson",
        "cmake",
        "ctest",
        "ninja",
    }
)
"""Programs for which Python's installer generates a script."""
PACKAGED = re.compile(
    r"/node_modules/|/site-packages/|/dist-packages/|^/usr/(lib|share)/|^/usr/local/(?!s?bin/)[^/]+/|^/opt/"
    r"|/\.(sdkman|nvm|m2|gradle)/|/(apache-maven|gradle)-[\d.]+/bin/"
)
"""Paths at which package managers install programs."""


class Run(NamedTuple):
    """One test program, as the watcher ran it."""

    argv: tuple[str, ...]
    file: tuple[str, str] | None
    """Path and digest of the first argument that is a file."""
    script: tuple[str, str] | None
    """Resolved path and digest of a program that is a script; None for machine code and programs of the system."""
    output: str
    files: Mapping[str, bytes] = {}
    """Path -> content of files of results that the run left."""

    @property
    def name(self) -> str:
        """Name of the program without its path, and without the version of a Python."""
        return re.sub(r"^(python3)\.\d+$", r"\1", PurePosixPath(self.argv[0]).name)


class Session(Record):
    """Session of pytest. The script can forge one, so these types limit what it may hold."""

    tests: tuple[tuple[str, str, Literal["passed", "failed", "skipped"]], ...]
    """Path, rest of the id, and outcome of each test."""
    files: dict[str, str]
    """Path -> digest of each test file."""
    plugins: dict[str, str]
    """Path -> digest of each plugin and conftest.py."""


class _RunEvent(Record):
    """Event of the watcher (see `watch_inside.watch`); each `body` is Base64 of zlib."""

    event: Literal["run"]
    run: int
    argv: tuple[str, ...] = Field(min_length=1)
    code: int | None = None
    file: tuple[str, str] | tuple[()]
    script: tuple[str, str] | tuple[()]
    body: str = ""


class _FileEvent(Record):
    event: Literal["file"]
    run: int
    path: str
    body: str = ""


class _SessionEvent(Record):
    event: Literal["pytest"]
    body: str


class _EndEvent(Record):
    event: Literal["end"]
    code: int | None = Field(ge=-64, le=255)
    seconds: float = 0.0
    full: bool
    body: str = ""


_Event = _RunEvent | _FileEvent | _SessionEvent | _EndEvent
_EVENT: TypeAdapter[_Event] = TypeAdapter(Annotated[_Event, Field(discriminator="event")])


class Watched(NamedTuple):
    """Everything that the watcher reported."""

    runs: tuple[Run, ...] = ()
    sessions: tuple[Session, ...] = ()
    """Sessions of pytest."""
    ended: bool = False
    code: int | None = None
    """Exit code of the script; 128 + n for signal n; None when it did not end by itself."""
    output: str = ""
    full: bool = False
    """True if the channel could not carry everything."""


class Pristine:
    """Index of the project's files by digest."""

    def __init__(self, project: Path) -> None:
        self._paths: dict[str, list[str]] = {}
        for file in sorted(project.rglob("*")):
            if file.is_file() and not file.is_symlink():
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                self._paths.setdefault(digest, []).append(file.relative_to(project).as_posix())

    def path(self, seen: str, digest: str) -> str | None:
        """Return the path of the project's file with this digest, of which `seen` is a copy; None for no file."""
        paths = self._paths.get(digest, [])
        return next((path for path in paths if seen.endswith(f"/{path}")), paths[0] if paths else None)

    def has_module(self, name: str) -> bool:
        """Return whether `python -m name` runs a file of the project."""
        end = name.replace(".", "/")
        ends = (f"/{end}.py", f"/{end}/__main__.py")
        return any(f"/{path}".endswith(ends) for paths in self._paths.values() for path in paths)


def _pattern(glob: str) -> str:
    """Return a regular expression for a glob in which `**` stands for any number of folders."""
    parts = {"**/": "(?:.*/)?", "*": "[^/]*"}
    return "".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*)", glob))


_RESULTS = {re.compile(_pattern(glob)): framework for glob, framework in FILES.items()}
RESULT_FILES = "|".join(f"(?:{pattern.pattern})" for pattern in _RESULTS)
"""Regular expression for the paths of files of results."""


def read(channel: str) -> Watched:
    """Read the watcher's channel. Incomplete and invalid lines are left out."""
    runs: dict[int, Run] = {}
    sessions: list[Session] = []
    end: tuple[_EndEvent, str] | None = None
    for line in channel.splitlines():
        try:
            event = _EVENT.validate_json(line)
            body = _unpacked(event.body)
            match event:
                case _RunEvent():
                    printed = body.decode(errors="replace")
                    runs[event.run] = Run(event.argv, event.file or None, event.script or None, printed)
                case _FileEvent() if run := runs.get(event.run):
                    runs[event.run] = run._replace(files={**run.files, event.path: body})
                case _SessionEvent():
                    sessions.append(Session.model_validate_json(body))
                case _EndEvent():
                    end = event, body.decode(errors="replace")
        except (ValueError, zlib.error):
            continue
    found = Watched(tuple(runs.values()), tuple(sessions))
    if end is None:
        return found
    last, output = end
    code = 128 - last.code if last.code is not None and last.code < 0 else last.code
    return found._replace(ended=True, code=code, output=output, full=last.full)


def readings(
    watched: Watched, project: Path, scripts: Sequence[str]
) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """Return the readings that count, and why others do not. `scripts` are the texts that the agent wrote."""
    pristine = Pristine(project)
    sessions, refused = _sessions(watched.sessions, pristine)
    files: dict[str, bytes] = {}
    printed: list[Reading] = []
    for run in watched.runs:
        found = read_output(run.output, PROGRAMS.get(run.name, frozenset()) - {"pytest"})
        if _fits(run, pristine):
            files |= run.files
            printed.extend(found)
        elif found or run.files:
            program = " ".join(run.argv)[:100]
            refused.append(
                f"`{program}` neither is nor runs a file of the project or of a package: its results do not count."
            )
    if printed and _stands_in(scripts):
        refused.append("The scripts themselves contain a summary of tests: printed results do not count.")
        printed = []
    if watched.full:
        refused.append("The test programs printed more than 8 MiB of results: the last ones are missing.")
    written = [*sessions, *_written(files)]
    return counted(written, printed), tuple(dict.fromkeys(refused))


def _unpacked(body: str) -> bytes:
    """Unpack a body. Raises `ValueError` or `zlib.error`."""
    return zlib.decompressobj().decompress(base64.b64decode(body), LARGEST) if body else b""


def _sessions(sessions: Sequence[Session], pristine: Pristine) -> tuple[list[Reading], list[str]]:
    """Return readings of the sessions of pytest, and refusals. A test that runs again counts with its last outcome."""
    latest: dict[tuple[str, str], tuple[int, Ended]] = {}
    refused = []
    for index, session in enumerate(sessions):
        paths = {path: pristine.path(path, digest) for path, digest in session.files.items()}
        foreign = [path for path, digest in session.plugins.items() if not _vouched((path, digest), pristine)]
        if foreign:
            refused.append(
                f"{foreign[0]} is not as the project published it: tests that ran with it do not count."
            )
            continue
        strange = sorted({path for path, _, _ in session.tests if not paths.get(path)})
        if strange:
            refused.append(f"{strange[0]} is not as the project published it: its tests do not count.")
        for path, rest, outcome in session.tests:
            if known := paths.get(path):
                latest[known, rest] = index, outcome
    numbers = Counter(latest.values())
    found = [
        Outcomes(**{name: numbers[index, name] for name in ("passed", "failed", "skipped")})
        for index in range(len(sessions))
    ]
    named: list[dict[str, Ended]] = [{} for _ in sessions]
    for (path, rest), (index, outcome) in latest.items():
        named[index][f"{path}::{rest}"] = outcome
    return [
        Reading(
            framework="pytest", outcomes=each, way="file", tests=tests if len(tests) <= MOST_NAMED else {}
        )
        for each, tests in zip(found, named, strict=True)
        if each.total
    ], refused


def _written(files: Mapping[str, bytes]) -> Iterator[Reading]:
    """Yield one reading of each framework's files."""
    sums: dict[str, Outcomes] = {}
    named: dict[str, dict[str, Ended]] = {}
    for path, content in files.items():
        framework = next((name for pattern, name in _RESULTS.items() if pattern.fullmatch(path)), None)
        if framework and (outcomes := read_file(framework, content)):
            sums[framework] = sums.get(framework, Outcomes()) + outcomes
            named.setdefault(framework, {}).update(read_tests(framework, content, path))
    for framework, outcomes in sums.items():
        tests = named[framework] if outcomes.total <= MOST_NAMED else {}
        yield Reading(framework=framework, outcomes=outcomes, way="file", tests=tests)


def _fits(run: Run, pristine: Pristine) -> bool:
    """Return whether the program neither is a script of the agent's nor runs one."""
    if run.script and run.name not in LAUNCHED and not _vouched(run.script, pristine):
        return False
    if run.name not in INTERPRETERS:
        return True
    options, arguments = _options(run.argv[1:])
    if INLINE & options:
        return False
    if "-m" in options:
        module = next(iter(arguments), "")
        return module in MODULES or pristine.has_module(module)
    if "--test" in options:
        return True
    return run.file is not None and _vouched(run.file, pristine)


def _options(words: Sequence[str]) -> tuple[set[str], Sequence[str]]:
    """Return an interpreter's own options, without their values, and the words after them."""
    options: set[str] = set()
    for at, word in enumerate(words):
        if at and words[at - 1] in VALUED:
            continue
        if not word.startswith("-"):
            return options, words[at:]
        options.add(word)
    return options, ()


def _vouched(file: tuple[str, str], pristine: Pristine) -> bool:
    """Return whether a file is the project's or a package's."""
    path, digest = file
    return bool(PACKAGED.search(path)) or pristine.path(path, digest) is not None


def _stands_in(scripts: Sequence[str]) -> bool:
    """Return whether a reader finds results in a script's text, with or without its quotes and `echo` commands."""
    lines = [line for script in scripts for line in script.splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"[\"'`;]|&&|\|\||\\+n", "\n", "\n".join(lines))
    bare = re.sub(r"(?m)^\s*(?:RUN\s+)?(?:echo|printf)(?:\s+-\w+)*[ \t]+", "", text)
    return bool(read_output(bare, FRAMEWORKS) or read_output(text, FRAMEWORKS))
