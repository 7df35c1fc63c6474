"""Make small tasks in Harbor's format: a script that solves the task and a script that judges it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from runner.benchmarks.harbor.dataset import HarborDataset

PASSES = "test -f /app/done && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
"""Default tests: whether the file exists."""


def make_task(
    root: Path,
    name: str,
    solve: str = "touch /app/done",
    *,
    test: str = PASSES,
    toml: str = "",
    dockerfile: str = "ARG BASE\nFROM ${BASE}\nRUN mkdir /app && chown 1000:1000 /app\nWORKDIR /app\n",
) -> Path:
    """Make a task folder with the solution `solve`, which the oracle runs, and the tests `test`."""
    folder = root / name
    for part in ("environment", "tests", "solution"):
        (folder / part).mkdir(parents=True)
    toml = dedent(toml) or '[agent]\nuser = "1000"\ntimeout_sec = 20\n'
    if "[environment]" not in toml:
        toml += '[environment]\nnetwork_mode = "no-network"\n'
    (folder / "task.toml").write_text('schema_version = "1.4"\n' + toml)
    (folder / "instruction.md").write_text("Make the file /app/done.\n")
    (folder / "environment" / "Dockerfile").write_text(dockerfile)
    (folder / "tests" / "test.sh").write_text("#!/bin/bash\n" + dedent(test))
    (folder / "solution" / "solve.sh").write_text("#!/bin/bash\n" + dedent(solve))
    return folder


def dataset(root: Path, **changed: object) -> HarborDataset:
    """Return the dataset of every task below `root`, built on this machine's base image."""
    values = {"name": "made", "root": root, "build_args": {"BASE": "assay-base"}}
    return HarborDataset.model_validate(values | changed)
