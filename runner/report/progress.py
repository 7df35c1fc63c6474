"""How far a sweep is: a live line in a terminal, a line now and then anywhere else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from threading import Event, Lock, Thread
from time import monotonic
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Column

from runner.printing import console as terminal
from runner.printing import one_line, printable
from runner.records import TrialRecord

STEP = 0.1
"""Share of the trials after which a quiet display says something."""
SILENCE_SECONDS = 30.0
"""It says something after so long in any case, so that nobody takes the job for dead."""


class Progress:
    """Counts trials as they start and end; safe to call from many threads. Shows nothing outside its context."""

    def __init__(
        self, total: int, console: Console | None = None, waiting: Callable[[], int] = lambda: 0
    ) -> None:
        """`waiting` tells how many trials wait for the limits on model calls just now."""
        self.total = total
        self._waiting = waiting
        self.console = console or terminal()
        self.quiet = not self.console.is_terminal or os.environ.get("CI", "").lower() in ("1", "true")
        self._lock = Lock()
        self._started_at = monotonic()
        self._started = 0
        self._ended: Counter[str] = Counter()
        self._usd, self._unpriced = 0.0, 0
        self._said = 0
        self._over = Event()
        self._beat = Thread(target=self._say_now_and_then, name="progress", daemon=True)
        one = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        columns = (
            BarColumn(20),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False, table_column=one),
        )
        self._bar = Bar(*columns, console=self.console, disable=self.quiet, expand=True)
        self._line = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        if self.quiet:
            self._beat.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self.quiet:
            self._beat.join()
        self._bar.stop()

    def expect(self, total: int) -> None:
        """Change how many trials there are: some turned out to be refused."""
        with self._lock:
            self.total = total
            self._bar.update(self._line, total=total)

    def started(self, name: str) -> None:
        """A trial begins; `name` says which, to people."""
        with self._lock:
            self._started += 1
            self._show(name)

    def ended(self, record: TrialRecord) -> None:
        """A trial ended, however it did."""
        with self._lock:
            self._ended[_kind(record)] += 1
            self._usd += record.cost_usd or 0.0
            self._unpriced += record.cost_usd is None
            done = self._ended.total()
            self._show()
            if self.quiet and (done == self.total or done - self._said >= STEP * self.total):
                self._say()

    def note(self, text: str) -> None:
        """Say something that stays on the screen."""
        self.console.print(printable(text), markup=False, highlight=False)

    def summary(self) -> str:
        """One line: done of all, running, how they ended, USD, and the time left if the rest goes like this."""
        done = self._ended.total()
        counts = [f"{done}/{self.total} done", f"{self._started - done} running"]
        if waiting := self._waiting():
            counts.append(f"{waiting} waiting for the limits on calls")
        counts += [
            f"{self._ended[kind]} {kind}" for kind in ("passed", "failed", "invalid") if self._ended[kind]
        ]
        counts.append(f"{'>=' if self._unpriced else ''}{self._usd:.2f} USD")
        if 0 < done < self.total:
            left = (monotonic() - self._started_at) / done * (self.total - done)
            counts.append(f"{_clock(left)} left")
        return ", ".join(counts)

    def _show(self, name: str = "") -> None:
        description = self.summary() + (f"  {one_line(name)}" if name else "")
        self._bar.update(self._line, completed=self._ended.total(), description=description)

    def _say(self) -> None:
        self._said = self._ended.total()
        self.note(self.summary())

    def _say_now_and_then(self) -> None:
        while not self._over.wait(SILENCE_SECONDS):
            with self._lock:
                self._say()


def _kind(record: TrialRecord) -> str:
    if not record.judged:
        return "invalid"
    return "passed" if record.passed else "failed"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
