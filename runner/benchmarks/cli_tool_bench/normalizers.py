"""Replacements in the outputs of both sides before they are compared: `[[normalize]]` in `task.toml`.

They hide what varies from run to run, such as a duration. The candidate chooses the texts and the task the patterns, so
a candidate can make a match slow; replacements therefore run in a process with limits (`normalize_outputs`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pydantic import Field, field_validator, model_validator

from runner.errors import VerifierError
from runner.records import Record
from runner.records.cases import CaseResult

WORKER = Path(__file__).with_name("normalize_outputs.py")
MOST = 100
"""Largest number of replacements in a task."""
LONGEST_PATTERN, LONGEST_REPLACEMENT = 1000, 200
"""Longest pattern and longest replacement, in characters."""
BATCH = 16 << 20
"""Number of characters after which the next outputs go to another process."""
WORKER_SECONDS = 600.0
"""Time limit of one process, in wall seconds. Usually it needs a few."""


class Normalizer(Record):
    """One replacement, as by Python's `re.sub`."""

    pattern: str = Field(min_length=1, max_length=LONGEST_PATTERN)
    """Regular expression. Flags stand at its beginning, as in `(?m)`."""
    replacement: str = Field(max_length=LONGEST_REPLACEMENT)
    r"""Text with references to groups, such as `\1`."""

    @field_validator("pattern", "replacement")
    @classmethod
    def _is_text(cls, text: str) -> str:
        text.encode()  # raises ValueError for a lone surrogate
        return text

    @model_validator(mode="after")
    def _compiles(self) -> Normalizer:
        try:
            re.compile(self.pattern).sub(self.replacement, "")
        except (re.error, IndexError, RecursionError, OverflowError) as error:
            raise ValueError(f"pattern {self.pattern[:80]!r} and its replacement: {error}") from error
        return self


def normalize(results: Sequence[CaseResult], normalizers: Sequence[Normalizer]) -> list[CaseResult]:
    """Return the results with the replacements made in their stdout.

    An output that takes too long stays unchanged. Raises `VerifierError` if their process fails.
    """
    if not normalizers:
        return list(results)
    found: dict[str, str | None] = {}
    for texts in _batches({result.stdout: None for result in results if result.stdout}):
        found |= dict(zip(texts, _replace(texts, normalizers), strict=True))
    return [
        result if (new := found.get(result.stdout)) is None else result.model_copy(update={"stdout": new})
        for result in results
    ]


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the texts in lists that are small enough for one process."""
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters > BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _replace(texts: list[str], normalizers: Sequence[Normalizer]) -> list[str | None]:
    rules = [(rule.pattern, rule.replacement) for rule in normalizers]
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(WORKER)],
            input=json.dumps({"rules": rules, "texts": texts}),
            capture_output=True,
            text=True,
            check=True,
            timeout=WORKER_SECONDS,
        )
    except subprocess.SubprocessError as error:
        raise VerifierError(f"The replacements in the outputs failed: {error}") from error
    changed: list[str | None] = json.loads(done.stdout)
    return changed
