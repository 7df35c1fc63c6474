"""`job=watch`: show the progress of a sweep that runs in another process or on other machines. It changes no result."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from pydantic import Field

from runner.errors import ConfigError
from runner.mirror.opening import open_store
from runner.sweeps import live_file, sweep_file
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import console as terminal
from runner.terminal.escaping import printable, width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.records import LiveSweep
    from runner.report.watched_sweep import SweepNow, WatchedSweep
    from runner.sweeps.store import Store

STARTING_SECONDS = 10.0
"""Time in which a process that holds `outputs/`, and has not said what it does, may turn out to resume this sweep."""
STORE_SECONDS = 5.0
"""Time between two looks at an object store."""
ELSEWHERE = (
    "No sweep of {address} runs on this machine. What one does on another machine is read from the store, which is "
    "told every 15 seconds, and its records are taken into {outputs}."
)
PLAIN_SECONDS = 30.0
"""Longest time without a line where no terminal shows the view."""


class Watch(Job):
    """Shows a sweep from its plan, records and `live.json` until its process ends, or until Ctrl-C."""

    once: bool = False
    """True to show the state once and end."""
    seconds: float = Field(default=1.0, ge=0.2)
    """Time between two looks at the files."""

    def run(self, sweep: Sweep) -> int:
        """Show the sweep and return 0. Raises `ConfigError` if there is no such sweep, or if it was imported."""
        from runner.report.watched_sweep import WatchedSweep  # noqa: PLC0415 - not for help

        settings = sweep.settings
        folder = settings.folder if sweep.named else _latest(settings.folder)
        hearing = _Hearing(open_store(settings), folder)
        if settings.store.address and hearing.is_far:
            print(
                wrapped(ELSEWHERE.format(address=settings.store.address, outputs=settings.outputs), width())
            )
            hearing()  # brings the plan
        if sweep_file.read(folder).imported:
            raise ConfigError(
                f"{folder.name} is an imported sweep, which no process runs. job=report shows it."
            )
        watched = WatchedSweep(folder, hearing)
        if self.once:
            _show(watched.now())
            return 0
        try:
            last = self._follow_live(watched) if terminal().is_terminal else self._follow_plainly(watched)
        except KeyboardInterrupt:
            print("No longer watching. The sweep is not affected.")
            return 0
        _show(last)
        return 0

    def _follow_live(self, watched: WatchedSweep) -> SweepNow:
        """Draw the view again and again until the sweep's process has ended; return its last state."""
        from rich.console import Group  # noqa: PLC0415 - not for help
        from rich.live import Live  # noqa: PLC0415 - as above

        from runner.report.watch_view import view  # noqa: PLC0415 - as above

        console = terminal()
        with Live(console=console, auto_refresh=False, transient=True) as drawn:
            for now in self._states(watched):
                # The last line stays free, because a terminal scrolls when it is written to.
                drawn.update(Group(*view(now, console.width, console.height - 1)), refresh=True)
        return now

    def _follow_plainly(self, watched: WatchedSweep) -> SweepNow:
        """Print a line whenever trials have ended, and from time to time; return the last state."""
        from runner.report.watch_view import summary  # noqa: PLC0415 - not for help

        before, printed = -1, 0.0
        for now in self._states(watched):
            done, moment = len(now.ended), monotonic()
            if done != before or moment - printed >= PLAIN_SECONDS:
                print(printable(summary(now)), flush=True)
                before, printed = done, moment
        return now

    def _states(self, watched: WatchedSweep) -> Iterator[SweepNow]:
        """Yield the state from time to time, and last the one in which no process is at work on the sweep."""
        began = monotonic()
        while True:
            now = watched.now()
            yield now
            if now.is_over and not (now.others and monotonic() - began < STARTING_SECONDS):
                return
            sleep(self.seconds)


class _Hearing:
    """The last message of a process on another machine, asked of the store at times and remembered meanwhile."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._heard: LiveSweep | None = None
        self._asked = -STORE_SECONDS

    @property
    def is_far(self) -> bool:
        """Return whether no process of this machine holds the folder."""
        return self._store.holder() is None

    def __call__(self) -> LiveSweep | None:
        """Return the last message; None if there is none. Raises `OutputsError`."""
        if monotonic() - self._asked >= STORE_SECONDS:
            self._heard = self._store.hear(self._folder)
            self._asked = monotonic()
        return self._heard


def _latest(folder: Path) -> Path:
    """Return the folder of the sweep whose process has said something last; this one if none has."""
    if sweep_file.exists(folder):
        return folder
    files = [path for path in folder.parent.glob(f"*/{live_file.NAME}") if sweep_file.exists(path.parent)]
    return max(files, key=lambda path: path.stat().st_mtime).parent if files else folder


def _show(now: SweepNow) -> None:
    """Print the whole state."""
    from runner.report.watch_view import ending, view  # noqa: PLC0415 - not for help

    console, wide = terminal(highlight=False), width()
    for line in view(now, wide):
        console.print(line, soft_wrap=True)
    print(wrapped(ending(now), wide))
