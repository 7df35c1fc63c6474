"""Describe in readable text how two results of a case differ."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING

from metrics.differential import Phase, Rules, effective
from runner.benchmarks.cli_tool_bench.reference_runs import observe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.records.cases import CaseResult

MAX_LINES = 20
"""Largest number of lines in one diff."""
MAX_WIDTH = 200
"""Longest line, in characters."""


def explain_failure(reference: CaseResult, candidate: CaseResult, phase: Phase, rules: Rules) -> str:
    """Return why a case ended in `phase`: the candidate's exit code, or a diff of the side effects or of stdout."""
    if phase in (Phase.NOT_FOUND, Phase.CRASH):
        ending = "" if candidate.ended == "exited" else f" ({candidate.ended})"
        return (
            f"exit code {candidate.exit_code}{ending}, not {reference.exit_code}:\n{candidate.stderr[-500:]}"
        )
    if phase is Phase.SIDE_EFFECTS:
        return _diff(_effect_lines(reference, rules), _effect_lines(candidate, rules), "side effects")
    return _diff(reference.stdout.splitlines(), candidate.stdout.splitlines(), "stdout")


def _effect_lines(result: CaseResult, rules: Rules) -> list[str]:
    """Return a line for each changed path that counts, each followed by the beginning of the path's content."""
    counted = effective(observe(result).changes, rules)
    lines = []
    for change in result.changes:
        if change.path in counted:
            mode = f" {change.mode:o}" if rules.compare_modes and change.mode is not None else ""
            deleted = " deleted" if change.change == "deleted" else ""
            lines.append(f"{change.kind}{mode} {change.path}{deleted}")
            lines += [f"    {line}" for line in (change.text or "").splitlines()]
    return lines


def _diff(reference: list[str], candidate: list[str], subject: str) -> str:
    heads = (f"{subject} of the reference", f"{subject} of the candidate")
    return "\n".join(_shorten(list(unified_diff(reference, candidate, *heads, lineterm=""))))


def _shorten(lines: list[str]) -> Iterator[str]:
    for line in lines[:MAX_LINES]:
        yield line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]}.."
    if len(lines) > MAX_LINES:
        yield f".. and {len(lines) - MAX_LINES} more lines"
