"""Separate mode in real containers: many deliverables of one hostile agent, all checked by one run of the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runner.records import Status, TrialRecord
from tests.security.harbor_trials import trial

pytestmark = pytest.mark.docker

FILES = {
    "an absolute link": "ln -s /tests/secret {0}",
    "a relative link": "ln -s ../../tests/secret {0}",
    "a link to a link elsewhere": "ln -s /tests/secret /home/next; ln -s /home/next {0}",
    "a way through a linked folder": "ln -s /tests /home/door; ln -s /home/door/secret {0}",
    "a hard link to a link": "ln -s /tests/secret /app/first; ln -P /app/first {0}",
    "a process's root": "ln -s /proc/self/root/tests/secret {0}",
    "the first process's root": "ln -s /proc/1/root/tests/secret {0}",
    "dots on the way": "ln -s /dev/../tests/./secret {0}",
}
"""Commands that try to make a file with the tests' secret. `{0}` is its path."""
FOLDERS = {
    "a linked folder": "ln -s /tests {0}",
    "a link in a folder": "mkdir {0}; ln -s /tests/secret {0}/secret",
    "a relative link in a folder": "mkdir {0}; ln -s ../../../tests/secret {0}/secret",
    "a chain in a folder": "mkdir {0}; ln -s two {0}/secret; ln -s /tests/secret {0}/two",
    "a link in a folder that is copied": "mkdir /home/f; ln -s /tests/secret /home/f/secret; ln -s /home/f {0}",
    "a file that the agent deleted": "mkdir {0}; ln -s ../../hidden/secret {0}/secret; rm /hidden/secret",
}
SPECIAL = {
    "a pipe": "mkfifo {0}",
    "a pipe in a folder": "mkdir {0}; mkfifo {0}/secret",
    "a link to a pipe": "mkfifo /home/pipe; ln -s /home/pipe {0}",
    "a socket": "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"{0}\")'",
    "a link to nothing": "ln -s /nowhere {0}",
    "a loop": "ln -s {0} {0}",
    "standard input": "ln -s /dev/stdin {0}",
    "a device": "ln -s /dev/zero {0}",
}
RIGHTS = {
    "a set-user bit": "cp /bin/true {0}; chmod 6755 {0}",
    "a set-user bit in a folder": "mkdir {0}; cp /bin/true {0}/x; chmod 4755 {0}/x",
}
LANDING = {
    "a folder linked to the reward's": """
        mkdir -p /logs/verifier /app/n; ln -s /logs/verifier /app/n/x; echo > /logs/verifier/planted
    """,
    "a folder linked to the tests'": "mkdir -p /tests /app/m; ln -s /tests /app/m/x; echo > /tests/planted",
    "the verifier's own folder": "mkdir -p /logs/verifier; echo > /logs/verifier/mine",
}
HONEST = {
    "a file": "echo good > {0}",
    "a link beside it": "echo good > {0}.real; ln -s {0}.real {0}",
    "a link out of the workspace": "echo good > /home/good; ln -s /home/good {0}",
    "two links out of it": "echo good > /home/well; ln -s well /home/better; ln -s /home/better {0}",
    "a second name": "echo good > {0}.first; ln {0}.first {0}",
}


def _path(name: str) -> str:
    return "/app/out/" + "".join(letter for letter in name if letter.isalnum())


def _line(number: int, condition: str) -> str:
    return f'if {condition}; then r=1; else r=0; fi; echo "\\"c{number}\\": $r," >> /tmp/found'


