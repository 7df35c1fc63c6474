"""What a watched script's test programs did, as readings; and what of it is refused, a sentence each.

What this cannot exclude: the script is root on its machine. A program that it makes itself, names like a test
program and has print what no reader can tell from the real one, numbers put together so that they stand in no script;
files of results that a background process writes while a test program runs; a pytest of its own making that tells
results to our plugin, or code that hides from it in pytest's process (`sitecustomize`, a package of its own making);
new tests for another runner than pytest. Each takes more than an honest set-up does. What is refused is a test in
`tests/security`.
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

from runner.benchmarks.project_setup.deliverables import Outcomes, Reading
from runner.benchmarks.project_setup.frameworks import (
    FILES,
    FRAMEWORKS,
    PROGRAMS,
    counted,
    read_file,
    read_output,
)
from runner.records import Record

LARGEST = 16 << 20
"""Bytes that one line of the watcher's can stand for."""
INTERPRETERS = frozenset({"python", "python3", "node", "nodejs", "perl"})
"""Their output counts only when what they run is the project's, or a package's."""
INLINE = frozenset({"-c", "-e", "-E", "-p", "-pe", "-", "--eval", "--print"})
VALUED = frozenset({"-W", "-X", "-I", "-M", "-r", "--require", "--import", "--loader"})
"""Options of interpreters whose value is the next word."""
MODULES = frozenset({"unittest", "nose2", "coverage", "tox", "nox"})
"""That `python -m` may run though they are not the project's."""
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
"""Python's installer puts a text of its own making for these among the programs."""
PACKAGED = re.compile(
    r"/node_modules/|/site-packages/|/dist-packages/|^/usr/(lib|share)/|^/usr/local/(?!s?bin/)[^/]+/|^/opt/"
    r"|/\.(sdkman|nvm|m2|gradle)/|/(apache-maven|gradle)-[\d.]+/bin/"
)
"""Where a package manager puts programs."""


class Run(NamedTuple):
    """One test program, as the watcher ran it."""

    argv: tuple[str, ...]
    file: tuple[str, str] | None
    """Its first argument that is a file, and the digest of that."""
    script: tuple[str, str] | None
    """The program itself, links followed, and its digest, where it is a text; None: machine code, or the system's."""
    output: str
    files: Mapping[str, bytes] = {}
    """Path -> content of the files of results that were new when it had ended."""

    @property
    def name(self) -> str:
        """Of the program, without its path, and a Python's without its version."""
        return re.sub(r"^(python3)\.\d+$", r"\1", PurePosixPath(self.argv[0]).name)


class Session(Record):
    """A session of pytest. The script can make one up, so nothing of it is more than what these types allow."""

    tests: tuple[tuple[str, str, Literal["passed", "failed", "skipped"]], ...]
    """Path, rest of the id, outcome."""
    files: dict[str, str]
    """Path -> digest."""
    plugins: dict[str, str]
    """The same, of every conftest.py too."""


class _RunTold(Record):
    """See `watch_inside.watch` for what the watcher tells; each `body` is Base64 of zlib's."""

    event: Literal["run"]
    run: int
    argv: tuple[str, ...] = Field(min_length=1)
    code: int | None = None
    file: tuple[str, str] | tuple[()]
    script: tuple[str, str] | tuple[()]
    body: str = ""


class _FileTold(Record):
    event: Literal["file"]
    run: int
    path: str
    body: str = ""


class _SessionTold(Record):
    event: Literal["pytest"]
    body: str


class _EndTold(Record):
    event: Literal["end"]
    code: int | None = Field(ge=-64, le=255)
    seconds: float = 0.0
    full: bool
    body: str = ""


_Told = _RunTold | _FileTold | _SessionTold | _EndTold
_TOLD: TypeAdapter[_Told] = TypeAdapter(Annotated[_Told, Field(discriminator="event")])


class Watched(NamedTuple):
    """Everything that the watcher told."""

    runs: tuple[Run, ...] = ()
    sessions: tuple[Session, ...] = ()
    """Of pytest."""
    ended: bool = False
    code: int | None = None
    """Of the script; 128 + n for signal n; None when it did not end by itself."""
    output: str = ""
    full: bool = False
    """There was more than the channel carries."""


class Pristine:
    """The project's files by digest."""

    def __init__(self, project: Path) -> None:
        self._paths: dict[str, list[str]] = {}
        for file in sorted(project.rglob("*")):
            if file.is_file() and not file.is_symlink():
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                self._paths.setdefault(digest, []).append(file.relative_to(project).as_posix())

    def path(self, seen: str, digest: str) -> str | None:
        """Which of the project's files something seen at a path is, wherever a copy of it lies; None: none of them."""
        paths = self._paths.get(digest, [])
        return next((path for path in paths if seen.endswith(f"/{path}")), paths[0] if paths else None)

    def has_module(self, name: str) -> bool:
        """Whether `python -m name` runs a file of the project."""
        end = name.replace(".", "/")
        ends = (f"/{end}.py", f"/{end}/__main__.py")
        return any(f"/{path}".endswith(ends) for paths in self._paths.values() for path in paths)


def _pattern(glob: str) -> str:
    """A regular expression for a glob in which `**` stands for any folders, none included."""
    parts = {"**/": "(?:.*/)?", "*": "[^/]*"}
    return "".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*)", glob))


