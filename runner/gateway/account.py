"""The account that all trials of a sweep share: the limits on calls to providers, and the sum of their spend.

A session tells the account the most that a call can cost before the call is sent, and what is charged after it. So the
account knows at any time what a machine that vanishes may have spent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from threading import Lock
from typing import NamedTuple, Protocol

from runner.gateway.call_limits import Gates
from runner.records import CallLimits, ModelCall


class Entry(NamedTuple):
    """The spend of one session at one moment, which replaces its earlier ones."""

    session: str
    """Identifier of the session, unlike any other's."""
    trial: str
    """Key of the trial."""
    ledger: str
    """Name of the session's ledger in the trial's folder."""
    provider: str
    """Provider of the session's model, as limits name it."""
    number: int
    """Number of the call that this entry is about."""
    at: int
    """Number of the session's earlier entries. An entry may arrive late, when a later entry already counts."""
    charged: Mapping[str, float]
    """Kind of budget -> spend, as the caps count it."""
    held: Mapping[str, float]
    """Kind of budget -> worst case of the session's calls under way."""


class Account(Protocol):
    """The account of a sweep, which sessions use in their gateway's event loop. It covers only calls to providers."""

    def limits(self, provider: str) -> bool:
        """Return whether calls to this provider may have to wait for others."""

    def place(self, session: str, provider: str) -> AbstractAsyncContextManager[None]:
        """Return a context that waits for a place among the calls that may be under way, and occupies it."""

    async def sending(self, entry: Entry) -> None:
        """Wait for the turn of a request, and note its worst case. The request may be sent once this method returns."""

    def ended(self, entry: Entry, call: ModelCall) -> None:
        """Note what is charged after a call."""

    def closed(self, entry: Entry) -> None:
        """Note the final spend of a session that makes no more calls."""


class SweepAccount:
    """The account itself, in the process that keeps it. Its gates belong to one event loop; any thread may read it."""

    def __init__(self, limits: CallLimits) -> None:
        self._gates = Gates(limits)
        self._lock = Lock()
        self._open: dict[str, Entry] = {}
        self._past: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()

    @property
    def spent(self) -> Counter[str]:
        """Kind of budget -> spend of all sessions as caps count it."""
        with self._lock:
            total = Counter(self._past)
            for entry in self._open.values():
                total.update(entry.charged)
        return total

    @property
    def waiting(self) -> int:
        """Number of sessions with a call that is waiting for the limits on calls."""
        return sum(count > 0 for count in tuple(self._waiting.values()))

    def limits(self, provider: str) -> bool:
        """See `Account`."""
        return bool(self._gates.of(provider))

    @asynccontextmanager
    async def place(self, session: str, provider: str) -> AsyncIterator[None]:
        """See `Account`."""
        async with AsyncExitStack() as stack:
            with self._waits(session):
                for gate in self._gates.of(provider):
                    await stack.enter_async_context(gate.place())
            yield

    async def sending(self, entry: Entry) -> None:
        """See `Account`."""
        with self._waits(entry.session):
            for gate in self._gates.of(entry.provider):
                await gate.turn()
        self._note(entry)

    def ended(self, entry: Entry, call: ModelCall) -> None:  # noqa: ARG002 - the protocol's
        """See `Account`."""
        self._note(entry)

    def closed(self, entry: Entry) -> None:
        """See `Account`."""
        with self._lock:
            self._open.pop(entry.session, None)
            self._past.update(entry.charged)

    def lost(self, sessions: Iterable[str]) -> None:
        """Charge these sessions for the worst case of their calls under way: nobody will report the real cost."""
        with self._lock:
            for session in sessions:
                if entry := self._open.pop(session, None):
                    self._past.update(entry.charged)
                    self._past.update(entry.held)

    def _note(self, entry: Entry) -> None:
        with self._lock:
            known = self._open.get(entry.session)
            if known is None or entry.at > known.at:
                self._open[entry.session] = entry

    @contextmanager
    def _waits(self, session: str) -> Iterator[None]:
        self._waiting[session] += 1
        try:
            yield
        finally:
            self._waiting[session] -= 1
            if not self._waiting[session]:
                del self._waiting[session]