DOCKERFILE = """ARG BASE
FROM ${BASE}
RUN mkdir /app /hidden && printf 'what only the tests have' > /hidden/secret
WORKDIR /app
"""
CHECKS = [
    *((name, f"cmp -s {_path(name)} /tests/secret") for name in FILES),
    *((name, f"cmp -s {_path(name)}/secret /tests/secret") for name in FOLDERS),
    *((name, f"test -e {_path(name)} -a ! -d {_path(name)} -o -L {_path(name)} -o -e {_path(name)}/secret")
      for name in SPECIAL),
    *((name, f"find {_path(name)} -perm /6000 | grep -q .") for name in RIGHTS),
    ("a folder linked to the reward's", "test -e /logs/verifier/planted"),
    ("a folder linked to the tests'", "test -e /tests/planted"),
    ("the verifier's own folder", "test -e /logs/verifier/mine"),
    *((f"honest: {name}", f"grep -q good {_path('honest' + name)}") for name in HONEST),
]  # fmt: skip
"""Deliverable, and a condition that holds if it is as the agent wants it."""
ARTIFACTS = [
    *(_path(name) for name in (*FILES, *FOLDERS, *SPECIAL, *RIGHTS)),
    *(_path("honest" + name) for name in HONEST),
    *("/app/n", "/app/n/x/planted", "/app/m", "/app/m/x/planted", "/logs", "/logs/verifier/mine"),
]


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> TrialRecord:
    """The record of an agent that makes all of these."""
    attacks = {**FILES, **FOLDERS, **SPECIAL, **RIGHTS, **LANDING}
    lines = [command.format(_path(name)) for name, command in attacks.items()]
    lines += [command.format(_path("honest" + name)) for name, command in HONEST.items()]
    solve = "mkdir -p /app/out\n" + "\n".join(f"({line}) || echo NOT MADE" for line in lines)
    checks = "\n".join(_line(number, condition) for number, (_, condition) in enumerate(CHECKS))
    test = f"{checks}\n(echo {{; cat /tmp/found; echo '\"reward\": 1}}') > /logs/verifier/reward.json\n"
    artifacts = ", ".join(f'"{path}"' for path in ARTIFACTS)
    return trial(
        tmp_path_factory.mktemp("separate"),
        solve,
        test=test,
        toml=f"artifacts = [{artifacts}]\n",
        dockerfile=DOCKERFILE,
        mode="separate",
    )


@pytest.mark.parametrize("name", [name for name, _ in CHECKS])
def test_a_deliverable_is_what_it_held_in_the_agents_machine(record: TrialRecord, name: str) -> None:
    assert record.verdict is not None
    assert record.reward == 1.0, record
    at = [other for other, _ in CHECKS].index(name)
    assert record.verdict.components[f"c{at}"] == (1.0 if name.startswith("honest") else 0.0)


def test_what_did_not_travel_is_on_the_record(record: TrialRecord) -> None:
    assert record.verdict is not None
    assert "artifacts_left_out" in record.flags
    assert _path("an absolute link") in record.verdict.left_out


Trial = Callable[..., TrialRecord]
UNJUDGEABLE = {
    "a pipe that tests read": ("mkfifo /app/out", "cat /app/out && echo 1 > /logs/verifier/reward.txt"),
    "a workspace that is a file": (
        "cd /; rm -rf /app; touch /app",
        "echo 1 > /logs/verifier/reward.txt; cat /app/out",
    ),
    "a workspace that is a dangling link": (
        "cd /; rm -rf /app; ln -s /nowhere /app",
        "cat /app/out && echo 1 > /logs/verifier/reward.txt",
    ),
    "a program that never ends": (
        "echo 'sleep 1000' > /app/out",
        "bash /app/out; echo 1 > /logs/verifier/reward.txt",
    ),
}


@pytest.mark.parametrize("attack", UNJUDGEABLE)
def test_a_trial_that_is_being_lost_cannot_be_voided(tmp_path: Path, attack: str) -> None:
    solve, test = UNJUDGEABLE[attack]
    record = trial(tmp_path, solve, seconds=2, test=test, toml='artifacts = ["/app"]\n', mode="separate")
    assert record.status in (Status.COMPLETED, Status.AGENT_ERROR), record
    assert (record.reward, record.passed) == (0.0, False)
    assert record.verdict is not None
    assert "no_verdict" in record.flags or record.verdict.error is None
