from __future__ import annotations

from pathlib import Path

import pytest

from runner.agents.bounds import Nop, Oracle
from runner.errors import TaskError
from runner.records import ExecSpec, Task

TASK = Task(name="t", dataset="d", directory=Path("/d/t"))


def test_oracle_uploads_and_runs_the_solution() -> None:
    task = TASK.model_copy(update={"solution": Path("/d/t/solution"), "solution_env": {"A": "1"}})
    assert Oracle().command(task, None) == ExecSpec(
        argv=("bash", "/solution/solve.sh"),
        env={"DEBIAN_FRONTEND": "noninteractive", "A": "1"},
        uploads={"/solution": Path("/d/t/solution")},
    )


def test_oracle_needs_a_solution() -> None:
    with pytest.raises(TaskError, match="t has no solution folder"):
        Oracle().command(TASK, None)


def test_nop_ends_at_once() -> None:
    assert Nop().command(TASK, None) == ExecSpec(argv=("true",))


@pytest.mark.parametrize("agent", [Oracle(), Nop()])
def test_bounds_use_no_model_and_no_bundle(agent: Oracle | Nop) -> None:
    assert (agent.uses_model, agent.bundle) == (False, None)
