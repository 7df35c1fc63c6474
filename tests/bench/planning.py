"""Plan and resume sweeps of 10,000 and of 100,000 trials, beside a program that only reads their records' files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from runner.cli import arguments as cli
from runner.cli.compose import compose
from runner.cli.config import load
from runner.records import Status, TrialRecord
from runner.records.trial_files import RECORD
from runner.sweeps.plan import Plan, make_plan
from runner.sweeps.store import Store
from tests.support.tasks_factory import make_task

ROOT = Path(__file__).resolve().parents[2]
CELLS, ATTEMPTS = 20, 10
READING = """
import pathlib, sys
for path in pathlib.Path(sys.argv[1]).glob("*/*/record.json"):
    path.read_bytes()
"""


class Cost(NamedTuple):
    """Cost of a command."""

    seconds: float
    cpu: float
    """Seconds of processors: what remains of the wall's on a busy machine."""
    megabytes: float
    """Most resident memory."""

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s ({self.cpu:.1f} s of CPU), {self.megabytes:.0f} MB"


def main(folder: Path) -> None:
    """Run every measurement: a line each, with the tenth of the trials beside it."""
    small, large = (_sweep(folder / str(tasks), tasks) for tasks in (50, 500))
    sizes = [(folder / str(tasks) / "outputs/many/sweep.json").stat().st_size for tasks in (50, 500)]
    print(
        f"sweep.json: {sizes[0] / 1024:.0f} KiB with 10,000 trials of 50 tasks, {sizes[1] / 1024:.0f} with 100,000 of "
        f"500 ({(sizes[1] - sizes[0]) / 90_000:.1f} bytes a trial more; no bound)"
    )
    for what, bound in (
        ("plan", "bound 10 s, 1000 MB"),
        ("resume, nothing left", "bound 10 s, 1000 MB"),
        ("dry run, nothing left", "bound 10 s, 1000 MB"),
        ("resume without an index, with tables and report", "no bound"),
        ("bare reading of the records", "no bound"),
    ):
        ratio = large[what].cpu / small[what].cpu
        print(f"{what}: 100,000 trials {large[what]}; 10,000 {small[what]}; {ratio:.1f} times ({bound})")


def write_records(plan: Plan, store: Store) -> None:
    """Write a finished record for each trial, without the index that the store would write."""
    now = datetime.now(UTC)
    for trial in plan.trials:
        row = trial.row().model_dump(exclude={"refused", "context_window"})
        ended = {"started_at": now, "finished_at": now, "wall_seconds": 1.0}
        record = TrialRecord(**row, **ended, status=Status.COMPLETED, reward=1.0, passed=True, cost_usd=0.0)
        folder = store.folder(record.key)
        folder.mkdir(parents=True)
        (folder / RECORD).write_text(record.model_dump_json(indent=1))


def _sweep(folder: Path, tasks: int) -> dict[str, Cost]:
    for number in range(tasks):
        make_task(folder / "tasks", f"t{number:03d}")
    turns = ",".join(str(50 + cell) for cell in range(CELLS))
    words = [
        *("-m", f"budget.turns={turns}", "agent=mini_swe_agent", "model=scripted_careful", "dataset=harbor"),
        *(f"dataset.root={folder / 'tasks'}", "dataset.build_args.BASE=assay-base", f"attempts={ATTEMPTS}"),
        *(f"outputs={folder / 'outputs'}", "tracker=none", "name=many"),
    ]
    command = [sys.executable, "-m", "runner", *words]
    costs = {"plan": cost([*command, "dry_run=true"])}
    sweep = load(compose(cli.check(words)))
    store = Store(folder / "outputs")
    write_records(make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ()), store)
    costs["resume without an index, with tables and report"] = cost(command)
    costs["resume, nothing left"] = cost(command)
    costs["dry run, nothing left"] = cost([*command, "dry_run=true"])
    costs["bare reading of the records"] = cost(
        [sys.executable, "-c", READING, str(store.outputs / "trials")]
    )
    return costs


def cost(command: list[str]) -> Cost:
    """Run a command and return its cost. Raises `SystemExit` if it fails."""
    environment = os.environ | {"CI": "true"}
    began = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        main(Path(scratch))
