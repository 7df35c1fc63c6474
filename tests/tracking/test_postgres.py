"""PostgreSQL as the store of MLflow, for real."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.errors import TrackingError
from runner.report.projections import write_projections
from runner.resources import ROOT
from runner.sweeps.store import Store
from runner.tracking.mlflow import MlflowTracker
from tests.report.plans import record, row, sweep_of_four, write_sweep
from tests.report.test_trial_traces import calls, leave, said
from tests.support.postgres import PostgresMissingError, postgres

PLANNED, RECORDS = sweep_of_four()

pytestmark = pytest.mark.usefixtures("no_page")


@pytest.fixture(scope="module")
def uri() -> Iterator[str]:
    server = postgres()
    try:
        address = server.__enter__()
    except PostgresMissingError as missing:
        pytest.skip(f"no PostgreSQL: {missing}")
    yield address
    server.__exit__(None, None, None)


def test_a_sweep_is_tracked_brought_up_to_date_and_left_alone(tmp_path: Path, uri: str) -> None:
    from mlflow import MlflowClient  # noqa: PLC0415 - as the code under test does: after its environment is set

    records = {key: each.model_copy(update={"digests": {"task": "ab" * 32}}) for key, each in RECORDS.items()}
    sweep = write_sweep(tmp_path, PLANNED, records)
    for each in records.values():
        if each.turns:
            leave(Store(tmp_path).folder(each.key), calls(2), [said(0, "\u0000 ünï"), said(1)])
    write_projections(sweep, tmp_path)
    tracker = MlflowTracker(uri=uri)
    assert "Tracked in MLflow" in tracker.log(sweep)
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("assay").experiment_id

    def runs() -> set[str]:
        return {run.info.run_id for run in client.search_runs([experiment])}

    def traces() -> dict[str, str]:
        found = client.search_traces(locations=[experiment], max_results=100)
        assert all(trace.data.spans for trace in found)
        assert {len(trace.info.assessments) for trace in found} == {2, 3}
        return {
            trace.info.client_request_id: trace.info.trace_metadata["mlflow.sourceRun"] for trace in found
        }

    first, linked = runs(), traces()
    assert (len(first), set(linked)) == (5, set(records))
    assert set(linked.values()) < first
    tracker.log(sweep)
    assert (runs(), traces()) == (first, linked)
    again = row("codex", "easy-1")
    Store(tmp_path).write(record(again, passed=False))
    write_projections(sweep, tmp_path)
    tracker.log(sweep)
    changed = traces()
    assert set(changed) == set(records)
    assert set(changed.values()) <= runs()
    assert len(runs() - first) == 2
    (dataset,) = client.search_datasets([experiment])
    assert dataset.name == "quickstart"


DRIVER = """
import sys
from pathlib import Path
from runner.tracking.mlflow import MlflowTracker
print(MlflowTracker(uri=sys.argv[1], experiment="shared").log(Path(sys.argv[2])))
"""


def test_two_drivers_that_track_at_once_on_an_empty_database_leave_one_run_of_each_cell(
    tmp_path: Path,
) -> None:
    """One failed at the race for the schema, and on a ready database there were 47 runs for 25."""
    from mlflow import MlflowClient  # noqa: PLC0415 - as above

    try:
        with postgres() as uri:
            sweeps = []
            for name in ("one", "two"):  # the same sweep in the outputs of two machines
                sweeps.append(write_sweep(tmp_path / name, PLANNED, RECORDS))
                write_projections(sweeps[-1], tmp_path / name)
            drivers = [
                subprocess.Popen(
                    [sys.executable, "-c", DRIVER, uri, sweep], stdout=subprocess.PIPE, text=True, cwd=ROOT
                )
                for sweep in sweeps
            ]
            said = [driver.communicate()[0] for driver in drivers]
            assert [driver.returncode for driver in drivers] == [0, 0]
            assert sum("another command writes" in text for text in said) == 1
            client = MlflowClient(tracking_uri=uri)
            experiment = client.get_experiment_by_name("shared").experiment_id
            cells = Counter(run.data.tags["assay.cell"] for run in client.search_runs([experiment]))
            assert len(cells) == 5
            assert set(cells.values()) == {1}
    except PostgresMissingError as missing:
        pytest.skip(f"no PostgreSQL: {missing}")


def test_a_server_that_is_gone_is_a_tracking_error(tmp_path: Path, uri: str) -> None:
    sweep = write_sweep(tmp_path, PLANNED, RECORDS)
    write_projections(sweep, tmp_path)
    with pytest.raises(TrackingError, match="job=track name=quickstart"):
        MlflowTracker(uri=uri.replace("host=", "host=/nowhere")).log(sweep)
