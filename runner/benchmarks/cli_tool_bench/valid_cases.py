"""Count the valid cases of a task. A task with too few of them says little, and is refused.

The counts are known once the reference has run. They are stored, so that a plan refuses such a task before anybody
pays for another trial of it.
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
    """Number of cases in which the reference exits with code 0 and behaves the same each time."""
    varying: int
    """Number of cases in which the reference behaves differently from run to run."""
    classes: int
    valid_classes: int
    """Number of command classes with a valid case."""

    @classmethod
    def of(cls, cases: Sequence[Case], reference: ReferenceRun) -> ValidCases:
        """Count the valid ones among these cases."""
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
        """Return why a task is refused that needs this share of valid cases and classes; None if it is not refused."""
        if min(self.valid / self.cases, self.valid_classes / self.classes) >= share:
            return None
        failed = self.cases - self.valid - self.varying
        return (
            f"The reference succeeds, and does the same each time, in {self.valid} of {self.cases} cases and in "
            f"{self.valid_classes} of {self.classes} classes ({self.varying} cases vary from run to run, it fails in "
            f"{failed}); {share:.0%} of both are needed. To run the task nevertheless, lower "
            "dataset.verifier.valid_share."
        )


def path_of(folder: Path, shaping: Sequence[str]) -> Path:
    """Return the path of a task's counts; `shaping` is everything that can change them."""
    return folder / f"{hashlib.sha256(json.dumps(list(shaping)).encode()).hexdigest()[:32]}.json"


def read(path: Path) -> ValidCases | None:
    """Read stored counts; None if there are none."""
    return ValidCases.model_validate_json(path.read_bytes()) if path.is_file() else None


def write(path: Path, counts: ValidCases) -> None:
    """Store the counts in place of earlier ones."""
    with exclusive(path.with_suffix(".lock")):
        write_atomically(path, counts.model_dump_json().encode())
