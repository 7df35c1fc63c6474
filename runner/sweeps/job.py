"""What a command does with a sweep, and what must be known of it before it begins."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from runner.records import Record

if TYPE_CHECKING:
    from runner.sweeps.cells import Sweep


class Job(Record):
    """A `job=`. Most read what is there; those that run trials or take several scorings say so."""

    needs_keys: ClassVar[bool] = False
    """Whether it calls models, so that their keys must be there."""
    several_scorings: ClassVar[bool] = False
    """Whether it takes several scorings at once (`-m scoring.alpha=0.4,0.6`)."""
    plans: ClassVar[bool] = False
    """Whether it obeys `dry_run=true`. Any other job is refused with it, as it would do what it does."""

    @abstractmethod
    def run(self, sweep: Sweep) -> int:
        """Do it; returns the exit code."""
