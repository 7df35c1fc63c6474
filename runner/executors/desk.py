"""The desk of a sweep: it decides what runs next and what may still be spent, and alone writes `outputs/`.

There is one desk, in the process that holds the lock on `outputs/`. Crews (`executors.crew`) run the trials, in this
process or elsewhere, and do nothing that the desk has not allowed.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from runner.records import ErrorInfo
from runner.sweeps import preflight
from runner.sweeps.answers_in_reach import Reach
from runner.trials.breaker import Breaker
from runner.trials.context import Watcher
from runner.trials.state import TrialState, make_record

if TYPE_CHECKING:
    from runner.gateway import Gateway
    from runner.records import TrialRecord
    from runner.sweeps.cells import Sweep
    from runner.sweeps.plan import Plan, PlannedTrial
    from runner.sweeps.store import Store

NODE_LOST = "NodeLost"
"""Type of the error of a trial whose machines were lost once too often."""


class Display(Watcher, Protocol):
    """The display of a sweep for its user. Its methods are called from many threads."""

    def started(self, key: str, name: str) -> None:
        """Note that a trial starts; `name` is for people."""

    def left(self, key: str) -> None:
        """Note that a trial no longer runs, with or without a record."""

    def ended(self, record: TrialRecord) -> None:
        """Note the record of a trial."""

    def expect(self, total: int) -> None:
        """Change the number of trials."""

    def doing(self, text: str) -> None:
        """Show a step that precedes the trials; an empty text ends the display of it."""

    def note(self, text: str) -> None:
        """Print a line that stays on the screen."""


class Desk:
    """The plan under way. Only the thread that runs the sweep may use it; any thread may call `may_start`."""

    def __init__(
        self,
        sweep: Sweep,
        plan: Plan,
        store: Store,
        gateway: Gateway,
        display: Display,
        planned: Callable[[Plan], None] = lambda _: None,
    ) -> None:
        """`gateway` is the one of this process and keeps the account of the sweep, whichever crew runs the trials.

        `planned` is called with the plan when it has changed.
        """
        self.sweep, self.plan, self.store, self.gateway, self.display = sweep, plan, store, gateway, display
        self.settings, self.account = sweep.settings, gateway.account
        self.breaker = Breaker(plan.todo, self.settings.gateway.refusals)
        self.capped = ""
        """Budget that kept a trial from being started or repeated; empty if none did."""
        self.claims: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locks of the cache's files for crews on other nodes. One event loop alone may use them."""
        self._planned, self._waiting = planned, deque(plan.todo)
        self._limits = [(kind, limit) for kind, limit in self.settings.sweep_budget if limit is not None]
        self._began = time.monotonic()
        self._lost: Counter[str] = Counter()

    @property
    def is_over(self) -> bool:
        """Return whether no trial is waiting that may start."""
        return not self._waiting or bool(self.capped)

    @property
    def has_caps(self) -> bool:
        """Return whether the sweep has a budget, so that its spend must be checked just before each trial starts."""
        return bool(self._limits)

    def next(self) -> PlannedTrial | None:
        """Return the trial to start next; None if there is none, or a budget of the sweep is spent."""
        while self._waiting and self.may_start():
            trial = self._waiting.popleft()
            if not self.breaker.holds(trial):
                return trial
        return None

    def may_start(self) -> bool:
        """Tell whether the budget allows another trial, or another try at one."""
        if not self._limits:
            return True
        spent = {**self.account.spent, "wall_seconds": time.monotonic() - self._began}
        over = [kind for kind, limit in self._limits if spent.get(kind, 0.0) >= limit]
        for kind in over:
            self.capped = f"sweep_budget.{kind} is spent ({spent.get(kind, 0.0):.4g})"
        return not over

    def ask_models(self) -> None:
        """Ask each model once, unless that is switched off (`preflight`). This is the first call that costs something.

        Called once it is known that trials can run. Raises `ConfigError` if a model does not answer.
        """
        if self.settings.gateway.preflight:
            routes = preflight.routes(self.plan.todo)
            preflight.check(routes, self.gateway, self.settings.folder, self.display.note)

    def searched(self) -> None:
        """Refuse or flag trials whose answers lie in reach (`Reach`). Called before any trial is started."""
        known = {task.refused for task in self.plan.refused}
        self.plan = Reach(self.store.cache).apply(self.plan)
        for task in self.plan.refused:
            if task.refused not in known:
                self.display.note(f"refused: {task.dataset}/{task.name}: {task.refused}")
        self._planned(self.plan)
        self._waiting = deque(self.plan.todo)
        self.display.expect(len(self.plan.todo))

    def put_back(self, trial: PlannedTrial) -> None:
        """Put a trial that was not started in front of the others."""
        self._waiting.appendleft(trial)

    def lost(self, trial: PlannedTrial, why: str) -> TrialRecord | None:
        """Take back a trial whose machine was lost. Return its record if it was lost too often, else None."""
        self._lost[trial.key] += 1
        if self._lost[trial.key] <= self.settings.executor.retries:
            self.put_back(trial)
            return None
        folder, retries = self.store.begin(trial.key)
        error = ErrorInfo(
            type=NODE_LOST, message=f"Its machine was lost {self._lost[trial.key]} times: {why}"
        )
        record = make_record(trial, TrialState(folder, error=error), {}, retries, datetime.now(UTC))
        self.store.write(record)
        return record

    def not_started(self) -> Iterator[str]:
        """Yield a line for each reason why trials were not started."""
        if self.capped:
            yield f"{self.capped}: {len(self._waiting)} trials were not started; the same command goes on."
        if self.breaker.held:
            yield (
                f"{len(self.breaker.held)} trials were not started: their model's provider refuses. "
                "Once that is mended, the same command runs them."
            )
