"""Ctrl-C and SIGTERM, given to real runners while their trials are in tests; and what their terminal shows."""

from __future__ import annotations

import contextlib
import fcntl
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
from typing import TYPE_CHECKING
from uuid import uuid4

import docker
import pytest

from runner.records import Status
from runner.sweeps import stopping
from runner.sweeps.store import Store
from tests.support.tasks_factory import make_task
from tests.support.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 0.2
"""Seconds within which the first signal is answered."""
SLACK = 5
"""Times as long as things may take on a busy machine."""
LONG = "until test -e /tmp/end; do sleep 0.1; done; echo 1 > /logs/verifier/reward.txt"
"""Tests without an end, unless somebody makes a file."""


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
        judging = []
        with contextlib.closing(docker.from_env()) as client:
            for name in self.containers(process):
                with contextlib.suppress(docker.errors.APIError):  # it has not started yet, or is gone
                    if "-verifier" in name and "test.sh" in str(client.api.top(name)["Processes"]):
                        judging.append(name)
        return judging

    def end_tests(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.closing(docker.from_env()) as client:
            for name in self.in_tests(process):
                client.containers.get(name).exec_run(["touch", "/tmp/end"])


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    """Two trials whose tests have no end. Their keys are made of what is in them, the name too."""
    sweep = Sweep(tmp_path)
    for name in ("a", "b"):
        make_task(
            sweep.tasks,
            name,
            test=LONG,
            toml=f'[metadata]\ncategory = "{uuid4().hex}"\n[agent]\nuser = "1000"\n',
        )
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
def test_a_runner_stopped_twice_lived_on_and_its_records_replaced_those_of_the_next(sweep: Sweep) -> None:
    process = sweep.start()
    until(lambda: len(sweep.in_tests(process)) == 2)
    question = "2 trials are in tests, given 20 s to end. Press Ctrl-C again to stop at once."
    seconds = answered(sweep, process, signal.SIGTERM, question)
    time.sleep(2 * stopping.TWICE_SECONDS)
    assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_SECONDS)
    ended = time.monotonic() - began
    second = sweep.start()
    assert process.returncode == 130, sweep.output
    assert "stopped; the same command resumes" in sweep.output
    assert sweep.containers(process) == []
    assert sweep.statuses() == {}, "a trial whose tests were cut short has no record, and no zero"
    until(lambda: len(sweep.in_tests(second)) == 2)
    sweep.end_tests(second)
    assert second.wait(PATIENCE_SECONDS) == 0, sweep.output
    assert sweep.statuses() == {"a": Status.COMPLETED, "b": Status.COMPLETED}
    assert seconds < AT_ONCE * SLACK
    assert ended < stopping.RELEASE_SECONDS * SLACK


@pytest.mark.docker
def test_tests_that_end_in_time_after_ctrl_c_are_worth_what_was_paid_for_them(sweep: Sweep) -> None:
    process = sweep.start("dataset.include=[a]")
    until(lambda: sweep.in_tests(process))
    answered(sweep, process, signal.SIGINT, "1 trial is in tests")
    sweep.end_tests(process)
    assert process.wait(PATIENCE_SECONDS) == 130, sweep.output
    assert sweep.statuses() == {"a": Status.COMPLETED}
    assert sweep.containers(process) == []


SCRIPT = """
import hashlib, sys, time
from threading import Thread
from runner.sweeps import stopping

def say(word):
    print(word, flush=True)

stopping.GRACE_SECONDS = float(sys.argv[1])
Thread(target=time.sleep, args=(600,)).start()
with stopping.Stopping(lambda: say("closed"), lambda: say("released")):
    Thread(target=lambda: (time.sleep(0.3), say("ready"))).start()
    hashlib.pbkdf2_hmac("sha512", b"", b"", 10**9)
"""
"""A main thread in a library that lets no handler of Python's run, beside a thread that nobody waits for in vain."""


@contextlib.contextmanager
def stuck(grace: float) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SCRIPT, str(grace)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.parametrize("number", stopping.SIGNALS)
def test_a_library_that_lets_nothing_run_holds_up_no_word_and_no_end(number: signal.Signals) -> None:
    with stuck(grace=0.5) as process:
        assert process.stdout
        process.send_signal(number)
        began = time.monotonic()
        assert process.stdout.readline() == "Stopping. Press Ctrl-C again to stop at once.\n"
        seconds = time.monotonic() - began
        rest = process.stdout.read()
        assert process.wait(PATIENCE_SECONDS) == 130
        # Closed before the sandboxes go: a judge that loses its own would find the trial failed.
        assert rest == "closed\nStopping at once.\nreleased\nstopped; the same command resumes\n"
        assert seconds < AT_ONCE * SLACK


def test_a_signal_that_is_sent_twice_at_once_is_one() -> None:
    """`timeout 60 make run` sends each of its signals to the command and to the group that it is in."""
    with stuck(grace=600) as process:
        assert process.stdout
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline().startswith("Stopping. ")
        process.send_signal(signal.SIGTERM)
        time.sleep(2 * stopping.TWICE_SECONDS)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 130


@pytest.mark.parametrize(
    ("phases", "answer", "seconds"),
    [
        ({}, "Stopping. ", stopping.GRACE_SECONDS),
        ({"building": 1, "starting": 1}, "Stopping: 2 trials are being started. ", stopping.START_SECONDS),
        (
            {"agent": 1, "collecting": 1, "tests": 1, "starting": 1},
            "Stopping: 1 trial is in tests, given 20 s to end; 2 trials are being stopped; 1 trial is being started. ",
            stopping.GRACE_SECONDS,
        ),
    ],
    ids=["nothing", "starts", "all"],
)
def test_the_answer_says_what_is_waited_for(phases: dict[str, int], answer: str, seconds: float) -> None:
    assert stopping.farewell(phases) == f"{answer}Press Ctrl-C again to stop at once."
    assert stopping.patience(phases) == seconds


def frames(width: int, folder: Path) -> list[str]:
    """Return each drawing of the live line of a whole sweep, in a terminal of this width."""
    words = [
        "agent=nop",
        "sandbox=local",
        "dataset=harbor",
        f"dataset.root={folder / 'tasks'}",
        "tracker=none",
    ]
    command = [sys.executable, "-m", "runner", *words, f"outputs={folder / str(width)}", "executor.workers=2"]
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CI", "COLUMNS", "LINES")
    }
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with subprocess.Popen(
        command, cwd=ROOT, env=environment | {"TERM": "xterm"}, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        drawn = b""
        with (
            contextlib.suppress(OSError),
            os.fdopen(controller, "rb", buffering=0) as screen,
        ):  # closed at its end
            while chunk := screen.read(4096):
                drawn += chunk
        assert process.wait(PATIENCE_SECONDS) == 0, drawn.decode()
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.decode()))
    return [line for line in lines if re.search(r"\d+/40 done", line)]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_at_80_columns_the_line_lost_the_cost_and_the_time_left(tmp_path: Path, width: int) -> None:
    for number in range(40):
        make_task(tmp_path / "tasks", f"a-task-of-a-rather-long-name-{number}")
    found = frames(width, tmp_path)
    assert found
    for line in found:
        assert re.search(r"\d+/40 done, 0\.00 USD(, |$|  )", line), line
        assert len(line) <= width, line
    assert any(" running" in line for line in found)
