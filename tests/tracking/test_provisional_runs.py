"""Runs of a sweep that is not over, in a real SQLite store: brought up to date in place, and replaced at the end."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import TrackingError
from runner.report.projections import write_projections
from runner.tracking.mlflow import MlflowTracker
from runner.tracking.provisional_runs import LIVE, SHOWN
from tests.report.plans import SKILL, TASKS, sweep_of_four, write_sweep

FEW = 9
"""Trials that have ended at the first refresh."""
CELLS = len(SKILL) + 1
"""Runs: one a cell, and one for the sweep."""


NO_PAGE = pytest.mark.usefixtures("no_page")
"""Mark of the tests that look at no file of a report. They come last, as no page is written from the first one on."""


def client(sweep: Path) -> Any:
    from mlflow import MlflowClient  # noqa: PLC0415 - as the code under test does: after its environment is set

    return MlflowClient(tracking_uri=f"sqlite:///{sweep.parent / 'mlflow.db'}")


def runs(sweep: Path) -> dict[str, Any]:
    listed = client(sweep).search_runs([client(sweep).get_experiment_by_name("assay").experiment_id])
    by_cell = {run.data.tags["assay.cell"]: run for run in listed}
    assert len(by_cell) == len(listed)
    return by_cell


def traces(sweep: Path) -> dict[str, Any]:
    """Every trace by its trial, as far as it does not name a run."""
    found = client(sweep).search_traces(
        locations=[client(sweep).get_experiment_by_name("assay").experiment_id], max_results=200
    )
    return {
        trace.info.client_request_id: (
            trace.info.tags["assay.digest"],
            trace.info.state,
            len(trace.data.spans),
        )
        for trace in found
    }


def run_of(trace: Any) -> str:
    return str(trace.info.trace_metadata["mlflow.sourceRun"])


def content(run: Any) -> tuple[Any, ...]:
    """Everything that a run says, but for ids and moments of writing."""
    tags = {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.logged")}
    inputs = [(each.dataset.name, each.dataset.digest) for each in run.inputs.dataset_inputs]
    info = run.info.run_name, run.info.status, run.info.start_time, run.info.end_time
    return info, run.data.params, run.data.metrics, tags, inputs


def files(sweep: Path, run: Any, folder: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for each in client(sweep).list_artifacts(run.info.run_id, folder or None):
        if each.is_dir:
            found |= files(sweep, run, each.path)
        else:
            root = Path(run.info.artifact_uri.removeprefix("file://"))
            found[each.path] = (root / each.path).read_bytes()
    return found


@pytest.fixture
def at(tmp_path: Path, empty_store: Path) -> Callable[[str, int | None], Path]:
    """Make a sweep in a folder, of which so many trials have ended, and its tables."""

    def made(name: str, ended: int | None = None) -> Path:
        outputs = tmp_path / name
        if not outputs.exists():
            outputs.mkdir()
            shutil.copy(empty_store, outputs / "mlflow.db")
        planned, records = sweep_of_four()
        folder = write_sweep(outputs, planned, dict(list(records.items())[:ended]))
        write_projections(folder, outputs)
        return folder

    return made


def test_what_remains_is_what_would_have_been_written_without(at: Callable[..., Path]) -> None:
    """Runs, their files, and traces are those of a sweep that was logged once, at its end."""
    sweep = at("refreshed", FEW)
    MlflowTracker().refresh(sweep)
    MlflowTracker().refresh(at("refreshed", 2 * FEW))
    MlflowTracker().log(at("refreshed"))
    alone = at("alone")
    MlflowTracker().log(alone)
    mine, theirs = runs(sweep), runs(alone)
    assert mine.keys() == theirs.keys()
    for cell, run in mine.items():
        assert content(run) == content(theirs[cell])
        assert not {LIVE, SHOWN} & run.data.tags.keys()
        written = files(sweep, run)
        own = str(sweep.parent).encode(), str(alone.parent).encode()
        assert {name: file.replace(*own) for name, file in written.items()} == files(alone, theirs[cell])
        for name in run.data.metrics:
            assert len(client(sweep).get_metric_history(run.info.run_id, name)) == 1
    assert traces(sweep) == traces(alone)
    ids = {run.info.run_id for run in mine.values()}
    experiment = client(sweep).get_experiment_by_name("assay").experiment_id
    assert {run_of(trace) for trace in client(sweep).search_traces(locations=[experiment])} <= ids
    assert len(list((sweep.parent / "mlartifacts").iterdir())) == CELLS


def test_a_run_is_brought_up_to_date_in_place(at: Callable[..., Path]) -> None:
    sweep = at("outputs", FEW)
    MlflowTracker().refresh(sweep)
    first = runs(sweep)
    assert len(first) == CELLS
    assert {run.info.status for run in first.values()} == {"RUNNING"}
    nop = next(cell for cell in first if cell.startswith("nop"))
    assert (first[nop].data.metrics["coverage"], len(traces(sweep))) == (0.428571, FEW)
    MlflowTracker().refresh(at("outputs"))
    second = runs(sweep)
    assert {cell: run.info.run_id for cell, run in first.items()} == {
        cell: run.info.run_id for cell, run in second.items()
    }
    history = client(sweep).get_metric_history(second[nop].info.run_id, "coverage")
    assert [(point.step, point.value) for point in history] == [(3, 0.428571), (6, 0.857143)]
    assert len(traces(sweep)) == len(SKILL) * len(TASKS) - 1  # one trial did not run
    assert "report/index.html" in files(sweep, second[""])


@NO_PAGE
def test_a_cell_that_has_not_changed_keeps_its_complete_run(at: Callable[..., Path]) -> None:
    sweep = at("outputs")
    MlflowTracker().log(sweep)
    before = runs(sweep)
    MlflowTracker().refresh(sweep)
    after = runs(sweep)
    assert {cell: run.info.run_id for cell, run in before.items()} == {
        cell: run.info.run_id for cell, run in after.items()
    }
    MlflowTracker().refresh(at("outputs", FEW))  # as if records had been put aside, with fresh=true
    MlflowTracker().log(at("outputs"))
    assert {cell: content(run) for cell, run in runs(sweep).items()} == {
        cell: content(run) for cell, run in before.items()
    }


@NO_PAGE
def test_a_store_that_is_away_is_named(at: Callable[..., Path]) -> None:
    sweep = at("outputs", FEW)
    with pytest.raises(TrackingError, match=r"did not take the sweep .* No record is lost"):
        MlflowTracker(uri="http://127.0.0.1:9").refresh(sweep)
