"""Tracking a sweep in SQLite, in PostgreSQL and on an MLflow server. Measures; asserts nothing.

python -m tests.bench.stores
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from runner.tracking.mlflow import MlflowTracker
from tests.bench.tracing import CELLS, TASKS, make_sweep
from tests.support.mlflow_ui import mlflow_ui
from tests.support.postgres import PostgresMissingError, postgres

STEPS = 2


def main() -> None:
    """Track a sweep of 2,160 trials of two steps in each store: a line each."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name, ExitStack() as servers:
        folder = Path(name)
        MlflowTracker().log(make_sweep(folder / "first", 1, 1, STEPS))  # imports, and the store of the server
        _say("SQLite", None, folder)
        try:
            _say("PostgreSQL", servers.enter_context(postgres()), folder)
        except PostgresMissingError as missing:
            print(f"no PostgreSQL: {missing}")
        words = [sys.executable, "-m", "runner", "job=ui", f"outputs={folder / 'first'}"]
        _say("an MLflow server on SQLite", servers.enter_context(mlflow_ui(words, folder)), folder)


def _say(store: str, uri: str | None, folder: Path) -> None:
    sweep = make_sweep(folder / store, CELLS, TASKS, STEPS)
    began, processor = time.monotonic(), time.process_time()
    MlflowTracker(uri=uri).log(sweep)
    seconds, used = time.monotonic() - began, time.process_time() - processor
    print(
        f"{CELLS * TASKS} trials of {STEPS} steps, with traces, in {store}: {seconds:.0f} s, of a processor here "
        f"{used:.0f} (load {os.getloadavg()[0]:.0f}, no bound)",
        flush=True,
    )


if __name__ == "__main__":
    main()
