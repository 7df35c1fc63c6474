"""The desk as a crew on another node sees it: its account, its store and its display, through a `Line`."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.errors import GatewayError, OutputsError
from runner.executors.ray.parcels import Parcel, pack
from runner.gateway.account import Entry
from runner.gateway.call_limits import Gates
from runner.records import Status
from runner.sweeps.cache import POLL_SECONDS

if TYPE_CHECKING:
    from runner.executors.ray.line import Line
    from runner.records import Activity, CallLimits, ModelCall, Retry, TrialRecord


class FarAccount:
    """See `gateway.account.Account`. No call is sent that the desk has not noted."""

    def __init__(self, line: Line, limits: CallLimits) -> None:
        self._line, self._gates = line, Gates(limits)

    def limits(self, provider: str) -> bool:
        """See `Account`."""
        return bool(self._gates.of(provider))

    @asynccontextmanager
    async def place(self, session: str, provider: str) -> AsyncIterator[None]:
        """See `Account`."""
        if not self.limits(provider):
            yield
            return
        number = await self._granted("place", session, provider)
        try:
            yield
        finally:
            self._line.tell("withdraw", number)

    async def sending(self, entry: Entry) -> None:
        """See `Account`."""
        await self._granted("sending", entry)

    def ended(self, entry: Entry, call: ModelCall) -> None:
        """See `Account`. What was said in the call stays here until the trial's folder travels."""
        self._line.tell("ended", entry, call.without_content())

    def closed(self, entry: Entry) -> None:
        """See `Account`."""
        self._line.tell("closed", entry)

    async def _granted(self, kind: str, *content: Any) -> int:
        """Wait for the desk's consent and return the number of the question."""
        asked = self._line.ask(kind, *content)
        try:
            await asyncio.wrap_future(asked)
        except asyncio.CancelledError:
            self._line.tell("withdraw", asked.number)  # type: ignore[attr-defined]
            raise
        return int(asked.number)  # type: ignore[attr-defined]


class FarStore:
    """The part of `Store` that trials use. A trial's folder is on this node until its record is written."""

    def __init__(
        self, line: Line, folder: Path, shipped: Callable[[Parcel], Any] = lambda parcel: parcel
    ) -> None:
        """`shipped` turns a trial's files into the form in which they travel to the desk."""
        self._line, self._folder, self._shipped = line, folder, shipped
        self._begun: dict[str, tuple[Retry, ...]] = {}
        self._packed: dict[str, Any] = {}

    @property
    def cache(self) -> Path:
        """Copy of the folder that all trials share, as it was when the crew began."""
        return self._folder / "cache"

    @contextmanager
    def cached(self, name: str, check: Callable[[], None]) -> Iterator[FarFile]:
        """See `TrialStore`. Uses the desk's cache and not this copy, because other nodes may wait for the same file."""
        claim = self._line.ask("claim", name)
        try:
            yield FarFile(name, self._awaited(claim, check), partial(self._asked, "keep", name))
        finally:
            self._line.tell("withdraw", claim.number)  # type: ignore[attr-defined]

    def folder(self, key: str) -> Path:
        """Return the folder of one trial on this node."""
        return self._folder / "trials" / key

    def begun(self, key: str, retries: tuple[Retry, ...]) -> None:
        """Note that the desk has begun the next try of a trial, so that `begin` need not ask for it."""
        self._begun[key] = retries

    def parcel(self, key: str) -> Any:
        """Return the trial's files as they are to travel with the result; None if its record was sent by `write`."""
        return self._packed.pop(key, None)

    def remove(self, key: str) -> None:
        """Remove the trial's folder from this node."""
        shutil.rmtree(self.folder(key), ignore_errors=True)

    def begin(self, key: str) -> tuple[Path, tuple[Retry, ...]]:
        """See `Store.begin`."""
        retries = self._begun.pop(key, None)
        if retries is None:
            retries = self._asked("begin", key)
        folder = self.folder(key)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            shutil.rmtree(folder)
            folder.mkdir()
        return folder, retries

    def write(self, record: TrialRecord) -> None:
        """Send the record with its trial's files. Raises `OutputsError` if the desk cannot write it.

        A record that ends its trial is not sent here: the files are kept for the result of the trial (`parcel`), and
        whoever takes them removes the folder.
        """
        try:
            parcel = self._shipped(pack(self.folder(record.key)))
            if record.status is not Status.INFRA_INVALID:  # no try follows
                self._packed[record.key] = parcel
            elif not self._asked("write", record, parcel):
                raise OutputsError(f"The desk did not take the record of {record.key}.")
        finally:
            if record.key not in self._packed:
                self.remove(record.key)

    def _awaited(self, asked: Future[Any], check: Callable[[], None]) -> Any:
        """Return the desk's answer. `check` is called again and again meanwhile, and may raise."""
        while True:
            try:
                return asked.result(POLL_SECONDS)
            except TimeoutError:
                check()
            except GatewayError as gone:
                raise OutputsError(str(gone)) from gone

    def _asked(self, kind: str, *content: Any) -> Any:
        try:
            return self._line.ask(kind, *content).result()
        except GatewayError as gone:
            raise OutputsError(str(gone)) from gone


class FarFile:
    """A file of the desk's cache. See `protocols.CacheEntry`."""

    def __init__(self, name: str, content: bytes | None, keep: Callable[[bytes], object]) -> None:
        self.name, self.content, self._keep = name, content, keep

    def keep(self, content: bytes) -> None:
        """See `protocols.CacheEntry`."""
        self._keep(content)


class FarDisplay:
    """The part of `desk.Display` that trials use."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def entered(self, key: str, phase: str) -> None:
        """See `Watcher`."""
        self._line.tell("entered", key, phase)

    def acting(self, key: str, activity: Activity) -> None:
        """See `Watcher`."""
        self._line.tell("acting", key, activity)

    @contextmanager
    def making(self, key: str, how: str, image: str) -> Iterator[None]:  # noqa: ARG002 - the protocol's
        """See `Watcher`."""
        self.entered(key, how)
        try:
            yield
        finally:
            self.entered(key, "environment")

    def note(self, text: str) -> None:
        """See `desk.Display`."""
        self._line.tell("note", text)
