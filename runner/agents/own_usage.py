"""An agent's own count of its tokens, which is compared with the gateway's and never replaces it.

An agent may write anything. The result is four plausible numbers or a `ValueError`.
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
"""Limit on all files of one report together. The longest seen are a few hundred kilobytes."""
MOST_TOKENS = 10**12
"""Largest plausible count."""
READ_SECONDS = 20.0
"""Time limit for reading the files, which takes a fraction of a second. The sandbox is ended after it."""
_COUNTS = tuple(OwnUsage.model_fields)
_READER = Path(__file__).with_name("read_inside.py")


def check(report: UsageReport) -> None:
    """Raise `ValueError` for an invalid expression."""
    for name in _COUNTS:
        if expression := getattr(report, name):
            jmespath.compile(expression)  # its exceptions are ValueErrors


def reported(report: UsageReport, sandbox: Sandbox, result: ExecResult) -> OwnUsage | None:
    """Return the agent's own counts; see `protocols.Agent`. Only an agent that failed or was ended may leave none."""
    usage = parse(report, _text(report, sandbox, result))
    if usage is None and result.exit_code == 0:
        raise ValueError("It ended well and did not report its tokens.")
    return usage


def parse(report: UsageReport, text: str) -> OwnUsage | None:
    """Return the counts in a text of JSON values, or None if it has none. Raises `ValueError` for an invalid text."""
    try:
        values = list(_values(text))
        counts = {name: _count(getattr(report, name), values) for name in _COUNTS}
    except (JMESPathError, RecursionError) as error:
        raise ValueError(f"Its report of tokens has another shape: {error}") from error
    return None if set(counts.values()) == {None} else OwnUsage(**counts)


def _text(report: UsageReport, sandbox: Sandbox, result: ExecResult) -> str:
    if report.files is None:
        return result.stdout
    if result.exit_code is None:  # the container is gone, and the folder was in its memory
        return ""
    argv = (PYTHON, "-c", _READER.read_text(), f"{AGENT_DIR}/{report.files}", str(MOST_BYTES))
    read = sandbox.exec(ExecSpec(argv=argv, timeout_seconds=READ_SECONDS))
    if read.exit_code != 0:
        raise ValueError(f"Its report of tokens cannot be read: {read.stderr[-500:]}")
    return read.stdout


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON values in a text, each on one line or over many."""
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
        raise ValueError("Its report of tokens has something other than a count.")
    return sum(numbers) if numbers else None
