"""Make the keys of trials: digests of everything that can change how a trial ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from runner.records import Record

if TYPE_CHECKING:
    from runner.records import Task

KEY_DIGITS = 32
"""Hex digits of a key."""


class TaskDigests(Record):
    """Digests of a task, as they are part of its trials' keys."""

    digest: str
    """Digest of the task's files."""
    environment: str
    """Digest of its environment."""
    judge: str | None = None
    """Digest of the environment of its separate verifier, if it has one."""

    @classmethod
    def of(cls, task: Task) -> TaskDigests:
        """Return the digests of a task."""
        judge = task.verifier.environment.digest if task.verifier.environment else None
        return cls(digest=task.digest, environment=task.environment.digest, judge=judge)


def trial_keys(
    cell: str,
    task: TaskDigests,
    attempts: Iterable[int],
    *,
    own_limit: bool = False,
    raised_memory_mb: int | None = None,
) -> list[str]:
    """Return the keys of attempts of a cell at a task: 32 hex digits each; `cell` is `plan.cell_digest` of the cell.

    `own_limit`: the task's time limit holds although the budget's is shorter. `raised_memory_mb`: MiB that the agent
    gets in place of the task's lower limit. `sweep.json` stores these parts and not the keys, so that other parts, or
    another order, need a new version of that file.
    """
    more: list[Any] = ["own_limit"] if own_limit else []
    if raised_memory_mb is not None:
        more.append({"memory_mb": raised_memory_mb})
    first = json.dumps([cell, task.digest, task.environment, task.judge])[:-1]
    rest = "".join(f", {json.dumps(part)}" for part in more)
    return [digest_of_text(f"{first}, {attempt}{rest}]")[:KEY_DIGITS] for attempt in attempts]


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value as JSON with sorted keys."""
    return digest_of_text(json.dumps(value, sort_keys=True, default=str))


def digest_of_text(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
