"""Decide how a rollout ended, from observations made outside of it, by pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from runner.records import HUNG_UP, ErrorInfo, ExecResult, ModelCall, Status
from runner.sandbox.inside import DEADLINE_EXIT_CODE

REFUSED: Final = "ProviderRefused"
"""Error type of a trial whose provider serves nobody: the key, the account or the configuration is at fault."""
KILLED_FOR: Final = {
    "disk": "It filled its disk (sandbox.disk_mb).",
    "files": "It made more files than sandbox.files allows, or folders nested too deeply to count them.",
    # This counts against the agent. Else a hostile one could void a trial that it is about to lose.
    "lost": "Its container died under it.",
}
"""Value of `ExecResult.ended` -> message, for sandboxes that were killed."""


def refused_call(calls: Sequence[ModelCall]) -> ModelCall | None:
    """Return the last call that the provider refused (4xx) since it last answered one; None if there is none.

    The call does not tell whether the provider refused this request or refuses everybody.
    """
    for call in reversed(calls):
        if call.response is not None:
            return None
        sent = call.error is not None and call.attempts > 0 and not call.replayed and not call.refused
        if sent and HTTPStatus.BAD_REQUEST <= call.status_code < HUNG_UP:
            return call
    return None


def ending(
    result: ExecResult,
    calls: Sequence[ModelCall],
    refusal: str | None,
    limit: float | None,
    unserved: ErrorInfo | None = None,
) -> tuple[Status, ErrorInfo | None]:
    """Return status and error of a rollout.

    `unserved` is the reason why the provider serves nobody: our own smallest call failed as the agent's did.

    In order: the user's stop; a provider that serves nobody, or failed us on the last call (`infra_invalid`: it says
    nothing about the configuration); the deadline of `limit` seconds; a refused budget; the reason for which the
    sandbox was killed; the exit code, which decides nothing else.
    """
    last = calls[-1] if calls else None
    if result.ended == "cancelled":
        return Status.CANCELLED, None
    if last and last.error and not last.refused and _providers_fault(last):
        unserved = unserved or last.error.model_copy(update={"phase": "gateway"})
    if unserved:
        return Status.INFRA_INVALID, unserved
    struck = result.exit_code == DEADLINE_EXIT_CODE and limit is not None and result.seconds >= limit
    if result.ended == "deadline" or refusal == "deadline" or struck:
        return Status.TIMEOUT, None
    if refusal:
        message = f"The budget {refusal} was spent."
        return Status.BUDGET_EXCEEDED, ErrorInfo(type="Budget", message=message, phase="agent")
    if result.exit_code == 0:
        return Status.COMPLETED, None
    tail = (result.stderr or result.stdout)[-1000:]
    exited = f"The agent ended with exit code {result.exit_code}: {tail}"
    return Status.AGENT_ERROR, ErrorInfo(
        type=result.ended, message=KILLED_FOR.get(result.ended, exited), phase="agent"
    )


def _providers_fault(call: ModelCall) -> bool:
    """Return whether a call failed in a way that no request can cause: on the network, or for lack of a recording."""
    unrecorded = call.replayed and call.status_code == HTTPStatus.FORBIDDEN
    too_many = call.status_code == HTTPStatus.TOO_MANY_REQUESTS
    return unrecorded or too_many or call.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
