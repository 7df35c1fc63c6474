"""Make the smallest call of a model, to find out whether its provider serves us at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from runner.gateway.http import APIS
from runner.gateway.session import SessionSpec
from runner.records import HUNG_UP, PREFLIGHT_SMALLEST, ApiName, ErrorInfo, Model, Record

if TYPE_CHECKING:
    from pathlib import Path

    from runner.gateway.api import Api
    from runner.gateway.server import Gateway

SECONDS = 120.0
"""Longest wait for the answer, including retries: a local server may load its model first."""
BOUNDS: Final[dict[ApiName, Callable[[int], dict[str, object]]]] = {
    "chat": lambda tokens: {"max_completion_tokens": tokens},
    "responses": lambda tokens: {"max_output_tokens": tokens},
    "messages": lambda tokens: {"max_tokens": tokens},
    "gemini": lambda tokens: {"generationConfig": {"maxOutputTokens": tokens}},
}
"""API -> part of a request that bounds the answer to a number of tokens."""
OF_THE_REQUEST = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Statuses by which a provider may refuse the bound."""


class Probe(Record):
    """The result of a model's smallest call."""

    status_code: int
    """Status that an agent would get; 502 for a provider that did not answer."""
    error: ErrorInfo | None = None
    """Reason for a missing answer; None if there is one."""
    cost_usd: float | None = 0.0
    """USD of the answer; None if the model has no price."""
    lost_params: tuple[str, ...] = ()
    """The model's parameters that did not reach it."""

    @property
    def refused(self) -> bool:
        """Return whether the provider refused the call, so that another try would not help."""
        return self.error is not None and HTTPStatus.BAD_REQUEST <= self.status_code < HUNG_UP


def probe(
    gateway: Gateway,
    model: Model,
    api: ApiName,
    ledger: Path,
    given_up: Callable[[], bool] = lambda: False,
) -> Probe:
    """Ask a model for as little as possible through this API.

    The call has its own session and ledger: it is priced and counts towards the caps of the sweep, but belongs to no
    trial. Raises `ConfigError` if the model's key is missing and `GatewayError` if the socket cannot be made.
    """
    (chosen,) = (one for one in APIS if one.name == api)
    spec = SessionSpec(trial="preflight", task="preflight", model=model, seconds=SECONDS, ledger=ledger)
    with gateway.open(spec) as session:
        for request in _requests(chosen, model):
            try:
                answer = gateway.ask(session, request, given_up, chosen)
            except CancelledError:
                stopped = ErrorInfo(type="Cancelled", message="The run was stopped.", phase="gateway")
                return Probe(status_code=HUNG_UP, error=stopped)
            if answer.status_code not in OF_THE_REQUEST:
                break
        call = session.calls[-1]
        if call.response is not None:
            lost = model.lost_params(call.dropped)
            return Probe(status_code=call.status_code, cost_usd=session.meter.cost_usd, lost_params=lost)
        if call.refused:
            late = ErrorInfo(type="Timeout", message=f"no answer within {SECONDS:g} s", phase="gateway")
            return Probe(status_code=HTTPStatus.GATEWAY_TIMEOUT, error=late)
        return Probe(status_code=call.status_code, error=call.error)


def _requests(api: Api, model: Model) -> Iterator[dict[str, object]]:
    """Yield the smallest request, then one with room to think for a provider that refuses the first."""
    most = model.preflight_output
    for tokens in (min(PREFLIGHT_SMALLEST, most), most):
        yield api.shortest | BOUNDS[api.name](tokens)
