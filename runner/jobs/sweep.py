"""`job=sweep`: plan, run what is not finished, and project the records."""

from __future__ import annotations

import gc
import hashlib
import json
import platform
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from runner import __version__
from runner.cli.config import to_yaml
from runner.errors import ConfigError, TrackingError
from runner.executors.desk import Desk
from runner.files import write_atomically
from runner.mirror.opening import open_store
from runner.protocols import helper_of
from runner.records import Prices, SpendLimits
from runner.sweeps import sweep_file
from runner.sweeps.answers_in_reach import Reach
from runner.sweeps.cells import Job, Settings, Sweep
from runner.sweeps.grid import grid_of, held_of
from runner.sweeps.live_file import LiveFile
from runner.sweeps.plan import counted, identity, make_plan
from runner.sweeps.plan_text import plan_text
from runner.sweeps.refusals import check_trials
from runner.sweeps.stopping import Stopping
from runner.sweeps.sweep_file import SweepFile
from runner.terminal.escaping import Say, one_line, width, wrapped
from runner.trials.scratch_folder import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from runner.records import TrialRecord
    from runner.report.progress import Progress
    from runner.sweeps.plan import Plan
    from runner.sweeps.record_index import Ended
    from runner.sweeps.store import Store

ALL_JUDGED, SOME_INVALID, CAPPED = 0, 4, 5
"""Exit codes of a sweep that ran to its end."""
MANY = 10_000
"""Number of trials from which a plan is exempt from garbage collection, which visits every object and stops all
threads."""
STAMP = "projected.json"
"""File of a sweep's folder that names the records on which its tables and tracked runs rest."""
PACKAGES = ("hydra-core", "litellm", "docker", "mlflow")
"""Packages whose version can change a result or its display."""


class SweepJob(Job):
    """Runs a sweep, or resumes it: finished trials are not run again."""

    needs_keys: ClassVar[bool] = True
    plans: ClassVar[bool] = True

    def run(self, sweep: Sweep) -> int:
        """Return the exit code.

        It is 0 if every planned trial is judged, 4 if some are invalid or were refused, 5 if a budget of the sweep kept
        some from starting, and 130 after Ctrl-C or SIGTERM (`runner.sweeps.stopping`).
        """
        settings = sweep.settings
        store = open_store(settings)
        if not settings.dry_run:
            return self.carry_out(sweep, store)
        store.refresh(settings.folder)
        plan = _plan(sweep, store)
        _print_replaced(settings.folder, plan)
        _print_damaged(plan, store)
        finished = {trial.key for trial in plan.trials} - {trial.key for trial in plan.todo}
        took = [ended.wall_seconds for ended in store.ended(finished).values()]
        print(plan_text(plan, settings, took, width()))
        return ALL_JUDGED

    def carry_out(self, sweep: Sweep, store: Store, show: Say = print) -> int:
        """Run the trials that are not finished and `show` the leaderboard. Return the exit code, as `run` does."""
        settings = sweep.settings
        with store.locked(), Stopping(store.close, settings.sandbox.release) as stopping:
            store.when_lost(stopping.cancel.set)
            plan = _plan(sweep, store)
            _print_replaced(settings.folder, plan)
            _write_plan(sweep, plan)
            store.publish(settings.folder)
            for task in plan.refused:
                _print(f"refused: {one_line(f'{task.dataset}/{task.name}: {task.refused}')}")
            _print_damaged(plan, store)
            with LiveFile(settings.folder) if plan.todo else nullcontext() as live:
                plan, capped = _run(sweep, plan, store, stopping, live) if live else (plan, False)
                ended = store.ended(trial.key for trial in plan.trials if not trial.task.refused)
                store.fetch(ended, workspaces=True)
                show(_project(settings, ended))
                store.publish(settings.folder)
                if settings.record:
                    _write_cassette(settings.record, plan, store, ended)
        judged = sum(each.judged for each in ended.values())
        if judged == len(plan.trials):
            return ALL_JUDGED
        return CAPPED if capped else SOME_INVALID


