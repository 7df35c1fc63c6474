"""Tasks whose image starts a service by its ENTRYPOINT. It was once ignored, so agent and tests missed the service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runner.records import Status
from runner.sandbox.docker import entrypoint
from tests.security.harbor_trials import SECRET, trial
from tests.support.tasks_factory import make_task
from tests.sweeps.test_plan import keys

BASE = "ARG BASE\nFROM ${BASE}\nRUN mkdir /app /data && chown 1000:1000 /app\nWORKDIR /app\n"
SERVICE = """
RUN printf '#!/bin/bash\\n(while :; do date +%%s%%N > /tmp/clock; echo; sleep .05; done) &\\nexec "$@"\\n' > /start.sh
RUN chmod 755 /start.sh
ENTRYPOINT ["/start.sh"]
"""
"""A clock that goes as long as its service runs. The service prints all the time."""
GOES = """
a=$(cat /tmp/clock)
for _ in $(seq 100); do b=$(cat /tmp/clock); test "$a" != "$b" && break; sleep 0.05; done
test "$a" != "$b"
""".rstrip()
JUDGED = (
    f"{GOES} && test -e /app/done && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
)
SEPARATE = 'artifacts = ["/app"]\n'

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("mode", ["shared", "separate", "live"])
def test_the_service_of_an_entrypoint_was_missing(tmp_path: Path, mode: str) -> None:
    """Agent and tests both have it, in a snapshot, in a fresh machine and in the live one."""
    record = trial(
        tmp_path,
        f"{GOES} && touch /app/done",
        {"keep_processes": ["made"]} if mode == "live" else None,
        mode="separate" if mode == "separate" else "shared",
        toml=SEPARATE,
        test=JUDGED,
        dockerfile=BASE + SERVICE,
    )
    assert record.verdict
    assert (record.status, record.reward, record.verdict.mode) == (Status.COMPLETED, 1.0, mode)
    assert "entrypoint_ended" not in record.flags


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ('["sh", "-c", "echo no database; exit 3"]', "exit code 3 .*no database"),
        ('["/nowhere"]', "exit code 12[67] .*/nowhere"),
        ('["sh", "-c", "exec >/dev/null 2>&1; exit 0"]', "exit code 0 .*exec"),
    ],
)
def test_an_entrypoint_that_ends_is_the_tasks_failure_with_its_reason(
    tmp_path: Path, instruction: str, why: str
) -> None:
    record = trial(tmp_path, "touch /app/done", dockerfile=f"{BASE}ENTRYPOINT {instruction}\n")
    assert record.status is Status.INFRA_INVALID
    assert record.error
    assert record.error.type == "ImageError"
    assert re.search(why, record.error.message)


def test_an_entrypoint_that_is_a_server_itself_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrypoint, "READY_SECONDS", 0.3)
    server = 'ENTRYPOINT ["bash", "-c", "while :; do date +%s%N > /tmp/clock; sleep 0.05; done"]\n'
    record = trial(tmp_path, f"{GOES} && touch /app/done", test=JUDGED, dockerfile=BASE + server)
    assert (record.reward, record.flags) == (1.0, ())


def test_an_entrypoint_that_an_agent_changed_has_no_more_rights_than_the_agent(tmp_path: Path) -> None:
    """The image's user is root, so a service that the agent may write to would forge its own verdict."""
    record = trial(
        tmp_path,
        "printf 'while :; do cp /tests/secret /app/stolen; echo 1 > /logs/verifier/reward.txt; done' > /app/service",
        user="1000",
        test="sleep 0.5; echo 0 > /logs/verifier/reward.txt; sleep 0.3; test ! -e /app/stolen",
        dockerfile=f'{BASE}RUN echo "sleep infinity" > /app/service && chown 1000 /app/service\n'
        'ENTRYPOINT ["sh", "-c", "sh /app/service 2>/dev/null & exec \\"$@\\"", "sh"]\n',
    )
    assert record.verdict
    assert (record.reward, record.verdict.exit_code) == (0.0, 0)
    assert SECRET not in record.verdict.output


def test_an_entrypoint_that_does_not_come_up_twice_leaves_the_verdict_to_the_tests(tmp_path: Path) -> None:
    record = trial(
        tmp_path,
        "touch /app/done",
        dockerfile=BASE + 'ENTRYPOINT ["sh", "-c", "mkdir /data/once && exec \\"$@\\"", "sh"]\n',
    )
    assert (record.status, record.reward) == (Status.COMPLETED, 1.0)
    assert "entrypoint_ended" in record.flags


def test_trials_from_when_an_entrypoint_was_dropped_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    """Without an ENTRYPOINT the key is as before."""
    folder = make_task(tmp_path, "made", dockerfile=BASE)
    before = keys(tmp_path)
    (folder / "environment" / "Dockerfile").write_text(BASE + "# no ENTRYPOINT\n")
    commented = keys(tmp_path)
    (folder / "environment" / "Dockerfile").write_text(BASE + 'ENTRYPOINT ["/start.sh"]\n')
    assert len({*before, *commented, *keys(tmp_path)}) == 3
