"""Looks at a reference beside a candidate: what the clock moves is compared within one moment.

The reference's runs before and after the candidate's bracket it. Where they are the same, the clock had no part in that
moment, and the candidate is judged by them; where they are not, what differs decides nothing. So a candidate gains
nothing by differing on purpose: it is compared all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from metrics.differential import LEVELS, Level, Rules, unlike
from runner.benchmarks.cli_tool_bench.reference_runs import is_lasting, observed
from runner.errors import MachineError
from runner.records.cases import Case, CaseResult

if TYPE_CHECKING:
    from runner.protocols import CaseBox

TRIES = 2
"""A minute may end between two looks, but not in two tries that follow each other."""

Run = Callable[[Case], CaseResult]


class Beside(NamedTuple):
    """Both sides of a case, within one moment."""

    reference: CaseResult
    candidate: CaseResult
    varying: tuple[Level, ...]
    """What the reference did not do the same each time."""
    lasting: bool
    """Whether that says something of the reference. Where it was stopped, a busy machine may have been the cause."""


def beside(reference: Run, candidate: Run, case: Case, rules: Rules) -> Beside:
    """Run the reference twice, the candidate, and the reference again; all once more if the reference differs."""
    for _ in range(TRIES):
        first, second, found, last = reference(case), reference(case), candidate(case), reference(case)
        differing = {
            level for look in (second, last) for level in unlike(observed(first), observed(look), rules)
        }
        lasting = all(map(is_lasting, (first, second, last)))
        if lasting and not differing:
            break
    varying: Collection[Level] = differing if lasting else LEVELS
    return Beside(first, found, tuple(level for level in LEVELS if level in varying), lasting)


def surviving(box: CaseBox) -> Run:
    """Run cases of a candidate whose machine it can end: that is a failed case, and not a failure of ours.

    The reference runs next, and shows whether it is the engine that failed.
    """

    def run(case: Case) -> CaseResult:
        try:
            return box.run(case)
        except MachineError as error:
            return CaseResult(exit_code=None, ended="lost", stderr=str(error), how=box.how)

    return run
