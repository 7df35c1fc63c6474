"""Runs of a sweep that is not over: one a cell and one for the sweep, each brought up to date in place.

Such a run has the status RUNNING and the tag `assay.live`. It lacks what only a finished cell needs (trajectories, the
table for comparisons, the input), and the history of its metrics shows how they came about. `MlflowTracker.log` finds
no digest on it and so replaces it, as it does with a run that a crash left half-written.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

    from runner.report.tracked_runs import TrackedRun

LIVE, SHOWN, DIGEST = "assay.live", "assay.shown", "assay.digest"
"""Tags: digest of what cannot be changed on a run, digest of what it shows, and digest of a run that is complete."""


def bring_up_to_date(
    client: MlflowClient, experiment: str, sweep: str, wanted: Sequence[TrackedRun]
) -> tuple[list[str], dict[str, str]]:
    """Let a provisional run show the present state of each cell whose complete run, if there is one, does not.

    Return the folders with the files of runs that were deleted, and the id of the run of each cell.
    """
    found = client.search_runs([experiment], f"tags.`assay.sweep` = '{sweep}'", max_results=10_000)
    stored: defaultdict[str, list[Run]] = defaultdict(list)
    for run in found:
        stored[run.data.tags["assay.cell"]].append(run)
    run_ids, folders = {}, []
    for each in wanted:
        own = stored.pop(each.identity, [])
        kept = next((run for run in own if _can_stay(run, each)), None)
        run_id = kept.info.run_id if kept else _create(client, experiment, sweep, each)
        if kept is None or not {kept.data.tags.get(DIGEST), kept.data.tags.get(SHOWN)} & {each.digest()}:
            _update(client, run_id, kept, each)
        run_ids[each.identity] = run_id
        folders += [_delete(client, run) for run in own if run is not kept]
    folders += [_delete(client, run) for runs in stored.values() for run in runs]
    return folders, run_ids


def _can_stay(run: Run, wanted: TrackedRun) -> bool:
    """Return whether a run is complete and the wanted one, or a provisional one that can become it.

    Neither a parameter can be changed nor a metric removed.
    """
    if run.data.tags.get(DIGEST):
        return bool(run.data.tags[DIGEST] == wanted.digest())
    same: bool = run.data.tags.get(LIVE) == _fixed(wanted)
    return same and set(run.data.metrics) <= set(wanted.metrics)


def _fixed(wanted: TrackedRun) -> str:
    return hashlib.sha256(json.dumps([wanted.name, wanted.params], sort_keys=True).encode()).hexdigest()[:16]


def _create(client: MlflowClient, experiment: str, sweep: str, wanted: TrackedRun) -> str:
    from mlflow.entities import Param  # noqa: PLC0415 - brings mlflow

    tags = {LIVE: _fixed(wanted), "assay.sweep": sweep, "assay.cell": wanted.identity}
    created = client.create_run(experiment, start_time=wanted.started, tags=tags, run_name=wanted.name)
    client.log_batch(created.info.run_id, [], [Param(name, value) for name, value in wanted.params.items()])
    return str(created.info.run_id)


def _update(client: MlflowClient, run_id: str, before: Run | None, wanted: TrackedRun) -> None:
    """Write what differs from what the run showed before."""
    from mlflow.entities import Metric, RunTag  # noqa: PLC0415 - brings mlflow

    from runner.report.csv_cells import to_csv  # noqa: PLC0415 - brings pandas

    metrics, tags = (before.data.metrics, before.data.tags) if before else ({}, {})
    now, ended = int(time.time() * 1000), int(wanted.trials["ran"].sum())
    points = [
        Metric(name, value, now, ended)
        for name, value in wanted.metrics.items()
        if metrics.get(name) != value
    ]
    changed = [RunTag(name, value) for name, value in wanted.tags.items() if tags.get(name) != value]
    client.log_batch(run_id, points, (), changed)
    for name in tags:
        if name.startswith("assay.missing.") and name not in wanted.tags:
            client.delete_tag(run_id, name)
    if wanted.identity:
        with tempfile.TemporaryDirectory() as made:
            table = Path(made, "trials.csv")
            table.write_text(to_csv(wanted.trials, index=False), "utf-8")
            client.log_artifact(run_id, str(table))
    else:
        for path, folder in wanted.files.items():
            client.log_artifact(run_id, str(path), folder)
    client.set_tag(run_id, SHOWN, wanted.digest())


def _delete(client: MlflowClient, run: Run) -> str:
    client.delete_run(run.info.run_id)
    return str(run.info.artifact_uri)