def _plan(sweep: Sweep, store: Store) -> Plan:
    """Plan the trials. Raises `ConfigError` if they could not be run, or not be scored, as they are configured."""
    settings = sweep.settings
    gc.disable()  # with it, 100,000 trials take a second longer
    try:
        plan = make_plan(sweep.cells, settings.sandbox, (lambda _: ()) if settings.fresh else store.finished)
        plan = Reach(store.cache).apply(plan)
        if len(plan.trials) >= MANY:
            gc.freeze()
    finally:
        gc.enable()
    labels = settings.scoring.labels
    if labels and (unknown := {trial.task.name for trial in plan.trials} - labels.keys()):
        raise ConfigError(f"scoring.tiers: {', '.join(sorted(unknown))}: no tier in the tiers file.")
    _check_attempts(sweep)
    check_trials(plan.todo, settings.sandbox)
    return plan


def _check_attempts(sweep: Sweep) -> None:
    """Raise `ConfigError` if `scoring.attempts` cannot score these cells, before any trial is paid for."""
    rule = sweep.settings.scoring.attempts
    if rule.startswith("pass@"):
        from metrics.attempts import refusal  # noqa: PLC0415 - brings pandas

        for cell in sweep.cells:
            if why := refusal(rule, cell.attempts):
                raise ConfigError(f"scoring.attempts: {why}.")


def _print(text: str) -> None:
    print(wrapped(text, width()))


def _print_damaged(plan: Plan, store: Store) -> None:
    """Name the damaged records, whose trials are run again."""
    for path in store.damaged(trial.key for trial in plan.todo):
        print(f"damaged: {path}")  # on one line, so that it can be copied
        _print("  It is not a record any more: its trial is run again, and the file is put aside.")


def _print_replaced(folder: Path, plan: Plan) -> None:
    """Name the cells that the sweep of this name had before and that this command does not plan.

    Raises `ConfigError` for an imported sweep, whose plan is in no record.
    """
    if (folder / sweep_file.IMPORTED).exists():
        raise ConfigError(f"name: {folder.name} is an imported sweep; choose another name=.")
    if not sweep_file.exists(folder):
        return
    try:
        before = sweep_file.read(folder).cells
    except ConfigError:
        return  # damaged, or of another version: it is written anew
    if gone := before - {trial.cell.name for trial in plan.trials}:
        _print(
            f"{folder.name} had other cells, which its tables no longer show: {', '.join(sorted(gone))}. Their records "
            "are kept: the command that planned them, with another name=, shows them again and runs nothing."
        )


def _run(sweep: Sweep, plan: Plan, store: Store, stopping: Stopping, live: LiveFile) -> tuple[Plan, bool]:
    """Run the trials left to do, and say in `live` what they do.

    Return the plan, without the trials whose answer was found in reach, and whether a budget of the sweep kept trials
    from starting.
    """
    from runner.gateway import Gateway  # noqa: PLC0415 - a finished sweep resumes without loading what runs trials
    from runner.jobs.refreshing import Refreshing, RefreshProcess  # noqa: PLC0415 - as below
    from runner.report.progress import Progress  # noqa: PLC0415

    settings = sweep.settings
    with (
        scratch_folder() as scratch,
        Gateway(scratch, settings.gateway) as gateway,
        Progress(len(plan.todo), waiting=lambda: gateway.waiting) as progress,
    ):
        stopping.display = progress
        desk = Desk(sweep, plan, store, gateway, progress, partial(_write_plan, sweep))
        live.follow(_described(desk, progress))
        once = RefreshProcess(settings, settings.folder / STAMP)
        # closing: if Ctrl-C strikes in this loop, the trials still end before the gateway does.
        with (
            Refreshing(settings.refresh_seconds, once, progress.note) as refreshing,
            closing(settings.executor.run(desk, stopping.cancel)) as records,
        ):
            _show(refreshing.hearing(desk.breaker.watching(records, progress.note)), progress)
        live.finish("writing the tables, the report and the tracked runs")
        if desk.breaker.held:
            _write_plan(sweep, desk.plan, desk.breaker.held)
        for line in desk.not_started():
            progress.note(line)
        return desk.plan, bool(desk.capped)


