"""The command as a user runs it, in a process of its own: interrupted, killed, doubled, and without its helpers."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import socket
import sqlite3
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import docker
import pytest

from runner.records import ModelCall, Status, Usage
from runner.report import wording
from runner.sandbox.docker.freezing import despite_late_events
from runner.sweeps.store import Store
from tests.support.tasks_factory import make_task
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.warm import Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.docker

ROOT = Path(__file__).resolve().parents[2]


class Command:
    """`python -m runner` over a made dataset, with a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.outputs, self.tasks = folder / "outputs", folder / "tasks"
        self.environment = os.environ | {"CI": "true"}
        # Keys are made of contents, so equal tasks of two tests have equal keys; the sweep's name tells them apart.
        self.sweep = f"made-{uuid4().hex[:8]}"
        self.started: list[Process] = []

    def start(self, *arguments: str) -> Process:
        common = (
            *(
                "agent=oracle",
                "dataset=harbor",
                f"dataset.root={self.tasks}",
                "dataset.build_args.BASE=assay-base",
            ),
            *(f"outputs={self.outputs}", "tracker=none", f"name={self.sweep}", "executor.workers=2"),
        )
        process = Process((*common, *arguments), ROOT, self.environment)
        self.started.append(process)
        return process

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        output, _ = process.communicate(timeout=2 * PATIENCE_SECONDS)
        return process.wait(0), output

    def records(self) -> dict[str, Status]:
        """Task -> status of every record on disk."""
        keys = [path.parent.name for path in self.outputs.glob("trials/*/*/record.json")]
        return {record.task: record.status for record in Store(self.outputs).load(keys).values()}

    def containers(self, **filters: str) -> list[str]:
        """Containers of rollouts of this sweep that still exist."""
        with contextlib.closing(docker.from_env()) as client:
            mine = {"label": f"assay.sweep={self.sweep}", **filters}
            return [entry["Id"] for entry in client.api.containers(all=True, filters=mine)]

    def hurry(self) -> bool:
        """Whether somebody could be told to hurry.

        Nothing of a task may change between two runs, or it is another trial: the slow one is ended from outside.
        """
        running = self.containers(status="running")
        with contextlib.closing(docker.from_env()) as client:
            for key in running:
                touch = partial(client.containers.get(key).exec_run, ["touch", "/app/hurry"])
                despite_late_events(touch)  # it is frozen while the runner keeps its workspace
        return bool(running)


@pytest.fixture
def command(tmp_path: Path, warm_commands: None) -> Iterator[Command]:  # noqa: ARG001 - starts with them
    command = Command(tmp_path)
    yield command
    for process in command.started:
        with process:
            process.kill()


def quick_and_slow(command: Command) -> None:
    make_task(command.tasks, "a-quick")
    slow = '[agent]\nuser = "1000"\n'
    make_task(
        command.tasks, "b-slow", "touch /app/done; until test -e /app/hurry; do sleep 0.1; done", toml=slow
    )


def test_a_sweep_runs_resumes_is_scored_anew_and_starts_afresh_without_its_tracker(command: Command) -> None:
    """Each by the same command and a word more; scoring is changed without running anything, and a tracker that is
    down loses nothing.
    """
    make_task(command.tasks, "a")
    code, output = command.run()
    assert code == 0, output
    assert "Records:" in output
    record = next(command.outputs.glob("trials/*/*/record.json"))
    first = record.read_bytes()
    code, again = command.run()
    assert code == 0
    assert record.read_bytes() == first
    assert again.splitlines()[-5:] == output.splitlines()[-5:]

    code, output = command.run("scoring.alpha=1.0")
    assert code == 0
    (plan,) = command.outputs.glob("*/sweep.json")
    assert json.loads(plan.read_text())["scoring"]["alpha"] == 1.0
    assert record.read_bytes() == first

    code, output = command.run("fresh=true", "tracker=mlflow", "tracker.uri=http://127.0.0.1:9")
    assert code == 0, output
    assert record.read_bytes() != first
    assert "job=track" in output
    assert "Traceback" not in output
    assert command.records() == {"a": Status.COMPLETED}


