"""The crew on one node: a Ray actor, with a gateway, sandboxes, bundles and images of its own.

It ends itself when the driver has not asked for its messages for `SILENT_SECONDS`: then the driver is gone, or has
given it up. Until then it sends no call that the desk has not noted.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from runner import __version__
from runner.cli.config import load_composed
from runner.errors import AssayError, ConfigError, OutputsError
from runner.executors.crew import install, reap
from runner.executors.ray.far_desk import FarAccount, FarDisplay, FarStore
from runner.executors.ray.line import Line
from runner.executors.ray.messages import Address, Answer, Ended, Kit, Message, Secrets
from runner.executors.ray.parcels import Parcel
from runner.files import NO_ROOM, no_room
from runner.sweeps.answers_in_reach import Reach
from runner.sweeps.cells import Cell, Sweep
from runner.sweeps.plan import PlannedTrial, cell_digest, plan_trial
from runner.trials.context import TrialContext
from runner.trials.scratch_folder import scratch_folder

if TYPE_CHECKING:
    from runner.records import Retry, Task

SILENT_SECONDS = 20.0
"""Time without a word after which a crew ends itself, and after which the driver gives a crew up."""
LOOK_SECONDS = 1.0
WAITING_SECONDS = 2.0
"""Longest wait of a trial that was handed ahead. Then another crew may have a place for it."""
ROOM_BYTES = 256 * 2**20
"""Least free room for temporary files, among them the folders of trials until their records are sent."""
INLINE_BYTES = 64 * 2**10
"""Size from which a trial's files travel through Ray's object store."""


class NodeCrew:
    """The actor behind a driver's `crew.Crew`. Only the driver calls its methods."""

    def __init__(self) -> None:
        self._line = Line()
        self._stack = ExitStack()
        self._kit: Kit
        self._cancel = Event()
        self._pool: ThreadPoolExecutor
        self._clearing = ThreadPoolExecutor(1, thread_name_prefix="clearing")
        self._work: Callable[[PlannedTrial], Any]
        self._sweep: Sweep
        self._trials: Trials
        self._store: FarStore
        self._bundles: dict[str, Any]
        self._unended: set[Future[Ended]] = set()
        self._listening: Thread | None = None

    # --- for the driver ---

    async def clock(self) -> float:
        """Return the time on this node's clock."""
        return time.time()

    async def check(self, kit: Kit, secrets: Secrets) -> str:
        """Return the fault of this node as a sentence; empty if there is none. Called before anything is paid for."""
        return await asyncio.to_thread(self._check, kit, secrets)

    async def prepare(self) -> str:
        """Install what the trials need. Return the fault of this node, as `check` does."""
        return await asyncio.to_thread(self._prepare)

    async def search(self, addresses: Sequence[Address], cache: dict[str, bytes]) -> dict[str, bytes]:
        """Look for answers in reach of these trials. Return the findings as files of the cache."""
        return await asyncio.to_thread(self._search, addresses, cache)

    async def run(self, address: Address, retries: tuple[Retry, ...]) -> Ended:
        """Run a trial to its end. The desk has begun its first try, before which there were `retries`.

        Meanwhile the line carries the trial's calls, phases and spoiled tries to the desk.
        """
        self._store.begun(address.key, retries)
        work = self._pool.submit(self._run, address)
        self._unended.add(work)
        work.add_done_callback(self._unended.discard)
        # Once the trial runs, cancelling it does nothing.
        giving_back = asyncio.get_running_loop().call_later(WAITING_SECONDS, work.cancel)
        try:
            ended = await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            return Ended(unstarted=True)
        finally:
            giving_back.cancel()
        if (parcel := self._store.parcel(address.key)) is not None:
            self._clearing.submit(self._store.remove, address.key)  # the disk may be slow, and others wait
        return ended._replace(parcel=parcel, after=self._line.last)

    async def messages(self) -> list[Message]:
        """Return the next messages to the desk."""
        if self._listening is None:
            self._listening = Thread(target=self._listen, name="silence", daemon=True)
            self._line.heard = time.monotonic()
            self._listening.start()
        return await self._line.messages()

    async def answer(self, answers: Iterable[Answer]) -> None:
        """Take the desk's answers."""
        self._line.answer(answers)

    async def stop(self) -> None:
        """Cancel the trials. They end soon, with their records; those that wait for a place have none."""
        self._cancel.set()
        for work in tuple(self._unended):
            work.cancel()  # does nothing to those that run

    async def close(self) -> None:
        """Remove what is left on this node. The crew is of no use afterwards."""
        await asyncio.to_thread(self._close)

    # --- on the node ---

    def _check(self, kit: Kit, secrets: Secrets) -> str:
        node = socket.gethostname()
        if kit.version != __version__:
            return (
                f"Node {node} has Assay {__version__}, and the sweep was started by {kit.version}: install the same "
                "version there."
            )
        os.environ.update(secrets)
        if Path(kit.folder).is_dir():
            os.chdir(kit.folder)
        try:
            _check_room(Path(tempfile.gettempdir()))
            self._kit, self._sweep = kit, load_composed(kit.composed)
            self._trials = Trials(self._sweep)
            for sample in kit.samples:
                self._trials.find(sample)
            reap(self._sweep.settings, lambda _: None, FarDisplay(self._line).note)
        except AssayError as error:
            return f"Node {node} takes no trials: {error}"
        return ""

    def _prepare(self) -> str:
        try:
            self._make_ready(self._kit)
        except AssayError as error:
            return f"Node {socket.gethostname()} takes no trials: {error}"
        return ""

    def _make_ready(self, kit: Kit) -> None:
        """Install what the trials need, and make ready to run them. Raises `AssayError`."""
        from runner.gateway import Gateway  # noqa: PLC0415 - brings the gateway's libraries
        from runner.trials.run import run_to_the_end  # noqa: PLC0415 - as above

        settings, line = self._sweep.settings, self._line
        show = FarDisplay(line)
        scratch = self._stack.enter_context(scratch_folder())
        self._stack.enter_context(self._clearing)  # its exit waits, before the folder of all trials goes
        account = FarAccount(line, settings.gateway)
        gateway = self._stack.enter_context(Gateway(scratch, account=account))
        planned = [self._trials.planned(cell, task, 1) for cell, task in kit.trials]
        self._bundles = install(settings, planned, show.note)
        self._store = store = FarStore(line, scratch, _shipped)
        context = TrialContext(settings.sandbox, gateway, store, kit.sweep, self._bundles, show)
        self._work = partial(
            run_to_the_end,
            context=context,
            retries=kit.retries,
            cancelled=self._cancel.is_set,
            affordable=lambda: bool(line.ask("may_start").result()),
        )
        self._pool = ThreadPoolExecutor(kit.width, thread_name_prefix="trial")

    def _run(self, address: Address) -> Ended:
        no_more = f"Node {socket.gethostname()} takes no more trials: "
        try:
            trial = self._trials.find(address)
        except AssayError as error:
            return Ended(refused=f"{no_more}{error}")
        try:
            return Ended(record=self._work(trial))
        except OutputsError as error:
            if isinstance(error.__cause__, OSError):  # of this node's disk: the desk sends words alone
                return Ended(broken=f"{no_more}{error}")
            return Ended(failure=str(error))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return Ended(broken=f"{no_more}{no_room(Path(tempfile.gettempdir()), error)}")

    def _search(self, addresses: Sequence[Address], cache: dict[str, bytes]) -> dict[str, bytes]:
        there = self._store.cache
        there.mkdir(parents=True, exist_ok=True)
        for name, content in cache.items():
            (there / name).write_bytes(content)
        trials = [self._trials.find(address) for address in addresses]
        say = FarDisplay(self._line).note
        Reach(there).search(trials, self._sweep.settings.sandbox, self._bundles, say)
        return {path.name: path.read_bytes() for path in there.glob("*.json")}

    def _close(self) -> None:
        self._cancel.set()
        self._line.cut("The desk of the sweep is gone.")
        self._stack.close()

    def _listen(self) -> None:
        """End the process when the driver is silent for too long."""
        while time.monotonic() - self._line.heard < SILENT_SECONDS:
            time.sleep(LOOK_SECONDS)
        self._cancel.set()
        self._line.cut(f"The desk of the sweep has been silent for {SILENT_SECONDS:g} s.")
        if hasattr(self, "_sweep"):
            self._sweep.settings.sandbox.release()
        os._exit(1)


