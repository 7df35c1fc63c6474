"""An agent that replaces the program with which a judge's machine waits for its commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.records import Budget, Status
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_trial
from tests.support.tasks_factory import dataset, make_task

SLEEPER = r"""
printf '#!/bin/bash\nwhile :; do rm -f /etc/passwd; mkfifo /etc/passwd; done\n' > /x
chmod +x /x; cp --remove-destination /x "$(readlink -f "$(command -v sleep)")"
"""
LIMITS = '[agent]\nuser = "root"\ntimeout_sec = 60\n[verifier]\ntimeout_sec = 5\n'


@pytest.mark.docker
@pytest.mark.timeout(120)
def test_a_pipe_that_the_idle_program_puts_where_users_are_looked_up_holds_up_a_judge_for_its_limit_only(
    tmp_path: Path,
) -> None:
    """The engine waits in that pipe. The trial is judged all the same, and is not void."""
    base_image.ensure(connect(), print)
    test = "echo 1 > /logs/verifier/reward.txt"
    make_task(tmp_path / "tasks", "sleeper", SLEEPER, test=test, toml=LIMITS)
    sandboxes, data = DockerSandboxes(), dataset(tmp_path / "tasks")
    cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=data, budget=Budget(), attempts=1)
    plan = make_plan([cell], sandboxes, lambda _: ())
    context = TrialContext(sandboxes, Gateway(tmp_path), Store(tmp_path / "outputs"), "sleeper", {})
    record = run_trial(plan.trials[0], context, lambda: False)
    assert record.status is Status.COMPLETED
    assert record.verdict
    assert "programs_changed" in record.verdict.flags
    if record.verdict.reward != 1.0:  # then the pipe was there before the engine looked
        assert record.verdict.error
        assert record.verdict.error.type == "VerifierTimeout"
