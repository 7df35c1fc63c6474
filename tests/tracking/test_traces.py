"""Traces of trials in an MLflow store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runner.records import TrialRecord
from runner.report.projections import write_projections
from runner.sweeps.store import Store
from runner.tracking.mlflow import MlflowTracker
from tests.report.plans import record, row, sweep_of_four, write_sweep
from tests.report.test_trial_traces import calls, leave, said

PLANNED, RECORDS = sweep_of_four()

pytestmark = pytest.mark.usefixtures("no_page")


def cell(agent: str) -> str:
    return next(each.cell for each in PLANNED if each.agent == agent)


@pytest.fixture(scope="module")
def logged_once(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """A sweep that was logged with its traces; copied for each test."""
    outputs = tmp_path_factory.mktemp("traced")
    shutil.copy(empty_store, outputs / "mlflow.db")
    sweep = write_sweep(outputs, PLANNED, RECORDS)
    for each in RECORDS.values():
        if each.turns:
            leave(Store(outputs).folder(each.key), calls(2), [said(0), said(1)])
    write_projections(sweep, outputs)
    MlflowTracker().log(sweep)
    return outputs


@pytest.fixture
def sweep(tmp_path: Path, logged_once: Path) -> Path:
    """A copy of it, where the store believes the artifacts to lie in the original."""
    shutil.copytree(logged_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "quickstart"


def tracker(sweep: Path, **changed: Any) -> MlflowTracker:
    """A tracker that takes the copied database as it is."""
    return MlflowTracker(uri=f"sqlite:///{sweep.parent / 'mlflow.db'}", **changed)


def client(sweep: Path) -> Any:
    from mlflow import MlflowClient  # noqa: PLC0415 - as the code under test does: after its environment is set

    return MlflowClient(tracking_uri=f"sqlite:///{sweep.parent / 'mlflow.db'}")


def traces(sweep: Path, filter_string: str | None = None) -> dict[str, Any]:
    """All traces of the experiment, by the key of the trial."""
    found = client(sweep)
    experiment = found.get_experiment_by_name("assay").experiment_id
    listed = found.search_traces(
        locations=[experiment], max_results=100, include_spans=False, filter_string=filter_string
    )
    by_key = {trace.info.client_request_id: trace.info for trace in listed}
    assert len(by_key) == len(listed)
    return by_key


def assessments(info: Any) -> dict[str, Any]:
    by_name = {each.name: each for each in info.assessments}
    assert len(by_name) == len(info.assessments), "doubled"
    return by_name


def key_of(agent: str, task: str) -> str:
    return next(each.key for each in PLANNED if (each.agent, each.task) == (agent, task))


def run_id(sweep: Path, agent: str) -> str:
    found = client(sweep)
    experiment = found.get_experiment_by_name("assay").experiment_id
    (run,) = found.search_runs([experiment], f"tags.`assay.cell` = '{cell(agent)}'")
    return str(run.info.run_id)


def write_again(sweep: Path, records: Sequence[TrialRecord]) -> None:
    for each in records:
        Store(sweep.parent).write(each)
    write_projections(sweep, sweep.parent)


def test_each_trial_with_a_record_has_a_trace_under_the_run_of_its_cell(sweep: Path) -> None:
    found = traces(sweep)
    assert set(found) == set(RECORDS)
    of_codex = {each.key for each in RECORDS.values() if each.agent == "codex"}
    codex = run_id(sweep, "codex")
    assert {
        key for key, info in found.items() if info.trace_metadata["mlflow.sourceRun"] == codex
    } == of_codex
    assert set(traces(sweep, f"run_id = '{codex}'")) == of_codex
    info = found[key_of("codex", "easy-1")]
    assert info.tags["model"] == "scripted_careful (scripted)"
    assert info.tags["mlflow.traceName"] == "codex · scripted_careful (scripted)"
    assert (info.request_preview, info.response_preview) == ('{"task": "easy-1", "attempt": 1}', "passed")


def test_spans_tokens_and_usd_are_where_mlflow_adds_them_up(sweep: Path) -> None:
    info = traces(sweep)[key_of("codex", "easy-1")]
    trace = client(sweep).get_trace(info.trace_id)
    names = [span.name for span in trace.data.spans]
    assert names == [
        *("codex · scripted_careful (scripted)", "environment", "codex"),
        *("call 1", "bash", "call 2", "bash", "verifier"),
    ]
    by_id = {span.span_id: span.name for span in trace.data.spans}
    assert {by_id.get(span.parent_id) for span in trace.data.spans if span.name == "bash"} == {"codex"}
    assert info.token_usage == {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}
    assert info.cost["total_cost"] == pytest.approx(0.012)
    assert trace.data.spans[4].outputs == {"result": "```\na\nb\n```"}


def test_assessments_are_the_verifiers_and_an_invalid_trial_is_an_error_with_its_reason(sweep: Path) -> None:
    found = traces(sweep)
    failed = assessments(found[key_of("codex", "hard-2")])
    assert {name: each.value for name, each in failed.items()} == {
        "passed": False,
        "reward": 0.0,
        "status": "timeout",
    }
    assert (failed["passed"].source.source_type, failed["passed"].source.source_id) == ("CODE", "verifier")
    invalid = found[key_of("codex", "hard-3")]
    assert (invalid.state.value, invalid.response_preview) == ("ERROR", "EngineError: The container is gone.")
    assert assessments(invalid)["passed"].error.error_message == "EngineError: The container is gone."
    assert {info.state.value for key, info in found.items() if RECORDS[key].judged} == {"OK"}


def test_logging_again_changes_nothing_and_keeps_what_people_added(sweep: Path) -> None:
    from mlflow.entities import Feedback  # noqa: PLC0415 - see `client`
    from mlflow.tracing.client import TracingClient  # noqa: PLC0415

    tracker(sweep).log(sweep)
    info = traces(sweep)[key_of("codex", "easy-1")]
    store = TracingClient(f"sqlite:///{sweep.parent / 'mlflow.db'}")
    store.log_assessment(info.trace_id, Feedback("mine", value="odd"))
    before = {key: each.to_dict() for key, each in traces(sweep).items()}
    tracker(sweep).log(sweep)
    after = traces(sweep)
    assert {key: each.to_dict() for key, each in after.items()} == before
    assert set(assessments(after[info.client_request_id])) == {"mine", "passed", "reward", "status"}


def test_a_trial_that_ran_again_is_traced_again_and_its_neighbours_move_to_the_new_run(sweep: Path) -> None:
    from mlflow.entities import Feedback  # noqa: PLC0415 - see `client`
    from mlflow.tracing.client import TracingClient  # noqa: PLC0415

    tracker(sweep).log(sweep)
    changed, neighbour = key_of("codex", "easy-1"), key_of("codex", "easy-2")
    store = TracingClient(f"sqlite:///{sweep.parent / 'mlflow.db'}")
    store.log_assessment(traces(sweep)[neighbour].trace_id, Feedback("mine", value="odd"))
    before, old = traces(sweep), run_id(sweep, "codex")
    write_again(sweep, [record(row("codex", "easy-1"), passed=False)])
    tracker(sweep).log(sweep)
    after, new = traces(sweep), run_id(sweep, "codex")
    assert old != new
    of_codex = {each.key for each in RECORDS.values() if each.agent == "codex"}
    assert {key for key, info in after.items() if info.trace_metadata["mlflow.sourceRun"] == new} == of_codex
    assert after[changed].trace_id == before[changed].trace_id
    assert assessments(after[changed])["passed"].value is False
    assert set(assessments(after[neighbour])) == {"mine", "passed", "reward", "status"}
    assert after[neighbour].token_usage == before[neighbour].token_usage


def test_the_trace_of_a_deleted_trial_goes(sweep: Path) -> None:
    gone = key_of("codex", "easy-1")
    shutil.rmtree(Store(sweep.parent).folder(gone))
    write_projections(sweep, sweep.parent)
    tracker(sweep).log(sweep)
    assert set(traces(sweep)) == set(RECORDS) - {gone}


def test_a_trace_that_a_crash_left_without_its_spans_is_written_again(sweep: Path) -> None:
    tracker(sweep).log(sweep)
    half = traces(sweep)[key_of("codex", "easy-1")]
    client(sweep).delete_trace_tag(half.trace_id, "mlflow.trace.spansLocation")
    tracker(sweep).log(sweep)
    whole = traces(sweep)[key_of("codex", "easy-1")]
    assert "mlflow.trace.spansLocation" in whole.tags
    assert set(assessments(whole)) == {"passed", "reward", "status"}


def test_failed_trials_alone_none_or_a_number_of_them(sweep: Path) -> None:
    tracker(sweep, traces="failed").log(sweep)
    assert set(traces(sweep)) == {key for key, each in RECORDS.items() if not each.passed}
    text = tracker(sweep, traces_at_most=8).log(sweep)
    assert text.startswith(f"8 trials are traced and {len(RECORDS) - 8} are not. tracker.traces=failed")
    assert len(traces(sweep)) == 8
    tracker(sweep, traces="none").log(sweep)
    assert traces(sweep) == {}


def test_two_sweeps_that_share_trials_have_a_trace_each(sweep: Path) -> None:
    some = PLANNED[:6]
    other = write_sweep(sweep.parent, some, {each.key: RECORDS[each.key] for each in some}, name="other")
    tracker(sweep).log(sweep)
    tracker(sweep).log(other)
    found = client(sweep)
    experiment = found.get_experiment_by_name("assay").experiment_id
    listed = found.search_traces(locations=[experiment], max_results=100, include_spans=False)
    assert len(listed) == len(RECORDS) + len(some)
    tracker(sweep, traces="none").log(other)
    assert len(traces(sweep)) == len(RECORDS)


def test_an_unknown_price_is_not_taken_from_a_map_of_mlflows(sweep: Path) -> None:
    key = key_of("codex", "easy-1")
    unpriced = [call.model_copy(update={"cost_usd": None, "model": "gpt-4o"}) for call in calls(2)]
    leave(Store(sweep.parent).folder(key), unpriced, [said(0), said(1)])
    write_again(sweep, [record(row("codex", "easy-1"), cost_usd=None)])
    tracker(sweep).log(sweep)
    info = traces(sweep)[key]
    assert info.token_usage["total_tokens"] == 30
    assert not info.cost


@pytest.mark.parametrize(("steps", "most"), [(4, 20), (9, 31), (99, 300)])
def test_the_size_of_a_trace(sweep: Path, steps: int, most: int) -> None:
    """In KiB on average; most of it is what MLflow adds to each span. A quickstart trial has some four model calls.

    Nine calls after the instruction are ten steps of a trajectory.
    """
    planned = [row("codex", f"easy-{number}") for number in range(10, 10 + 200 // steps)]
    ledger = [
        call.model_copy(update={"started_at": call.started_at + timedelta(seconds=1)})
        for call in calls(steps)
    ]
    said_all = [said(index, "I look, and then I change it.", result="x" * 300) for index in range(steps)]
    records = {each.key: record(each, turns=steps) for each in planned}
    other = write_sweep(sweep.parent, planned, records, name="sizes")
    for key in records:
        leave(Store(sweep.parent).folder(key), ledger, said_all)
    tracker(sweep, traces="none").log(other)
    database = sweep.parent / "mlflow.db"
    before = database.stat().st_size
    tracker(sweep).log(other)
    assert (database.stat().st_size - before) / len(records) / 1024 < most


def test_a_long_logging_says_how_far_it_is(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from runner.tracking import traces as module  # noqa: PLC0415

    tracker(sweep, traces="none").log(sweep)
    progress = module._Progress(100)
    progress._printed -= 2 * module.SILENCE_SECONDS
    progress._began -= 2 * module.SILENCE_SECONDS
    progress.add(20)
    assert capsys.readouterr().out.startswith("MLflow: 20 of 100 traces, 1:2")
    progress.add(80)
    assert capsys.readouterr().out == ""


def test_what_is_stored_is_small_json_without_the_request(sweep: Path) -> None:
    trace = client(sweep).get_trace(traces(sweep)[key_of("codex", "easy-1")].trace_id)
    assert "messages" not in json.dumps([span.to_dict() for span in trace.data.spans])


def test_tasks_are_an_evaluation_dataset_and_each_run_names_the_versions_it_had(sweep: Path) -> None:
    tasks = [f"easy-{number}" for number in range(40, 43)]
    planned = [row(agent, task) for agent in ("codex", "mini_swe_agent") for task in tasks]
    versions = {each.key: "sha256:" + f"{tasks.index(each.task)}" * 64 for each in planned}

    def log() -> tuple[Any, dict[str, Any]]:
        records = {each.key: record(each, digests={"task": versions[each.key]}) for each in planned}
        other = write_sweep(sweep.parent, planned, records, name="tasks")
        tracker(sweep).log(other)
        found = client(sweep)
        experiment = found.get_experiment_by_name("assay").experiment_id
        (dataset,) = found.search_datasets([experiment], filter_string="name = 'quickstart'")
        runs = found.search_runs([experiment], "tags.`assay.sweep` = 'tasks' AND tags.`assay.kind` = 'cell'")
        return dataset, {run.data.params["agent"]: run.inputs.dataset_inputs[0].dataset for run in runs}

    dataset, inputs = log()
    shown = found_records(dataset.dataset_id, sweep)
    assert [(each.inputs, each.tags["tier"]) for each in shown] == [
        ({"task": task, "digest": f"{number}" * 12}, "easy") for number, task in enumerate(tasks)
    ]
    assert inputs["codex"].digest == inputs["mini_swe_agent"].digest
    assert json.loads(inputs["codex"].source) == {"dataset_id": dataset.dataset_id}
    versions[planned[0].key] = "f" * 64
    again, changed = log()
    assert again.dataset_id == dataset.dataset_id
    assert changed["codex"].digest != inputs["codex"].digest
    assert changed["mini_swe_agent"].digest == inputs["mini_swe_agent"].digest
    assert len(found_records(dataset.dataset_id, sweep)) == 4


def found_records(dataset: str, sweep: Path) -> list[Any]:
    """The records of a dataset, by task."""
    from mlflow.tracing.client import TracingClient  # noqa: PLC0415 - see `client`

    store = TracingClient(f"sqlite:///{sweep.parent / 'mlflow.db'}").store
    listed, _ = store._load_dataset_records(dataset)
    return sorted(listed, key=lambda each: (each.inputs["task"], each.inputs["digest"]))