def _described(desk: Desk, progress: Progress) -> Callable[[], dict[str, Any]]:
    """Return the function that describes the sweep for `live.json`."""
    shared = {  # by attempts at one task
        (id(trial.cell), id(trial.task)): SpendLimits(
            **trial.cell.budget.model_dump(exclude={"name", "wall_seconds"}), wall_seconds=trial.seconds
        )
        for trial, _ in counted(desk.plan.todo)
    }
    limits = {trial.key: shared[id(trial.cell), id(trial.task)] for trial in desk.plan.todo}
    return lambda: {
        "doing": progress.doing_now,
        "total": progress.total,
        "done": progress.done,
        "left": progress.remaining,
        "waiting": progress.waiting,
        "spent": dict(desk.account.spent),
        "limits": desk.settings.sweep_budget,
        "running": progress.running(limits),
    }


def _show(records: Iterable[TrialRecord], progress: Progress) -> None:
    """Show trials as they end."""
    for record in records:
        progress.ended(record)
        if record.error and record.error.traceback:
            where = f"its traceback is in trials/{record.key[:2]}/{record.key}/record.json"
            progress.note(
                f"{record.task}: unexpected {record.error.type}: {record.error.message[:200]} ({where})"
            )


def _write_plan(sweep: Sweep, plan: Plan, not_started: dict[str, str] | None = None) -> None:
    """Write `sweep.json`, and every composed cell into `config.yaml`."""
    settings = sweep.settings
    helpers = [helper for cell in sweep.cells if (helper := helper_of(cell.agent))]
    models = [*helpers, *(cell.model for cell in sweep.cells)]
    versions = {"assay": __version__, "python": platform.python_version()}
    file = SweepFile(
        schema_version=sweep_file.GRIDS,
        name=settings.name,
        created=datetime.now(UTC),
        grid=grid_of(plan, sweep.cells),
        scoring=settings.scoring,
        prices={model.name: model.prices for model in models if model.prices != Prices()},
        held=held_of(((trial.key, trial.cell.name) for trial in plan.trials), not_started or {}),
        versions=versions | {name: version(name) for name in PACKAGES},
    )
    sweep_file.write(settings.folder, file)
    write_atomically(settings.folder / "config.yaml", to_yaml(sweep.composed).encode())


def _write_cassette(folder: Path, plan: Plan, store: Store, ended: Mapping[str, Ended]) -> None:
    """Write the calls of all finished trials, those of earlier runs too, from their ledgers into a cassette."""
    from runner.gateway.cassette import tape, write_tape  # noqa: PLC0415 - loads the gateway's libraries

    for trial in plan.trials:
        if trial.key in ended and ended[trial.key].finished:
            path = tape(folder, trial.cell.name, trial.task.name, trial.attempt)
            write_tape(store.folder(trial.key), path)
    print(f"Recorded in {folder}; replay with model=cassette model.path={folder}")


def _project(settings: Settings, ended: Mapping[str, Ended]) -> str:
    """Return the leaderboard and the link to the tracked runs.

    Tables and tracked runs are written unless `projected.json` says that they rest on these records already.
    """
    folder, stamp = settings.folder, settings.folder / STAMP
    plan = sweep_file.read(folder).as_json()
    del plan["created"]
    times = sorted((key, each.finished_at) for key, each in ended.items())
    state = hashlib.sha256(json.dumps([times, plan, identity(settings.tracker)]).encode()).hexdigest()
    before = json.loads(stamp.read_text()) if stamp.exists() else {}
    if before.get("state") == state and "tracked" in before:
        text = before["text"]
        if before["width"] != width():
            from runner.report.projections import leaderboard  # noqa: PLC0415 - brings pandas

            text = leaderboard(folder, settings.outputs)
    else:
        from runner.report.projections import write_projections  # noqa: PLC0415 - as above

        text = write_projections(folder, settings.outputs)
        try:
            before = {"state": state, "tracked": settings.tracker.log(folder)}
        except TrackingError as error:
            # The records are safe. Without a stamp the next run tries again.
            return f"{text}\n{error}"
    write_atomically(stamp, json.dumps({**before, "width": width(), "text": text}).encode())
    return f"{text}\n{before['tracked']}"