def test_a_dry_run_starts_nothing_and_writes_nothing(command: Command) -> None:
    make_task(command.tasks, "a")
    code, output = command.run("dry_run=true")
    assert code == 0, output
    assert "1 trials planned: 0 finished, 1 to do." in output
    assert "The most it may cost: 0.00 USD" in output
    assert not command.outputs.exists()


def test_ctrl_c_ends_cleanly_and_the_same_command_resumes(command: Command) -> None:
    quick_and_slow(command)
    process = command.start()
    until(lambda: command.records().get("a-quick") is Status.COMPLETED and command.containers())
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, output
    assert "resumes" in output
    assert command.records() == {"a-quick": Status.COMPLETED, "b-slow": Status.CANCELLED}
    assert command.containers() == []

    records = command.outputs.glob("trials/*/*/record.json")
    quick = next(path for path in records if json.loads(path.read_text())["task"] == "a-quick")
    before = quick.read_bytes()
    process = command.start()
    until(command.hurry)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert command.records()["b-slow"].finished, output
    assert quick.read_bytes() == before


def test_a_killed_runner_loses_no_finished_trial_and_the_next_leaves_nothing_running(
    command: Command,
) -> None:
    quick_and_slow(command)
    process = command.start()
    until(lambda: command.records().get("a-quick") is Status.COMPLETED and len(command.containers()) == 1)
    (left,) = command.containers()
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    assert command.records() == {"a-quick": Status.COMPLETED}

    process = command.start()
    until(lambda: [found for found in command.containers() if found != left])  # its own trial has begun
    assert left not in command.containers()
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, output
    assert command.containers() == []


def test_a_second_runner_on_the_same_outputs_is_refused(command: Command) -> None:
    quick_and_slow(command)
    process = command.start()
    until(command.containers)
    code, output = command.run()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert code == 2
    assert f"process {process.pid}" in output
    assert "outputs=DIR" in output


def test_outputs_that_cannot_be_written_are_refused_before_anything_starts(command: Command) -> None:
    make_task(command.tasks, "a")
    command.outputs = Path("/proc/nothing-can-be-made-here")
    code, output = command.run()
    assert code == 2
    assert "outputs=DIR" in output
    assert "Traceback" not in output


def test_a_refused_task_is_listed_and_stays_in_the_denominator(command: Command) -> None:
    make_task(command.tasks, "a")
    (make_task(command.tasks, "b") / "instruction.md").unlink()
    (make_task(command.tasks, "c") / "task.toml").write_text("= broken")
    code, output = command.run()
    assert code == 4, output
    assert "refused: harbor/b:" in output
    assert "refused: harbor/c:" in output
    assert "1/3" in output

    make_task(command.tasks, "d", toml="[environment]\ngpus = 1\n")
    _, output = command.run()
    assert "1/4" in output, "one that is refused later changes no record, and the denominator all the same"


