"""Which messages the launcher of hidden suites passes on, by who sends them; without containers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.nl2repo.pytest_inside import launch

Heard = Callable[..., list[dict[str, Any]]]
PROGRAM = """
import json, os, sys, time
channel = int(sys.argv[1])

def send(text):
    os.write(channel, text if isinstance(text, bytes) else text.encode())

def introduce(word="word"):
    send(f"{word} 0 {{}}")
    return os.read(channel, 1)

def test(name, number, word="word"):
    send(f"{word} {number} " + json.dumps({"event": "test", "id": name}))

exec(sys.argv[2])
"""
"""Program in the place of `session.py`."""


@pytest.fixture
def heard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Heard:
    """Runs a script as a session, or under another command line, and returns what is passed on."""

    def run(script: str, *options: str) -> list[dict[str, Any]]:
        with session(tmp_path, script, *options) as (process, reports, ending):
            while process.poll() is None:
                reports.wait(ending, 60)
            while reports.read():
                pass
        assert process.returncode == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


@contextmanager
def session(
    folder: Path, script: str, *options: str
) -> Iterator[tuple[subprocess.Popen[bytes], launch._Reports, int]]:
    """Start a script as a session; yield its process, what it reports, and the descriptor that tells its end."""
    program = folder / "session.py"
    program.write_text(PROGRAM)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    argv = [sys.executable, *(options or ("-I", "-S")), str(program), str(theirs.fileno()), script]
    with ours, subprocess.Popen(argv, pass_fds=[theirs.fileno()]) as process:
        theirs.close()
        ending = os.pidfd_open(process.pid)
        yield process, launch._Reports(ours, 3, process.pid, str(program)), ending
        os.close(ending)


def event(name: str) -> dict[str, Any]:
    return {"event": "test", "id": name, "command": 3}


def test_a_session_is_heard(heard: Heard) -> None:
    assert heard("introduce(); test('a', 1); test('b', 2)") == [event("a"), event("b")]


def test_other_programs_are_not(heard: Heard) -> None:
    assert heard("assert introduce() == b'0'; test('a', 1)", "-I") == []


@pytest.mark.parametrize(
    "forgery",
    [
        "test('forged', 1, 'other')",
        "send('forged'); send(b''); send(bytes(range(256))); send('wor')",
        "introduce_again = send('other 0 {}'); test('forged', 1, 'other')",
        "test('forged', 1, '')",
        "send(b'x' * 150_000)",
    ],
)
def test_messages_without_the_word_neither_count_nor_cost(heard: Heard, forgery: str) -> None:
    assert heard(f"introduce(); test('a', 1); {forgery}; test('b', 2)") == [event("a"), event("b")]


def test_a_flood_of_messages_holds_up_no_time_limit(tmp_path: Path) -> None:
    """Waiting ends although another message is always there, here of eight processes."""
    flood = "introduce()\nfor _ in range(3): os.fork()\nwhile True: send('flood')"
    with session(tmp_path, flood) as (process, reports, ending):
        for _ in range(5):
            reports.wait(ending, 60)
        process.kill()  # the others end as soon as nobody listens


def test_a_channel_that_code_shuts_down_costs_its_own_reports_and_no_processor(tmp_path: Path) -> None:
    """Nothing can arrive any more, so the launcher only waits for the end, and does not look again and again."""
    script = (
        "import socket; introduce(); socket.socket(fileno=channel).shutdown(socket.SHUT_WR); time.sleep(1)"
    )
    with session(tmp_path, script) as (process, reports, ending):
        looks = 0
        while process.poll() is None:
            reports.wait(ending, 60)
            looks += 1
    assert looks <= 4  # the introduction, the channel's end, and the end of the process


@pytest.mark.parametrize("end", ["os.wait()", "os.wait(); time.sleep(0.5)"], ids=["child", "orphan"])
def test_a_fork_of_a_session_is_another_process(heard: Heard, end: str) -> None:
    """It has the session's command line, and knows its word."""
    orphan = "os.fork() and os._exit(0); time.sleep(0.2)" if "sleep" in end else "pass"
    forked = f"{orphan}; send('new 0 {{}}'); test('forged', 1, 'new'); test('forged', 2); os._exit(0)"
    script = f"introduce(); test('a', 1)\nif os.fork() == 0:\n    {forked}\n{end}\ntest('b', 2)"
    assert heard(script) == [event("a"), event("b")]


def test_a_session_that_another_session_starts_is_not_heard(heard: Heard) -> None:
    nested = "introduce('inner'); test('forged', 1, 'inner')"
    script = (
        "import subprocess; introduce(); os.set_inheritable(channel, True)\n"
        f"subprocess.run([sys.executable, '-I', '-S', *sys.argv[:2], {nested!r}], close_fds=False)\n"
        "test('b', 1)"
    )
    assert heard(script) == [event("b")]


def test_a_report_that_is_missing_among_others_is_noticed(heard: Heard) -> None:
    lost = heard("introduce(); test('a', 1); test('c', 3)")
    assert lost == [event("a"), {"event": "forged", "message": "reports were suppressed", "command": 3}]


def test_what_no_session_may_say_is_dropped(heard: Heard) -> None:
    """Only the launcher says how a command ended."""
    said = [{"event": "command", "code": 0}, {"event": []}, [], {"event": "tests"}, None]
    script = f"introduce()\nfor at, each in enumerate({said!r}, 1): send(f'word {{at}} ' + json.dumps(each))"
    assert heard(f"{script}\nsend('word 6 ' + '[' * 10_000); send('word 7 nonsense'); test('a', 8)") == [
        event("a")
    ]