_RESULTS = {re.compile(_pattern(glob)): framework for glob, framework in FILES.items()}
RESULT_FILES = "|".join(f"(?:{pattern.pattern})" for pattern in _RESULTS)
"""A regular expression of the paths of files that are results."""


def read(told: str) -> Watched:
    """What the watcher wrote to its channel; a line that broke off, or makes no sense, is left out."""
    runs: dict[int, Run] = {}
    sessions: list[Session] = []
    end: tuple[_EndTold, str] | None = None
    for line in told.splitlines():
        try:
            event = _TOLD.validate_json(line)
            body = _unpacked(event.body)
            match event:
                case _RunTold():
                    printed = body.decode(errors="replace")
                    runs[event.run] = Run(event.argv, event.file or None, event.script or None, printed)
                case _FileTold() if run := runs.get(event.run):
                    runs[event.run] = run._replace(files={**run.files, event.path: body})
                case _SessionTold():
                    sessions.append(Session.model_validate_json(body))
                case _EndTold():
                    end = event, body.decode(errors="replace")
        except (ValueError, zlib.error):
            continue
    found = Watched(tuple(runs.values()), tuple(sessions))
    if end is None:
        return found
    said, output = end
    code = 128 - said.code if said.code is not None and said.code < 0 else said.code
    return found._replace(ended=True, code=code, output=output, full=said.full)


def readings(
    watched: Watched, project: Path, scripts: Sequence[str]
) -> tuple[tuple[Reading, ...], tuple[str, ...]]:
    """What counts, and why other things do not. `scripts` are the texts that the agent wrote."""
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
                f"`{program}` is, or runs, no file of the project or of a package: what it says does not count."
            )
    if printed and _stands_in(scripts):
        refused.append(
            "A summary of tests stands in the scripts themselves: what programs printed does not count."
        )
        printed = []
    if watched.full:
        refused.append("The test programs printed more than 8 MiB of results: what came last is missing.")
    written = [*sessions, *_written(files)]
    return counted(written, printed), tuple(dict.fromkeys(refused))


def _unpacked(body: str) -> bytes:
    """Raises `ValueError` or `zlib.error`."""
    return zlib.decompressobj().decompress(base64.b64decode(body), LARGEST) if body else b""


def _sessions(sessions: Sequence[Session], pristine: Pristine) -> tuple[list[Reading], list[str]]:
    """A reading of each session of pytest. A test that runs again counts once, as it ended last."""
    latest: dict[tuple[str, str], tuple[int, str]] = {}
    refused = []
    for index, session in enumerate(sessions):
        paths = {path: pristine.path(path, digest) for path, digest in session.files.items()}
        foreign = [path for path, digest in session.plugins.items() if not _vouched((path, digest), pristine)]
        if foreign:
            refused.append(
                f"{foreign[0]} is not the project's as published: tests that ran with it do not count."
            )
            continue
        strange = sorted({path for path, _, _ in session.tests if not paths.get(path)})
        if strange:
            refused.append(f"{strange[0]} is not the project's as published: its tests do not count.")
        for path, rest, outcome in session.tests:
            if known := paths.get(path):
                latest[known, rest] = index, outcome
    numbers = Counter(latest.values())
    found = [
        Outcomes(**{name: numbers[index, name] for name in ("passed", "failed", "skipped")})
        for index in range(len(sessions))
    ]
    return [Reading(framework="pytest", outcomes=each, way="file") for each in found if each.total], refused


def _written(files: Mapping[str, bytes]) -> Iterator[Reading]:
    """One reading of each framework's files."""
    sums: dict[str, Outcomes] = {}
    for path, content in files.items():
        framework = next((name for pattern, name in _RESULTS.items() if pattern.fullmatch(path)), None)
        if framework and (outcomes := read_file(framework, content)):
            sums[framework] = sums.get(framework, Outcomes()) + outcomes
    for framework, outcomes in sums.items():
        yield Reading(framework=framework, outcomes=outcomes, way="file")


def _fits(run: Run, pristine: Pristine) -> bool:
    """Whether it is no text of the agent's own, and runs none."""
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
    """An interpreter's own options, without their values, and what follows them."""
    options: set[str] = set()
    for at, word in enumerate(words):
        if at and words[at - 1] in VALUED:
            continue
        if not word.startswith("-"):
            return options, words[at:]
        options.add(word)
    return options, ()


def _vouched(file: tuple[str, str], pristine: Pristine) -> bool:
    """Whether a file is the project's, or a package's."""
    path, digest = file
    return bool(PACKAGED.search(path)) or pristine.path(path, digest) is not None


def _stands_in(scripts: Sequence[str]) -> bool:
    """Whether a reader finds results in the text of a script, its quotes and its printing taken away."""
    lines = [line for script in scripts for line in script.splitlines() if not line.lstrip().startswith("#")]
    text = re.sub(r"[\"'`;]|&&|\|\||\\+n", "\n", "\n".join(lines))
    bare = re.sub(r"(?m)^\s*(?:RUN\s+)?(?:echo|printf)(?:\s+-\w+)*[ \t]+", "", text)
    return bool(read_output(bare, FRAMEWORKS) or read_output(text, FRAMEWORKS))
