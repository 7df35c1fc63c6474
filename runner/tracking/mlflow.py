"""MLflow as a projection of a sweep's records: one flat run a cell, one for the sweep, and a saved leaderboard.

Each trial has a trace under the run of its cell (`tracking.traces`). Nothing outside this package imports mlflow.
Logging the same sweep again leaves a run that would not differ as it is and replaces one that would, so `job=track` may
be run at any time.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from pydantic import Field

from runner.errors import ConfigError, TrackingError
from runner.heavy_imports import uncollected
from runner.records import Record
from runner.tracking.store_lock import alone
from runner.tracking.task_sets import TaskSets

if TYPE_CHECKING:
    from mlflow import MlflowClient

    from runner.report.tracked_runs import TrackedRun

PORT = 5000
"""Default port of the user interface (`job.port`)."""
DATABASE = "mlflow.db"
"""File of the store in `outputs`."""
_OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "MLFLOW_DISABLE_TELEMETRY": "true"}
"""Environment variables without which importing mlflow asks two hosts: for a price map, and for telemetry settings."""
_BRIEF = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
}
"""Environment variables against mlflow's defaults, which retry a dead server for four minutes, log every step, and
print two links for each run on a server."""
_UPLOADS = 8
"""Number of files that are sent at once."""
_UI = {**_OFFLINE, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
"""Environment variables of the UI. Without the last one, it takes twice as long to start, for a service that we never
use."""
_ARTIFACTS = "mlartifacts"
"""Folder in `outputs` with the files of all runs."""
_VIEW = {
    "params.`agent`": 126,
    "params.`model`": 186,
    "metrics.`AMS`": 84,
    "metrics.`pass_rate`": 86,
    "metrics.`mean_reward`": 105,
    "metrics.`usd_per_pass`": 105,
    "metrics.`tokens_per_pass`": 126,
    "metrics.`cost_usd`": 84,
    "metrics.`turns`": 79,
    "metrics.`invalid`": 65,
}
"""Columns of the saved view, in order -> width in pixels."""


class NoTracker(Record):
    """Logs nothing anywhere; records and tables are on disk all the same."""

    def log(self, sweep: Path) -> str:
        """Return a line that names the folder of the tables."""
        return f"Not tracked (tracker=none). The tables are in {sweep}"

    def open(self, outputs: Path, port: int) -> None:  # noqa: ARG002 - the protocol's
        """Raise `ConfigError`, because nothing is logged."""
        raise ConfigError("tracker=none logs nothing that could be shown. Leave it out: job=ui opens MLflow.")


class MlflowTracker(Record):
    """Logs a sweep to an MLflow store."""

    uri: str | None = None
    """Tracking store: a server (`http://...`) or a database. None: SQLite, `mlflow.db` in `outputs`."""
    experiment: str = "assay"
    """MLflow experiment that all sweeps share."""
    trajectories: Literal["all", "failed", "none"] = "all"
    """Trials whose trajectories become artifacts."""
    traces: Literal["all", "failed", "none"] = "all"
    """Trials that get a trace with their steps; failed are those that did not pass."""
    traces_at_most: int = Field(default=2_500, ge=0)
    """Most traces of a sweep, because each takes some time to write."""

    def log(self, sweep: Path) -> str:
        """Log the sweep in this folder, with its tables. Return the command and the link that show it.

        Raises `TrackingError` when the store does not take it and `ConfigError` when the folder holds no sweep.
        """
        with self._failures_named(sweep):
            return self._log(sweep)

    def refresh(self, sweep: Path) -> None:
        """Show the present state of a sweep that is not over. `log` replaces the runs that this writes.

        Raises as `log` does.
        """
        with self._failures_named(sweep):
            self._refresh(sweep)

    @contextmanager
    def _failures_named(self, sweep: Path) -> Iterator[None]:
        """Turn a failure of the store into a `TrackingError`."""
        try:
            with _offline_and_quiet():
                yield
        except _store_failures() as error:
            reason = " ".join(str(error).split())[:500]
            raise TrackingError(
                f"MLflow at {self._store(sweep.parent)} did not take the sweep ({type(error).__name__}: {reason}). "
                "No record is lost. Once it is mended: "
                f"python -m runner job=track name={sweep.name}{_outputs_argument(sweep.parent)}"
            ) from error

    @contextmanager
    def _opened(self, sweep: Path) -> Iterator[tuple[MlflowClient, str, list[TrackedRun]]]:
        """Open the store. Return its client, the id of the experiment, and the runs that the sweep should have."""
        with uncollected():
            from mlflow import MlflowClient  # noqa: PLC0415 - two seconds, and only to log

            from runner.report.tracked_runs import tracked_runs  # noqa: PLC0415 - brings pandas

        store = self._store(sweep.parent)
        # MLflow takes what follows a ? for a query and what follows a % for the number of a character.
        if self.uri is None and set(store) & set("?%"):
            raise FileNotFoundError(
                f"MLflow opens no database in a folder with ? or % in its name: {sweep.parent}"
            )
        with alone(store, sweep.parent):
            runs = tracked_runs(sweep, self.trajectories)
            client = MlflowClient(tracking_uri=store)
            yield client, self._experiment(client, sweep.parent), runs

    def _refresh(self, sweep: Path) -> None:
        from runner.tracking.provisional_runs import bring_up_to_date  # noqa: PLC0415 - only while a sweep runs

        store = self._store(sweep.parent)
        with self._opened(sweep) as (client, experiment, runs):
            deleted, run_ids = bring_up_to_date(client, experiment, sweep.name, runs)
            self._trace(store, experiment, sweep, run_ids)
            if not _is_server(store):
                _remove(deleted, sweep.parent.resolve() / _ARTIFACTS)
            _save_view(client, experiment, sweep.name)

    def _log(self, sweep: Path) -> str:
        store = self._store(sweep.parent)
        with self._opened(sweep) as (client, experiment, runs):
            from mlflow.tracing.client import TracingClient  # noqa: PLC0415 - see _opened

            task_sets = TaskSets(TracingClient(store), experiment)
            replaced, run_ids = _reconcile(client, task_sets, sweep.name, runs)
            left_out = self._trace(store, experiment, sweep, run_ids)
            if not _is_server(store):
                _remove(replaced, sweep.parent.resolve() / _ARTIFACTS)
            view = _save_view(client, experiment, sweep.name)
        link = f"/#/experiments/{experiment}/runs?viewStateShareKey={quote(view)}"
        if _is_server(store):
            return f"{left_out}Tracked in MLflow: {store.rstrip('/')}{link}"
        return (
            f"{left_out}Tracked in MLflow. To open it:\n"
            f"  python -m runner job=ui{_outputs_argument(sweep.parent)}\n"
            f"and then the leaderboard:\n"
            f"  http://127.0.0.1:{PORT}{link}"
        )

    def _trace(self, store: str, experiment: str, sweep: Path, runs: Mapping[str, str]) -> str:
        """Bring the sweep's traces up to date. Return a line about those that are left out; empty if none is."""
        from mlflow.tracing.client import TracingClient  # noqa: PLC0415 - see _opened

        from runner.report.trial_traces import traced_trials  # noqa: PLC0415
        from runner.tracking.traces import TraceStore  # noqa: PLC0415

        wanted = traced_trials(sweep, self.traces, self.traces_at_most)
        TraceStore(TracingClient(store), experiment, sweep.name).reconcile(wanted.trials, runs)
        if not wanted.left_out:
            return ""
        return (
            f"{len(wanted.trials)} trials are traced and {wanted.left_out} are not. tracker.traces=failed takes those "
            f"that did not pass; tracker.traces_at_most={len(wanted.trials) + wanted.left_out} takes all.\n"
        )

    def open(self, outputs: Path, port: int) -> None:
        """Replace this process by MLflow's user interface. A server that runs already is only named.

        Raises `ConfigError` when nothing was logged below `outputs`.
        """
        store = self._store(outputs)
        if _is_server(store):
            print(f"MLflow is at {store}")
            return
        if self.uri is None and not (outputs / DATABASE).is_file():
            raise ConfigError(f"Nothing is logged in {outputs} yet: run a sweep, or job=track name=SWEEP.")
        print(f"MLflow starts at http://127.0.0.1:{port} (Ctrl-C ends it)", flush=True)
        mlflow = Path(sys.executable).with_name("mlflow")
        command = (mlflow, "ui", "--workers", "1", "--port", str(port), "--backend-store-uri", store)
        os.execve(mlflow, [str(word) for word in command], {**os.environ, **_UI})  # noqa: S606 - its own program

    def _store(self, outputs: Path) -> str:
        return self.uri or f"sqlite:///{outputs.resolve() / DATABASE}"

    def _experiment(self, client: MlflowClient, outputs: Path) -> str:
        """Return the id of the experiment. Artifacts go below `outputs`, or where a server wants them."""
        server = _is_server(self._store(outputs))
        artifacts = None if server else (outputs.resolve() / _ARTIFACTS).as_uri()
        found = client.get_experiment_by_name(self.experiment)
        if found is None:
            return str(client.create_experiment(self.experiment, artifact_location=artifacts))
        if self.uri is None and found.artifact_location != artifacts:
            raise FileNotFoundError(
                f"{outputs} was moved, and mlflow.db in it holds absolute paths; delete mlflow.db"
            )
        return str(found.experiment_id)


