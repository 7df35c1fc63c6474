"""`job=compare`: measure how far two scorings of the same cells agree (AgentMeter section 5.4). Runs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from runner.errors import ConfigError
from runner.sweeps.cells import Job, Sweep
from runner.sweeps.core_sets import read_core_set

if TYPE_CHECKING:
    from runner.report.comparison import Side


class Compare(Job):
    """Compares two sweeps, two metrics or scorings of one, or a core set and its full set.

    Each side is scored as its sweep was. A typed scoring, or typed keys of one, change the right side.
    """

    reads_trials: ClassVar[bool] = True
    left: str | None = None
    """Left side: SWEEP or SWEEP:METRIC. The result is kept in its folder and logged on its tracked run."""
    right: str | None = None
    """Right side: the same, or a folder or file of trials; None for the sweep on the left."""
    core_set: Path | None = None
    """Core set whose tasks alone count on the right."""

    def run(self, sweep: Sweep) -> int:
        """Compare and return 0.

        Raises `ConfigError` for a side or metric that does not exist, and `TableError` for trials that cannot be
        scored.
        """
        from runner.report.comparison import compare, write_comparison  # noqa: PLC0415 - brings pandas
        from runner.report.projections import write_projections  # noqa: PLC0415 - and matplotlib

        left = self._side(self.left, sweep)
        if left.source.folder is None:
            raise ConfigError(
                f"job.left: {left.source.name} is a file; a sweep is needed, to keep the result."
            )
        right = self._side(self.right or str(self.left).partition(":")[0], sweep)
        if sweep.scorings:
            right = right._replace(scoring=sweep.rescorings(right.scoring)[0])
        if self.core_set:
            right = right._replace(tasks=read_core_set(self.core_set, "job.core_set").names)
        if (left.source.path, *left[1:]) == (right.source.path, *right[1:]):
            raise ConfigError(
                f"{left.name} is on both sides: add right=SWEEP or right={left.source.name}:METRIC, a scoring "
                "(scoring.alpha=1) or core_set=FILE."
            )
        found, cells, text = compare(left, right)
        print(text)
        print(f"Kept in {write_comparison(left.source.folder, found, cells)}")
        write_projections(left.source.folder, left.source.folder.parent)  # its report shows it
        print(sweep.settings.tracker.log(left.source.folder))
        return 0

    def _side(self, word: str | None, sweep: Sweep) -> Side:
        from runner.report.comparison import Side  # noqa: PLC0415 - as above
        from runner.report.trial_sources import read_source  # noqa: PLC0415

        if not word:
            raise ConfigError(
                "Compare what? Add left=SWEEP and right=SWEEP, each with :METRIC if it is not AMS."
            )
        name, _, metric = word.partition(":")
        source = read_source(name, sweep.settings.outputs)
        return Side(source, metric or "AMS", source.scoring or sweep.settings.scoring)
