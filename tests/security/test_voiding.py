"""No agent can make a trial invalid that it is about to lose: an attack on the judgement is worth 0.

Each test is a whole trial whose agent (the oracle's script, as root) has not done its task.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.records import Budget, Status, TrialRecord
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials import run as trial
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tasks_factory import dataset, make_task

pytestmark = pytest.mark.docker

ROOT = '[agent]\nuser = "root"\ntimeout_sec = 20\n'
SEPARATE = 'artifacts = ["/app/done"]\n' + ROOT + '[verifier]\nenvironment_mode = "separate"\n'
FIFO = "rm -rf {0}; mkfifo {0}; "
DEEP = "python3 -c \"import os\nos.chdir('/srv')\nfor n in range(3000): os.mkdir('d'); os.chdir('d')\""
NO_SLEEP = """
import ctypes, os
ptrace = ctypes.CDLL(None).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
registers = (ctypes.c_ulonglong * 27)()
for pid in filter(str.isdigit, os.listdir("/proc")):
    if open(f"/proc/{pid}/cmdline").read().startswith("sleep"):
        ptrace(16, int(pid), None, None)
        os.waitpid(int(pid), 0x40000000)
        ptrace(12, int(pid), None, ctypes.addressof(registers))
        registers[10], registers[14], registers[15], registers[16] = 231, 127, 2**64 - 1, registers[16] - 2
        ptrace(13, int(pid), None, ctypes.addressof(registers))
        ptrace(17, int(pid), None, None)
"""
"""A shim that makes the container's sleeping process call `exit_group(127)`, as if its image had no `sleep`."""
SPOILED = {
    "pipes for users": FIFO.format("/etc/passwd") + FIFO.format("/etc/group"),
    "a workspace that is a pipe": "cd /; " + FIFO.format("/app"),
    "a workspace that is a loop": "cd /; rm -rf /app; ln -s app /app",
    "a workspace that is gone": "cd /; rm -rf /app",
    "every process stopped": "kill -STOP -1",
    "every process killed": "kill -9 -1",
    "nothing to sleep with": "rm /bin/sleep /usr/bin/timeout",
    "folders too deep": DEEP,
    "holes": "cd /srv; for i in 1 2 3 4 5; do truncate -s 1G $i; done",
    "etc a loop": "mv /etc /e; ln -s etc /etc",
    "a crowd that stays": "for i in $(seq 200); do sleep 600 & done",
    "no sleep, as it seems": f"python3 - <<'EOF'\n{NO_SLEEP}EOF\nsleep 5",
    "noise": "head -c 2000000 /dev/urandom | tee /dev/stderr",
}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., TrialRecord]:
    def run(solve: str, toml: str = ROOT, **parts: Any) -> TrialRecord:
        make_task(tmp_path / "tasks", "made", solve, toml=toml, **parts)
        cell = Cell(
            agent=Oracle(),
            model=NO_MODEL,
            dataset=dataset(tmp_path / "tasks"),
            budget=Budget(),
            attempts=1,
        )
        sandboxes, store = DockerSandboxes(), Store(tmp_path / "outputs")
        sandboxes.prepare((), print)
        (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
        return run_to_the_end(
            planned, TrialContext(sandboxes, Gateway(tmp_path), store, "test", {}), 0, lambda: False
        )

    return run


@pytest.mark.parametrize("act", SPOILED.values(), ids=SPOILED)
def test_a_loser_that_spoils_its_machine_has_lost(run: Callable[..., TrialRecord], act: str) -> None:
    record = run(act)
    assert (record.status.finished, record.reward) == (True, 0.0), record
    assert record.judged


@pytest.mark.parametrize(
    "act",
    [SPOILED[name] for name in ("pipes for users", "a workspace that is a pipe", "holes")],
    ids=["pipes for users", "a workspace that is a pipe", "holes"],
)
def test_a_loser_judged_by_its_deliverable_alone_has_lost_as_well(
    run: Callable[..., TrialRecord], act: str
) -> None:
    record = run(act, SEPARATE)
    assert (record.status.finished, record.reward) == (True, 0.0), record


@pytest.mark.parametrize(
    "act",
    [
        FIFO.format("/etc/passwd") + FIFO.format("/etc/group"),
        "mkfifo /tmp/hang; exec 3<>/tmp/hang; echo 'read < /tmp/hang' > /etc/bash.bashrc",
    ],
    ids=["pipes for users", "a trap for shells"],
)
def test_a_loser_whose_machine_cannot_collect_has_lost(
    run: Callable[..., TrialRecord], monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    """The task's own commands run in its container, as root, while it is alive."""
    monkeypatch.setattr(trial, "COLLECT_SECONDS", 5.0)
    toml = ROOT + '[verifier]\n[[verifier.collect]]\ncommand = "true"\n'
    record = run(act, toml, test="echo 0 > /logs/verifier/reward.txt")
    assert record.status.finished, record
    assert record.reward == 0.0, record


def test_a_task_that_is_never_healthy_is_not_the_engines_failure(run: Callable[..., TrialRecord]) -> None:
    toml = (
        ROOT
        + '[environment]\n[environment.healthcheck]\ncommand = "false"\nretries = 1\ninterval_sec = 0.1\n'
    )
    record = run("touch /app/done", toml)
    assert (record.status, record.reward) == (Status.INFRA_INVALID, None)
    assert record.error
    assert (record.error.type, record.error.traceback) == ("HealthError", None)
