"""What is rebuilt from the records at any time: the sweep's tables on disk."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

from runner.records import TrialRecord
from runner.report.findings import find
from runner.report.leaderboard import leaderboard_text
from runner.report.table import SweepFile, read_sweep, trials_table
from runner.store import Store, write_atomically

TABLES = ("trials.csv", "trials.parquet", "leaderboard.csv", "lock.json", "leaderboard.txt")
"""Files of a sweep's folder that are projections; `sweep.json` and `config.yaml` are not."""
REPORT = Path("report", "index.html")
"""The page for people, its pictures beside it."""

OF_A_TASK = ("task", "environment", "image")
"""Digests of a record that are its task's; the others are its cell's, but for the snapshots of single trials."""


def load_trials(sweep: Path, outputs: Path) -> tuple[SweepFile, pd.DataFrame]:
    """The plan and the trials table of a sweep's folder. Raises `ConfigError`."""
    plan = read_sweep(sweep)
    records = Store(outputs).load([row.key for row in plan.planned])
    return plan, trials_table(plan.planned, records)


def write_projections(sweep: Path, outputs: Path) -> str:
    """Write `TABLES` and the report into the sweep's folder; returns the leaderboard for people.

    Raises `ConfigError` when the folder holds no readable plan, `OutputsError` when it cannot be written.
    """
    from runner.report.page import write_report  # noqa: PLC0415 - brings matplotlib, and only here it draws

    plan = read_sweep(sweep)
    records = Store(outputs).load([row.key for row in plan.planned])
    trials = trials_table(plan.planned, records)
    found = find(plan, sweep, trials, {"versions": plan.versions, **what_ran(records.values())})
    text = (
        f"{leaderboard_text(found.trials, found.cells, found.draws, found.scoring)}\n"
        f"Records: {outputs / 'trials'}   Tables: {sweep}   Report: {sweep / REPORT}"
    )
    contents = (
        trials.to_csv(index=False).encode(),
        trials.to_parquet(index=False),
        found.cells.to_csv().encode(),
        json.dumps(found.ran, indent=1).encode(),
        text.encode(),
    )
    for name, content in zip(TABLES, contents, strict=True):
        write_atomically(sweep / name, content)
    write_report(found)
    return text


def what_ran(records: Iterable[TrialRecord]) -> Mapping[str, dict[str, dict[str, list[str]]]]:
    """Every digest that the records name, by cell and by task; more than one value means that it changed midway."""
    seen: dict[str, dict[str, dict[str, set[str]]]] = {"cells": {}, "tasks": {}}
    for record in records:
        cell = f"{record.agent}·{record.model}·{record.dataset}·{record.budget}"
        for name, digest in record.digests.items():
            if name == "verifier_image":
                continue
            kind, owner = (
                ("tasks", f"{record.dataset}/{record.task}") if name in OF_A_TASK else ("cells", cell)
            )
            seen[kind].setdefault(owner, defaultdict(set))[name].add(digest)
    return {
        kind: {owner: _in_order(names) for owner, names in owners.items()} for kind, owners in seen.items()
    }


def _in_order(names: Mapping[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(values) for name, values in sorted(names.items())}