def _outputs_argument(outputs: Path) -> str:
    """Return the argument that a command needs for this folder; empty for the default folder."""
    return "" if outputs == Path("outputs").absolute() else f" outputs={shlex.quote(str(outputs))}"


def _is_server(store: str) -> bool:
    return store.startswith(("http://", "https://"))


def _reconcile(
    client: MlflowClient, task_sets: TaskSets, sweep: str, runs: Sequence[TrackedRun]
) -> tuple[list[str], dict[str, str]]:
    """Make these the sweep's runs in the store.

    Return the folders with the files of the runs that were replaced, and the id of the run of each cell.

    A run is identified by its cell and the digest of its content. The digest is written last, so that a run that a
    crash left half-written is replaced.
    """
    run_ids: dict[str, str] = {}
    stored: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for run in client.search_runs(
        [task_sets.experiment], f"tags.`assay.sweep` = '{sweep}'", max_results=10_000
    ):
        stored[run.data.tags["assay.cell"], run.data.tags.get("assay.digest", "")].append(run.info.run_id)
    for wanted in runs:
        same = stored[wanted.identity, wanted.digest()]
        run_ids[wanted.identity] = same.pop() if same else _write(client, task_sets, sweep, wanted)
    replaced = [run_id for outdated in stored.values() for run_id in outdated]
    folders = [str(client.get_run(run_id).info.artifact_uri) for run_id in replaced]
    for run_id in replaced:
        client.delete_run(run_id)
    return folders, run_ids


