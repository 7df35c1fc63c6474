"""`job=environment`: set up one project, and leave the result in `outputs/SWEEP/environment/PROJECT/`.

Dockerfile      an image in which the project can be built and tested
run_tests.sh    builds the project and runs its tests
results.json    our results of the tests, from scratch
account.md      the same for people: what was built, how to run it, what it cost, what went wrong
task/PROJECT/   the task, for dataset=execution and job=verify_ground_truth
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from runner.benchmarks.project_setup.deliverables import DOCKERFILE, RESULTS, SCRIPT
from runner.errors import ConfigError, OutputsError
from runner.files import no_room, write_atomically
from runner.jobs.sweep import SweepJob
from runner.locks import exclusive
from runner.sweeps.cells import Cell, Job, Sweep
from runner.sweeps.plan import make_plan
from runner.sweeps.refusals import check_model
from runner.sweeps.store import Store
from runner.terminal.escaping import width, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runner.benchmarks.project_setup.deliverables import Rerun
    from runner.records import TrialRecord

NO_TEST = 6
"""Exit code: no test of the project was executed."""
ACCOUNT = "account.md"


class MakeEnvironment(Job):
    """Job that lets an agent set up one project and runs its scripts from scratch, as a sweep of one trial."""

    needs_keys: ClassVar[bool] = True
    plans: ClassVar[bool] = True
    project: str
    """A folder, a tar or zip file, the address of a git repository, or `NAME==VERSION` on the package index."""
    commit: str = ""
    """Commit, tag or branch of a git repository that is given by its address; empty: its main branch."""
    keep_git: bool = False
    """True if the agent and its scripts have the `.git` of a git address, for `git describe` and setuptools_scm."""
    max_mb: float = Field(default=500.0, gt=0)
    """Largest unpacked size of the project."""
    build_seconds: float = Field(default=900.0, gt=0)
    """Time limit for the build of the image."""
    test_seconds: float = Field(default=1800.0, gt=0)
    """Time limit for one run of the script."""

    def run(self, sweep: Sweep) -> int:
        """Return exit code 0 when tests were executed, 6 when none was, and the sweep's when the trial could not run.

        Raises `ConfigError` for a project that cannot be used, or an agent without a model, and `OutputsError`.
        """
        from runner.benchmarks.project_setup import given_project  # noqa: PLC0415 - only this job needs it

        cell = _only_cell(sweep)
        folder = sweep.settings.folder / "environment" / given_project.named(self.project)
        with _alone(folder):
            return self._make(sweep, cell, folder)

    def _make(self, sweep: Sweep, cell: Cell, folder: Path) -> int:
        from runner.benchmarks.project_setup import given_project  # noqa: PLC0415 - as above

        limits = {"build_seconds": self.build_seconds, "test_seconds": self.test_seconds}
        name = folder.name
        given = given_project.checked_out(self.project, self.commit, folder / "clone", git=self.keep_git)
        project = given_project.described(given, self.max_mb * 1e6, git=self.keep_git)
        project = project.model_copy(update=limits)
        given_project.write_task(project, folder / "task" / name)
        ours = _of_task(sweep, cell, folder / "task", name)
        if sweep.settings.dry_run:
            return SweepJob().run(ours)
        store = Store(sweep.settings.outputs)
        ended = SweepJob().carry_out(ours, store, lambda _: None)  # one trial needs no leaderboard
        (trial,) = make_plan(ours.cells, sweep.settings.sandbox, lambda _: ()).trials
        record = store.load([trial.key]).get(trial.key)
        if record is None:
            print("Nothing was run.")
            return ended
        executed = _leave(folder, store.folder(trial.key), record)
        return 0 if executed else NO_TEST if record.status.finished else ended


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other commands from a project's folder: another clone or task there would be another trial.

    Raises `OutputsError` if another command is at work on it.
    """
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(exclusive(folder, wait=False))
        except BlockingIOError as error:
            message = f"Another command is using {folder}. Wait for it to end, or choose another name=."
            raise OutputsError(message) from error
        except OSError as error:
            raise no_room(folder, error) from error
        yield


def _only_cell(sweep: Sweep) -> Cell:
    from runner.benchmarks.project_setup.dataset import ProjectSetupBench  # noqa: PLC0415 - as above

    if len(sweep.cells) != 1:
        raise ConfigError("job=environment takes one agent and one model: choose them without -m.")
    (cell,) = sweep.cells
    check_model(cell)
    if not isinstance(cell.dataset, ProjectSetupBench) or not cell.dataset.truthless:
        raise ConfigError("job=environment makes its own dataset: leave out dataset=.")
    return cell


def _of_task(sweep: Sweep, cell: Cell, root: Path, name: str) -> Sweep:
    """Return the sweep with the project's task as its only task."""
    dataset: Any = cell.dataset
    dataset = dataset.model_copy(update={"root": root, "include": (name,)})
    return sweep.model_copy(update={"cells": (cell.model_copy(update={"dataset": dataset}),)})


def _leave(folder: Path, trial: Path, record: TrialRecord) -> bool:
    """Write the trial's results over those of an earlier run; return whether a test was executed."""
    from runner.benchmarks.project_setup.jobs.project_account import account, faults, summary  # noqa: PLC0415 - only with a record
    from runner.benchmarks.project_setup.verifier import measured_in  # noqa: PLC0415

    measured = measured_in(trial)
    scripts = {name: _text(trial / name) for name in (DOCKERFILE, SCRIPT)}
    files = {
        **scripts,
        RESULTS: _results(measured),
        ACCOUNT: account(folder.name, record, measured, scripts[DOCKERFILE]),
    }
    for name, text in files.items():
        if text is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_atomically(folder / name, text.encode())
    print(wrapped(summary(measured), width()))
    for line in faults(record, measured):
        print(wrapped(line, width()))
    print(f"{', '.join(name for name, text in files.items() if text is not None)}: {folder}")
    return bool(measured and measured.outcomes)


def _text(file: Path) -> str | None:
    return file.read_text() if file.is_file() else None


def _results(measured: Rerun | None) -> str | None:
    """Return `results.json`: numbers of all tests, and of each framework's; None when no test was executed."""
    if measured is None or measured.outcomes is None:
        return None
    runs = [{"framework": one.framework, **one.outcomes.model_dump()} for one in measured.readings]
    return json.dumps({**measured.outcomes.model_dump(), "runs": runs}, indent=1) + "\n"
