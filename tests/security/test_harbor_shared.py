"""Shared mode in real containers: the record lists changed programs, and a second verdict does without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.records import Status, TrialRecord
from tests.security.harbor_trials import trial

pytestmark = pytest.mark.docker

PYTHON = "/usr/lib/python3/dist-packages"
TAMPERED = {
    "a program": (
        "cp /bin/cat /bin/cat.real; printf '#!/bin/bash\\necho right\\n' > /bin/cat",
        'test "$(cat /app/answer)" = right',
        "/usr/bin/cat",
    ),
    "a program that comes first": (
        "printf '#!/bin/bash\\necho right\\n' > /usr/local/bin/wc; chmod +x /usr/local/bin/wc",
        'test "$(wc -l /app/answer)" = right',
        "/usr/local/bin/wc",
    ),
    "an interpreter": (
        "rm /usr/bin/python3; printf '#!/bin/bash\\necho right\\n' > /usr/bin/python3; chmod +x /usr/bin/python3",
        'test "$(python3 -c 0)" = right',
        "/usr/bin/python3",
    ),
    "sitecustomize": (
        """for d in /usr/lib/python3.[0-9]*; do
            rm -f $d/sitecustomize.py; echo 'import os; os.environ["SITE"] = "right"' > $d/sitecustomize.py
        done""",
        "/usr/bin/python3.[0-9]* -c 'import os; os.environ[\"SITE\"]'",
        "/sitecustomize.py",
    ),
    "a file of paths": (
        f'echo \'import os; os.environ["PTH"] = "right"\' > {PYTHON}/x.pth',
        "/usr/bin/python3.[0-9]* -c 'import os; os.environ[\"PTH\"]'",
        f"{PYTHON}/x.pth",
    ),
    "a module": (
        f"echo 'right = 1' > {PYTHON}/planted.py",
        "/usr/bin/python3.[0-9]* -c 'import planted'",
        f"{PYTHON}/planted.py",
    ),
    "a preloaded library": (
        "echo /nowhere.so > /etc/ld.so.preload",
        "LC_ALL=C /bin/true 2>&1 | grep -q preload",
        "/etc/ld.so.preload",
    ),
    "settings of pytest": ("echo '[pytest]' > /pytest.ini", "test -e /pytest.ini", "/pytest.ini"),
    "a cache of uv's": (
        "mkdir -p /root/.cache/uv; echo x > /root/.cache/uv/wheel",
        "test -e /root/.cache/uv/wheel",
        "/root/.cache/uv/wheel",
    ),
    "a start-up file of the shell": (
        "echo x > /etc/profile.d/x.sh",
        "test -e /etc/profile.d/x.sh",
        "/etc/profile.d/x.sh",
    ),
    "packages of the user's": (
        "mkdir -p /root/.local/lib/python3.11/site-packages; echo x > /root/.local/lib/python3.11/site-packages/p.py",
        "test -e /root/.local/lib/python3.11/site-packages/p.py",
        "/root/.local/lib/python3.11/site-packages/p.py",
    ),
}
"""Name -> command of the agent, condition in the tests, and the end of a path that the record lists."""
LINKED = {
    "a link to the tests' secret": ("ln -s /tests/secret /app/link", "cmp -s /app/link /tests/secret"),
    "a link by way of the kernel": (
        "ln -s /proc/self/root/tests/secret /app/proc",
        "cmp -s /app/proc /tests/secret",
    ),
}
"""Attacks that shared mode cannot refuse, but the second verdict does. They change no program."""
WORK = {
    "a file": ("echo good > /app/out", "grep -q good /app/out"),
    "a changed file": ("echo good > /app/old", "grep -q good /app/old"),
    "a deleted file": ("rm /app/gone", "! test -e /app/gone"),
    "a deleted folder": ("rm -r /app/folder", "! test -e /app/folder"),
    "a link in the workspace": ("echo good > /app/a; ln -s a /app/b", "grep -q good /app/b"),
    "a link to a program": ("ln -s /usr/bin/env /app/env", "test -x /app/env"),
    "a file of a home": ("mkdir -p /home/me; echo good > /home/me/f", "grep -q good /home/me/f"),
    "a temporary file": ("echo good > /tmp/f", "grep -q good /tmp/f"),
    "a folder at the root": ("mkdir -p /results; echo good > /results/f", "grep -q good /results/f"),
    "a file that is executable": ("echo exit 0 > /app/run; chmod 755 /app/run", "bash -c /app/run"),
    "a name with a newline": ("echo good > $'/app/a\\nb'", "grep -q good $'/app/a\\nb'"),
}
"""Honest work that both verdicts see."""
DOCKERFILE = """ARG BASE
FROM ${BASE}
RUN mkdir -p /app/folder && touch /app/old /app/gone /app/folder/f && echo wrong > /app/answer
WORKDIR /app
"""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> TrialRecord:
    """The record of an agent that does all of these, judged twice."""
    every = [(do, see) for do, see, *_ in (*TAMPERED.values(), *LINKED.values(), *WORK.values())]
    checks = "\n".join(
        f'if {see}; then echo "\\"c{number}\\": 1,"; else echo "\\"c{number}\\": 0,"; fi >> /tmp/found'
        for number, (_, see) in enumerate(every)
    )
    # Programs come last, so that the other commands run with the original ones.
    solve = "\n".join(f"({do}) || echo NOT MADE" for do, _ in reversed(every))
    report = "(echo {; while read -r line; do echo $line; done < /tmp/found; echo '\"reward\": '$R})"
    return trial(
        tmp_path_factory.mktemp("shared"),
        solve,
        {"verifier": {"again": "pristine"}},
        test=f'R=0; test "$(cat /app/answer)" = right && R=1\n{checks}\n{report} > /logs/verifier/reward.json\n',
        dockerfile=DOCKERFILE,
    )


NAMES = (*TAMPERED, *LINKED, *WORK)


@pytest.mark.parametrize("name", TAMPERED)
def test_a_changed_program_is_run_and_recorded_and_not_there_the_second_time(
    judged: TrialRecord, name: str
) -> None:
    assert judged.verdict is not None
    assert judged.verdict.again is not None
    assert judged.verdict.programs is not None
    at = f"c{NAMES.index(name)}"
    assert (judged.verdict.components[at], judged.verdict.again.components[at]) == (1.0, 0.0)
    assert any(path.endswith(TAMPERED[name][2]) for path in judged.verdict.programs.paths)


@pytest.mark.parametrize("name", LINKED)
def test_a_link_into_the_tests_is_not_there_the_second_time(judged: TrialRecord, name: str) -> None:
    assert judged.verdict is not None
    assert judged.verdict.again is not None
    at = f"c{NAMES.index(name)}"
    assert (judged.verdict.components[at], judged.verdict.again.components[at]) == (1.0, 0.0)


@pytest.mark.parametrize("name", WORK)
def test_the_agents_work_is_there_both_times(judged: TrialRecord, name: str) -> None:
    assert judged.verdict is not None
    assert judged.verdict.again is not None
    at = f"c{NAMES.index(name)}"
    assert (judged.verdict.components[at], judged.verdict.again.components[at]) == (1.0, 1.0)


def test_both_verdicts_stand_side_by_side_and_the_first_is_the_reward(judged: TrialRecord) -> None:
    assert judged.verdict is not None
    assert judged.verdict.again is not None
    assert (judged.reward, judged.verdict.reward, judged.verdict.again.reward) == (1.0, 1.0, 0.0)
    assert (judged.verdict.mode, judged.verdict.again.mode) == ("shared", "pristine")
    assert {"programs_changed", "verdicts_differ"} <= set(judged.flags)
    # neither the agent's work nor the runner's own files are programs
    assert judged.verdict.programs is not None
    assert judged.verdict.programs.count == len(judged.verdict.programs.paths)
    assert not {"/app/out", "/results/f", "/etc/hosts", "/tmp/f"} & set(judged.verdict.programs.paths)


def test_a_shell_of_the_agents_writes_the_reward_once_and_not_twice(tmp_path: Path) -> None:
    shell = "printf '#!/bin/bash.real\\necho 1 > /logs/verifier/reward.txt\\n' > /bin/bash.new"
    record = trial(
        tmp_path,
        f"cp /bin/bash /bin/bash.real; {shell}; chmod +x /bin/bash.new; mv /bin/bash.new /bin/bash",
        {"verifier": {"again": "pristine"}},
        test="echo 0 > /logs/verifier/reward.txt",
    )
    assert record.verdict is not None
    assert record.verdict.again is not None
    assert (record.reward, record.verdict.again.reward) == (1.0, 0.0)
    assert record.verdict.programs is not None
    assert record.verdict.programs.paths == ("/usr/bin/bash", "/usr/bin/bash.real")


HONEST_TEST = "test -f /app/done && echo 1 > /logs/verifier/reward.txt"
VOIDED = {
    "no shell": "rm /bin/bash /usr/bin/bash",
    "a shell that never ends": "printf '#!/bin/sh\\nsleep 1000\\n' > /x; chmod +x /x; mv /x /bin/bash",
    "no libraries": "mv /usr/lib /usr/lab",
    "a workspace that is a pipe": "cd /; rm -rf /app; mkfifo /app",
    "a workspace that leads nowhere": "cd /; rm -rf /app; ln -s /nowhere /app",
    "system settings that are a file": "mv /etc /etc2; /bin/touch /etc",
    "system settings that are a loop": "mv /etc /etc2; /bin/ln -s etc /etc",
    "a path that nothing takes": """
        python3 -c 'import os
