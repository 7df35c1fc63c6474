"""Tables and report of a sweep, which can be rebuilt from its records at any time."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from runner.files import write_atomically
from runner.heavy_imports import uncollected
from runner.locks import exclusive
from runner.records import TrialRecord
from runner.report.benchmarks import added_sections
from runner.report.csv_cells import csv_pieces, to_csv
from runner.report.findings import Findings, find
from runner.report.leaderboard import leaderboard_text
from runner.report.trial_sources import labelled, sweep_trials
from runner.sweeps import sweep_file
from runner.sweeps.store import Store
from runner.sweeps.sweep_file import SweepFile
from runner.terminal.escaping import WIDTH, width
from runner.terminal.tables import paragraph

TABLES = ("trials.csv", "trials.parquet", "leaderboard.csv", "lock.json", "leaderboard.txt")
"""Files of a sweep's folder that are projections; `sweep.json` and `config.yaml` are not."""
REPORT = Path("report", "index.html")
"""The report page within a sweep's folder, with its pictures beside it."""

TASK_DIGESTS = ("task", "environment", "image")
"""Digests of a record that belong to its task; the others belong to its cell."""


def load_trials(sweep: Path, outputs: Path) -> tuple[SweepFile, pd.DataFrame]:
    """Return the plan and the trials table of a sweep's folder, with the tiers of its scoring.

    Raises `ConfigError`, and `TableError` for tasks that the scoring's tiers file does not know.
    """
    plan, _, trials = sweep_trials(sweep, outputs)
    return plan, labelled(trials, plan.scoring)


def write_projections(sweep: Path, outputs: Path) -> str:
    """Write `TABLES` and the report into the sweep's folder; return the leaderboard, as wide as standard output.

    Raises `ConfigError` when the folder holds no readable plan, `OutputsError` when it cannot be written, and
    `TableError` for tasks that the scoring's tiers file does not know.
    """
    with uncollected():
        from runner.report.page import write_report  # noqa: PLC0415 - brings matplotlib, and only here it draws
        from runner.report.trial_pages import write_trial_pages  # noqa: PLC0415 - brings a template engine

    sweep_file.read(sweep)  # raises if there is no folder to lock
    # Of two runners, the one that reads last writes last.
    with exclusive(sweep), ThreadPoolExecutor(1) as beside:
        plan, records, trials = sweep_trials(sweep, outputs)
        trials = labelled(trials, plan.scoring)
        found = find(plan, sweep, trials, {"versions": plan.versions, **what_ran(records.values())})
        text = _text(found, outputs, WIDTH)
        # Arrow leaves the interpreter to the report. A copy shares the values, but not what pandas rearranges.
        trials_written = beside.submit(_write_trials, trials.copy(deep=False), sweep)
        contents = (
            to_csv(found.cells, index=True).encode(),
            json.dumps(found.ran, indent=1).encode(),
            text.encode(),
        )
        for name, content in zip(TABLES[2:], contents, strict=True):
            write_atomically(sweep / name, content)
        if not plan.imported:
            write_trial_pages(sweep, plan, records, Store(outputs), added_sections(sweep).trial)
        write_report(found)
        trials_written.result()
        return text if width() == WIDTH else _text(found, outputs, width())


def _write_trials(trials: pd.DataFrame, sweep: Path) -> None:
    """Write the first two of `TABLES`."""
    write_atomically(sweep / TABLES[0], (piece.encode() for piece in csv_pieces(trials)))
    write_atomically(sweep / TABLES[1], trials.to_parquet(index=False))


def leaderboard(sweep: Path, outputs: Path) -> str:
    """Return the leaderboard without writing anything. Raises as `write_projections`."""
    plan, trials = load_trials(sweep, outputs)
    return _text(find(plan, sweep, trials, {}), outputs, width())


def _text(found: Findings, outputs: Path, wide: int) -> str:
    """Return the leaderboard and the paths of all files, each unbroken on its own line, so that it can be copied."""
    imported = found.plan.imported
    whence = (
        paragraph(f"Imported: {imported.text}.", wide) if imported else [f"Records: {outputs / 'trials'}"]
    )
    return "\n".join(
        [
            leaderboard_text(found.trials, found.cells, found.draws, found.scoring, wide),
            *whence,
            f"Tables:  {found.folder}",
            f"Report:  {found.folder / REPORT}",
        ]
    )


def what_ran(records: Iterable[TrialRecord]) -> Mapping[str, dict[str, dict[str, list[str]]]]:
    """Return the digests of the records by cell and by task; several values mean a change during the sweep."""
    seen: dict[str, dict[str, dict[str, set[str]]]] = {"cells": {}, "tasks": {}}
    for record in records:
        for name, digest in record.digests.items():
            if name == "verifier_image":
                continue
            kind, owner = (
                ("tasks", f"{record.dataset}/{record.task}")
                if name in TASK_DIGESTS
                else ("cells", record.cell)
            )
            seen[kind].setdefault(owner, defaultdict(set))[name].add(digest)
    return {
        kind: {owner: _in_order(names) for owner, names in owners.items()} for kind, owners in seen.items()
    }


def _in_order(names: Mapping[str, set[str]]) -> dict[str, list[str]]:
    return {name: sorted(values) for name, values in sorted(names.items())}
