"""Stop a sweep on Ctrl-C or SIGTERM: gently at the first signal, at once at the second.

The first signal cancels the rollouts and lets running tests end, for `GRACE_SECONDS` at most. After that, or at a
second signal, the process removes its sandboxes and ends with all its threads. It holds the lock on `outputs/` until
then, so that it cannot write once another runner has begun. A trial that was cut off has no record, as if its runner
had been killed, and the same command runs it again.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from threading import Event, Thread
from types import FrameType
from typing import Protocol, Self

GRACE_SECONDS = 20.0
"""Longest wait for running tests after the first signal; schedulers give a process half a minute."""
START_SECONDS = 5.0
"""Longest wait, in seconds, if all trials are still being started, since nothing has been paid for them."""
TWICE_SECONDS = 0.3
"""Seconds within which two signals count as one; `timeout`, for example, sends its signal twice."""
RELEASE_SECONDS = 10.0
"""Longest time for removing sandboxes at the second signal; the next runner removes what is left."""
EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESUMES = "stopped; the same command resumes"
STARTING, TESTS = ("building", "starting"), "tests"
"""Names of phases of trials, as used by displays."""
_LOOK_SECONDS = 0.1


class Display(Protocol):
    """Display that the user looks at while trials run."""

    @property
    def phases(self) -> Mapping[str, int]:
        """Phase -> number of trials in it."""

    def note(self, text: str) -> None:
        """Show a line that stays on the screen."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class StandardError:
    """Display that prints to standard error, for when none is drawn."""

    @property
    def phases(self) -> Mapping[str, int]:
        """Return no phases, because none are known here."""
        return {}

    def note(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing: the terminal was never changed."""


class Stopping:
    """Context of the main thread in which signals stop a sweep.

    The first signal sets `cancel` and raises `KeyboardInterrupt` in the main thread. A second thread receives the
    signals as well and does the rest, so that no lock or library that the main thread is in can hold it up.
    """

    def __init__(self, close_store: Callable[[], None], release: Callable[[], None]) -> None:
        """`close_store` makes later writes fail; `release` removes the sandboxes of this process."""
        self.cancel = Event()
        self.display: Display = StandardError()
        self._close_store, self._release = close_store, release
        self._interrupted = self._is_ending = False
        self._read, self._write = -1, -1
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        self._thread = Thread(target=self._listen, name="stopping", daemon=True)

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # SIG_IGN: a background job of a shell
                self._before[number] = signal.signal(number, self._interrupt)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_ending:
            self._thread.join()  # which does not return
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, _end if self._interrupted else handler)
        os.close(self._write)
        self._thread.join()
        os.close(self._read)
        if self._interrupted:  # no thread may keep the process alive for long
            Thread(target=_end_late, daemon=True).start()

    def _interrupt(self, *_: object) -> None:
        """Interrupt the main thread, once."""
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt

    def _listen(self) -> None:
        """Wait for the first signal, and then for the end of the context."""
        while received := os.read(self._read, 1):
            if received[0] in SIGNALS:
                self.cancel.set()
                break
        else:
            return
        # In another thread, because a terminal that takes no text (Ctrl-S) must not block this one.
        Thread(target=self._answer, daemon=True).start()
        began = time.monotonic()
        while True:
            waited = time.monotonic() - began
            if select.select([self._read], [], [], _LOOK_SECONDS)[0]:
                if not (received := os.read(self._read, 1)):
                    return
                if received[0] in SIGNALS and waited > TWICE_SECONDS:
                    break
            elif waited > patience(self.display.phases):
                break
        self._end_at_once()

    def _answer(self) -> None:
        self.display.note(farewell(self.display.phases))

    def _end_at_once(self) -> None:
        """Remove the sandboxes and end the process within `RELEASE_SECONDS`, or at the next signal."""
        self._is_ending = True
        worker = Thread(target=self._leave, daemon=True)
        worker.start()
        until = time.monotonic() + RELEASE_SECONDS
        while worker.is_alive() and time.monotonic() < until:
            if select.select([self._read], [], [], _LOOK_SECONDS)[0]:
                received = os.read(self._read, 1)
                if received and received[0] in SIGNALS:
                    break
        os._exit(EXIT_CODE)

    def _leave(self) -> None:
        # The store is closed first, or a judge whose sandbox vanishes would record a failed trial.
        self._close_store()
        self.display.note("Stopping at once.")
        self._release()
        self.display.close()
        StandardError().note(RESUMES)
        sys.stdout.flush()


def farewell(phases: Mapping[str, int]) -> str:
    """Return the message that answers the first signal."""
    tests, starting = phases.get(TESTS, 0), sum(phases.get(phase, 0) for phase in STARTING)
    at_work = sum(phases.values()) - tests - starting
    waits = [
        f"{_trials(tests)} in tests, given {GRACE_SECONDS:g} s to end" if tests else "",
        f"{_trials(at_work)} being stopped" if at_work else "",
        f"{_trials(starting)} being started" if starting else "",
    ]
    under_way = "; ".join(filter(None, waits))
    return f"Stopping{': ' if under_way else ''}{under_way}. Press Ctrl-C again to stop at once."


def patience(phases: Mapping[str, int]) -> float:
    """Return the seconds that trials in these phases have to end after the first signal."""
    return START_SECONDS if phases and phases.keys() <= set(STARTING) else GRACE_SECONDS


def _trials(number: int) -> str:
    return f"{number} {'trial is' if number == 1 else 'trials are'}"


def _end(*_: object) -> None:
    """End a process that was stopped already."""
    os._exit(EXIT_CODE)


def _end_late() -> None:
    """End the process after a while, unless it has ended."""
    time.sleep(START_SECONDS)
    _end()
