"""Beside mode in real containers: processes that outlive the rollout reach nothing that decides the reward.

Each attack forges the reward in live mode, which shows that it is one, and in no other mode.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.records import Status, TrialRecord
from tests.security.harbor_trials import SECRET, trial

pytestmark = pytest.mark.docker

PORT = 8080
"""Port on which the task's own service has to listen."""
SERVES = "setsid python3 -m http.server 8080 --directory /srv >/dev/null 2>&1 </dev/null &"
ONCE_THEY_BEGIN = "until test -e /tests/test.sh; do sleep .02; done;"
"""Command for `WAIT;` in live mode, where folders that are not empty before the tests begin count as a failure."""
PATIENT = "sleep 2; test -e /app/done && r=1 || r=0; echo $r > /logs/verifier/reward.txt; sleep 0.7"
"""Tests that leave time for an attack, and fail."""
HELPED = """
mkdir /tests/served; cp /tests/secret /tests/served/expected
(cd /tests/served && exec python3 -m http.server 9000 >/dev/null 2>&1) & sleep 2
python3 - <<'END'
import urllib.request
expected = urllib.request.urlopen("http://127.0.0.1:9000/expected", timeout=5).read()
open("/logs/verifier/reward.txt", "w").write(str(int(open("/app/answer", "rb").read() == expected)))
END
"""
"""Tests that serve the expected answer to themselves."""
OBEDIENT = """
python3 - <<'END'
import socket
reward = 0
with socket.socket({family}) as door:
    door.bind({address}); door.listen(); door.settimeout(3)
    try:
        reward = int(door.accept()[0].recv(1) == b"1")
    except TimeoutError:
        pass
open("/logs/verifier/reward.txt", "w").write(str(reward))
END
"""
"""Tests with a server that does what it is told, such as a browser's debugging port."""
SHARED_MEMORY = """
echo 0 > /dev/shm/reward; sleep 2; cat /dev/shm/reward > /logs/verifier/reward.txt
"""
INTERNET, ABSTRACT = ("socket.AF_INET", '("127.0.0.1", 9222)'), ("socket.AF_UNIX", '"\\0browser"')


def lives(script: str) -> str:
    """Return a command that runs a shell script without end, detached from the agent."""
    return f"cat > /attack.sh <<'END'\n{script}\nEND\nsetsid bash /attack.sh >/dev/null 2>&1 </dev/null & sleep 0.2"


def tells(address: tuple[str, str]) -> str:
    """Return a script that tells a server that the tests passed."""
    family, place = address
    return (
        f"python3 -c 'import socket; s = socket.socket({family}); s.connect({place.replace(chr(39), chr(34))}); "
        's.send(b"1")\''
    )


class Attack(NamedTuple):
    """Processes that the agent leaves running, and the tests that they are aimed at."""

    script: str
    test: str = PATIENT


ATTACKS = {
    "a loop that writes the reward": Attack(
        # A file that is written in place would be read while it is empty, and the tests' own reward would count.
        """WAIT; cd /logs/verifier; while :; do echo '{"reward": 1}' > new; mv new reward.json; sleep .05; done"""
    ),
    "a loop that writes it by way of every process's root": Attack(
        """WAIT; while :; do for p in /proc/[0-9]*; do
            echo '{"reward": 1}' > $p/root/logs/verifier/new; cd $p/root/logs/verifier && mv new reward.json
        done; sleep .05; done"""
    ),
    "another script in place of the tests": Attack(
        """
        echo 'echo 1 > /logs/verifier/reward.txt' > /tmp/other; chmod 755 /tmp/other
        until test -e /tests/test.sh; do sleep .01; done
        mv /tmp/other /tests/test.sh  # at once: a script that is being written cannot be started
        """
    ),
    "a loop that puts the deliverable in place once the tests begin": Attack(
        "while :; do test -e /tests/test.sh && touch /app/done; sleep .05; done"
    ),
    "a program in PATH once the tests begin": Attack(
        """
        printf '#!/bin/bash\\n/bin/touch /app/done\\n' > /tmp/sleep; chmod 755 /tmp/sleep
        until test -e /tests/test.sh; do sleep .01; done
        mv /tmp/sleep /usr/local/bin/sleep  # at once: a program that is being written cannot be started
        """,
        f"sleep 1; sleep 1; {PATIENT}",
    ),
    "a module that Python loads by itself once the tests begin": Attack(
        """
        place=$(python3 -c 'import site; print(site.getsitepackages()[0])'); mkdir -p $place
        until test -e /tests/test.sh; do sleep .01; done
        echo 'import os; open("/app/done", "w")' > $place/x.pth
        """,
        f"sleep 1; python3 -c pass; {PATIENT}",
    ),
    "killing the tests and judging in their place": Attack(
        """
        while :; do
            for p in /proc/[0-9]*; do
                grep -qz /tests/test.sh $p/cmdline 2>/dev/null &&
                { echo 1 > /logs/verifier/reward.txt; kill -9 ${p#/proc/}; }
            done
            sleep .05
        done
        """
    ),
    "shared memory": Attack("while :; do echo 1 > /dev/shm/reward; sleep .02; done", SHARED_MEMORY),
    "another server on the port of the tests' own": Attack(
        "cd /srv; echo mine > expected; exec python3 -m http.server 9000", HELPED
    ),
    "a word to the tests' own port": Attack(
        f"while :; do {tells(INTERNET)}; sleep .1; done",
        OBEDIENT.format(family=INTERNET[0], address=INTERNET[1]),
    ),
    "a word to the tests' own abstract socket": Attack(
        f"while :; do {tells(ABSTRACT)}; sleep .1; done",
        OBEDIENT.format(family=ABSTRACT[0], address=ABSTRACT[1]),
    ),
}


