"""What is rebuilt from the records at any time: the sweep's tables on disk."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from runner.report.leaderboard import cell_scores, leaderboard_text
from runner.report.table import SweepFile, read_sweep, trials_table
from runner.store import Store, write_atomically

TABLES = ("trials.csv", "trials.parquet", "leaderboard.csv", "leaderboard.txt")
"""Files of a sweep's folder that are projections; `sweep.json` and `config.yaml` are not."""


def load_trials(sweep: Path, outputs: Path) -> tuple[SweepFile, pd.DataFrame]:
    """The plan and the trials table of a sweep's folder. Raises `ConfigError`."""
    plan = read_sweep(sweep)
    records = Store(outputs).load([row.key for row in plan.planned])
    return plan, trials_table(plan.planned, records)


def write_projections(sweep: Path, outputs: Path) -> str:
    """Write `TABLES` into the sweep's folder; returns the leaderboard for people.

    Raises `ConfigError` when the folder holds no readable plan, `OutputsError` when it cannot be written.
    """
    plan, trials = load_trials(sweep, outputs)
    text = f"{leaderboard_text(trials, plan.scoring)}\nRecords: {outputs / 'trials'}   Tables: {sweep}"
    contents = (
        trials.to_csv(index=False).encode(),
        trials.to_parquet(index=False),
        cell_scores(trials, plan.scoring).to_csv().encode(),
        text.encode(),
    )
    for name, content in zip(TABLES, contents, strict=True):
        write_atomically(sweep / name, content)
    return text
