"""One crew on a node, as the driver sees it: its actor, its trials and its window at the desk."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runner.errors import OutputsError
from runner.executors.crew import CrewFailed, CrewLost, CrewRefused, NotBegun
from runner.executors.ray.cluster import RESOURCE
from runner.executors.ray.crew import SILENT_SECONDS, NodeCrew
from runner.executors.ray.messages import Address, Ended, address_of
from runner.executors.ray.window import Window
from runner.records import Status

if TYPE_CHECKING:
    from runner.executors.desk import Desk
    from runner.executors.ray.messages import Answer, Kit, Message, Secrets
    from runner.records import TrialRecord
    from runner.sweeps.plan import PlannedTrial

T = TypeVar("T")
BESIDE_TRIALS = 16
"""Number of calls to a crew that may be under way beside its trials."""
BRIEF_SECONDS = 1.0
"""Duration of a trial below which the next ones are handed ahead."""
AHEAD_SECONDS, MOST_AHEAD = 0.2, 4
"""Time for which trials that were handed ahead are to keep a place busy, and their largest number for each place."""
CLOCK_SECONDS = 60.0
"""Largest difference between the clocks of a node and of this machine: records have times of both."""
CANNOT_START = "error raised in its creation task"
"""Ray's words for an actor whose process cannot import its class."""
START_SECONDS = 120.0
"""Longest time for the process of a crew to start: it imports for seconds on a busy node."""