def judged(folder: Path, attack: Attack, mode: str) -> TrialRecord:
    """Run a trial whose agent leaves this attack running, judged in one mode."""
    (folder / "modes.yaml").write_text(f"made: {{mode: beside, ports: [{PORT}]}}\n")
    modes: dict[str, dict[str, Any]] = {
        "shared": {},
        "beside": {"modes": folder / "modes.yaml"},
        "live": {"keep_processes": ["made"]},
    }
    options = modes[mode]
    script = attack.script.replace("WAIT;", ONCE_THEY_BEGIN if mode == "live" else "")
    return trial(folder, f"echo mine > /app/answer; {SERVES}\n{lives(script)}", options, test=attack.test)


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_outlives_the_rollout_forges_no_reward(tmp_path: Path, attack: str) -> None:
    record = judged(tmp_path, ATTACKS[attack], "beside")
    assert record.verdict
    assert (record.verdict.mode, record.reward, record.passed) == ("beside", 0.0, False), record
    assert record.status in (Status.COMPLETED, Status.AGENT_ERROR), record


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_attack_is_one(tmp_path: Path, attack: str) -> None:
    record = judged(tmp_path, ATTACKS[attack], "live")
    assert record.reward == 1.0, record.verdict
    assert "verified_live" in record.flags


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_survives_its_processes(tmp_path: Path, attack: str) -> None:
    assert judged(tmp_path, ATTACKS[attack], "shared").reward == 0.0


def test_nothing_of_the_tests_is_seen_from_the_agents_machine(tmp_path: Path) -> None:
    """Whatever a living process finds, its service would tell the tests."""
    looks = """
    cd /srv; while :; do cat /tests/secret /proc/[0-9]*/root/tests/secret 2>/dev/null >> found
        cat /proc/[0-9]*/environ 2>/dev/null | grep -a HIDDEN >> found; sleep .1; done
    """
    record = judged(
        tmp_path,
        Attack(
            looks,
            """
            export HIDDEN=yes; sleep 2
            python3 -c 'import urllib.request as u; print("FOUND", u.urlopen("http://127.0.0.1:8080/found").read())'
            echo 0 > /logs/verifier/reward.txt
            """,
        ),
        "beside",
    )
    assert record.verdict
    assert "FOUND b''" in record.verdict.output, record.verdict
    assert SECRET not in record.verdict.output


def test_only_the_ports_of_the_task_are_lent(tmp_path: Path) -> None:
    record = judged(tmp_path, ATTACKS["another server on the port of the tests' own"], "beside")
    assert record.verdict
    assert record.verdict.ports
    assert (record.verdict.ports.lent, record.verdict.ports.left_out) == ((PORT,), (9000,))
    assert "ports_unlisted" not in record.flags


@pytest.mark.parametrize(
    "ending",
    [
        "kill -9 -1",
        "rm -f /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group",
        "setsid bash -c 'sleep 1; kill -9 -1' >/dev/null 2>&1 &",
        "rm -rf /tests /logs; ln -s / /tests; touch /logs",
        "setsid bash -c 'while :; do kill -STOP -1; done' >/dev/null 2>&1 & sleep .1",
    ],
)
def test_no_machine_that_lives_on_voids_its_own_judgement(tmp_path: Path, ending: str) -> None:
    (tmp_path / "modes.yaml").write_text(f"made: {{mode: beside, ports: [{PORT}]}}\n")
    modes = {"modes": tmp_path / "modes.yaml"}
    record = trial(tmp_path, f"{SERVES}\n{ending}", modes, test=PATIENT, agent_seconds=10)
    assert record.status is not Status.INFRA_INVALID, record
    assert record.reward == 0.0, record


def test_a_machine_that_fills_its_disk_while_it_is_judged_is_ended(tmp_path: Path) -> None:
    """Its services are gone then, and the tests fail."""
    (tmp_path / "modes.yaml").write_text(f"made: {{mode: beside, ports: [{PORT}]}}\n")
    fills = "sleep 3; for i in $(seq 40); do head -c 10M /dev/zero > /srv/f$i; done; sleep infinity"
    test = """
    for _ in $(seq 100); do
        sleep 0.2
        python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8080/", timeout=5)' || break
    done
    echo 0 > /logs/verifier/reward.txt; echo "after $_ looks"
    """
    record = trial(
        tmp_path,
        f"{SERVES}\n{lives(fills)}",
        {"modes": tmp_path / "modes.yaml"},
        test=test,
        seconds=60,
        storage_mb=100,
    )
    assert record.reward == 0.0, record
    assert record.verdict
    assert (
        "URLError" in record.verdict.output
        or "RemoteDisconnected" in record.verdict.output
        or "reset" in record.verdict.output
    )