for _ in range(60): os.mkdir("x" * 200); os.chdir("x" * 200)'
    """,
    "a folder full of logs": """
        printf '#!/bin/sh\\nhead -c 220000000 /dev/zero > /logs/verifier/log\\n' > /x; chmod +x /x; mv /x /bin/bash
    """,
}
"""Commands of an agent that is losing and wants the trial not to count."""


@pytest.mark.parametrize("attack", VOIDED)
def test_a_trial_that_is_being_lost_cannot_be_voided(tmp_path: Path, attack: str) -> None:
    record = trial(tmp_path, VOIDED[attack], seconds=3, test=HONEST_TEST)
    assert record.status in (Status.COMPLETED, Status.AGENT_ERROR), record
    assert (record.reward, record.passed) == (0.0, False), record
    assert record.verdict is not None
    assert record.verdict.error is not None


def test_logs_without_end_do_not_hide_a_reward(tmp_path: Path) -> None:
    """The folder was too large to copy, so the reward in it was not read."""
    logs = "head -c 220000000 /dev/zero > /logs/verifier/log; echo 1 > /logs/verifier/reward.txt"
    assert trial(tmp_path, "true", test=logs).reward == 1.0


def test_a_machine_whose_changes_the_engine_cannot_list_is_worth_nothing(tmp_path: Path) -> None:
    """If the engine cannot list the changes, they may be without bound, so they are not copied for a verdict."""
    attack = f"touch /app/done\n{VOIDED['a path that nothing takes']}"
    record = trial(tmp_path, attack, {"verifier": {"again": "pristine"}}, test=HONEST_TEST)
    assert (record.status, record.reward) == (Status.AGENT_ERROR, 0.0)
    assert record.error is not None
    assert "count" in record.error.message
