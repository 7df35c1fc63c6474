"""What all trials together may ask of providers: calls at once, and requests a minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from runner.records import CallLimit, CallLimits, Model

WINDOW_SECONDS = 60.0


class Gate:
    """Lets calls through in the order of their arrival; lives in the gateway's event loop.

    Waiting is entering, or taking a turn; a call that is cancelled while it waits takes nothing.
    """

    def __init__(self, limit: CallLimit) -> None:
        self._slots = asyncio.Semaphore(limit.concurrency) if limit.concurrency else None
        self._rate = limit.requests_per_minute
        self._begun: deque[float] = deque(maxlen=self._rate)
        self._queue = asyncio.Lock()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """One try at a call under way."""
        async with self._slots or nullcontext():
            yield

    async def turn(self) -> None:
        """One request, whether the first of its call or a repetition."""
        if not self._rate:
            return
        async with self._queue:
            while len(self._begun) == self._rate:
                wait = self._begun[0] + WINDOW_SECONDS - time.monotonic()
                if wait <= 0:
                    break
                await asyncio.sleep(wait)
            self._begun.append(time.monotonic())


class Gates:
    """The gates of one gateway: one of each provider, and one of all."""

    def __init__(self, limits: CallLimits) -> None:
        self._all = (Gate(limits),) if limits.concurrency or limits.requests_per_minute else ()
        self._of_provider = {name: (Gate(limit),) for name, limit in limits.providers.items()}

    def of(self, model: Model) -> tuple[Gate, ...]:
        """The gates that calls of a model pass, in this order; none where nothing is limited, or no provider called.

        The provider's comes first, so that a slow provider does not hold the places of all others.
        """
        if model.backend != "provider":
            return ()
        return self._of_provider.get(model.id.split("/")[0], ()) + self._all
