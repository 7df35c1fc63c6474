"""The progress of a sweep: a live line in a terminal, a line from time to time anywhere else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, RLock, Thread
from time import monotonic
from typing import NamedTuple, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from runner.records import Activity, LiveTrial, SpendLimits, TrialRecord
from runner.report.time_left import spelled, time_left
from runner.terminal.escaping import console as terminal
from runner.terminal.escaping import one_line, printable, step

STEP = 0.1
"""Share of the trials after which a quiet display prints a line."""
SILENCE_SECONDS = 30.0
"""Longest time without a line, so that nobody takes the job for dead."""
WIDE = 100
"""Least width of a terminal with a bar, in columns."""
BAR, CLOCK = 20, 8
"""Columns of the bar, and of the elapsed time with the space behind it."""
SHORTEST_NAME = 8
"""Fewest characters of a name that are worth showing."""
REFRESHES = 4
"""Refreshes per second in a terminal."""
PHASES = {
    "environment": "starting",
    "agent": "agent",
    "collect": "collecting",
    "verify": "tests",
}
"""Phase of a trial -> its word for people."""


class _Running(NamedTuple):
    """A trial that runs."""

    name: str
    since: float
    phase: str
    began: datetime
    phase_since: datetime
    activity_since: datetime
    activity: Activity = Activity()
    image: str = ""
    """Image that is being made for it; empty if none is."""


class Progress:
    """Counts trials as they start and end; safe to call from many threads. Shows nothing outside its context."""

    def __init__(
        self, total: int, console: Console | None = None, waiting: Callable[[], int] = lambda: 0
    ) -> None:
        """`waiting` returns how many trials wait for the limits on model calls."""
        self.total = total
        self._waiting = waiting
        self.console = console or terminal()
        self.quiet = not self.console.is_terminal or os.environ.get("CI", "").lower() in ("1", "true")
        # Guards changes. Drawing reads without it, because rich draws while it holds a lock of its own.
        self._lock = RLock()
        self._running: dict[str, _Running] = {}
        self._at_once = 0
        self._seconds: list[float] = []
        self._ended: Counter[str] = Counter()
        self._usd, self._unpriced = 0.0, 0
        self._reported = 0
        self._doing: tuple[str, ...] = ()
        self._over = Event()
        self._beat = Thread(target=self._report_regularly, name="progress", daemon=True)
        columns: list[ProgressColumn] = [TimeElapsedColumn(), _Line(self._fitting)]
        if self.console.width >= WIDE:
            columns.insert(0, BarColumn(BAR))
        self._bar = Bar(*columns, console=self.console, disable=self.quiet, refresh_per_second=REFRESHES)
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

    def close(self) -> None:
        """End the display and leave the terminal as it was."""
        self._bar.stop()

    def expect(self, total: int) -> None:
        """Change the number of trials, because some turned out to be refused."""
        with self._lock:
            self.total = total
            self._bar.update(self._line, total=total)

    def started(self, key: str, name: str) -> None:
        """Count a trial that starts; `name` is for people."""
        with self._lock:
            now = datetime.now(UTC)
            self._running[key] = _Running(name, monotonic(), PHASES["environment"], now, now, now)
            self._at_once = max(self._at_once, len(self._running))

    def entered(self, key: str, phase: str) -> None:
        """Move a running trial to a phase of its record."""
        self._mark(key, PHASES.get(phase, phase))

    def acting(self, key: str, activity: Activity) -> None:
        """Note what the agent of a running trial does."""
        with self._lock:
            if trial := self._running.get(key):
                self._running[key] = trial._replace(activity=activity, activity_since=datetime.now(UTC))

    def left(self, key: str) -> None:
        """Count a trial that no longer runs, with or without a record."""
        with self._lock:
            if running := self._running.pop(key, None):
                self._seconds.append(monotonic() - running.since)

    def ended(self, record: TrialRecord) -> None:
        """Count the record of a trial."""
        with self._lock:
            self.left(record.key)
            self._ended[_kind(record)] += 1
            self._usd += record.cost_usd or 0.0
            self._unpriced += record.cost_usd is None
            done = self._ended.total()
            self._bar.update(self._line, completed=done)
            if self.quiet and (done == self.total or done - self._reported >= STEP * self.total):
                self._report()

    @contextmanager
    def making(self, key: str, how: str, image: str) -> Iterator[None]:
        """Show that the image of a running trial is being made, and note its end. See `protocols.ImageProgress`."""
        self._mark(key, how, image)
        try:
            with step(self.note, how, image, announce=self.quiet):
                yield
        finally:
            self._mark(key, PHASES["environment"])

    def doing(self, text: str) -> None:
        """Show a step that precedes the trials; an empty text ends the display of it."""
        self._doing = (text,) if text else ()
        if self.quiet and text:
            self.note(f"{text[:1].upper()}{text[1:]}")

    def note(self, text: str) -> None:
        """Print a line that stays on the screen."""
        self.console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    @property
    def phases(self) -> Mapping[str, int]:
        """Word for a phase -> number of trials in it."""
        return Counter(trial.phase for trial in self._trials())

    @property
    def doing_now(self) -> str:
        """Step that precedes the trials, such as an installation; empty if there is none at present."""
        return "".join(self._doing)

    @property
    def done(self) -> int:
        """Number of trials that have ended."""
        return self._ended.total()

    @property
    def remaining(self) -> str:
        """The estimated time left in words; empty if there is none."""
        now = monotonic()
        running = [now - trial.since for trial in self._trials()]
        unbegun = max(0, self.total - self.done - len(running))
        return spelled(time_left(tuple(self._seconds), running, unbegun, self._at_once))

    @property
    def waiting(self) -> int:
        """Number of trials that wait for the limits on model calls."""
        return self._waiting()

    def running(self, limits: Mapping[str, SpendLimits]) -> tuple[LiveTrial, ...]:
        """Return the trials that run, in the order in which they began; `limits` has those of each by its key."""
        return tuple(
            LiveTrial(
                key=key,
                phase=trial.phase,
                image=trial.image,
                started_at=trial.began,
                phase_since=trial.phase_since,
                activity=trial.activity,
                activity_since=trial.activity_since,
                limits=limits.get(key, SpendLimits()),
            )
            for key, trial in tuple(self._running.items())
        )

    def summary(self) -> str:
        """Return all figures in one line, the most important first."""
        return ", ".join((*self._figures(), *self._details()))

    def _trials(self) -> tuple[_Running, ...]:
        return tuple(self._running.values())

    def _figures(self) -> tuple[str, ...]:
        """Return the figures that are always shown: finished trials, USD and the time left."""
        usd = f"{'>=' if self._unpriced else ''}{self._usd:.2f} USD"
        return tuple(filter(None, (f"{self.done}/{self.total} done", usd, self.remaining)))

    def _details(self) -> tuple[str, ...]:
        """Return the other figures; the last are left out first where there is no room."""
        phases = self.phases
        running = f"{sum(phases.values())} running"
        if phases:
            running += f" ({', '.join(f'{number} {phase}' for phase, number in sorted(phases.items()))})"
        kinds = [
            f"{self._ended[kind]} {kind}" for kind in ("invalid", "passed", "failed") if self._ended[kind]
        ]
        waiting = self.waiting
        limits = (f"{waiting} waiting for the limits on calls",) if waiting else ()
        return (*(() if phases else self._doing), running, *kinds, *limits)

    def _fitting(self) -> str:
        """Return the line for this terminal, with the image that is being made or the trial that began last."""
        width = self.console.width
        used = CLOCK + (BAR + 1 if width >= WIDE else 0)
        trials = sorted(self._trials(), key=lambda trial: bool(trial.image))
        latest = [f"{trial.phase} {trial.image}" if trial.image else trial.name for trial in trials[-1:]]
        return fitted(self._figures(), self._details(), one_line("".join(latest)), width - used)

    def _mark(self, key: str, phase: str, image: str = "") -> None:
        with self._lock:
            if trial := self._running.get(key):
                now, spent = datetime.now(UTC), trial.activity.model_copy(update={"doing": "", "text": ""})
                self._running[key] = trial._replace(
                    phase=phase, phase_since=now, image=image, activity=spent, activity_since=now
                )

    def _report(self) -> None:
        self._reported = self._ended.total()
        self.note(self.summary())

    def _report_regularly(self) -> None:
        while not self._over.wait(SILENCE_SECONDS):
            with self._lock:
                self._report()


class _Line(ProgressColumn):
    """The text of the live line, made anew for each drawing, since time passes between events."""

    max_refresh = 1 / REFRESHES

    def __init__(self, text: Callable[[], str]) -> None:
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:  # noqa: ARG002 - rich's
        """See `ProgressColumn`."""
        return Text(self._text(), no_wrap=True, overflow="crop")


def fitted(figures: tuple[str, ...], details: tuple[str, ...], name: str, width: int) -> str:
    """Join the figures, as many details as fit, and as much of the name as fits.

    Parentheses of details are added only where all details fit.
    """
    parts = list(figures)
    whole = {}
    for detail in details:
        brief = detail.partition(" (")[0]
        if len(", ".join((*parts, brief))) <= width:
            whole[len(parts)] = detail
            parts.append(brief)
    for place, detail in whole.items():
        if len(", ".join((*parts[:place], detail, *parts[place + 1 :]))) <= width:
            parts[place] = detail
    line = ", ".join(parts)
    room = width - len(line) - 2
    if not name or room < SHORTEST_NAME:
        return line
    return f"{line}  {name if len(name) <= room else name[: room - 1] + '…'}"


def _kind(record: TrialRecord) -> str:
    if not record.judged:
        return "invalid"
    return "passed" if record.passed else "failed"
