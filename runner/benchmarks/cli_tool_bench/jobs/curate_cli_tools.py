"""`job=curate_cli_tools`: a funnel from candidates to a balanced set of tasks (section 2.1)."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from runner.benchmarks.cli_tool_bench.construction import funnel, selection
from runner.benchmarks.cli_tool_bench.construction.candidates import (
    Filters,
    named,
    read_candidates,
)
from runner.benchmarks.cli_tool_bench.construction.curation import Curation, finished
from runner.benchmarks.cli_tool_bench.construction.selection import Finished
from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
from runner.errors import ConfigError
from runner.files import write_atomically
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import printable

NAME = "cli_tools"


class CurateCliTools(Job):
    """Filters candidates, finds their commands, writes recipes, counts finished tasks and chooses among them.

    It asks no model. `job=make_cli_task` turns the recipes into tasks; the same command then goes on from there.
    """

    plans: ClassVar[bool] = True
    path: Path
    """Folder of the tasks."""
    candidates: Path | None = None
    """CSV or JSON file of candidates."""
    names: tuple[str, ...] = ()
    """Further candidates, `SOURCE:NAME==VERSION`."""
    filters: Filters = Filters()
    choose: int = Field(default=100, ge=1)
    """Number of tasks to choose, balanced by difficulty, language and domain."""
    unreviewed: bool = False
    """True if tasks that nobody has reviewed may be chosen."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed that decides between tasks that would balance the choice alike."""

    def run(self, sweep: Sweep) -> int:
        """Print the funnel, write it as files, and return 0. Raises `ConfigError` and `EngineError`."""
        settings, dataset = sweep.settings, sweep.cells[0].dataset
        if not isinstance(dataset, CliToolBench):
            raise ConfigError(
                f"dataset {dataset.name} has no command-line tools: add dataset=cli_tool_bench."
            )
        rows = [*(read_candidates(self.candidates) if self.candidates else []), *map(named, self.names)]
        if not rows:
            raise ConfigError(
                "job.candidates: name a CSV or JSON file, or set job.names=[pypi:NAME==VERSION]."
            )
        if settings.dry_run:
            print(
                f"{len(rows)} candidates would be looked up and installed in sandboxes. No model is asked: 0 USD."
            )
            return 0
        say = partial(print, flush=True)
        settings.sandbox.prepare([], say)
        work = settings.outputs / "cache" / "construction" / "candidates"
        curation = Curation(self.filters, dataset, settings.sandbox, self.path, work, say)
        outcomes = []
        for number, candidate in enumerate(rows, start=1):
            outcomes.append(curation.outcome(candidate))
            print(printable(f"[{number}/{len(rows)}] {_words(outcomes[-1])}"), flush=True)
        chosen = selection.choose(
            finished(outcomes, self.path, unreviewed=self.unreviewed), self.choose, self.seed
        )
        outcomes = funnel.chosen(outcomes, {one.name for one in chosen})
        self._write(settings.folder / NAME, outcomes, chosen)
        print(
            f"\n{funnel.text(outcomes)}\n\n{_table(chosen)}\nFunnel, rejections and choice: {settings.folder / NAME}"
        )
        return 0

    def _write(self, folder: Path, outcomes: list[funnel.Outcome], chosen: list[Finished]) -> None:
        """Write `funnel.png`, `rejections.csv`, `table_1.csv` and `chosen.txt`."""
        from runner.report.figures import png, style  # noqa: PLC0415 - loads matplotlib

        with style():
            write_atomically(folder / "funnel.png", png(funnel.picture(outcomes)))
        write_atomically(folder / "rejections.csv", funnel.rejections_csv(outcomes).encode())
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("dimension", "value", "count", "mean_lines"))
        writer.writerows(
            (row.dimension, row.value, row.count, row.lines) for row in selection.table_1(chosen)
        )
        write_atomically(folder / "table_1.csv", lines.getvalue().encode())
        names = "".join(f"{one.name}\n" for one in chosen)
        write_atomically(folder / "chosen.txt", names.encode())


def _words(outcome: funnel.Outcome) -> str:
    reason = f" ({outcome.rejection.reason})" if outcome.rejection else ""
    return f"{outcome.name}: {funnel.STAGES[outcome.reached]}{reason}"[:300]


def _table(chosen: list[Finished]) -> str:
    """Return Table 1 of the chosen tasks as lines for a terminal."""
    rows = [f"{'Dimension':<12}{'Sub-category':<30}{'Count':>6}{'Avg. LOC':>12}"]
    for row in selection.table_1(chosen):
        value = selection.TIERS.get(row.value, row.value)
        rows.append(f"{row.dimension:<12}{value:<30}{row.count:>6}{row.lines:>12,.2f}")
    return (
        "\n".join(rows)
        if chosen
        else "No task can be chosen yet: job=make_cli_task makes them of the recipes."
    )
