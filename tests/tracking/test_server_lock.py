"""One command at a time writes to an MLflow server, a real one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pytest

from runner.report.projections import write_projections
from runner.resources import ROOT
from runner.tracking import server_lock
from runner.tracking.mlflow import MlflowTracker
from tests.report.plans import sweep_of_four, write_sweep
from tests.support.mlflow_ui import mlflow_ui

if TYPE_CHECKING:
    from mlflow import MlflowClient

DRIVER = """
import sys
from pathlib import Path
from runner.tracking.mlflow import MlflowTracker
print(MlflowTracker(uri=sys.argv[1], experiment="shared").log(Path(sys.argv[2])))
"""
PLANNED, RECORDS = sweep_of_four()

pytestmark = pytest.mark.usefixtures("no_page")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    shutil.copy(empty_store, folder / "mlflow.db")
    sweep = write_sweep(folder, PLANNED, RECORDS)
    write_projections(sweep, folder)
    MlflowTracker().log(sweep)
    words = [sys.executable, "-m", "runner", "job=ui", f"outputs={folder}"]
    with mlflow_ui(words, folder) as url:
        yield url


@pytest.fixture
def client(server: str) -> MlflowClient:
    from mlflow import MlflowClient  # noqa: PLC0415 - as the code under test does: after its environment is set

    return MlflowClient(tracking_uri=server, registry_uri=server)


def locks(client: MlflowClient) -> list[str]:
    return [model.name for model in client.search_registered_models() if model.name.startswith("assay-")]


def test_two_drivers_that_track_one_sweep_at_once_leave_one_run_of_each_cell(
    server: str, client: MlflowClient, tmp_path: Path
) -> None:
    sweeps = []
    for name in ("one", "two"):  # the same sweep in the outputs of two machines
        sweeps.append(write_sweep(tmp_path / name, PLANNED, RECORDS))
        write_projections(sweeps[-1], tmp_path / name)
    drivers = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, server, sweep], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for sweep in sweeps
    ]
    said = [driver.communicate()[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0]
    assert all("Tracked in MLflow" in text for text in said)
    found = client.get_experiment_by_name("shared")
    assert found
    cells = Counter(run.data.tags["assay.cell"] for run in client.search_runs([found.experiment_id]))
    assert len(cells) == 5
    assert set(cells.values()) == {1}
    assert not locks(client), "nothing is left on the server"


def test_of_four_that_come_at_once_one_is_inside_at_a_time(server: str, client: MlflowClient) -> None:
    guard, inside, most = Lock(), 0, 0

    def enter(_: int) -> None:
        nonlocal inside, most
        with server_lock.server_lock(server):
            with guard:
                inside += 1
                most = max(most, inside)
            time.sleep(0.3)
            with guard:
                inside -= 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(enter, range(4)))
    assert most == 1
    assert not locks(client)


def test_a_command_that_died_keeps_others_waiting_only_for_a_while(
    server: str, client: MlflowClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_lock, "SILENT_SECONDS", 2.0)
    client.create_registered_model(f"{server_lock.PREFIX}dead")
    began = time.monotonic()
    with server_lock.server_lock(server):
        assert time.monotonic() - began > 2
        (own,) = locks(client)
        assert not own.endswith("dead")
    assert "another command writes to this server" in capsys.readouterr().out


def test_one_that_works_for_long_is_not_taken_for_dead(
    server: str, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_lock, "RENEW_SECONDS", 0.5)
    with server_lock.server_lock(server):
        (own,) = locks(client)
        before = client.get_registered_model(own).last_updated_timestamp
        time.sleep(3)
        after = client.get_registered_model(own)
        assert after.last_updated_timestamp > before
        assert "writes runs here" in (after.description or "")


def test_a_server_that_registers_no_models_is_written_to_without_a_lock(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_lock, "PREFIX", "assay:refused/")  # MLflow allows neither sign
    with server_lock.server_lock(server):
        pass
    assert "MLflow: no lock, because this server registers no models (" in capsys.readouterr().out
