"""What an agent says itself of its tokens: a cross-check of the gateway's count, and never in its place.

An agent's word is hostile until it is read: whatever it wrote, the outcome is four sane numbers or a `ValueError`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from runner.protocols import Sandbox
from runner.records import ExecResult, ExecSpec, OwnUsage, UsageReport
from runner.sandbox.inside import AGENT_DIR, PYTHON

MOST_BYTES = 8 << 20
"""Of all files of one report together. The longest seen are a few hundred kilobytes."""
MOST_TOKENS = 10**12
"""A larger count is no count."""
READ_SECONDS = 20.0
"""For the files, after which the sandbox is ended; they take a fraction of one."""
_COUNTS = tuple(OwnUsage.model_fields)
_READER = Path(__file__).with_name("read_inside.py")


def check(report: UsageReport) -> None:
    """Raises `ValueError` for an expression that is none."""
    for name in _COUNTS:
        if expression := getattr(report, name):
            jmespath.compile(expression)  # its exceptions are ValueErrors


def reported(report: UsageReport, sandbox: Sandbox, result: ExecResult) -> OwnUsage | None:
    """See `protocols.Agent`. One that was ended from outside may leave nothing; one that ended by itself may not."""
    said = parse(report, _text(report, sandbox, result))
    if said is None and result.exit_code == 0:
        raise ValueError("It ended well and said nothing of its tokens.")
    return said


def parse(report: UsageReport, text: str) -> OwnUsage | None:
    """The counts in a text of JSON values; None if there is not one. Raises `ValueError` when it makes no sense."""
    try:
        values = list(_values(text))
        counts = {name: _count(getattr(report, name), values) for name in _COUNTS}
    except (JMESPathError, RecursionError) as error:
        raise ValueError(f"What it says of its tokens has another shape: {error}") from error
    return None if set(counts.values()) == {None} else OwnUsage(**counts)


def _text(report: UsageReport, sandbox: Sandbox, result: ExecResult) -> str:
    if report.files is None:
        return result.stdout
    if result.exit_code is None:  # its container is dead, and the folder was in memory
        return ""
    argv = (PYTHON, "-c", _READER.read_text(), f"{AGENT_DIR}/{report.files}", str(MOST_BYTES))
    read = sandbox.exec(ExecSpec(argv=argv, timeout_seconds=READ_SECONDS))
    if read.exit_code != 0:
        raise ValueError(f"What it says of its tokens cannot be read: {read.stderr[-500:]}")
    return read.stdout


def _values(text: str) -> Iterator[Any]:
    """The JSON values in a text, one after another: a line each, or one over many lines."""
    decoder, text, at = json.JSONDecoder(), text.strip(), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield value
        at = next((index for index in range(at, len(text)) if not text[index].isspace()), len(text))


def _count(expression: str | None, values: list[Any]) -> int | None:
    found = jmespath.search(expression, values) if expression else None
    numbers = found if isinstance(found, list) else [found]
    numbers = [number for number in numbers if number is not None]
    if any(type(number) is not int or not 0 <= number <= MOST_TOKENS for number in numbers):
        raise ValueError("What it says of its tokens is no count of tokens.")
    return sum(numbers) if numbers else None
