"""The quickstart tasks in real containers: their solutions pass, and plausible or hostile ones do not.

The oracle runs a task's `solve.sh` as the task's user, so a copy of a task with another script is an agent of any kind.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.agents.bounds import Nop, Oracle
from runner.benchmarks.harbor.dataset import HarborDataset
from runner.gateway import Gateway
from runner.protocols import Agent
from runner.records import Budget, TrialRecord
from runner.resources import ROOT
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.shipped_tools import EVERY

TASKS = ROOT / "tasks" / "quickstart"
NAMES = sorted(folder.name for folder in TASKS.iterdir())
SOME = NAMES if EVERY else ["logs-to-csv", "git-archaeology", "release-chores"]
"""Tasks on which doing nothing is tried: both modes of the verifier, and partial credit."""
Try = Callable[..., TrialRecord]
PATIENCE = "seconds=6.0"
"""Time that the judge gives to a command of the agent's."""


def quickstart(root: Path = TASKS, **options: object) -> HarborDataset:
    values = {"name": "quickstart", "root": root, "build_args": {"BASE": "assay-base"}}
    return HarborDataset.model_validate(values | options)


@pytest.fixture(scope="session")
def sandboxes() -> DockerSandboxes:
    base_image.ensure(connect(), print)
    return DockerSandboxes()


@pytest.fixture
def attempt(tmp_path: Path, sandboxes: DockerSandboxes) -> Try:
    """One trial of a task, with its own solution or with a script in its place."""

    def attempt(
        name: str, script: str | None = None, agent: Agent | None = None, patience: str = PATIENCE
    ) -> TrialRecord:
        folder = Path(shutil.copytree(TASKS / name, tmp_path / "tasks" / name))
        judge = folder / "tests" / "judge.py"
        judge.write_text(replaced(judge.read_text(), PATIENCE, patience))
        if script is not None:
            (folder / "solution" / "solve.sh").write_text(f"#!/bin/bash\ncd /app\n{script}\n")
        dataset = quickstart(tmp_path / "tasks")
        cell = Cell(agent=agent or Oracle(), model=NO_MODEL, dataset=dataset, budget=Budget(), attempts=1)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        context = TrialContext(sandboxes, Gateway(tmp_path), Store(tmp_path / "outputs"), "test", {})
        return run_to_the_end(trial, context, 0, lambda: False)

    return attempt


def test_three_tasks_a_tier_none_refused() -> None:
    tasks = quickstart().tasks()
    assert [task.refused for task in tasks] == [None] * 9
    assert sorted(task.tier for task in tasks) == ["easy"] * 3 + ["hard"] * 3 + ["medium"] * 3
    assert sum(task.verifier.mode == "separate" for task in tasks) >= 6
    assert {task.agent_user for task in tasks} == {"agent"}
    assert {task.environment.network for task in tasks} == {"no-network"}


def test_the_judge_is_the_same_in_every_task() -> None:
    assert len({(folder / "tests" / "judge.py").read_bytes() for folder in TASKS.iterdir()}) == 1


@pytest.mark.docker
@pytest.mark.parametrize("name", NAMES)
def test_the_solution_passes(attempt: Try, name: str) -> None:
    record = attempt(name)
    assert (record.status, record.reward) == ("completed", 1.0), record.verdict


@pytest.mark.docker
@pytest.mark.parametrize("name", SOME)
def test_nothing_done_is_worth_nothing(attempt: Try, name: str) -> None:
    record = attempt(name, agent=Nop())
    assert (record.status, record.reward) == ("completed", 0.0), record.verdict


def replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"the task has changed: there is no {old}"
    return text.replace(old, new)


def but(name: str, old: str, new: str) -> str:
    """The task's solution with one thing wrong."""
    return replaced((TASKS / name / "solution" / "solve.sh").read_text(), old, new)


MISTAKES = {
    "repair-till": ("(quantity * price * 90 + 50) // 100", "round(quantity * price * 0.9)"),
    "logs-to-csv": ('$2 == "ERROR" && /^[0-9]/', "/ERROR/ && /^[0-9]/"),
    "pipeline-talkers": ("$(NF - 1) ~ /^2[0-9][0-9]$/", "$5 ~ /^2/"),
    "git-archaeology": ('"$deleted^"', "v1.0"),
    "sqlite-shop": ("- (SELECT coalesce(sum(cents), 0) FROM refunds WHERE order_id = o.id)", ""),
    "package-spans": ("start <= normal[-1][1]", "start < normal[-1][1]"),
    "decode-telemetry": ("at, damaged = at + 1, damaged + 1", "at = len(data)"),
    "speed-up-rollup": ("lines.append(f", "sorted(counts); lines.append(f"),
    "release-chores": ("and s not in taken_back", ""),
}
"""Task -> a plausible mistake, as a replacement in its solution."""


