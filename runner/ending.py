"""How a rollout ended, decided from what was seen outside it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus

from runner.records import ErrorInfo, ExecResult, ModelCall, Status
from runner.sandbox.inside import DEADLINE_EXIT_CODE

PROVIDER_FAILED = (401, 403, 429)
"""Upstream answers, beside all from 500 on, that say something about our account and nothing about the model."""
KILLED_FOR = {
    "disk": "It filled its disk (sandbox.disk_mb).",
    "files": "It made more files than sandbox.files allows, or folders nested too deeply to count them.",
    # Counts against the agent: else a hostile one could void a trial that it is about to lose.
    "lost": "Its container died under it.",
}


def ending(
    result: ExecResult, calls: Sequence[ModelCall], refusal: str | None, limit: float | None
) -> tuple[Status, ErrorInfo | None]:
    """Status and error of a rollout; the agent's exit code decides nothing but its own error.

    In order: the user's stop; a provider that failed us on the last call (`infra_invalid`: it says nothing about the
    configuration); the deadline of `limit` seconds; a refused budget; what the sandbox was killed for; the exit code.
    """
    last = calls[-1] if calls else None
    if result.ended == "cancelled":
        return Status.CANCELLED, None
    if last and last.error and not last.refused and _providers_fault(last.status_code):
        return Status.INFRA_INVALID, last.error.model_copy(update={"phase": "gateway"})
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


def _providers_fault(status_code: int) -> bool:
    return status_code in PROVIDER_FAILED or status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
