"""MLflow for real: an SQLite store, a server, and stores that are not there."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from runner.errors import ConfigError, TrackingError
from runner.jobs.track import Track
from runner.report.projections import write_projections
from runner.sweeps.store import Store
from runner.tracking.mlflow import MlflowTracker, NoTracker
from tests.report.plans import SKILL, TASKS, record, sweep_of_four, write_sweep
from tests.support.mlflow_ui import mlflow_ui
from tests.support.waiting import PATIENCE_SECONDS, until

CELLS = len(SKILL)


@pytest.fixture(scope="module")
def projected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with its tables and its report, made once."""
    outputs = tmp_path_factory.mktemp("projected")
    write_projections(write_sweep(outputs, *sweep_of_four()), outputs)
    return outputs


@pytest.fixture
def sweep(tmp_path: Path, empty_store: Path, projected: Path) -> Path:
    shutil.copytree(projected, tmp_path, dirs_exist_ok=True)
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    return tmp_path / "quickstart"


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory, empty_store: Path, projected: Path) -> Path:
    """A sweep that was logged once; for tests that only look."""
    outputs = shutil.copytree(projected, tmp_path_factory.mktemp("logged"), dirs_exist_ok=True)
    shutil.copy(empty_store, outputs / "mlflow.db")
    MlflowTracker().log(outputs / "quickstart")
    return outputs / "quickstart"


def client(sweep: Path) -> Any:
    from mlflow import MlflowClient  # noqa: PLC0415 - as the code under test does: after its environment is set

    return MlflowClient(tracking_uri=f"sqlite:///{sweep.parent / 'mlflow.db'}")


def runs(sweep: Path) -> dict[str, Any]:
    """The active runs of the experiment, by cell; empty name for the sweep's own."""
    found = client(sweep)
    experiment = found.get_experiment_by_name("assay").experiment_id
    listed = found.search_runs([experiment])
    by_cell = {run.data.tags["assay.cell"]: run for run in listed}
    assert len(by_cell) == len(listed)
    return by_cell


def artifacts(sweep: Path, run: Any, folder: str | None = None) -> set[str]:
    return {Path(item.path).name for item in client(sweep).list_artifacts(run.info.run_id, folder)}


def cell_name(agent: str) -> str:
    model = "none" if agent in ("oracle", "nop") else "scripted_careful"
    return f"{agent}·{model}·quickstart·default"


def test_one_flat_run_a_cell_and_one_for_the_sweep(logged: Path) -> None:
    found = runs(logged)
    assert set(found) == {"", *map(cell_name, SKILL)}
    codex = found[cell_name("codex")]
    assert codex.info.run_name == "codex · scripted_careful (scripted)"
    assert codex.data.params == {
        "agent": "codex",
        "model": "scripted_careful (scripted)",
        "dataset": "quickstart",
        "budget": "default",
        "scoring": "test",
        "alpha": "0.6",
        "attempts": "mean",
        "cbq": "quality",
        "version/assay": "0.1.0",
    }
    tags = codex.data.tags
    assert (tags["assay.sweep"], tags["assay.kind"], tags["assay.scripted"]) == ("quickstart", "cell", "true")
    assert "mlflow.parentRunId" not in tags
    oracle = found[cell_name("oracle")]
    assert (oracle.info.run_name, oracle.data.tags["assay.kind"]) == ("oracle (bound) · none", "bound")
    assert found[""].data.tags["assay.kind"] == "sweep"
    assert found[""].data.metrics == {
        "cells": 4,
        "trials": 28,
        "judged": 22,
        "refused": 4,
        "cost_usd": 1.085,
    }
    assert all(run.info.status == "FINISHED" for run in found.values())