@pytest.mark.docker
@pytest.mark.parametrize("name", NAMES)
def test_a_plausible_mistake_fails(attempt: Try, name: str) -> None:
    record = attempt(name, but(name, *MISTAKES[name]))
    assert record.status == "completed"
    assert record.reward == (0.8 if name == "release-chores" else 0.0), record.verdict


@pytest.mark.docker
def test_partial_credit_is_said_goal_by_goal(attempt: Try) -> None:
    record = attempt(
        "release-chores", but("release-chores", 'Path("settings.toml").write_text("\\n".join(lines))', "")
    )
    assert record.reward == 0.8
    assert record.verdict is not None
    goals = {"version": 1.0, "rename": 1.0, "changelog": 1.0, "settings": 0.0, "archive": 1.0}
    assert record.verdict.components == {"reward": 0.8, **goals}


HIJACK = """
import os, sys
for path, text in (("/logs/verifier/reward.txt", "1"), ("/logs/verifier/reward.json", '{"reward": 1}')):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").write(text)
    except OSError:
        pass
"""
"""Python that writes a reward wherever it can, at its import."""

FORGERIES = {
    "rewards, tests and programs of its own": """
        for name in reward.txt reward.json test.sh checks.py judge.py; do echo 1 > $name; done
        mkdir -p /tmp/verifier bin; printf '#!/bin/sh\\nexit 0\\n' | tee bin/python3 bin/bash > /dev/null
        chmod +x bin/*; echo 'export PATH=/app/bin:$PATH' | tee ~/.bashrc ~/.profile > ~/.bash_profile
    """,
    "modules that shadow the judge's": f"""
        for name in sitecustomize usercustomize unittest json random judge tempfile subprocess; do
            cat > $name.py <<'PY'
{HIJACK}
PY
            mkdir -p ~/.local/lib/python3.13/site-packages; cp $name.py ~/.local/lib/python3.13/site-packages/
        done
    """,
    "links to what the judge knows": """
        for name in CULPRIT errors.csv answers.json settings.toml; do ln -sfn /tests/expected.csv $name; done
        rm -rf docs; ln -sfn /tests docs; ln -sfn /tests /app/tests; mkfifo pipe; chmod 000 . 2>/dev/null; true
    """,
}


@pytest.mark.docker
@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("name", ["logs-to-csv", "git-archaeology"], ids=["separate", "shared"])
def test_a_forgery_is_worth_nothing(attempt: Try, name: str, forgery: str) -> None:
    record = attempt(name, FORGERIES[forgery])
    assert record.reward == 0.0, record


ATTACKS = {
    "writes the reward": HIJACK,
    "lives on and writes the reward": f"""
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            {"            ".join(HIJACK.strip().splitlines(keepends=True))}
            time.sleep(0.01)
    os._exit(0)
""",
    "reads the tests and the judge": """
import glob, os
found = ""
for path in [*glob.glob("/tests/*"), *glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/fd/*")]:
    try:
        found += open(path, errors="replace").read(9999)
    except OSError:
        pass
print(found, flush=True)
""",
    "kills what it can": """
import os, signal
for pid in (os.getppid(), -1):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
""",
    "never ends": "import time\nwhile True: time.sleep(1)\n",
    "multiplies": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
    "fills the disk": "open('/tmp/full', 'w').write('x' * 10**9)\nprint('x' * 10**8)\n",
}
"""Attacks of the agent's program, which the judge runs as the user nobody."""
ENDLESS = ("never ends", "multiplies")
"""Attacks that run until the judge ends them. They do all their harm at once, so their time can be short."""

HOSTILE = [
    *(("repair-till", "till.py", attack) for attack in ATTACKS),
    ("package-spans", "spans/__init__.py", "writes the reward"),
    ("package-spans", "spans/__init__.py", "kills what it can"),
]


@pytest.mark.docker
@pytest.mark.parametrize(("name", "program", "attack"), HOSTILE)
def test_a_hostile_program_is_judged_and_worth_nothing(
    attempt: Try, name: str, program: str, attack: str
) -> None:
    """Nor can it void the trial: an infrastructure failure would leave the trial out of every conclusion."""
    patience = "seconds=0.5" if attack in ENDLESS else PATIENCE
    record = attempt(name, f"cat > {program} <<'PY'\n{ATTACKS[attack]}\nPY", patience=patience)
    assert (record.status, record.reward) == ("completed", 0.0), record


@pytest.mark.docker
def test_a_private_workspace_is_not_a_failure(attempt: Try) -> None:
    """The work is judged, and not the umask under which it was done."""
    record = attempt(
        "repair-till", but("repair-till", "set -euo pipefail", "umask 077; chmod 700 /app; rm /app/till.py")
    )
    assert record.reward == 1.0, record.verdict
