"""Ctrl-C and SIGTERM, given to real runners while their trials are in tests; and what their terminal shows."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import docker
import pytest

from runner import stopping
from runner.records import Status
from runner.store import Store
from tests.tasks_factory import make_task
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
AT_ONCE = 0.2
"""Seconds within which the first signal is answered."""
LONG = """
sleep 600
echo 0 > /logs/verifier/reward.txt
"""
"""Tests without an end, unless somebody ends their sleep."""


class Stopped(NamedTuple):
    """A runner that was given a signal."""

    answered_seconds: float
    ended_seconds: float
    code: int
    output: str


class Sweep:
    """A sweep of trials that are in tests until somebody ends them, run in processes with outputs in common."""

    def __init__(self, folder: Path) -> None:
        self.tasks, self.log, self.outputs = folder / "tasks", folder / "log", folder / "outputs"
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "runner", "agent=oracle", "dataset=harbor", "executor.workers=2"]
        common = [f"dataset.root={self.tasks}", "dataset.build_args.BASE=assay-base", "tracker=none"]
        environment = os.environ | {"CI": "true", "PYTHONUNBUFFERED": "1"}
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [*command, *common, f"outputs={self.outputs}", *words],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=log,
            )
        self.started.append(process)
        return process

    @property
    def output(self) -> str:
        return self.log.read_text()

    def statuses(self) -> dict[str, Status]:
        keys = [path.parent.name for path in self.outputs.glob("trials/*/*/record.json")]
        return {record.task: record.status for record in Store(self.outputs).load(keys).values()}

    def containers(self, process: subprocess.Popen[bytes]) -> list[str]:
        """Names of the containers of one runner."""
        with contextlib.closing(docker.from_env()) as client:
            mine = {"label": f"assay.owner_pid={process.pid}"}
            return [entry["Names"][0] for entry in client.api.containers(all=True, filters=mine)]

    def in_tests(self, process: subprocess.Popen[bytes]) -> list[str]:
        """Names of its containers in which tests have begun."""
        with contextlib.closing(docker.from_env()) as client:
            judges = [name for name in self.containers(process) if "-verifier" in name]
            return [name for name in judges if "sleep 600" in str(client.api.top(name)["Processes"])]

    def end_tests(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.closing(docker.from_env()) as client:
            for name in self.in_tests(process):
                client.containers.get(name).exec_run(["pkill", "-f", "sleep 600"])


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    """Two trials whose tests have no end. Their keys are made of what is in them, the name too."""
    sweep = Sweep(tmp_path)
    for name in ("a", "b"):
        make_task(sweep.tasks, name, test=LONG, toml=f'[metadata]\ncategory = "{uuid4().hex}"\n[agent]\nuser = "1000"\n')
    yield sweep
    for process in sweep.started:
        with process:
            process.kill()
    with contextlib.closing(docker.from_env()) as client:
        for process in sweep.started:
            for name in sweep.containers(process):
                client.api.remove_container(name, force=True, v=True)


def answered(sweep: Sweep, process: subprocess.Popen[bytes], number: signal.Signals, words: str) -> float:
    """Seconds from a signal to what the runner says to it."""
    process.send_signal(number)
    began = time.monotonic()
    while words not in sweep.output:
        assert time.monotonic() < began + PATIENCE_SECONDS, sweep.output
        time.sleep(0.01)
    return time.monotonic() - began


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_runner_stopped_twice_lived_on_and_its_records_replaced_those_of_the_next(
    sweep: Sweep, number: signal.Signals
) -> None:
    process = sweep.start()
    until(lambda: len(sweep.in_tests(process)) == 2)
    seconds = answered(sweep, process, number, "2 trials are in tests, given 20 s to end. Press Ctrl-C again")
    time.sleep(2 * stopping.TWICE_SECONDS)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(number)
    second = sweep.start()  # at once: it waits for nobody, so it may come too early
    process.wait(PATIENCE_SECONDS)
    ended = time.monotonic() - began
    assert process.returncode == 130, sweep.output
    assert "stopped; the same command resumes" in sweep.output
    assert sweep.containers(process) == []
    assert sweep.statuses() == {}, "a trial whose tests were cut short has no record, and no zero"
    assert ended < stopping.RELEASE_SECONDS + 1
    if second.wait(PATIENCE_SECONDS) if "Another runner" in sweep.output else None:
        second = sweep.start()
    until(lambda: len(sweep.in_tests(second)) == 2)
    sweep.end_tests(second)
    assert second.wait(PATIENCE_SECONDS) == 0, sweep.output
    assert sweep.statuses() == {"a": Status.COMPLETED, "b": Status.COMPLETED}
    records = [json.loads(path.read_text()) for path in sweep.outputs.glob("trials/*/*/record.json")]
    assert {record["retries"][0]["reason"]["type"] for record in records if record["retries"]} <= {"RunnerDied"}
    assert seconds < AT_ONCE