def test_no_engine_is_said_in_a_paragraph(command: Command) -> None:
    make_task(command.tasks, "a")
    command.environment["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
    code, output = command.run()
    assert code == 3, output
    assert "make docker" in output
    assert "Traceback" not in output


@pytest.fixture
def engine_door(tmp_path: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A second way to the engine, which can be closed as if the engine went away: its address, and how to close it."""
    address, shut = str(tmp_path / "d.sock"), threading.Event()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    connections: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        while not shut.is_set():
            try:
                inner, _ = listener.accept()
            except OSError:
                return
            outer = socket.socket(socket.AF_UNIX)
            outer.connect("/var/run/docker.sock")
            connections.extend((inner, outer))
            for pair in ((inner, outer), (outer, inner)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    def close() -> None:
        shut.set()
        Path(address).unlink(missing_ok=True)
        for end in (listener, *connections):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    threading.Thread(target=serve, daemon=True).start()
    yield f"unix://{address}", close
    close()


def test_the_engine_goes_away_in_mid_run(
    command: Command, engine_door: tuple[str, Callable[[], None]]
) -> None:
    """The trial under way is infrastructure's fault, the sweep stops, finished records stay, and it resumes."""
    address, shut = engine_door
    quick_and_slow(command)
    for name in "cdef":
        make_task(command.tasks, name)
    command.environment["DOCKER_HOST"] = address
    process = command.start("executor.retries=0")
    until(lambda: command.records().get("a-quick") is Status.COMPLETED)
    shut()
    output, _ = process.communicate(timeout=2 * PATIENCE_SECONDS)
    assert process.returncode == 3, output
    assert "the same command resumes" in output
    records = command.records()
    assert records["a-quick"] is Status.COMPLETED
    assert Status.INFRA_INVALID in records.values()
    assert Status.AGENT_ERROR not in records.values(), "our engine's end was held against the agent"

    del command.environment["DOCKER_HOST"]
    process = command.start()
    until(lambda: all(command.records().get(name) is Status.COMPLETED for name in "cdef"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert command.containers() == []


@pytest.mark.bundle
def test_every_figure_of_spend_is_the_sum_of_the_ledgers_after_a_kill(
    command: Command, tmp_path: Path
) -> None:
    """A real agent asks twice; its runner is killed after the first answer, and the next asks anew."""
    make_task(command.tasks, "made", toml='[agent]\nuser = "1000"\ntimeout_sec = 600\n')
    policy = tmp_path / "policy.yaml"
    waits = "touch /app/done; until test -e /app/hurry; do sleep 0.1; done"
    policy.write_text(json.dumps({"name": "waits", "default": [{"say": "Make it.", "run": waits}]}))
    words = ("agent=mini_swe_agent", "model=scripted_careful", f"model.policy={policy}")
    ledgers, long = command.outputs.glob, 4 * PATIENCE_SECONDS

    def asked() -> bool:
        return any(path.stat().st_size for path in ledgers("trials/*/*/ledger.jsonl"))

    process = command.start(*words)
    until(asked, long)
    process.kill()
    process.communicate(timeout=PATIENCE_SECONDS)
    process = command.start(*words, "tracker=mlflow")
    until(lambda: any(ledgers("trials/*/*/earlier/1/ledger.jsonl")) and asked() and command.hurry(), long)
    output, _ = process.communicate(timeout=long)
    assert process.returncode == 0, output

    lines = [line for path in ledgers("trials/*/*/**/ledger.jsonl") for line in path.read_text().splitlines()]
    calls = [ModelCall.model_validate_json(line) for line in lines]
    assert len(calls) == 3
    usage = sum((call.usage for call in calls if call.usage), Usage())
    usd = sum(call.cost_usd or 0.0 for call in calls)
    (record,) = Store(command.outputs).load([path.name for path in ledgers("trials/*/*")]).values()
    assert (record.usage, record.cost_usd, len(record.retries), record.turns) == (usage, usd, 1, 2)
    tokens = usage.input_tokens + usage.output_tokens
    sweep = command.outputs / command.sweep
    with (sweep / "trials.csv").open() as trials, (sweep / "leaderboard.csv").open() as board:
        (trial,), (cell,) = csv.DictReader(trials), csv.DictReader(board)
    assert (float(trial["cost_usd"]), float(trial["tokens"])) == (usd, tokens)
    figures = [float(cell[name]) for name in ("spend_usd", "usd_per_pass", "tokens_per_pass")]
    assert figures == [usd, usd, tokens]
    assert tracked(command) == {
        "cost_usd": round(usd, 6),
        "usd_per_pass": round(usd, 6),
        "tokens_per_pass": tokens,
    }
    page = (sweep / "report/index.html").read_text()
    assert wording.usd(usd) in page
    assert wording.short(tokens) in page


def tracked(command: Command) -> dict[str, float]:
    """Return the spend of the only cell as MLflow has it."""
    with contextlib.closing(sqlite3.connect(command.outputs / "mlflow.db")) as store:
        found = store.execute(
            "select key, value from latest_metrics natural join (select run_uuid from tags where value = 'cell')"
        )
        return {key: value for key, value in found if key in ("cost_usd", "usd_per_pass", "tokens_per_pass")}
