"""Live mode in real containers: files that are in the reward's folder before the tests start do not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.records import Status
from tests.security.harbor_trials import trial

pytestmark = pytest.mark.docker

LIVE = {"keep_processes": ["made"]}
SILENT = "test -f /app/done && echo 1 > /logs/verifier/reward.txt"
BEFORE = {
    "a reward": """
        echo '{"reward": 1}' > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt
        mkdir /logs/verifier/.deep; touch /logs/verifier/..x; chmod 777 /logs/verifier
    """,
    "a reward by way of a folder that was moved": """
        echo 1 > /logs/verifier/reward.txt; mv /logs /moved; mkdir -p /logs/verifier
    """,
    "a program that does not delete": "echo 1 > /logs/verifier/reward.txt; ln -sf /bin/true /bin/rm",
    "a process that keeps writing": """
        setsid sh -c 'while :; do echo 1 > /logs/verifier/reward.txt; done' >/dev/null 2>&1 & sleep 0.3
    """,
    "a process that fills the tests' folder": """
        setsid sh -c 'while :; do echo exit > /tests/conftest.py; done' >/dev/null 2>&1 & sleep 0.3
    """,
    "a process that ends the machine": "setsid sh -c 'sleep 1; kill -9 -1' >/dev/null 2>&1 & ",
    "no shell": "rm /bin/sh /usr/bin/sh /bin/bash /usr/bin/bash",
}


@pytest.mark.parametrize("attack", BEFORE)
def test_a_reward_from_before_the_tests_does_not_count(tmp_path: Path, attack: str) -> None:
    record = trial(tmp_path, BEFORE[attack], LIVE, seconds=5, test=SILENT)
    assert record.status in (Status.COMPLETED, Status.AGENT_ERROR), record
    assert (record.reward, record.passed) == (0.0, False), record
    assert record.verdict is not None
    assert record.verdict.mode == "live"
    assert "verified_live" in record.flags


def test_tests_of_the_agents_are_gone(tmp_path: Path) -> None:
    test = "! test -e /tests/conftest.py && ! test -e /logs/verifier/x && echo 1 > /logs/verifier/reward.txt"
    record = trial(tmp_path, "touch /tests/conftest.py /logs/verifier/x", LIVE, test=test)
    assert record.reward == 1.0, record
