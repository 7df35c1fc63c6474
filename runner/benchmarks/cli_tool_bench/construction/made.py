"""Table `[made]` of `task.toml`: how a task came to be; and the questions to the people who review it."""

from __future__ import annotations

from pathlib import Path

from runner.benchmarks.cli_tool_bench.construction.recipe import FOLDER
from runner.benchmarks.sources import reviews
from runner.records import Record

QUESTIONS = ("entry_right", "commands_run")
"""Questions of section 2.1.3, as columns of `making/reviews.csv`."""


class Made(Record):
    """Record of how `job=make_cli_task` made a task."""

    written_by: tuple[str, ...]
    """Authors of schema, context and generators: `by hand`, or names of models."""
    seed: int
    """Seed of the generators."""
    golden: str
    """Digest of `golden.jsonl`, the reference's results in all cases: `sha256:..`."""


def is_reviewed(task: Path) -> bool:
    """Return whether two people confirm the entry point and the commands, and nobody denies them.

    Raises `TaskError` for a file that cannot be read.
    """
    return reviews.is_reviewed(task / FOLDER, QUESTIONS)
