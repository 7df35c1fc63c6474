"""Keep report and tracked runs of a running sweep up to date, in a process of their own and at a bounded cost.

Drawing and computing in the process of the sweep would hold up the gateway, and so the agents. The process has the
lowest priority, takes at most a twentieth of the time that it leaves free, and ends when its sweep's process does. It
writes nothing that the sweep's end does not write anew.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from metrics.errors import TableError
from runner.errors import AssayError
from runner.protocols import RefreshedTracker
from runner.terminal.escaping import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from runner.protocols import Tracker
    from runner.records import TrialRecord
    from runner.sweeps.cells import Settings
    from runner.terminal.escaping import Say

SHARE = 20.0
"""Least time until the next refresh, in durations of the last one."""
LONGEST_SECONDS = 1800.0
"""Time after which a refresh is given up."""
STOP_SECONDS = 5.0
"""Time that a refresh has to end when the sweep ends."""
LOOK_SECONDS = 0.1
_CHILD = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from runner.jobs.refreshing import main
main()
"""


class Refreshing:
    """A context in which report and runs are refreshed from time to time, if trials have ended meanwhile."""

    def __init__(self, seconds: float | None, once: Callable[[Event], str], note: Say) -> None:
        """`once` refreshes, unless its event is set meanwhile, and returns why it failed, or nothing.

        At least `seconds` pass before each refresh; None refreshes never. `note` is told of failures.
        """
        self._seconds, self._once, self._note = seconds, once, note
        self._has_news, self._over = Event(), Event()
        self._thread = Thread(target=self._refresh_regularly, name="refreshing", daemon=True)

    def __enter__(self) -> Self:
        if self._seconds is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._seconds is not None:
            self._thread.join()

    def hearing(self, records: Iterable[TrialRecord]) -> Iterator[TrialRecord]:
        """Yield the records, and note that each is news."""
        for record in records:
            self._has_news.set()
            yield record

    def _refresh_regularly(self) -> None:
        rest, known = self._seconds or 0.0, ""
        while not self._over.wait(rest):
            rest = LOOK_SECONDS
            if not self._has_news.is_set():
                continue
            self._has_news.clear()
            began = time.monotonic()
            complaint = self._once(self._over)
            rest = max(self._seconds or 0.0, SHARE * (time.monotonic() - began))
            if complaint and complaint != known and not self._over.is_set():
                self._note(
                    f"Report and tracked runs could not be refreshed: {one_line(complaint)[:500]} "
                    "The sweep goes on, and writes them when it ends."
                )
            known = complaint


class RefreshProcess:
    """Refreshes a sweep in a process of its own. To be called by a `Refreshing`."""

    def __init__(self, settings: Settings, stamp: Path) -> None:
        """`stamp` is the file that says that the projections are complete. It is removed, since they are not."""
        self._stamp, self._folder = stamp, settings.folder
        self._work = (settings.folder, settings.outputs, settings.tracker)

    def __call__(self, over: Event) -> str:
        """Run the process to its end, or until the sweep is over. Return its complaint."""
        self._stamp.unlink(missing_ok=True)
        with tempfile.TemporaryFile() as said:
            try:
                packed = pickle.dumps(sys.path) + pickle.dumps(self._work)
                child = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CHILD],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,  # Ctrl-C is the sweep's
                )
            except (OSError, pickle.PicklingError, TypeError, AttributeError) as error:
                return f"{type(error).__name__}: {error}."
            with child:
                _supervise(child, packed, over)
            self._sweep_up(child.pid)
            if not child.returncode:
                return ""
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else f"Its process ended with {child.returncode}."

    def _sweep_up(self, pid: int) -> None:
        """Remove the unfinished files of a process that was ended."""
        for left in (*self._folder.glob(f".*.{pid}"), *self._folder.glob(f"report/**/.*.{pid}")):
            left.unlink(missing_ok=True)


def _supervise(child: subprocess.Popen[bytes], packed: bytes, over: Event) -> None:
    """Tell a process its work, and wait until it ends or is to end. It ends when its standard input does."""
    assert child.stdin  # noqa: S101 - for the type checker
    until = time.monotonic() + LONGEST_SECONDS
    with suppress(OSError):  # it has ended
        child.stdin.write(packed)
        child.stdin.flush()
    while child.poll() is None and time.monotonic() < until and not over.wait(LOOK_SECONDS):
        pass
    with suppress(OSError):
        child.stdin.close()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


def main() -> None:
    """Do the work of one refresh, told on standard input. Prints a line to standard error if it fails."""
    os.nice(19)
    sweep, outputs, tracker = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the process that started this one
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    Thread(target=_end_with_the_sweep, daemon=True).start()
    try:
        refresh(sweep, outputs, tracker)
    except (AssayError, TableError) as error:
        sys.exit(" ".join(f"{type(error).__name__}: {error}".split()))


def refresh(sweep: Path, outputs: Path, tracker: Tracker) -> None:
    """Write tables and report of a sweep from the records that there are, and let the tracker show them."""
    from runner.report.projections import write_projections  # noqa: PLC0415 - brings pandas and matplotlib

    write_projections(sweep, outputs)
    if isinstance(tracker, RefreshedTracker):
        tracker.refresh(sweep)


def _end_with_the_sweep() -> None:
    """End this process when nobody holds the other end of its standard input."""
    os.read(sys.stdin.fileno(), 1)  # unlike a buffered read, it holds no lock when the interpreter ends
    os.kill(os.getpid(), signal.SIGTERM)
