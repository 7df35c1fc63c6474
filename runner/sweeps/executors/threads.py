"""Run trials in threads of this process; they wait for Docker and for models, so threads are enough."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from threading import Event
from typing import TypeVar

from pydantic import Field

from runner.records import Record, TrialRecord

Job = TypeVar("Job")


class ThreadExecutor(Record):
    """Runs at most `workers` trials, and so sandboxes, at once."""

    workers: int | None = Field(default=None, ge=1)
    """Trials at a time; None for as many as there are cores."""
    retries: int = Field(default=2, ge=0)
    """Times that a trial is repeated after an infrastructure failure."""

    @property
    def at_once(self) -> int:
        """Trials at a time."""
        return self.workers or os.cpu_count() or 1

    def run(
        self, trials: Iterable[Job], work: Callable[[Job], TrialRecord], cancel: Event
    ) -> Generator[TrialRecord]:
        """Yield records as trials end. On Ctrl-C or an error of `work`: set `cancel`, wait for all workers, and raise.

        A trial is handed out only when a worker is free, so that a cancelled sweep starts nothing more.
        """
        workers = self.at_once
        waiting = iter(trials)
        running: set[Future[TrialRecord]] = set()
        with ThreadPoolExecutor(workers, thread_name_prefix="trial") as pool:
            try:
                while True:
                    while len(running) < workers and (trial := next(waiting, None)) is not None:
                        running.add(pool.submit(work, trial))
                    if not running:
                        return
                    ended, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in ended:
                        yield future.result()
            except BaseException:
                cancel.set()  # running trials see it and stop; the pool's exit waits for them
                raise
