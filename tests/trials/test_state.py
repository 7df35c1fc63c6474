"""The record of a trial whose verdict no test gave."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runner.errors import EngineError
from runner.records import ErrorInfo, ExecResult, Status, Verdict
from runner.trials.state import TrialState, _outcome

NO_VERDICT = Verdict(
    reward=0.0, error=ErrorInfo(type="VerifierError", message="wrote neither"), flags=("no_verdict",)
)
UNFIT = Verdict(reward=0.0, error=ErrorInfo(type="ImageError", message="does not start"))
FAILED = Verdict(reward=0.0)
PROVIDER = SimpleNamespace(
    error=ErrorInfo(type="APIError", message="down"), refused=None, status_code=503, replayed=False
)


def _state(
    verdict: Verdict, *, exit_code: int = 0, calls: tuple[Any, ...] = (), ours: bool = False
) -> TrialState:
    state = TrialState(Path("nowhere"))
    state.verdict = verdict
    state.result = ExecResult(exit_code=exit_code, stdout="", stderr="", seconds=1.0)
    state.session = SimpleNamespace(calls=calls, meter=SimpleNamespace(refusal=None))  # type: ignore[assignment]
    state.error = ErrorInfo.of(EngineError("gone"), "verify") if ours else None
    return state


@pytest.mark.parametrize(
    ("state", "status", "error"),
    [
        (_state(FAILED), Status.COMPLETED, None),
        (_state(NO_VERDICT), Status.COMPLETED, None),
        (_state(NO_VERDICT, exit_code=3), Status.AGENT_ERROR, "exited"),
        (_state(UNFIT), Status.AGENT_ERROR, "ImageError"),
        (_state(UNFIT, exit_code=3), Status.AGENT_ERROR, "exited"),
        (_state(UNFIT, ours=True), Status.AGENT_ERROR, "ImageError"),
        (_state(FAILED, ours=True), Status.INFRA_INVALID, "EngineError"),
        (_state(NO_VERDICT, calls=(PROVIDER,)), Status.INFRA_INVALID, "APIError"),
        (_state(UNFIT, calls=(PROVIDER,)), Status.INFRA_INVALID, "APIError"),
    ],
)
def test_a_provider_that_failed_is_ours_and_an_unfit_machine_is_the_agents(
    state: TrialState, status: Status, error: str | None
) -> None:
    """An agent whose provider is down leaves nothing, and tests of nothing may give no reward: that is not its loss."""
    found, why = _outcome(SimpleNamespace(seconds=None), state)  # type: ignore[arg-type]
    assert (found, why.type if why else None) == (status, error)
