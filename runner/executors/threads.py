"""Run trials in threads of this process; they wait for Docker and for models, so threads are enough."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING

from runner.executors.crew import Crew, CrewLost, CrewRefused, CrewSettings, install, reap, run_trials
from runner.records import TrialRecord
from runner.sweeps.answers_in_reach import Reach
from runner.trials.context import TrialContext

if TYPE_CHECKING:
    from runner.errors import EngineError
    from runner.executors.desk import Desk
    from runner.sweeps.plan import PlannedTrial


class ThreadExecutor(CrewSettings):
    """Runs at most `workers` trials, and so sandboxes, at once: one crew, beside its desk."""

    def run(self, desk: Desk, cancel: Event) -> Generator[TrialRecord]:
        """See `protocols.Executor`."""
        from runner.trials.run import run_to_the_end  # noqa: PLC0415 - a finished sweep does not load what runs trials

        settings, show = desk.settings, desk.display
        desk.ask_models()
        reap(settings, show.doing, show.note)
        bundles = install(settings, desk.plan.todo, show.note)
        Reach(desk.store.cache).search(desk.plan.todo, settings.sandbox, bundles, show.note)
        desk.searched()
        context = TrialContext(settings.sandbox, desk.gateway, desk.store, settings.name, bundles, show)

        def work(trial: PlannedTrial) -> TrialRecord:
            return run_to_the_end(trial, context, self.retries, cancel.is_set, desk.may_start)

        with ThreadPoolExecutor(self.at_once, thread_name_prefix="trial") as pool:  # its exit waits for all
            crew = ThreadCrew(pool, self.at_once, work)
            yield from run_trials(desk, OneCrew(crew), cancel)


class ThreadCrew:
    """A crew of threads. See `crew.Crew`."""

    def __init__(
        self, pool: ThreadPoolExecutor, width: int, work: Callable[[PlannedTrial], TrialRecord]
    ) -> None:
        self.width, self._pool, self._work = width, pool, work

    def start(self, trial: PlannedTrial) -> Future[TrialRecord]:
        """See `crew.Crew`."""
        return self._pool.submit(self._work, trial)


class OneCrew:
    """A team of one crew, which lasts as long as the sweep. See `crew.Team`."""

    look_seconds = None

    def __init__(self, crew: Crew) -> None:
        self._crews = (crew,)

    def crews(self) -> Sequence[Crew]:
        """See `crew.Team`."""
        return self._crews

    def dismiss(self, crew: Crew, why: EngineError | CrewRefused | CrewLost) -> None:  # noqa: ARG002 - the protocol's
        """Raise `why`: there is no other crew."""
        raise why
