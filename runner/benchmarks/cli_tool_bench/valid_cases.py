"""How much of a task its reference supports: a task that rests on a few cases says little, and is refused.

The counts are known once the reference has run. They are kept, so that a plan refuses such a task before anybody pays
for another trial of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun
from runner.files import write_atomically
from runner.locks import exclusive
from runner.records import Record
from runner.records.cases import Case


class ValidCases(Record):
    """Counts of one task's cases and command classes."""

    cases: int
    valid: int
    """Cases in which the reference ends with exit code 0 and does the same each time."""
    varying: int
    """Cases in which it does not do the same each time."""
    classes: int
    valid_classes: int
    """Classes that have a valid case."""

    @classmethod
    def of(cls, cases: Sequence[Case], reference: ReferenceRun) -> ValidCases:
        """Counts of these cases, by what their reference did."""
        valid = [
            case.command_class
            for index, case in enumerate(cases)
            if reference.results[index].exit_code == 0 and not reference.varying.get(index)
        ]
        return cls(
            cases=len(cases),
            valid=len(valid),
            varying=sum(bool(levels) for levels in reference.varying.values()),
            classes=len({case.command_class for case in cases}),
            valid_classes=len(set(valid)),
        )

    def refusal(self, share: float) -> str | None:
        """Why a task is refused that needs such a share of valid cases and of classes with one; None: it is not."""
        if min(self.valid / self.cases, self.valid_classes / self.classes) >= share:
            return None
        fail = self.cases - self.valid - self.varying
        return (
            f"The reference succeeds, and does the same each time, in {self.valid} of {self.cases} cases and in "
            f"{self.valid_classes} of {self.classes} classes ({self.varying} cases vary from run to run, it fails in "
            f"{fail}); {share:.0%} of both are needed. dataset.verifier.valid_share is that bound: lower it to run the "
            "task nevertheless."
        )


def path_of(folder: Path, shaping: Sequence[str]) -> Path:
    """Return the file of the counts of a task that is made of this."""
    return folder / f"{hashlib.sha256(json.dumps(list(shaping)).encode()).hexdigest()[:32]}.json"


def read(path: Path) -> ValidCases | None:
    """Return what is kept; None if nothing is."""
    return ValidCases.model_validate_json(path.read_bytes()) if path.is_file() else None


def write(path: Path, counts: ValidCases) -> None:
    """Keep the counts, in place of earlier ones."""
    with exclusive(path.with_suffix(".lock")):
        write_atomically(path, counts.model_dump_json().encode())
