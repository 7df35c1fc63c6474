"""`job=sweep`: plan, run what is not finished, project. The straight line from a command to its leaderboard."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections import deque
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from runner import __version__
from runner.cli.arguments import AXES
from runner.cli.config import to_yaml
from runner.errors import ConfigError, EngineError, TrackingError
from runner.records import Prices, SpendLimits, Status, TrialRecord
from runner.sweeps import preflight
from runner.sweeps.breaker import Breaker
from runner.sweeps.job import Job
from runner.sweeps.plan import PlannedTrial, identity, make_plan
from runner.sweeps.plan_text import plan_text
from runner.sweeps.reach import Reach
from runner.sweeps.refusals import check_trials
from runner.sweeps.stopping import Stopping
from runner.sweeps.store import Store, write_atomically
from runner.terminal.escaping import one_line, width, wrapped
from runner.trials.context import TrialContext
from runner.trials.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from runner.records import InstalledBundle
    from runner.report.progress import Progress
    from runner.sweeps.cells import Settings, Sweep
    from runner.sweeps.plan import Plan

ALL_JUDGED, SOME_INVALID, CAPPED = 0, 4, 5
"""Exit codes of a sweep that ran to its end."""
VERSIONS_OF = ("hydra-core", "litellm", "docker", "mlflow")
"""Packages whose version can change a result or what is shown of it."""
_AGAIN = "Once that is mended, the same command runs them."
ENGINE_FAILURES = 3
"""So many trials in a row that the Docker Engine spoiled end the sweep: it is gone."""


class SweepJob(Job):
    """Runs a sweep, or resumes it: trials that are finished are not run again."""

    needs_keys: ClassVar[bool] = True
    plans: ClassVar[bool] = True

    def run(self, sweep: Sweep) -> int:
        """Exit code 0: every planned trial is judged; 4: some are invalid or were refused; 5: the sweep's cap on USD
        kept some from starting; 130: stopped by Ctrl-C or SIGTERM (`runner.sweeps.stopping`).
        """
        settings = sweep.settings
        store = Store(settings.outputs)
        folder = settings.outputs / settings.name
        if settings.dry_run:
            plan = _plan(sweep, store)
            _say_replaced(folder, plan)
            _say_damaged(plan, store)
            ended = {trial.key for trial in plan.trials} - {trial.key for trial in plan.todo}
            print(plan_text(plan, settings, list(store.load(sorted(ended)).values()), width()))
            return ALL_JUDGED
        return self.carry_out(sweep, store)

    def carry_out(self, sweep: Sweep, store: Store, show: Callable[[str], None] = print) -> int:
        """Run what is not finished, and `show` its leaderboard. Exit code as of `run`."""
        settings, folder = sweep.settings, sweep.settings.outputs / sweep.settings.name
        with store.locked(), Stopping(store.close, settings.sandbox.release) as stopping:
            plan = _plan(sweep, store)
            _say_replaced(folder, plan)
            _write_sweep(sweep, plan, folder)
            _say_refused(plan)
            _say_damaged(plan, store)
            plan, capped = _run(sweep, plan, store, stopping) if plan.todo else (plan, False)
            records = store.load([trial.key for trial in plan.trials if not trial.task.refused])
            show(_project(sweep, folder, records))
            if settings.record:
                _write_cassette(settings.record, plan, store, records)
        judged = sum(record.judged for record in records.values())
        if judged == len(plan.trials):
            return ALL_JUDGED
        return CAPPED if capped else SOME_INVALID


def _plan(sweep: Sweep, store: Store) -> Plan:
    fresh = sweep.settings.fresh
    plan = make_plan(sweep.cells, sweep.settings.sandbox, (lambda _: ()) if fresh else store.finished)
    plan = Reach(store.cache).apply(plan)
    labels = sweep.settings.scoring.labels
    if labels and (unknown := {trial.task.name for trial in plan.trials} - labels.keys()):
        raise ConfigError(f"scoring.tiers: {', '.join(sorted(unknown))}: no tier in the tiers file.")
    _check_attempts(sweep)
    check_trials(plan.todo, sweep.settings.sandbox)
    return plan


def _check_attempts(sweep: Sweep) -> None:
    """Raises `ConfigError` for a choice among attempts that these cells cannot be scored by, before any is paid for."""
    rule = sweep.settings.scoring.attempts
    if rule.startswith("pass@"):
        from metrics.attempts import refusal  # noqa: PLC0415 - brings pandas

        for cell in sweep.cells:
            if why := refusal(rule, cell.attempts):
                raise ConfigError(f"scoring.attempts: {why}.")


def _say_refused(plan: Plan) -> None:
    for task in plan.refused:
        _say(f"refused: {one_line(f'{task.dataset}/{task.name}: {task.refused}')}")


def _say_damaged(plan: Plan, store: Store) -> None:
    for path in store.damaged(trial.key for trial in plan.todo):
        print(f"damaged: {path}")  # not broken: it is copied
        _say("  It is not a record any more: its trial is run again, and the file is put aside.")


def _say(text: str) -> None:
    print(wrapped(text, width()))


def _say_replaced(folder: Path, plan: Plan) -> None:
    """Cells that the sweep of this name had and that this command does not plan. Raises `ConfigError` for an import,
    whose plan is in no record.
    """
    try:
        before = json.loads((folder / "sweep.json").read_bytes())
        cells = {"·".join(row[part] for part in AXES) for row in before["planned"]}
    except (OSError, ValueError, KeyError, TypeError):
        return  # none, or none that could be shown
    if before.get("imported"):
        raise ConfigError(f"name: {folder.name} is an imported sweep; choose another name=.")
    if gone := cells - {trial.cell.name for trial in plan.trials}:
        _say(
            f"{folder.name} had other cells, which its tables no longer show: {', '.join(sorted(gone))}. Their records "
            "are kept: the command that planned them, with another name=, shows them again and runs nothing."
        )


def _run(sweep: Sweep, plan: Plan, store: Store, stopping: Stopping) -> tuple[Plan, bool]:
    """Run what is left to do.

    Returns the plan, less the trials that were found to have their answer in reach, and whether a budget of the sweep
    kept some from starting.
    """
    from runner.gateway import Gateway  # noqa: PLC0415 - a finished sweep resumes without loading what runs trials
    from runner.report import progress as display  # noqa: PLC0415
    from runner.trials.run import run_to_the_end  # noqa: PLC0415

    settings = sweep.settings
    cancel = stopping.cancel
    with (
        scratch_folder() as folder,
        Gateway(folder, settings.gateway) as gateway,
        display.Progress(len(plan.todo), waiting=lambda: gateway.waiting) as progress,
    ):
        stopping.display = progress
        _reap(settings, progress)
        if settings.gateway.preflight:
            routes = preflight.routes(plan.todo)
            preflight.check(routes, gateway, settings.outputs / settings.name, progress.note)
        bundles = _prepare(settings, plan, progress.note)
        plan = _without_answers(sweep, plan, store, bundles, progress.note)
        progress.expect(len(plan.todo))
        context = TrialContext(settings.sandbox, gateway, store, settings.name, bundles, progress)
        breaker = Breaker(plan.todo, settings.gateway.refusals)
        trials = _Affordable(plan.todo, settings.sweep_budget, lambda: gateway.spent, breaker)

        def work(trial: PlannedTrial) -> TrialRecord:
            progress.started(trial.key, trial.name)
            try:
                return run_to_the_end(
                    trial, context, settings.executor.retries, cancel.is_set, trials.may_start
                )
            finally:
                progress.left(trial.key)

        # closing: if Ctrl-C strikes in this loop, the workers still end before the gateway does.
        with closing(settings.executor.run(trials, work, cancel)) as records:
            _watch(breaker.watching(records, progress.note), progress)
        if trials.capped:
            left = f"{len(trials.left)} trials were not started; the same command goes on."
            progress.note(f"{trials.capped}: {left}")
        if breaker.held:
            _write_sweep(sweep, plan, settings.outputs / settings.name, breaker.held)
            progress.note(
                f"{len(breaker.held)} trials were not started: their model's provider refuses. {_AGAIN}"
            )
        return plan, bool(trials.capped)


def _reap(settings: Settings, progress: Progress) -> None:
    """Remove the containers that dead runners left."""
    reaped = settings.sandbox.reap(progress.doing)
    progress.doing("")
    if reaped.removed:
        progress.note(f"Removed {reaped.removed} containers that an earlier runner left.")
    if reaped.complaint:
        progress.note(reaped.complaint)


def _prepare(settings: Settings, plan: Plan, note: Callable[[str], None]) -> dict[str, InstalledBundle]:
    """Install the agents of the trials left to do and fetch what their datasets need; return the bundles by name."""
    recipes = {t.cell.agent.bundle.name: t.cell.agent.bundle for t in plan.todo if t.cell.agent.bundle}
    bundles = settings.sandbox.prepare(list(recipes.values()), note)
    for dataset in {str(t.cell.dataset.model_dump()): t.cell.dataset for t in plan.todo}.values():
        dataset.prepare(note)
    return bundles


def _without_answers(
    sweep: Sweep,
    plan: Plan,
    store: Store,
    bundles: Mapping[str, InstalledBundle],
    note: Callable[[str], None],
) -> Plan:
    """Refuse or flag trials whose answer lies in reach of their agent, now that everything is there to be searched."""
    reach = Reach(store.cache)
    reach.search(plan.todo, sweep.settings.sandbox, bundles, note)
    known = {task.refused for task in plan.refused}
    plan = reach.apply(plan)
    for task in plan.refused:
        if task.refused not in known:
            note(f"refused: {task.dataset}/{task.name}: {task.refused}")
    _write_sweep(sweep, plan, sweep.settings.outputs / sweep.settings.name)
    return plan


class _Affordable:
    """Trials left to do, the next one whenever a worker is free, until a budget of the sweep is spent."""

    def __init__(
        self,
        todo: Iterable[PlannedTrial],
        cap: SpendLimits,
        spent: Callable[[], Mapping[str, float]],
        breaker: Breaker,
    ) -> None:
        self.left, self._breaker = deque(todo), breaker
        self.capped = ""
        """The budget that has kept a trial from starting, or from being repeated."""
        self._cap, self._spent, self._began = cap, spent, time.monotonic()

    def __iter__(self) -> Iterator[PlannedTrial]:
        while self.left and self.may_start():
            trial = self.left.popleft()
            if not self._breaker.holds(trial):
                yield trial

    def may_start(self) -> bool:
        """Whether the cap allows another trial, or another try at one."""
        spent = {**self._spent(), "wall_seconds": time.monotonic() - self._began}
        over = [kind for kind, limit in self._cap if limit is not None and spent.get(kind, 0.0) >= limit]
        for kind in over:
            self.capped = f"sweep_budget.{kind} is spent ({spent.get(kind, 0.0):.4g})"
        return not over


def _watch(records: Iterable[TrialRecord], progress: Progress) -> None:
    """Show trials as they end. Raises `EngineError` when the Docker Engine spoils one after the other.

    All of one task are not enough: then it may be the task, and others go on.
    """
    failed_tasks: list[tuple[str, str]] = []
    for record in records:
        progress.ended(record)
        if record.error and record.error.traceback:
            where = f"its traceback is in trials/{record.key[:2]}/{record.key}/record.json"
            progress.note(
                f"{record.task}: unexpected {record.error.type}: {record.error.message[:200]} ({where})"
            )
        failed = record.status is Status.INFRA_INVALID and record.error
        if not failed or failed.type != EngineError.__name__:
            failed_tasks.clear()
            continue
        failed_tasks.append((record.dataset, record.task))
        if len(failed_tasks) >= ENGINE_FAILURES and len(set(failed_tasks)) > 1:
            message = f"{len(failed_tasks)} trials in a row failed at the Docker Engine: {failed.message}"
            raise EngineError(f"{message} Mend it ('make docker'); the same command resumes.")


def _write_sweep(
    sweep: Sweep, plan: Plan, folder: Path, not_started: Mapping[str, str] = MappingProxyType({})
) -> None:
    """`sweep.json`: the denominator, the scoring and what runs; `config.yaml`: every composed cell."""
    lock = {
        "schema_version": 1,
        "name": sweep.settings.name,
        "created": datetime.now(UTC).isoformat(),
        "planned": [trial.row().model_dump() for trial in plan.trials],
        "scoring": sweep.settings.scoring.model_dump(),
        "prices": {
            cell.model.name: cell.model.prices.model_dump()
            for cell in sweep.cells
            if cell.model.prices != Prices()
        },
        "not_started": dict(not_started),
        "versions": {"assay": __version__, "python": platform.python_version()}
        | {name: version(name) for name in VERSIONS_OF},
    }
    write_atomically(folder / "sweep.json", json.dumps(lock, indent=1).encode())
    write_atomically(folder / "config.yaml", to_yaml(sweep.composed).encode())


def _write_cassette(into: Path, plan: Plan, store: Store, records: dict[str, TrialRecord]) -> None:
    """A projection of the ledgers, so of trials that an earlier run finished too."""
    from runner.gateway.cassette import record, tape  # noqa: PLC0415 - the gateway's libraries, for who records

    finished = [t for t in plan.trials if t.key in records and records[t.key].status.finished]
    for trial in finished:
        record(store.folder(trial.key), tape(into, trial.cell.name, trial.task.name, trial.attempt))
    print(f"Recorded in {into}; replay with model=cassette model.path={into}")


def _project(sweep: Sweep, folder: Path, records: dict[str, TrialRecord]) -> str:
    """Tables and tracked runs from the records; what was projected already is only shown again."""
    stamp, plan = folder / "projected.json", json.loads((folder / "sweep.json").read_bytes())
    plan.pop("created")
    ended = sorted((key, record.finished_at.isoformat()) for key, record in records.items())
    state = hashlib.sha256(json.dumps([ended, plan, identity(sweep.settings.tracker)]).encode()).hexdigest()
    before = json.loads(stamp.read_text()) if stamp.exists() else {}
    if before.get("state") == state and "tracked" in before:
        text = before["text"]
        if before["width"] != width():
            from runner.report.projections import leaderboard  # noqa: PLC0415 - brings pandas

            text = leaderboard(folder, sweep.settings.outputs)
    else:
        from runner.report.projections import write_projections  # noqa: PLC0415 - as above

        text = write_projections(folder, sweep.settings.outputs)
        try:
            before = {"state": state, "tracked": sweep.settings.tracker.log(folder)}
        except TrackingError as error:
            return (
                f"{text}\n{error}"  # the records are safe, and nothing is stamped: the next run tries again
            )
    write_atomically(stamp, json.dumps({**before, "width": width(), "text": text}).encode())
    return f"{text}\n{before['tracked']}"
