"""What differs between two sides of a case, as text that one can read."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING

from metrics.differential import Phase, Rules, effective
from runner.benchmarks.cli_tool_bench.reference_runs import observed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.records.cases import CaseResult

LINES = 20
"""Of one diff that are shown."""
WIDTH = 200
"""Characters of a line that are shown."""


def difference(reference: CaseResult, candidate: CaseResult, phase: Phase, rules: Rules) -> str:
    """Why a case ended in its phase: how the candidate ended, else a diff of side effects, else one of stdout."""
    if phase in (Phase.NOT_FOUND, Phase.CRASH):
        ending = "" if candidate.ended == "exited" else f" ({candidate.ended})"
        return (
            f"exit code {candidate.exit_code}{ending}, not {reference.exit_code}:\n{candidate.stderr[-500:]}"
        )
    if phase is Phase.SIDE_EFFECTS:
        return _diff(_effects(reference, rules), _effects(candidate, rules), "side effects")
    return _diff(reference.stdout.splitlines(), candidate.stdout.splitlines(), "stdout")


def _effects(result: CaseResult, rules: Rules) -> list[str]:
    """A line a path, and below it the beginning of what is there now."""
    kept = effective(observed(result).changes, rules)
    lines = []
    for change in result.changes:
        if change.path in kept:
            mode = f" {change.mode:o}" if rules.compare_modes and change.mode is not None else ""
            lines.append(
                f"{change.kind}{mode} {change.path}{' deleted' if change.change == 'deleted' else ''}"
            )
            lines += [f"    {line}" for line in (change.text or "").splitlines()]
    return lines


def _diff(reference: list[str], candidate: list[str], what: str) -> str:
    lines = list(
        unified_diff(
            reference, candidate, f"{what} of the reference", f"{what} of the candidate", lineterm=""
        )
    )
    return "\n".join(_short(lines))


def _short(lines: list[str]) -> Iterator[str]:
    for line in lines[:LINES]:
        yield line if len(line) <= WIDTH else f"{line[:WIDTH]}.."
    if len(lines) > LINES:
        yield f".. and {len(lines) - LINES} lines more"