def test_two_commands_that_track_one_sweep_at_once_left_each_run_twice(sweep: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from runner.tracking.mlflow import MlflowTracker as Tracker; "
    )
    log = [sys.executable, "-c", f"{code} print(Tracker().log(Path(sys.argv[1])))", str(sweep)]
    both = [subprocess.Popen(log, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    text = [process.communicate(timeout=4 * PATIENCE_SECONDS)[0] for process in both]
    assert all("Tracked in MLflow" in words for words in text)
    assert set(runs(sweep)) == {"", *map(cell_name, SKILL)}


SOME, ALL = 20, 60
"""Numbers of tables of a database that is being made, and of one that is complete, which has a few more."""


def test_a_command_that_ended_while_the_database_was_made_left_it_unusable(sweep: Path) -> None:
    """A refresh ends with its sweep. From then on, MLflow said that a table exists already."""
    code = (
        "import sys; from pathlib import Path; from runner.tracking.mlflow import MlflowTracker as Tracker; "
    )
    log = [sys.executable, "-c", f"{code} print(Tracker().log(Path(sys.argv[1])))", str(sweep)]

    def tables() -> int:
        (made,) = (*sweep.parent.rglob("mlflow.db"), None)[:1]
        if not made:
            return 0
        with closing(sqlite3.connect(f"file:{made}?mode=ro", uri=True)) as database:
            return len(database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall())

    (sweep.parent / "mlflow.db").unlink()
    with subprocess.Popen(log, stdout=subprocess.DEVNULL) as process:
        until(lambda: tables() > SOME, pause=0.001)
        process.kill()
    assert SOME < tables() < ALL, "it did not end in between"
    done = subprocess.run(log, capture_output=True, text=True, check=False)
    assert "Tracked in MLflow" in done.stdout, done.stderr
    assert not [*sweep.parent.glob(".mlflow*")]


def test_two_commands_that_lack_one_database_share_the_one_that_the_first_makes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from runner.tracking.new_database import make_if_missing; "
        "from mlflow import MlflowClient; make_if_missing(Path(sys.argv[1])); "
        "MlflowClient(tracking_uri='sqlite:///' + sys.argv[1]).create_experiment(sys.argv[2])"
    )
    place = tmp_path / "shared.db"
    both = [subprocess.Popen([sys.executable, "-c", code, str(place), name]) for name in ("one", "other")]
    assert [process.wait(4 * PATIENCE_SECONDS) for process in both] == [0, 0]
    with closing(sqlite3.connect(place)) as database:
        names = {name for (name,) in database.execute("SELECT name FROM experiments")}
    assert names == {"Default", "one", "other"}
    assert [path.name for path in tmp_path.iterdir()] == ["shared.db"]


def test_metrics_are_those_of_the_leaderboard(logged: Path) -> None:
    metrics = runs(logged)[cell_name("codex")].data.metrics
    assert metrics["pass_rate"] == pytest.approx(4 / 7, abs=1e-6)
    assert metrics["cost_usd"] == pytest.approx(4 * 0.015 + 0.16 + 0.5)
    assert (metrics["passes"], metrics["planned"], metrics["invalid"]) == (4, 7, 2)
    assert metrics["tier_easy/SR"] == 1.0
    assert metrics["tier_hard/EFR"] == 0.25
    assert metrics["AMS"] == pytest.approx(
        (metrics["tier_easy/TierScore"] + metrics["tier_hard/TierScore"]) / 2
    )
    assert metrics["interval/AMS_low"] <= metrics["AMS"] <= metrics["interval/AMS_high"]
    assert metrics["interval/wilson_low"] < metrics["pass_rate"] < metrics["interval/wilson_high"]


def test_what_is_no_number_is_left_out_and_said_in_a_tag(logged: Path) -> None:
    nop = runs(logged)[cell_name("nop")]
    assert "usd_per_pass" not in nop.data.metrics
    assert nop.data.tags["assay.missing.usd_per_pass"] == "infinite: no pass"
    assert nop.data.metrics["AMS"] == 0


def test_the_sweeps_own_run_says_who_is_best_by_what(logged: Path) -> None:
    tags = runs(logged)[""].data.tags
    assert tags["assay.best.AMS"] == "codex · scripted_careful (scripted): 0.494, too few tasks to tell"
    assert set(tags) >= {
        f"assay.best.{name}" for name in ("passes", "tokens_per_pass", "USD_per_pass", "AMS")
    }
    assert "Four criteria, one winner" in tags["mlflow.note.content"]


def test_artifacts(logged: Path) -> None:
    found = runs(logged)
    assert artifacts(logged, found[""]) == {
        "trials.csv",
        "trials.parquet",
        "leaderboard.csv",
        "leaderboard.txt",
        "lock.json",
        "sweep.json",
        "config.yaml",
        "report",
    }
    assert {"index.html", "heat_map.svg", "heat_map.png"} <= artifacts(logged, found[""], "report")
    assert {"leaderboard.csv", "leaderboard.tex"} <= artifacts(logged, found[""], "report/tables")
    assert "trials" not in artifacts(logged, found[""], "report")
    codex = found[cell_name("codex")]
    assert artifacts(logged, codex) == {"trials.csv", "trials.parquet", "trials.json", "trajectories"}
    assert artifacts(logged, codex, "trajectories/easy-1/1") == {"trajectory.json"}
    path = client(logged).download_artifacts(codex.info.run_id, "trials.json")
    table = json.loads(Path(path).read_text())
    assert table["columns"][:2] == ["task", "outcome"]
    assert ["hard-2", "failed (timeout)", 0.0] in [row[:3] for row in table["data"]]
    assert ["hard-4", "refused: It needs a GPU.", None] in [row[:3] for row in table["data"]]


@pytest.mark.parametrize(("which", "tasks"), [("all", 6), ("failed", 2), ("none", 0)])
def test_trajectories_as_configured(sweep: Path, which: Any, tasks: int) -> None:
    MlflowTracker(trajectories=which).log(sweep)
    assert len(artifacts(sweep, runs(sweep)[cell_name("codex")], "trajectories")) == tasks


def test_logging_again_changes_nothing(sweep: Path) -> None:
    first = MlflowTracker().log(sweep)
    before = {cell: run.info.run_id for cell, run in runs(sweep).items()}
    assert MlflowTracker().log(sweep) == first
    assert {cell: run.info.run_id for cell, run in runs(sweep).items()} == before


def test_a_cell_that_changed_is_replaced_without_stale_metrics_and_the_others_stay(sweep: Path) -> None:
    MlflowTracker().log(sweep)
    before = runs(sweep)
    planned, _ = sweep_of_four()
    for row in planned:
        if row.agent == "codex" and not row.refused:
            Store(sweep.parent).write(record(row, passed=False))
    write_projections(sweep, sweep.parent)
    MlflowTracker().log(sweep)
    after = runs(sweep)
    changed = {cell for cell in after if after[cell].info.run_id != before[cell].info.run_id}
    assert changed == {"", cell_name("codex")}
    folders = {path.name for path in (sweep.parent / "mlartifacts").iterdir()}
    assert folders == {run.info.run_id for run in after.values()}, "files of replaced runs stayed for good"
    assert "usd_per_pass" in before[cell_name("codex")].data.metrics
    assert "usd_per_pass" not in after[cell_name("codex")].data.metrics


def test_a_cell_that_is_no_longer_planned_goes(sweep: Path) -> None:
    MlflowTracker().log(sweep)
    planned, records = sweep_of_four()
    write_sweep(sweep.parent, [row for row in planned if row.agent != "nop"], records)
    MlflowTracker().log(sweep)
    assert cell_name("nop") not in runs(sweep)


def test_another_sweep_is_left_alone(sweep: Path) -> None:
    MlflowTracker().log(sweep)
    planned, records = sweep_of_four()
    other = write_sweep(sweep.parent, planned[:6], records, name="codex+nop__a.b")
    assert MlflowTracker().log(other).endswith("viewStateShareKey=codex-nop__a.b")
    found = client(sweep)
    experiment = found.get_experiment_by_name("assay").experiment_id
    sweeps = [run.data.tags["assay.sweep"] for run in found.search_runs([experiment])]
    assert (sweeps.count("quickstart"), sweeps.count("codex+nop__a.b")) == (CELLS + 1, 2)


def test_a_run_that_a_crash_left_half_written_is_replaced(sweep: Path) -> None:
    MlflowTracker().log(sweep)
    half = runs(sweep)[cell_name("codex")].info.run_id
    client(sweep).delete_tag(half, "assay.digest")
    MlflowTracker().log(sweep)
    assert runs(sweep)[cell_name("codex")].info.run_id != half


def test_the_saved_view_is_what_the_ui_reads(logged: Path) -> None:
    text = MlflowTracker().log(logged)
    experiment = client(logged).get_experiment_by_name("assay")
    assert text.endswith(
        f"http://127.0.0.1:5000/#/experiments/{experiment.experiment_id}/runs?viewStateShareKey=quickstart"
    )
    packed = experiment.tags["mlflow.sharedViewState.quickstart"].removeprefix("deflate;")
    state = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`AMS`", False)
    listed = client(logged).search_runs([experiment.experiment_id], state["searchFilter"])
    names = [run.data.params["agent"] for run in listed]
    assert sorted(names) == ["codex", "mini_swe_agent"]  # bounds compete with nobody
    columns = {f"metrics.`{m}`" for run in listed for m in run.data.metrics} | {
        "params.`agent`",
        "params.`model`",
    }
    assert set(state["selectedColumns"]) <= columns


def test_job_track_rebuilds_tables_and_runs_from_disk(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("leaderboard.txt", "trials.csv"):
        (sweep / name).unlink()
    settings = SimpleNamespace(outputs=sweep.parent, folder=sweep, name=sweep.name, tracker=MlflowTracker())
    asked: Any = SimpleNamespace(settings=settings, rescorings=lambda _: ())
    assert Track().run(asked) == 0
    text = capsys.readouterr().out
    assert (sweep / "leaderboard.txt").read_text() in text
    assert "viewStateShareKey=quickstart" in text
    assert len(runs(sweep)) == CELLS + 1
    settings.folder = sweep.with_name("quickstrat")
    with pytest.raises(ConfigError, match="Did you mean 'quickstart'"):
        Track().run(asked)


@pytest.mark.parametrize("uri", ["http://127.0.0.1:9", "sqlite:////proc/no/such/folder.db", "nonsense://x"])
def test_a_store_that_is_not_there_fails_fast_says_what_to_do_and_loses_nothing(
    sweep: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")
    before = {path: path.read_bytes() for path in sweep.parent.rglob("*.json")}
    started = time.monotonic()
    again = re.escape(f"python -m runner job=track name=quickstart outputs={sweep.parent}")
    with pytest.raises(TrackingError, match=f"{again}$") as caught:
        MlflowTracker(uri=uri).log(sweep)
    assert uri in str(caught.value)
    assert time.monotonic() - started < 120
    assert {path: path.read_bytes() for path in sweep.parent.rglob("*.json")} == before


def test_a_broken_database_is_a_tracking_error(sweep: Path) -> None:
    (sweep.parent / "mlflow.db").write_text("no database" * 100)
    with pytest.raises(TrackingError, match="not a database"):
        MlflowTracker().log(sweep)


def test_a_question_mark_in_a_folder_put_the_store_beside_it(sweep: Path, tmp_path: Path) -> None:
    odd = shutil.copytree(sweep, tmp_path / "why?" / sweep.name)
    with pytest.raises(
        TrackingError, match=r"no database in a folder with \? or %.*job=track name=quickstart"
    ):
        MlflowTracker().log(odd)
    assert list(tmp_path.glob("why*")) == [tmp_path / "why?"]


def test_moved_outputs_are_noticed_and_tracked_again_from_scratch(sweep: Path, empty_store: Path) -> None:
    MlflowTracker().log(sweep)
    moved = sweep.parent.rename(f"{sweep.parent}-moved") / sweep.name
    with pytest.raises(TrackingError, match=r"was moved.*delete mlflow\.db"):
        MlflowTracker().log(moved)
    shutil.copy(empty_store, moved.parent / "mlflow.db")
    MlflowTracker().log(moved)
    assert len(runs(moved)) == CELLS + 1


def test_no_tracker_says_where_the_tables_are(sweep: Path) -> None:
    assert str(sweep) in NoTracker().log(sweep)


def test_logging_to_sqlite_talks_to_nobody_and_warns_of_nothing(sweep: Path) -> None:
    """This needs a process of its own, since mlflow sends no telemetry when it sees that it is being tested."""
    script = """
import sys
from pathlib import Path
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        sys.__stdout__.write(f"NETWORK {event} {args[1:]}\\n")
sys.addaudithook(hook)
from runner.tracking.mlflow import MlflowTracker
MlflowTracker().log(Path(sys.argv[1]))
print("logged")
"""
    hidden = (
        "PYTEST_CURRENT_TEST",
        "CI",
        "GITHUB_ACTIONS",
        "MLFLOW_DISABLE_TELEMETRY",
        "LITELLM_LOCAL_MODEL_COST_MAP",
    )
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, str(sweep)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    said = [
        line for line in done.stdout.splitlines() if not line.startswith("MLflow: ")
    ]  # progress, if it takes long
    assert (said, done.stderr) == (["logged"], "")


@pytest.fixture
def server(sweep: Path) -> Iterator[str]:
    """The very command that tracking prints, on a port that is free."""
    _, command, *_ = MlflowTracker().log(sweep).splitlines()
    python, *words = shlex.split(command)
    assert python == "python"
    with mlflow_ui([sys.executable, *words], sweep.parent) as url:
        yield url


@pytest.mark.parametrize(
    ("word", "message"),
    [("tracker=mlflow", "Nothing is logged in .* yet"), ("tracker=none", "tracker=none logs nothing")],
)
def test_a_store_that_is_not_there_is_not_opened(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, word: str, message: str
) -> None:
    ended = command("job=ui", f"outputs={tmp_path / 'outputs'}", word)
    assert ended.returncode == 2
    assert re.search(message, ended.stderr)
    assert not (tmp_path / "outputs").exists()


def test_the_printed_command_serves_the_runs_and_takes_a_sweep_over_http(sweep: Path, server: str) -> None:
    run_id = runs(sweep)[cell_name("codex")].info.run_id
    query = {"run_uuid": run_id, "path": "trials.json"}
    served = requests.get(f"{server}/get-artifact", params=query, timeout=30)
    assert served.json()["columns"][:2] == ["task", "outcome"]

    text = MlflowTracker(uri=server, experiment="remote").log(sweep)
    assert text.startswith(f"Tracked in MLflow: {server}/#/experiments/")
    assert MlflowTracker(uri=server, experiment="remote").log(sweep) == text
    found = client(sweep)
    remote = found.get_experiment_by_name("remote")
    assert remote.artifact_location.startswith("mlflow-artifacts:")
    assert len(found.search_runs([remote.experiment_id])) == CELLS + 1
    traces = found.search_traces(locations=[remote.experiment_id], max_results=100)
    assert len(traces) == len(sweep_of_four()[1])
    assert {len(trace.info.assessments) for trace in traces} == {2, 3}
    assert {trace.data.spans[0].inputs["task"] for trace in traces} == set(TASKS)