class HiredCrew:
    """See `crew.Crew`. Everything but `start` is called only in the team's event loop."""

    def __init__(self, node: str, host: str, width: int, desk: Desk, kind: type[NodeCrew] = NodeCrew) -> None:
        """`node` is Ray's identifier of the node, `host` its name for people, and `kind` the class of the actor."""
        self.node, self.host, self._places = node, host, width
        self._ahead = 0
        """Number of trials to hand ahead for each place, because the way to the desk and back counts beside them."""
        self.unfit = ""
        """Reason why no crew can start on the node; empty if none is known."""
        self.is_sound = False
        """True if the crew's node can run trials."""
        self.ready = False
        """True if the crew may be given trials."""
        self.has_delivered = False
        self.running: dict[Future[TrialRecord], PlannedTrial] = {}
        self.employment: asyncio.Task[None]
        self._desk = desk
        self._loop = asyncio.get_running_loop()
        self._window = Window(desk, self._send)
        self._leaving = asyncio.Event()
        self._is_lost = False
        self._actor = (
            ray.remote(kind)
            .options(
                num_cpus=0,
                resources={RESOURCE: width},
                max_restarts=0,
                max_task_retries=0,  # a call that Ray repeats would be paid for twice
                max_concurrency=(1 + MOST_AHEAD) * width + BESIDE_TRIALS,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            .remote()
        )

    @property
    def width(self) -> int:
        """See `crew.Crew`. Short trials are handed ahead, unless a budget is to be looked at just before they start."""
        return self._places * (1 if self._desk.has_caps else 1 + self._ahead)

    def start(self, trial: PlannedTrial) -> Future[TrialRecord]:
        """See `crew.Crew`. Called by the thread that runs the sweep."""
        future: Future[TrialRecord] = Future()
        self.running[future] = trial
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._run(trial, future)))
        return future

    async def check(self, kit: Kit, secrets: Secrets) -> str:
        """Return the fault of the node as a sentence; empty if there is none, or if the crew is lost."""
        before = time.time()
        there = await self._called(self._actor.clock.remote(), before)
        ahead = max(there - time.time(), 0.0) or min(there - before, 0.0)
        if abs(ahead) > CLOCK_SECONDS:
            off = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'}"
            return f"Node {self.host} takes no trials: its clock is {off} this one. Set both by a time server (NTP)."
        wrong: str | None = await self._called(self._actor.check.remote(kit, secrets), None)
        self.is_sound = wrong == ""  # and not None: a lost crew has found nothing out
        return wrong or ""

    async def prepare(self) -> str:
        """See `NodeCrew.prepare`."""
        return await self._called(self._actor.prepare.remote(), "")

    async def search(self, addresses: Sequence[Address], known: dict[str, bytes]) -> dict[str, bytes] | None:
        """See `NodeCrew.search`. Return None if the crew is lost."""
        return await self._called(self._actor.search.remote(addresses, known), None)

    async def stop(self) -> None:
        """Cancel the crew's trials."""
        await self._called(self._actor.stop.remote(), None)

    async def serve(self) -> str:
        """Serve the crew's messages until it is lost or leaves. Return why."""
        patience = START_SECONDS
        leaving = asyncio.create_task(self._leaving.wait())
        while True:
            asked = asyncio.ensure_future(_awaited(self._actor.messages.remote()))
            await asyncio.wait((asked, leaving), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if self._leaving.is_set():
                asked.cancel()
                return "it was dismissed"
            if not asked.done():
                asked.cancel()
                leaving.cancel()
                return f"it was silent for {patience:g} s"
            try:
                messages: list[Message] = asked.result()
            except RayError as error:
                leaving.cancel()
                if CANNOT_START in str(error):
                    self.unfit = (
                        f"Node {self.host} takes no trials: its crew cannot start ({_last_line(error)}). Install the "
                        "same version there, with the same Python: pip install 'assay[ray]'."
                    )
                return _first_line(error)
            self._window.take(messages)
            patience = SILENT_SECONDS

    async def give_up(self, loss: CrewLost) -> None:
        """End the crew's process. The trials that it has begun are lost, unless their records have arrived."""
        with suppress(RayError):
            ray.kill(self._actor)
        await self._window.close()
        for future, trial in tuple(self.running.items()):
            record = self._window.written.get(trial.key)
            if record and (record.status.finished or record.status is Status.CANCELLED):
                self._end(future, record)
            else:
                self._end(future, loss if trial.key in self._window.begun else NotBegun())
        self._is_lost = True

    async def leave(self, seconds: float) -> None:
        """Stop the crew's trials and wait for them, let it clean up, and end it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stop()
                futures = [asyncio.wrap_future(future) for future in tuple(self.running)]
                await asyncio.gather(*futures, return_exceptions=True)
                await self._called(self._actor.close.remote(), None)
        self._leaving.set()
        await self.employment

    async def _run(self, trial: PlannedTrial, future: Future[TrialRecord]) -> None:
        if self._is_lost:  # it was given up while the trial was on its way here
            self._end(future, NotBegun())
            return
        try:
            retries = await self._window.begin(trial.key)
            if retries is None:
                return  # `give_up` ends the trial
            ended: Ended = await _awaited(self._actor.run.remote(address_of(trial), retries))
            if ended.record is None:
                self._ahead = 0
                self._end(future, _why(ended))
            elif ended.parcel is None or await self._window.keep(ended.record, ended.parcel, ended.after):
                self.has_delivered = True
                self._ahead = _ahead(ended.record)
                self._end(future, ended.record)
        except (RayTaskError, OutputsError, CrewLost) as error:  # the first is a bug, which ends the sweep
            self._end(future, error)
        except RayError:
            return  # `serve` finds out the same, and `give_up` ends the trial

    def _end(self, future: Future[TrialRecord], outcome: TrialRecord | Exception) -> None:
        """End a trial, unless it has ended."""
        if self.running.pop(future, None) is None:
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    def _send(self, answers: list[Answer]) -> None:
        self._actor.answer.remote(answers)

    async def _called(self, reference: Any, otherwise: T) -> Any | T:
        """Return the result of a call, or `otherwise` if the crew is lost; `serve` notices the loss by itself.

        Raises `RayTaskError` for a bug.
        """
        try:
            return await _awaited(reference)
        except RayTaskError:
            raise
        except RayError:
            return otherwise


def _ahead(record: TrialRecord) -> int:
    """Return how many trials to hand ahead for each place of a crew whose last trial has this record."""
    if not record.status.finished or record.wall_seconds >= BRIEF_SECONDS:
        return 0
    return min(MOST_AHEAD, math.ceil(AHEAD_SECONDS / max(record.wall_seconds, 0.001)))


def _why(ended: Ended) -> Exception:
    """Return why a trial has no record."""
    if ended.unstarted:
        return NotBegun()
    if ended.failure:
        return OutputsError(ended.failure)
    return CrewFailed(ended.broken) if ended.broken else CrewRefused(ended.refused)


async def _awaited(reference: Awaitable[Any]) -> Any:
    return await reference


def _first_line(error: RayError) -> str:
    return str(error).strip().partition("\n")[0]


def _last_line(error: RayError) -> str:
    return str(error).strip().rpartition("\n")[2]
