"""Time and memory of large tables, each in a process of its own: part of `make bench`. Measures; asserts nothing.

python -m tests.bench.tables

A million trials of somebody else are imported, and a sweep of 2,160 trials of ten steps is reported and tracked again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import yaml

from tests.bench.planning import Cost, cost
from tests.bench.scoring import made_up
from tests.bench.tracing import CELLS, TASKS, make_sweep

SHAPE = (200, 1000, 5)
"""Cells, tasks and attempts of the imported trials."""
THEIRS = (
    "agent",
    "model",
    "task",
    "tier",
    "attempt",
    "status",
    "reward",
    "tokens",
    "cost_usd",
    "turns",
    "finished_at",
)
"""Columns of the imported table, which are called as ours are."""
STEPS = 10


def main() -> None:
    """Run every measurement, one line each."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        _import(Path(folder, "import"))
        _again(Path(folder, "again"))


def _import(folder: Path) -> None:
    folder.mkdir()
    table, mapping = folder / "theirs.csv", folder / "mapping.yaml"
    made_up(SHAPE)[list(THEIRS)].to_csv(table, index=False)
    meaning = {"columns": {name: name for name in THEIRS}, "constants": {"dataset": "made-up"}}
    mapping.write_text(yaml.safe_dump(meaning))
    imported = cost(
        [
            *(sys.executable, "-m", "runner", "job=import", f"path={table}", f"mapping={mapping}"),
            *("name=theirs", f"outputs={folder / 'outputs'}", "tracker=none"),
        ]
    )
    _say("import of 1,000,000 foreign trials, with tables and report", imported, "bound 30 s, 2000 MB")


def _again(folder: Path) -> None:
    make_sweep(folder / "outputs", CELLS, TASKS, STEPS)
    command = [
        sys.executable,
        "-m",
        "runner",
        "job=track",
        "name=quickstart",
        f"outputs={folder / 'outputs'}",
    ]
    what = f"report and tracking of {CELLS * TASKS:,} trials"
    _say(f"{what}, the first time", cost(command), "no bound")
    _say(f"{what}, warm", cost(command), "bound 10 s")


def _say(what: str, took: Cost, bound: str) -> None:
    print(f"{what}: {took} (load {os.getloadavg()[0]:.1f}, {bound})", flush=True)


if __name__ == "__main__":
    main()
