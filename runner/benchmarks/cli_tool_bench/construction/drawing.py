"""Draw cases from a generator: an untrusted Python file that a model or a person wrote (section 2.2.2).

It runs as a case of its own on a clean machine of the base image: without a network, under a case's limits, and with no
file of the reference or of another generator in reach. Its output is not a verdict: the reference decides whether a
case is positive or negative.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, ValidationError

from runner.benchmarks.cli_tool_bench.case_file import mentions
from runner.benchmarks.cli_tool_bench.construction import inside
from runner.benchmarks.sources.answers import fenced
from runner.records import Environment, Record
from runner.records.base import first_fault
from runner.records.cases import Case, CaseLimits, CaseSide

if TYPE_CHECKING:
    from runner.protocols import CaseBox, SandboxProvider

Dimension = Literal["common", "boundary", "error"]
DRAWS = 120
"""Number of cases drawn for one class. The first 50 usable cases become the class; the others are spares."""
MOST_QUOTED = 2_000
"""Longest excerpt of a generator's messages that is passed on, in characters."""
_LIMITS = CaseLimits(seconds=10, memory_mb=256, pids=16, output_bytes=8 << 20, text_bytes=0)
_HERE = Path(inside.__file__).parent
LIBRARY = {name: (_HERE / name).read_text("utf-8") for name in ("fuzz.py", "drive.py")}
"""Name -> text of the files that every generator finds beside it."""
_COMMAND = "python3 -B drive.py generator.py {tool} {seed} {count} cases.json 1>&2 && cat cases.json"


class Drawn(Record):
    """One case of a generator."""

    dimension: Dimension
    command: str = Field(min_length=1, max_length=20_000)
    files: dict[str, str] = Field(default={}, max_length=200)
    prep: str = ""
    env: dict[str, str] = {}

    def case(self, command_class: str) -> Case:
        """Return the case, in a class. Raises `ValueError` for one that cannot be run."""
        return Case(**{"class": command_class}, **self.model_dump(exclude={"dimension"}))


class Draws(Record):
    """Cases that one generator yields for one seed."""

    cases: tuple[Drawn, ...]


class Generators:
    """Runs generators. A context manager; the machine starts with the first one."""

    def __init__(self, sandboxes: SandboxProvider, seed: int) -> None:
        self._sandboxes, self._seed, self._stack = sandboxes, seed, ExitStack()

    def draw(self, tool: str, name: str, source: str, shared: Mapping[str, str]) -> Draws:
        """Return the cases of a class's generator, which must be the same in two runs.

        `shared` is name -> text of the files that the generator may import. Raises `ValueError` with the generator's
        messages if it fails, and `EngineError`.
        """
        command = _COMMAND.format(tool=tool, seed=f"{self._seed}/{name}", count=DRAWS)
        case = Case(
            **{"class": name},
            command=command,
            files={**shared, **LIBRARY, "generator.py": source},
            env={"PYTHONHASHSEED": "0", "PYTHONIOENCODING": "utf-8:backslashreplace"},
        )
        first = self._box.run(case)
        if first.exit_code != 0:
            ending = f"exit code {first.exit_code}" if first.ended == "exited" else first.ended
            raise ValueError(f"it ended with {ending} and printed: {first.stderr[-MOST_QUOTED:]}")
        if first.stdout_digest != self._box.run(case).stdout_digest:
            raise ValueError("two runs differ: take everything random from `draw`")
        return _read(first.stdout, tool, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @cached_property
    def _box(self) -> CaseBox:
        from runner.sandbox.docker import base_image  # noqa: PLC0415 - loads docker

        image = self._sandboxes.image(Environment(image=base_image.tag()))
        side = CaseSide(name="generators", image=image, limits=_LIMITS)
        return self._stack.enter_context(self._sandboxes.cases(side))


def check_source(source: str) -> str:
    """Return a generator's source, which may be a fenced block. Raises `ValueError` if it cannot be one."""
    text = source.strip()
    try:
        tree = _parsed(text)
    except ValueError:
        text = fenced(text)[1] or text
        tree = _parsed(text)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    if missing := [name for name in ("common", "boundary", "error") if name not in functions | imported]:
        raise ValueError(f"it has no function {missing[0]}(draw)")
    return text if text.endswith("\n") else f"{text}\n"


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):  # an escape such as backslash d is only warned of
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"it is not Python: {error}") from error


def _read(text: str, tool: str, name: str) -> Draws:
    """Read the output of the driver, which the generator may have forged. Raises `ValueError`."""
    try:
        node = json.loads(text)
        draws = Draws(cases=node)
        for drawn in draws.cases:
            drawn.case(name)
    except ValidationError as error:
        raise ValueError(f"it yields a case that cannot be: {first_fault(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its cases are not JSON: {error}") from error
    if nameless := next((one for one in draws.cases if not mentions(one.command, tool)), None):
        raise ValueError(f"a command does not call {tool!r}: {nameless.command[:200]}")
    return draws
