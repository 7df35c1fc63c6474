"""`make bench`: speed as ratios from one run, medians of pairs. Measures; asserts nothing.

Absolute times depend on the machine and its neighbours, so every figure here is either a ratio of two things done in
turn, or printed beside the bound it is meant to keep.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner.cli import arguments as cli
from runner.cli.compose import compose
from runner.cli.config import load
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from tests.bench import (
    cases,
    construction,
    crews,
    nl2repo,
    planning,
    scoring,
    starting,
    stores,
    tables,
    tracing,
    trials,
)
from tests.bench import gateway as bench_gateway
from tests.bench.planning import write_records
from tests.support.tasks_factory import make_task

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Run every measurement, one line each."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        folder = Path(scratch)
        starting.main()
        _resume(folder / "resume")
        planning.main(folder / "planning")
        trials.main(folder / "trials")
        _memory(folder / "memory")
    bench_gateway.main()
    scoring.main()
    tables.main()
    tracing.main()
    stores.main()
    cases.main()
    construction.main()
    nl2repo.main()
    crews.main()


def _resume(folder: Path) -> None:
    """Resume finished sweeps of some 2,000 trials: a cell of 500 tasks, and 24 cells of 21, each with 4 attempts."""
    for cells, tasks in ((1, 500), (24, 21)):
        place = folder / str(cells)
        for number in range(tasks):
            make_task(place / "tasks", f"t{number:03d}")
        turns = ",".join(str(50 + cell) for cell in range(cells))
        arguments = (
            *(
                "-m",
                f"budget.turns={turns}",
                "agent=oracle",
                "dataset=harbor",
                f"dataset.root={place / 'tasks'}",
            ),
            *("dataset.build_args.BASE=assay-base", "attempts=4", f"outputs={place / 'outputs'}"),
            *("tracker=none", "name=resume"),
        )
        # The first run only makes the records: written directly, with the keys that the command plans.
        sweep = load(compose(cli.check(list(arguments))))
        plan = make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ())
        write_records(plan, Store(place / "outputs"))
        _run(*arguments)
        seconds = _median(partial(_run, *arguments), 3)
        print(f"resume of {len(plan.trials)} finished trials in {cells} cells: {seconds:.2f} s (bound 3 s)")


def _memory(folder: Path) -> None:
    """Measure the peak resident memory of the runner until the last of 16 trials in flight at once ends."""
    for number in range(16):
        make_task(folder / "tasks", f"t{number:02d}", toml='[agent]\nuser = "1000"\ntimeout_sec = 120\n')
    outputs = folder / "outputs"
    arguments = (
        *(
            "agent=mini_swe_agent",
            "model=scripted_careful",
            "dataset=harbor",
            f"dataset.root={folder / 'tasks'}",
        ),
        *("dataset.build_args.BASE=assay-base", "executor.workers=16", f"outputs={outputs}", "tracker=none"),
    )
    command = [sys.executable, "-m", "runner", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"CI": "true"}, stdout=subprocess.DEVNULL
    ) as process:
        peak = 0
        while process.poll() is None and len(list(outputs.glob("trials/*/*/record.json"))) < 16:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = next(
                (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), peak
            )
            time.sleep(0.1)
    print(f"peak memory of the runner, 16 trials in flight: {peak / 1024:.0f} MB (bound 400 MB)")


def _run(*arguments: str) -> None:
    environment = os.environ | {"CI": "true"}
    command = [sys.executable, "-m", "runner", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
        )


def _median(work: Callable[[], None], times: int) -> float:
    return statistics.median(_timed(work) for _ in range(times))


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
