"""Limits of all trials together at the providers: calls at once and requests per minute, and the time spent waiting."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext

from runner.records import CallLimit, CallLimits

WINDOW_SECONDS = 60.0


class Gate:
    """A limit that admits calls in the order of their arrival. Lives in one event loop at a time.

    Calls wait on entering `place` and in `turn`; a call that is cancelled while it waits takes neither.
    """

    def __init__(self, limit: CallLimit) -> None:
        self._limit, self._rate = limit, limit.requests_per_minute
        self._begun: deque[float] = deque(maxlen=self._rate)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots: asyncio.Semaphore | None = None
        self._queue: asyncio.Lock

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Occupy a place for one try at a call."""
        self._settle()
        async with self._slots or nullcontext():
            yield

    async def turn(self) -> None:
        """Wait for the turn of one request, whether the first of its call or a repetition."""
        if not self._rate:
            return
        self._settle()
        async with self._queue:
            while len(self._begun) == self._rate:
                wait = self._begun[0] + WINDOW_SECONDS - time.monotonic()
                if wait <= 0:
                    break
                await asyncio.sleep(wait)
            self._begun.append(time.monotonic())

    def _settle(self) -> None:
        """Make new locks for another event loop after the preflight's has ended: asyncio binds a lock to one loop."""
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._queue = loop, asyncio.Lock()
            self._slots = asyncio.Semaphore(self._limit.concurrency) if self._limit.concurrency else None


class Gates:
    """The gates of one sweep: one per provider, and one for all."""

    def __init__(self, limits: CallLimits) -> None:
        self._all = (Gate(limits),) if limits.concurrency or limits.requests_per_minute else ()
        self._of_provider = {name: (Gate(limit),) for name, limit in limits.providers.items()}

    def of(self, provider: str) -> tuple[Gate, ...]:
        """Return the gates that calls to a provider pass, in order; none without limits.

        The provider's own gate comes first, so that a slow provider does not take the places of all others.
        """
        return self._of_provider.get(provider, ()) + self._all


class Stopwatch:
    """The time during which at least one of several overlapping intervals runs."""

    def __init__(self) -> None:
        self._before, self._open, self._since = 0.0, 0, 0.0

    @property
    def seconds(self) -> float:
        """Seconds so far, including the running interval."""
        return self._before + (time.monotonic() - self._since if self._open else 0.0)

    @property
    def runs(self) -> bool:
        """Return whether an interval is open."""
        return self._open > 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside the context."""
        if not self._open:
            self._since = time.monotonic()
        self._open += 1
        try:
            yield
        finally:
            total = self.seconds
            self._open -= 1
            if not self._open:
                self._before = total
