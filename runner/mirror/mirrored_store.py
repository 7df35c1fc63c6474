"""A folder of trials with its copy in an object store.

The folder is what jobs read and write, and it is whole for what ran on this machine. Before a sweep, it takes the
records that other drivers have sent, and sends those of its own that were left behind. Each record is sent as soon as
it is written, and is created once: whoever comes second takes the first one's. Files beside the records of other
drivers are fetched when something reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from runner.errors import OutputsError
from runner.locks import exclusive
from runner.mirror.bucket import REQUEST_SECONDS, Bucket, StoreError
from runner.mirror.copies import SweepCopies, TrialCopies
from runner.mirror.lease import RENEWALS, Lease
from runner.mirror.marks import Marks
from runner.mirror.under_way import UnderWay
from runner.records import LiveSweep, Retry, TrialRecord
from runner.records.trial_files import RECORD
from runner.sweeps import sweep_file
from runner.sweeps.store import Store
from runner.sweeps.store_address import StoreSettings
from runner.terminal.escaping import Say

TELL_SECONDS = 15.0
"""Longest time between two messages to the store on what runs. Watchers call a longer pause silence."""
AT_ONCE = 16
"""Trials that are sent or taken at once."""


class MirroredStore(Store):
    """See `Store`."""

    def __init__(self, outputs: Path, settings: StoreSettings, say: Say = print) -> None:
        """`say` reports what is taken and sent. Raises `OutputsError` if the store cannot be configured."""
        super().__init__(outputs)
        self._settings, self._say = settings, say
        patience = min(REQUEST_SECONDS, settings.lease_seconds / 2)  # later, the lease is lost anyway
        self._bucket, self._marks = Bucket(settings.address, patience), Marks(outputs)
        self._copies = TrialCopies(self._bucket, self.folder, self._marks, self._check_lease, say)
        self._sweeps = SweepCopies(self._bucket, outputs, self._marks)
        often = min(settings.lease_seconds / RENEWALS, TELL_SECONDS)
        self._under_way = UnderWay(self._bucket, self.folder, self._marks, often, self._send_live)
        self._published: Path | None = None
        """Folder of the sweep that runs here."""
        self._lease: Lease | None = None
        self._stop: Callable[[], None] = lambda: None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder and the store against other runners, and bring both up to date. Raises `OutputsError`."""
        with ExitStack() as stack:
            with exclusive(self._marks.lock):
                stack.enter_context(super().locked())
                lease = Lease(self._bucket, self._marks.place(), self._settings.lease_seconds, self._on_loss)
                self._lease = stack.enter_context(lease)
                taken = self._take_new()
                unsent = list(self._copies.unsent(self.outputs / "trials"))
                _for_each(self._copies.send, unsent)
                trials = (path for path in self.outputs.glob("trials/*/*") if not (path / RECORD).exists())
                self._under_way.keys.update(dict.fromkeys(path.name for path in trials))
                dead = self._under_way.take_over()
            self._say(
                f"{self._settings.address}: {taken} records taken, {len(unsent)} sent. The copy of this machine is "
                f"{self.outputs}"
            )
            if dead:
                self._say(
                    f"A driver that ended left {dead} trials without a record; what they spent is known."
                )
            with self._under_way:
                yield

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Have `stop` called if another runner takes over, or may have."""
        self._stop = stop

    def _on_loss(self) -> None:
        self._stop()

    def refresh(self, sweep: Path, *, workspaces: bool = False) -> None:
        """Take the records and plans of other drivers, and the files of this sweep's trials. Raises `OutputsError`.

        While a runner of this machine is at work, its folder is as new as the store.
        """
        with exclusive(self._marks.lock):
            if self.holder() is not None:
                return
            taken = self._take_new()
            if sweep_file.exists(sweep):
                self.fetch([row.key for row in sweep_file.read(sweep).planned], workspaces=workspaces)
        if taken:
            self._say(f"{self._settings.address}: {taken} records taken.")

    def hear(self, sweep: Path) -> LiveSweep | None:
        """See `Store`. Raises `OutputsError`."""
        if self.holder() is not None:
            return None  # without waiting for what it takes
        with exclusive(self._marks.lock):
            if self.holder() is not None:
                return None
            live = self._sweeps.live(sweep)  # first: a trial that no longer runs in it has its record
            self._take_new()
        return live

    def begin(self, key: str) -> tuple[Path, tuple[Retry, ...]]:
        """See `Store`."""
        with self._explaining():
            self._check_lease()
            if key in self._copies.beaten:
                raise StoreError(f"{self._settings.address}: another driver has run trial {key}.")
            self._copies.fetch(key, archives=True)
        begun = super().begin(key)
        self._copies.leave(key)
        self._under_way.keys[key] = None
        return begun

    def write(self, record: TrialRecord) -> None:
        """Write one record here, and then there. Raises `OutputsError`, whereupon it is kept here."""
        super().write(record)
        with self._explaining():
            self._copies.send(record.key)
        self._under_way.keys.pop(record.key, None)

    def fetch(self, keys: Collection[str], *, archives: bool = False, workspaces: bool = False) -> None:
        """See `Store`."""
        _for_each(partial(self._copies.fetch, archives=archives, workspaces=workspaces), keys)

    def publish(self, sweep: Path) -> None:
        """See `Store`."""
        with self._explaining():
            self._check_lease()
            self._published = sweep
            self._sweeps.send(sweep)

    def _take_new(self) -> int:
        """Take what other drivers have sent. Return the number of records."""
        new = self._copies.look()
        _for_each(self._copies.take, new)
        self._sweeps.take()
        return len(new)

    def _send_live(self) -> None:
        if self._published:
            self._check_lease()
            self._sweeps.send_live(self._published)

    def _check_lease(self) -> None:
        if self._lease:
            self._lease.check()

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        """Add to every failure of the store what becomes of the results."""
        try:
            yield
        except StoreError as error:
            raise OutputsError(
                f"{error} Nothing is lost: {self.outputs} has what ran here, and the same command sends it and goes on."
            ) from error


def _for_each(work: Callable[[str], None], keys: Iterable[str]) -> None:
    """Do this for all keys, some at once. Raises what the first failure raised."""
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mirror") as pool:
        futures = [pool.submit(work, key) for key in keys]
        try:
            for future in futures:
                future.result()
        finally:  # after an error or Ctrl-C, the pool's exit would wait for all that is not cancelled
            pool.shutdown(cancel_futures=True)
