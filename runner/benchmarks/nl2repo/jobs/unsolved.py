"""`job=unsolved`: list the hidden tests that no cell of a sweep passes, with the kind of failure (section 3.1.4).

The paper's engineers read this list, to tell errors of a document or an environment from those of models.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

from metrics.failures import FAILURES
from runner.benchmarks.nl2repo.jobs.make_task import dataset_of
from runner.errors import ConfigError, TaskError
from runner.files import write_atomically
from runner.mirror.opening import open_store
from runner.sweeps import sweep_file
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from runner.benchmarks.nl2repo.dataset import Nl2RepoBench
    from runner.benchmarks.nl2repo.report.unsolved import Attempt, Unsolved
    from runner.records import PlannedRow, TrialRecord

FILE = "unsolved.csv"
SHOWN = 30
"""Most tests of a task that are printed; the file has all."""
MESSAGE = 300
"""Longest message of a failure, in characters, from its end."""


class ListUnsolved(Job):
    """Job that lists the tests of each task that pass in no judged trial of a sweep, beside those of the bounds."""

    reads_trials: ClassVar[bool] = True

    def run(self, sweep: Sweep) -> int:
        """Print the tests, write `SWEEP/unsolved.csv`, and return 0.

        Raises `ConfigError` if there is no such sweep, or it planned no trial of this dataset.
        """
        from runner.benchmarks.nl2repo.report.unsolved import most_frequent  # noqa: PLC0415 - brings the report's parts

        dataset, folder = dataset_of(sweep), sweep.settings.folder
        planned = [row for row in sweep_file.read(folder).planned if row.dataset == dataset.name]
        if not planned:
            raise ConfigError(
                f"{folder.name} planned no trial of dataset {dataset.name}: choose dataset=.. and name=.."
            )
        attempts, unjudged = _attempts(planned, sweep)
        found: list[Unsolved] = []
        for task in sorted({row.task for row in planned}):
            some = _of_task(dataset, task, attempts[task])
            found += some
            print(_summary(task, some, len(attempts[task]), unjudged[task]))
            for one in some[:SHOWN]:
                kinds = ", ".join(f"{kind} {number}" for kind, number in one.kinds.items())
                print(one_line(f"  {one.test}  ({kinds})"))
            if len(some) > SHOWN:
                print(f"  and {len(some) - SHOWN} more")
        counts = ", ".join(f"{number} mostly {kind}" for kind, number in most_frequent(found).items())
        write_atomically(folder / FILE, _csv(found).encode())
        print(
            f"{len(found)} tests pass in no judged trial{f' ({counts})' if counts else ''}: {folder / FILE}"
        )
        return 0


def _attempts(planned: list[PlannedRow], sweep: Sweep) -> tuple[dict[str, list[Attempt]], dict[str, int]]:
    """Return the judged trials of each task, and how many others were planned. Bounds do not count."""
    from runner.benchmarks.nl2repo.report.junit_files import read_junit  # noqa: PLC0415 - as above
    from runner.benchmarks.nl2repo.report.unsolved import Attempt  # noqa: PLC0415 - as above
    from runner.report.competition import BOUNDS  # noqa: PLC0415 - brings pandas

    store = open_store(sweep.settings)
    attempts: defaultdict[str, list[Attempt]] = defaultdict(list)
    unjudged: defaultdict[str, int] = defaultdict(int)
    contenders = [row for row in planned if row.agent not in BOUNDS]
    store.fetch([row.key for row in contenders], archives=True)
    for row in contenders:
        record = store.read(row.key)
        reported = read_junit(store.folder(row.key)) if _is_judged(record) else None
        if record is None or record.verdict is None or reported is None:
            unjudged[row.task] += 1
            continue
        components = record.verdict.components
        late = components.get("failure_timeout", 0.0) > 0
        attempts[row.task].append(Attempt(row.cell, reported, not components.get("forged"), late))
    return attempts, unjudged


def _is_judged(record: TrialRecord | None) -> bool:
    return record is not None and record.verdict is not None and record.verdict.error is None


def _of_task(dataset: Nl2RepoBench, task: str, attempts: list[Attempt]) -> list[Unsolved]:
    """Return the unsolved tests of a task. Without a ground truth, every test that a trial reported counts."""
    from runner.benchmarks.nl2repo.report.unsolved import all_tests, unsolved  # noqa: PLC0415 - as above

    folder: Path = dataset.root / task
    try:
        expected = dataset.suite(folder).expected
    except TaskError:
        expected = None
    return unsolved(task, all_tests(attempts) if expected is None else expected, attempts)


def _summary(task: str, some: list[Unsolved], judged: int, unjudged: int) -> str:
    missing = f"; {unjudged} trials were not judged" if unjudged else ""
    if not judged:
        return f"{task}: no judged trial{missing}, so nothing is known of its tests"
    return f"{task}: {len(some)} tests pass in none of {judged} trials{missing}"


def _csv(found: list[Unsolved]) -> str:
    import pandas as pd  # noqa: PLC0415 - only here

    from runner.report.csv_cells import cell  # noqa: PLC0415 - brings pandas

    columns = ["task", "test", "trials", "cells", *FAILURES, "example"]
    rows = [
        [cell(one.task), cell(one.test), one.trials, one.cells, *(one.kinds.get(kind, 0) for kind in FAILURES),
         cell(one.example[-MESSAGE:])]
        for one in found
    ]  # fmt: skip
    return str(pd.DataFrame(rows, columns=columns, dtype=object).to_csv(index=False))