def _remove(folders: Sequence[str], below: Path) -> None:
    """Remove files of replaced runs, which MLflow only marks as deleted, unless they lie outside of `below`."""
    for uri in folders:
        folder = Path(url2pathname(urlsplit(uri).path))
        if folder.is_relative_to(below) and folder != below:
            shutil.rmtree(folder.parent if folder.name == "artifacts" else folder, ignore_errors=True)


def _write(client: MlflowClient, task_sets: TaskSets, sweep: str, run: TrackedRun) -> str:
    """Write a run and return its id."""
    from mlflow.entities import Metric, Param  # noqa: PLC0415 - see _opened

    from runner.report.csv_cells import to_csv  # noqa: PLC0415
    from runner.report.tracked_runs import COLUMNS  # noqa: PLC0415

    tags = {**run.tags, "assay.sweep": sweep, "assay.cell": run.identity}
    created = client.create_run(task_sets.experiment, start_time=run.started, tags=tags, run_name=run.name)
    run_id = str(created.info.run_id)
    metrics = [Metric(name, value, run.ended, 0) for name, value in run.metrics.items()]
    client.log_batch(run_id, metrics, [Param(name, value) for name, value in run.params.items()])
    if run.tasks and run.tasks.tasks:
        client.log_inputs(run_id, [task_sets.input(run.tasks)])
    with ThreadPoolExecutor(_UPLOADS) as pool:  # a server answers several at once
        list(pool.map(lambda file: client.log_artifact(run_id, str(file[0]), file[1]), run.files.items()))
    if run.identity:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "trials.csv").write_text(to_csv(run.trials, index=False), "utf-8")
            run.trials.to_parquet(Path(folder, "trials.parquet"), index=False)
            client.log_artifacts(run_id, folder)
        # As `object`: mlflow asks for columns of that type, and pandas 4 will not take text for it.
        client.log_table(run_id, run.trials[list(COLUMNS)].astype(object), "trials.json")
    client.set_terminated(run_id, end_time=run.ended)
    client.set_tag(run_id, "assay.digest", run.digest())
    return run_id


def _save_view(client: MlflowClient, experiment: str, sweep: str) -> str:
    """Save the leaderboard of a sweep as a view of the runs page. Return its key, made of the sweep's name.

    MLflow's UI stores such views as experiment tags in a format of its own: JSON, deflated, in base64. It is not
    documented, hence the pinned version and the picture in `docs/` that shows that it works.
    """
    state = {
        "searchFilter": f"tags.`assay.sweep` = '{sweep}' AND tags.`assay.kind` = 'cell'",
        "orderByKey": "metrics.`AMS`",
        "orderByAsc": False,
        "selectedColumns": list(_VIEW),
        "columnOrder": list(_VIEW),
        "columnWidths": _VIEW,
        "runsHiddenMode": "SHOW_ALL",
    }
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    key = re.sub(r"[^\w.-]", "-", sweep)
    client.set_experiment_tag(experiment, f"mlflow.sharedViewState.{key}", f"deflate;{packed}")
    return key


@contextmanager
def _offline_and_quiet() -> Iterator[None]:
    """Keep mlflow from using any network but the store's, and silence a deprecation that is not ours to mend."""
    for name, value in {**_OFFLINE, **_BRIEF}.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The ``noload`` loader strategy is deprecated", DeprecationWarning)
        yield


def _store_failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that a store, its driver or its disk raises. Called only after a failure."""
    from mlflow.exceptions import MlflowException  # noqa: PLC0415 - see _opened
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415

    return MlflowException, SQLAlchemyError, OSError, ImportError
