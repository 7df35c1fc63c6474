"""Decide whether the agent or the engine is to blame when the engine fails during a verdict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import pytest

from runner.benchmarks.harbor.verifier import _unless_the_engine_fails
from runner.errors import EngineError, ImageError, MachineError
from runner.protocols import Sandbox, SandboxProvider, Submission
from runner.records import SandboxSpec, Task, Verdict
from runner.sandbox.local import LocalSandboxes

TASK = Task(name="made", dataset="made", directory=Path("nowhere"))
JUDGED = Verdict(reward=1.0)


class Gone(LocalSandboxes):
    """An engine that starts nothing."""

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        raise EngineError(f"no answer for {spec.name}")


def _left(sandboxes: SandboxProvider) -> Submission:
    """Return what a rollout left, of which only the task's own image is started here."""
    return Submission(TASK, cast("Sandbox", None), sandboxes, Path("nowhere"))


def _failing(times: int, error: type[MachineError] = EngineError) -> Callable[[Submission], Verdict]:
    """Return a function that fails this many times before it returns the verdict."""
    left = iter([error("the engine failed")] * times)

    def judge(_: Submission) -> Verdict:
        for failure in left:
            raise failure
        return JUDGED

    return judge


def test_a_failure_that_a_second_try_does_not_meet_was_the_engines() -> None:
    assert _unless_the_engine_fails(_left(Gone()), _failing(1)) is JUDGED


def test_an_engine_that_fails_on_what_the_agent_left_alone_was_made_to() -> None:
    verdict = _unless_the_engine_fails(_left(LocalSandboxes()), _failing(2))
    assert (verdict.reward, verdict.mode) == (0.0, "shared")
    assert verdict.error is not None
    assert verdict.error.type == "SpoiledMachine"
    assert "the engine failed" in verdict.error.message


def test_an_engine_that_fails_on_the_tasks_own_image_is_not_the_agents_doing() -> None:
    with pytest.raises(EngineError, match="no answer"):
        _unless_the_engine_fails(_left(Gone()), _failing(2))


def test_a_tasks_image_that_cannot_be_had_is_not_asked_for_twice() -> None:
    with pytest.raises(ImageError):
        _unless_the_engine_fails(_left(LocalSandboxes()), _failing(1, ImageError))
