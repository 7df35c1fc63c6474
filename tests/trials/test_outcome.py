"""Every way in which a rollout ends, and which one counts when several hold."""

from __future__ import annotations

from typing import Any

import pytest

from runner.records import ErrorInfo, ExecResult, ModelCall, Status
from runner.trials.outcome import ending, refused_call
from tests.support.records_factory import model_call

FAILED = ErrorInfo(type="Down", message="no answer", phase="gateway")


def result(**changed: Any) -> ExecResult:
    values = {"exit_code": 0, "stdout": "", "stderr": "", "seconds": 5.0}
    return ExecResult.model_validate(values | changed)


def failed(status_code: int, **changed: Any) -> ModelCall:
    return model_call(
        status_code=status_code, response=None, usage=None, cost_usd=None, error=FAILED, **changed
    )


@pytest.mark.parametrize(
    ("rollout", "calls", "refusal", "status"),
    [
        (result(), [], None, Status.COMPLETED),
        (result(exit_code=3), [], None, Status.AGENT_ERROR),
        (result(exit_code=None, ended="disk"), [], None, Status.AGENT_ERROR),
        (result(exit_code=None, ended="lost"), [], None, Status.AGENT_ERROR),
        (result(exit_code=None, ended="deadline"), [], None, Status.TIMEOUT),
        (result(exit_code=124, seconds=60.0), [], None, Status.TIMEOUT),
        (
            result(exit_code=124, seconds=59.0),
            [],
            None,
            Status.AGENT_ERROR,
        ),  # its own 124, before the deadline
        (result(exit_code=1), [model_call()], "deadline", Status.TIMEOUT),
        (result(exit_code=1), [model_call()], "usd", Status.BUDGET_EXCEEDED),
        (result(), [model_call()], "turns", Status.BUDGET_EXCEEDED),  # it took the refusal calmly
        (result(exit_code=None, ended="cancelled"), [failed(502)], "usd", Status.CANCELLED),
    ],
)
def test_endings(rollout: ExecResult, calls: list[ModelCall], refusal: str | None, status: Status) -> None:
    assert ending(rollout, calls, refusal, limit=60.0)[0] is status


@pytest.mark.parametrize("status_code", [429, 500, 502, 503])
@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_provider_that_failed_to_the_end_is_not_held_against_the_agent(
    status_code: int, exit_code: int
) -> None:
    status, error = ending(result(exit_code=exit_code), [model_call(), failed(status_code)], None, 60.0)
    assert status is Status.INFRA_INVALID
    assert error == FAILED


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_provider_that_serves_nobody_is_not_held_against_the_agent(exit_code: int) -> None:
    """Only 401, 403 and 429 were: a server without the agent's API (404) made it an `agent_error` with a rank."""
    status, error = ending(result(exit_code=exit_code), [failed(404)], None, 60.0, unserved=FAILED)
    assert (status, error) == (Status.INFRA_INVALID, FAILED)


@pytest.mark.parametrize("status_code", [400, 401, 402, 403, 404, 405, 410, 422])
def test_any_refusal_since_the_last_answer_is_looked_into(status_code: int) -> None:
    refused = failed(status_code)
    hung_up = failed(499, index=1)
    assert refused_call([model_call(), refused, hung_up]) == refused


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [failed(404), model_call()],  # it passed, and the agent went on
        [failed(403, refused="usd")],  # our own refusal
        [failed(400, attempts=0)],  # the gateway's: nothing was sent
        [failed(403, replayed=True)],  # not recorded
        [failed(502)],  # a failure, and no refusal
        [failed(499)],  # the agent hung up
    ],
)
def test_what_is_not_the_providers_refusal_is_not_looked_into(calls: list[ModelCall]) -> None:
    assert refused_call(calls) is None


@pytest.mark.parametrize(
    "calls",
    [
        [failed(502), model_call()],  # it passed, and the agent went on
        [failed(400)],  # the request itself was wrong
        [failed(403)],  # our own smallest call was answered: it was the request
        [failed(403, refused="usd")],  # our own refusal
    ],
)
def test_other_failed_calls_are(calls: list[ModelCall]) -> None:
    assert ending(result(exit_code=1), calls, None, 60.0)[0] is Status.AGENT_ERROR
