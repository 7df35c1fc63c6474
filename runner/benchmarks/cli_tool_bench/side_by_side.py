"""Compare both sides of a case at the same moment, where the reference's behaviour changes with the clock.

The reference runs before and after the candidate. If all its runs agree, the clock did not matter in that moment, and
the candidate is judged by them. What differs among them is not judged. A candidate gains nothing by failing a case on
purpose: it is compared all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from metrics.differential import LEVELS, Level, Rules, unlike
from runner.benchmarks.cli_tool_bench.reference_runs import is_lasting, observe
from runner.errors import MachineError
from runner.records.cases import Case, CaseResult

if TYPE_CHECKING:
    from runner.protocols import CaseBox

TRIES = 2
"""Attempts at finding a moment in which the reference is steady. A minute may end during one attempt, but not during
two in a row."""

Run = Callable[[Case], CaseResult]


class SideBySide(NamedTuple):
    """Results of both sides of a case at the same moment."""

    reference: CaseResult
    candidate: CaseResult
    varying: tuple[Level, ...]
    """Levels on which the reference's runs differ."""
    lasting: bool
    """True if `varying` is a property of the reference. False if a run was stopped: the machine may have been busy."""


def run_side_by_side(reference: Run, candidate: Run, case: Case, rules: Rules) -> SideBySide:
    """Run the reference twice, the candidate, and the reference again; repeat all once if the reference differs."""
    for _ in range(TRIES):
        first, second, result, last = reference(case), reference(case), candidate(case), reference(case)
        differing = {
            level for later in (second, last) for level in unlike(observe(first), observe(later), rules)
        }
        lasting = all(map(is_lasting, (first, second, last)))
        if lasting and not differing:
            break
    varying: Collection[Level] = differing if lasting else LEVELS
    return SideBySide(first, result, tuple(level for level in LEVELS if level in varying), lasting)


def run_or_report_lost(candidate: CaseBox, case: Case) -> CaseResult:
    """Run a case; if the candidate's machine dies, return a failed case instead of raising `MachineError`.

    A candidate can end its own machine. The reference runs next, and raises if the engine is at fault.
    """
    try:
        return candidate.run(case)
    except MachineError as error:
        return CaseResult(exit_code=None, ended="lost", stderr=str(error), how=candidate.how)
