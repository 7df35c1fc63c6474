"""The window at which the desk serves one crew. Everything happens in the event loop of the team."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ray.exceptions import RayError

from runner.errors import ConfigError, OutputsError
from runner.executors.crew import CrewLost
from runner.executors.ray.messages import Answer, Message
from runner.executors.ray.parcels import Parcel, put_in
from runner.files import no_room
from runner.records.trial_files import SENT
from runner.sweeps.cache import CachedFile

if TYPE_CHECKING:
    from runner.executors.desk import Desk
    from runner.gateway.account import Entry
    from runner.records import ModelCall, Retry, TrialRecord

T = TypeVar("T")
FETCH_SECONDS = 120.0
"""Longest time for a trial's files to arrive from its node."""


class Window:
    """Serves the messages of a crew until it is closed. What a crew holds ends with its window."""

    def __init__(self, desk: Desk, send: Callable[[list[Answer]], None]) -> None:
        """`send` sends answers to the crew."""
        self._desk, self._send = desk, send
        self._tries: dict[str, Path] = {}
        self._sessions: set[str] = set()
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._writing: set[asyncio.Task[Any]] = set()
        """Beginnings of tries and records that are being written to disk."""
        self._taken, self._arrival = -1, asyncio.Event()
        self._is_closed = False
        self._answers: list[Answer] = []
        self.written: dict[str, TrialRecord] = {}
        """Key -> the last record that came from the crew, on disk."""
        self.begun: set[str] = set()
        """Keys of the trials that the crew has begun to run, as far as it has told."""
        self._serving: dict[str, Callable[..., Awaitable[Any]]] = {
            "begin": self._begin,
            "may_start": self._may_start,
            "place": self._place,
            "sending": self._sending,
            "write": self._write,
            "claim": self._claim,
            "keep": self._keep_cached,
        }
        self._hearing: dict[str, Callable[..., None]] = {
            "withdraw": self._withdraw,
            "ended": self._ended,
            "closed": self._closed,
            "entered": self._entered,
            "acting": desk.display.acting,
            "note": desk.display.note,
        }

    def take(self, messages: list[Message]) -> None:
        """Serve messages, in their order as far as they need not wait."""
        for number, kind, content in messages:
            if kind in self._serving:
                work = self._served(number, self._serving[kind](number, *content))
                if kind in ("begin", "write"):
                    self._watched(work)
                else:
                    self._asked[number] = asyncio.create_task(work)
            else:
                # A note that finds no room on the disk is as good as lost: its call then counts as lost.
                with suppress(OSError):
                    self._hearing[kind](*content)
            self._taken = number
        self._arrival.set()
        self._arrival = asyncio.Event()

    async def begin(self, key: str) -> tuple[Retry, ...] | None:
        """Begin the first try of the crew at a trial. Return the earlier tries; None once the window is closed.

        Raises `OutputsError`.
        """
        if self._is_closed:
            return None
        retries, failure = await self._watched(self._tried(self._begin(0, key)))
        if failure:
            raise OutputsError(failure)
        return tuple(retries)

    async def keep(self, record: TrialRecord, parcel: Any, after: int) -> bool:
        """Write the record that ended a trial, once the crew's messages up to `after` are taken: they tell its spend.

        Return whether the record was written, which it is not once the window is closed. Raises `CrewLost` if the
        folder does not arrive, and `OutputsError` if it cannot be written, or if its try did not begin here.
        """
        while self._taken < after and not self._is_closed:
            await self._arrival.wait()
        if self._is_closed:
            return False
        taken, failure = await self._watched(self._tried(self._write(0, record, parcel)))
        if failure:
            raise OutputsError(failure)
        if not taken:
            raise OutputsError(f"The desk did not take the record of {record.key}.")
        return True

    async def close(self) -> None:
        """Serve nothing more, after the records that have arrived are written. Charge what the crew held."""
        self._is_closed = True
        self._arrival.set()
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), *self._writing, return_exceptions=True)
        self._desk.account.lost(self._sessions)
        self._sessions.clear()

    async def _served(self, number: int, work: Awaitable[Any]) -> None:
        """Answer a question once its work is done."""
        try:
            self._reply(Answer(number, *await self._tried(work)))
        except CrewLost as loss:  # the answer is for nobody, or the crew ends the trial itself
            self._reply(Answer(number, None, str(loss)))
        finally:
            self._asked.pop(number, None)

    async def _tried(self, work: Awaitable[Any]) -> tuple[Any, str]:
        """Return the result of some work, and the fault of `outputs/` that prevented it, if any."""
        try:
            return await work, ""
        except ConfigError as error:  # `OutputsError` among them
            return None, str(error)
        except OSError as error:
            return None, str(no_room(self._desk.store.outputs, error))

    def _watched(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine that `close` waits for."""
        task = asyncio.create_task(work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    def _reply(self, answer: Answer) -> None:
        """Send an answer, together with others that are ready at the same moment."""
        self._answers.append(answer)
        if len(self._answers) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        self._send(answers)

    # --- questions ---

    async def _begin(self, _: int, key: str) -> Any:
        folder, retries = await asyncio.to_thread(self._desk.store.begin, key)
        self._tries[key] = folder
        return retries

    async def _may_start(self, _: int) -> bool:
        return self._desk.may_start()

    async def _place(self, number: int, session: str, provider: str) -> None:
        """Occupy a place until the crew withdraws the question, or is lost."""
        async with self._desk.account.place(session, provider):
            self._reply(Answer(number, value=True))
            await asyncio.Event().wait()

    async def _claim(self, number: int, name: str) -> None:
        """Hold a file of the cache until the crew withdraws the question, or is lost. The answer is its content."""
        async with self._desk.claims[name]:
            self._reply(Answer(number, CachedFile(self._desk.store.cache / name).content))
            await asyncio.Event().wait()

    async def _keep_cached(self, _: int, name: str, content: bytes) -> None:
        CachedFile(self._desk.store.cache / name).keep(content)

    async def _sending(self, _: int, entry: Entry) -> bool:
        await self._desk.account.sending(entry)
        self._sessions.add(entry.session)
        if folder := self._tries.get(entry.trial):
            with (folder / entry.ledger).with_suffix(SENT).open("ab") as file:
                file.write(b"%d\n" % entry.number)
        return True

    async def _write(self, _: int, record: TrialRecord, parcel: Any) -> bool:
        """Keep a record with its folder. Refuse one whose try did not begin here, or has its record already."""
        folder = self._tries.pop(record.key, None)
        if folder is None:
            return False
        try:
            files = parcel if isinstance(parcel, dict) else await asyncio.wait_for(parcel[0], FETCH_SECONDS)
        except (TimeoutError, RayError) as error:
            raise CrewLost(f"A trial's folder did not arrive: {error}") from error
        await asyncio.to_thread(self._keep, record, files, folder)
        self.written[record.key] = record
        return True

    def _keep(self, record: TrialRecord, files: Parcel, folder: Path) -> None:
        put_in(files, folder)
        self._desk.store.write(record)

    # --- news ---

    def _entered(self, key: str, phase: str) -> None:
        self.begun.add(key)
        self._desk.display.entered(key, phase)

    def _withdraw(self, number: int) -> None:
        if task := self._asked.get(number):
            task.cancel()

    def _ended(self, entry: Entry, call: ModelCall) -> None:
        self._sessions.add(entry.session)
        self._desk.account.ended(entry, call)
        if folder := self._tries.get(entry.trial):
            with (folder / entry.ledger).open("ab") as file:
                file.write(call.model_dump_json().encode() + b"\n")

    def _closed(self, entry: Entry) -> None:
        self._sessions.discard(entry.session)
        self._desk.account.closed(entry)
