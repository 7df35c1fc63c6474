"""Ctrl-C and SIGTERM during a sweep: the first stops it gently, the second at once.

The first cancels the rollouts and lets tests that are under way end, for `GRACE_SECONDS` at most. After that, or at a
second signal, the process removes its sandboxes and ends with all its threads, and it holds the lock on `outputs/`
until then: nothing of it can write once another runner has begun. A trial that was cut so has no record, like one whose
runner was killed, and the same command runs it again.
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
"""Longest wait for tests under way after the first signal; less than the half minute that schedulers give a process."""
START_SECONDS = 5.0
"""Longest wait when all that is under way is the start of trials, which nobody has paid for."""
TWICE_SECONDS = 0.3
"""Signals closer together count as one: `timeout`, for one, sends its signal twice."""
RELEASE_SECONDS = 10.0
"""Longest removal of sandboxes at the second signal; the next runner removes what is left."""
EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)
RESUMES = "stopped; the same command resumes"
STARTING, TESTS = ("building", "starting"), "tests"
"""Phases of trials, as a display names them."""
_LOOK_SECONDS = 0.1


class Display(Protocol):
    """Where the user looks."""

    @property
    def phases(self) -> Mapping[str, int]:
        """Phase -> number of trials that are in it."""

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class StandardError:
    """The display while none is drawn."""

    @property
    def phases(self) -> Mapping[str, int]:
        """None is known."""
        return {}

    def note(self, text: str) -> None:
        """Print a line."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing was changed."""


class Stopping:
    """A context in which signals stop a sweep; for the main thread.

    The first signal sets `cancel` and raises `KeyboardInterrupt` in the main thread. A thread of its own hears the
    signals as well and does all the rest, so that neither a lock nor a library that the main thread is in can hold it
    up.
    """

    def __init__(self, close_store: Callable[[], None], release: Callable[[], None]) -> None:
        """`close_store` makes writes fail from then on; `release` removes the sandboxes of this process."""
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
            if signal.getsignal(number) is not signal.SIG_IGN:  # as of a job in a shell's background
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
        if (
            self._interrupted
        ):  # and no thread of the process may keep it for longer than what it has left to say
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
        # In a thread of its own: a terminal that takes no text (Ctrl-S) must not keep this one from hearing more.
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
        """End the process, and everything of it that lasts, within `RELEASE_SECONDS`; a signal more ends it now."""
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
        # First of all: a judge whose sandbox goes from under it would find its trial failed.
        self._close_store()
        self.display.note("Stopping at once.")
        self._release()
        self.display.close()
        StandardError().note(RESUMES)
        sys.stdout.flush()


def farewell(phases: Mapping[str, int]) -> str:
    """What the first signal is answered with."""
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
    """Seconds that trials in these phases get to end after the first signal."""
    return START_SECONDS if phases and phases.keys() <= set(STARTING) else GRACE_SECONDS


def _trials(number: int) -> str:
    return f"{number} {'trial is' if number == 1 else 'trials are'}"


def _end(*_: object) -> None:
    """End a process that has been stopped already and is on its way out."""
    os._exit(EXIT_CODE)


def _end_late() -> None:
    """End the process after a while, unless it has ended."""
    time.sleep(START_SECONDS)
    _end()
