"""One model call under way, and the answer that its agent gets."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner.records import Model, ModelCall, Record, Usage

if TYPE_CHECKING:
    from runner.gateway.api import Api, Json
    from runner.gateway.transport import Outlet


class Answer(Record):
    """The answer that an agent gets."""

    status_code: int
    body: dict[str, object]


class Call:
    """One call under way."""

    task: asyncio.Task[Answer]
    """Task that serves the call. Cancelling it cancels the call upstream and writes it to the ledger."""

    def __init__(self, api: Api, request: Json, *, index: int, streamed: bool, helper: bool = False) -> None:
        self.api, self.request, self.index, self.streamed = api, request, index, streamed
        self.helper = helper
        """True if the call goes to the session's helper model."""
        self.outlet: Outlet | None = None
        """Destination of the provider's events; None if the answer is collected first."""
        self.on_ledger = False
        self.attempts = self.lost = 0
        self.waited_seconds = 0.0
        self.dropped: tuple[str, ...] = ()
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self.server_seconds: float | None = None
        self._started_at, self._started = datetime.now(UTC), time.monotonic()

    def charged(self, seconds: float | None, cost_usd: float | None) -> None:
        """Note the charge of a try. Those of a model that is priced by the hour add up, as do its `seconds`."""
        if seconds is not None:
            cost_usd = (self.cost_usd or 0.0) + (cost_usd or 0.0)
            self.server_seconds = (self.server_seconds or 0.0) + seconds
        self.cost_usd = cost_usd

    def ended(self, model: Model, status_code: int, **outcome: Any) -> ModelCall:
        """Return the call's line on the ledger. `outcome` are further fields of `ModelCall`."""
        return ModelCall(
            index=self.index,
            api=self.api.name,
            model=model.id,
            scripted=model.scripted,
            replayed=model.replayed,
            started_at=self._started_at,
            latency_seconds=time.monotonic() - self._started,
            waited_seconds=self.waited_seconds,
            streamed=self.streamed,
            attempts=self.attempts,
            lost=self.lost,
            dropped=self.dropped,
            request=self.request,
            usage=self.usage,
            cost_usd=self.cost_usd,
            server_seconds=self.server_seconds,
            status_code=status_code,
            **outcome,
        )