class Trials:
    """The trials of a sweep, made anew from their addresses."""

    def __init__(self, sweep: Sweep) -> None:
        self._sandbox = sweep.settings.sandbox
        self._cells = {cell.name: cell for cell in sweep.cells}
        self._digests = {name: cell_digest(cell, self._sandbox) for name, cell in self._cells.items()}
        self._tasks: dict[str, dict[str, Task]] = {}

    def find(self, address: Address) -> PlannedTrial:
        """Return the trial of an address. Raises `ConfigError` if this node has no such trial, or another one there."""
        trial = self.planned(address.cell, address.task, address.attempt)
        if trial.key != address.key:
            raise ConfigError(
                f"{trial.name} is another trial there than where the sweep was started, because files, options or "
                "versions differ. Install the same on both."
            )
        task = trial.task.model_copy(update={"flags": address.flags})
        return trial.model_copy(update={"task": task})

    def planned(self, cell: str, task: str, attempt: int) -> PlannedTrial:
        """Plan a trial of this node. Raises `ConfigError` if there is none of these names."""
        chosen = self._cells.get(cell)
        found = self._tasks_of(chosen).get(task) if chosen else None
        if chosen is None or found is None:
            raise ConfigError(f"It knows no task {task} of {cell}. Install the same version and files there.")
        return plan_trial(
            chosen, found, attempt, self._digests[cell], self._sandbox.memory_of(found.environment)
        )

    def _tasks_of(self, cell: Cell) -> dict[str, Task]:
        if cell.name not in self._tasks:
            self._tasks[cell.name] = {task.name: task for task in cell.dataset.tasks()}
        return self._tasks[cell.name]


def _check_room(folder: Path) -> None:
    """Raise `OutputsError` if there is too little room for temporary files."""
    if (free := shutil.disk_usage(folder).free) < ROOM_BYTES:
        raise OutputsError(
            f"{folder} has {free // 2**20} MiB left, and trials need {ROOM_BYTES // 2**20}. Make room there, or set "
            "TMPDIR before `ray start`."
        )


def _shipped(parcel: Parcel) -> Any:
    """Return files as they travel to the desk: large ones as a reference into Ray's object store."""
    if sum(map(len, parcel.values())) < INLINE_BYTES:
        return parcel
    import ray  # noqa: PLC0415 - an extra, which only this executor needs

    return [ray.put(parcel)]
