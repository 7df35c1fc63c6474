"""Black-box differential evaluation of command-line tools (CLI-Tool-Bench, sections 2.3 and 3.2).

A *case* runs the reference (the human-written tool, the paper's oracle) and the candidate from equal clean states. The
functions here turn observations of both into the paper's scores. Shares are in [0, 1], and NaN without a denominator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, nan
from pathlib import PurePosixPath
from statistics import fmean, median
from typing import Literal, NamedTuple

OUTPUT_METRICS = ("exact_match", "fuzzy_match", "semantic_match")
"""Comparisons of stdout, from strict to lenient (section 3.2.1)."""
METRICS = ("exec", "state", *OUTPUT_METRICS)
"""Indicators that eq. 4 averages. `state` is not a column of the paper's tables, but a condition of the outputs'."""
Level = Literal["exit_code", "effects", "output"]
LEVELS: tuple[Level, ...] = ("exit_code", "effects", "output")
"""Aspects in which two runs of one tool can differ."""
CACHES = frozenset({"__pycache__", "node_modules"})
"""Names of cache folders that have no leading dot."""
NOT_FOUND = (126, 127)
"""Exit codes of a shell for a command that it cannot run (126) or find (127)."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[@-Z\\^_])")
_ARTIFACT_IGNORED = frozenset(
    (
        *(
            ".git",
            ".hg",
            ".svn",
            "__pycache__",
            ".pytest_cache",
            ".mypy_cache",
            ".ruff_cache",
            ".tox",
            ".nox",
        ),
        *(
            ".venv",
            "venv",
            "env",
            "node_modules",
            "dist",
            "build",
            "target",
            "coverage",
            ".coverage",
            ".next",
        ),
        *(".nuxt", ".parcel-cache"),
    )
)
"""Names that the authors' runner ignores anywhere in a path. It ignores no other hidden paths."""


class Change(NamedTuple):
    """Change of one path."""

    kind: str
    """Kind of entry afterwards: file, directory, symlink, or deleted. Other kinds are compared as they are."""
    content: str = ""
    """Digest of a file's content, or the target of a link."""
    mode: int | None = None
    """Permission bits; None if deleted."""
    was: str = ""
    """Kind of the entry before; empty if there was none."""
    head: str = ""
    """Digest of the first 2,000 characters of a file's content and of whether there are more."""
    mode_only: bool = False
    """True if kind and content are unchanged."""


class Observation(NamedTuple):
    """Observed behaviour of one side in one case."""

    exit_code: int | None
    """Exit code; None if the command did not end by itself."""
    stdout: str
    """Standard output. It includes stderr only with `semantics=artifact`, as in the authors' runner."""
    changes: Mapping[str, Change]
    """ΔS: absolute path -> its change."""
    seconds: float = 0.0
    """Wall time of the command, in seconds."""
    note: str = ""
    """Properties that `stdout` as text does not show: its length if it was cut, or that it is not text. Outputs whose
    notes differ match neither exactly nor semantically."""


class Phase(StrEnum):
    """Stage of the paper's funnel at which a case ended (section 5.2)."""

    INSTALL = "install"
    NOT_FOUND = "not_found"
    """The tool was installed, but the shell could not find or run its command."""
    CRASH = "crash"
    """The exit code was not 0, or the command was stopped and has none."""
    SIDE_EFFECTS = "side_effects"
    OUTPUT = "output"
    """Outputs are not an exact match; they may still be a fuzzy or semantic one."""
    UNDECIDED = "undecided"
    """All that the reference does the same each time is equal, and the rest cannot be compared."""
    PASSED = "passed"


@dataclass(frozen=True)
class Rules:
    """Rules by which observations are compared."""

    semantics: Literal["paper", "artifact"] = "paper"
    """paper: as the paper defines it. artifact: as the authors' runner does it, with the rulings in docs/metrics.md."""
    tau: float = 0.8
    """τ: least similarity of a fuzzy match, in [0, 1] (section 3.2.1)."""
    compare_modes: bool = False
    """True if permission bits are part of ΔS."""
    roots: tuple[str, ...] = ("/workspace", "/test_data")
    """Folders that `semantics=artifact` compares."""


@dataclass(frozen=True)
class CaseScore:
    """Indicators of one case (eq. 3). In a case that is not valid, only `agreed` counts.

    An indicator is None if it is undecided, because the reference itself varies in it; no mean counts such a value.
    """

    valid: bool
    """True if the reference ended with exit code 0 (section 2.3.3)."""
    agreed: bool
    """True if both succeeded or both failed; a candidate that was not found or was stopped has not failed as a tool."""
    phase: Phase
    exec: bool = False
    """True if the candidate ended with exit code 0."""
    state: bool | None = False
    """True if both ΔS are equal, regardless of `exec`. Outputs are compared only if `exec` and `state` both hold."""
    exact_match: bool | None = False
    fuzzy_match: bool | None = False
    semantic_match: bool | None = False
    """True if the outputs mean the same. None while `exact_match` is False and no judge has compared them."""


class Robustness(NamedTuple):
    """Agreement on positive and on negative cases, pooled over classes (section 5.1); NaN without such a case."""

    positive: int
    """Number of cases in which the reference succeeds."""
    positive_agreement: float
    """Share of them in which the candidate does too."""
    negative: int
    """Number of cases in which the reference fails."""
    negative_agreement: float
    """Share of them in which the candidate fails too, with an exit code of its own."""


class TaskScore(NamedTuple):
    """Scores of one task (eq. 4), with the rates they are made of."""

    build: float
    """1 if the candidate could be installed, else 0."""
    metrics: Mapping[str, float]
    """Metric -> mean over the classes that have it; 0 if installation failed, NaN if no class has it.
    `semantic_match` is absent if any case that needed a judge had none."""
    classes: Mapping[str, Mapping[str, float]]
    """Class -> metric -> P_metric(c) (eq. 3), over the valid cases of the class in which the metric is decided. A
    metric that is decided in none of them is absent, and so are the classes in `left_out`."""
    left_out: tuple[str, ...]
    """Classes without a valid case; no mean counts them."""


class RuntimeRatio(NamedTuple):
    """Seconds of the candidate divided by those of the reference, paired case by case."""

    cases: int
    """Number of pairs."""
    mean: float
    median: float


def effective(changes: Mapping[str, Change], rules: Rules) -> dict[str, Change]:
    """Return ΔS', which is ΔS without ignored paths (section 2.3.3) and without what `rules` does not compare.

    With `semantics=paper`, hidden paths, caches and bytecode are ignored wherever they are. With `semantics=artifact`,
    only regular files below `roots` count, before and after, and the authors' list of ignored names applies instead.
    """
    if rules.semantics == "artifact":
        listed = {path: change for path, change in changes.items() if _is_listed(path, rules)}
        found = {path: _as_listed(path, change) for path, change in listed.items()}
        return {path: change for path, change in found.items() if change}
    return {
        path: Change(change.kind, change.content, change.mode if rules.compare_modes else None)
        for path, change in changes.items()
        if not _is_hidden(PurePosixPath(path)) and (rules.compare_modes or not change.mode_only)
    }


def _is_hidden(path: PurePosixPath) -> bool:
    return path.suffix == ".pyc" or any(part.startswith(".") or part in CACHES for part in path.parts)


def _is_listed(path: str, rules: Rules) -> bool:
    """Return whether a file at this path would be in the authors' list, which has one tab-separated line per file."""
    pure = PurePosixPath(path)
    inside = any(pure.is_relative_to(root) for root in rules.roots)
    return inside and _ARTIFACT_IGNORED.isdisjoint(pure.parts) and not {"\t", "\n"} & {*path}


def _as_listed(path: str, change: Change) -> Change | None:
    """Return the change that the authors' list shows for a path; None if it shows none.

    The authors read contents with a shell command that has the name in quotes. A name with a quote, a line break or
    bytes that are not UTF-8 is not found that way, so the file has no content.
    """
    if change.kind != "file":
        return Change("deleted") if change.was == "file" else None
    if change.mode_only:
        return None
    is_plain = "'" not in path and "\\" not in path.replace("\\\\", "")
    is_readable = is_plain and len(f"{path}/".splitlines()) == 1
    return Change("changed" if change.was == "file" else "added", change.head if is_readable else "")


def exact(reference: str, candidate: str) -> bool:
    """Return whether the outputs are equal without ANSI escapes and white space (EM, section 3.2.1)."""
    return _bare(reference) == _bare(candidate)


def similarity(reference: str, candidate: str, least: float = 0.0) -> float:
    """Return 1 − Levenshtein(a, b) / max(len(a), len(b)), in characters, of the `folded` outputs (FM, section 3.2.1).

    Two empty outputs have similarity 1. A similarity below `least` is returned as 0, which is much faster to find:
    unlike texts of a million characters take seconds instead of a minute.
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - only comparisons need it

    texts = folded(reference), folded(candidate)
    longest = max(*map(len, texts), 1)
    # The cutoff is in whole characters: rapidfuzz's bound on shares rejects texts that are exactly `least` alike.
    found = 1 - Levenshtein.distance(*texts, score_cutoff=ceil((1 - least) * longest)) / longest
    return found if found >= least else 0.0


def folded(output: str) -> str:
    """Return the output without ANSI escapes, each run of white space as one blank, and its ends stripped."""
    return " ".join(unescaped(output).split())


def unescaped(output: str) -> str:
    """Return the output without ANSI escapes."""
    return _ANSI.sub("", output)


def _bare(output: str) -> str:
    return "".join(unescaped(output).split())


def unlike(one: Observation, other: Observation, rules: Rules) -> tuple[Level, ...]:
    """Return the `LEVELS` in which two runs of a case differ."""
    differs: dict[Level, bool] = {
        "exit_code": one.exit_code != other.exit_code,
        "effects": effective(one.changes, rules) != effective(other.changes, rules),
        "output": one.note != other.note or not exact(one.stdout, other.stdout),
    }
    return tuple(level for level in LEVELS if differs[level])


def judge_case(
    reference: Observation,
    candidate: Observation | None,
    rules: Rules,
    *,
    same_meaning: bool | None = None,
    varying: Collection[Level] = (),
) -> CaseScore:
    """Return the indicators of one case (eq. 3) and the phase at which it ended.

    `candidate` is None if it could not be installed. `same_meaning` is the judge model's verdict on outputs that are
    not an exact match; None if it was not asked. `varying` are the levels in which the reference itself varies. Do not
    call this for a case whose exit code varies: it decides nothing.

    `fuzzy_match` is `similarity` ≥ τ, or an exact match. **Ruling:** the paper has no second clause; without it "abc"
    and "a b c" (0.6) would pass the strict metric and fail the lenient one.

    **Ruling:** an indicator counts if the levels that do not vary decide it. The paper compares outputs only if exit
    code and ΔS are right, so a candidate that is wrong there has no match, whether or not the reference's output
    varies; for a candidate that is right there, the match is undecided. Failing never helps: it can only turn an
    undecided case into a 0.
    """
    valid = reference.exit_code == 0
    if candidate is None:
        return CaseScore(valid=valid, agreed=False, phase=Phase.INSTALL)
    found = candidate.exit_code not in NOT_FOUND
    succeeded = candidate.exit_code == 0
    failed = candidate.exit_code is not None and found and not succeeded
    state = (
        None
        if "effects" in varying
        else effective(reference.changes, rules) == effective(candidate.changes, rules)
    )
    scored = CaseScore(
        valid=valid, agreed=succeeded if valid else failed, phase=Phase.PASSED, exec=succeeded, state=state
    )
    if not found:
        return replace(scored, phase=Phase.NOT_FOUND)
    if not succeeded:
        return replace(scored, phase=Phase.CRASH)
    if state is False:
        return replace(scored, phase=Phase.SIDE_EFFECTS)
    if varying:
        return replace(scored, phase=Phase.UNDECIDED, exact_match=None, fuzzy_match=None, semantic_match=None)
    return _with_outputs(scored, reference, candidate, rules, same_meaning=same_meaning)


def _with_outputs(
    scored: CaseScore,
    reference: Observation,
    candidate: Observation,
    rules: Rules,
    *,
    same_meaning: bool | None,
) -> CaseScore:
    """Return the indicators of a case whose exit code and ΔS are right, with those of its outputs."""
    alike = reference.note == candidate.note
    equal = alike and exact(reference.stdout, candidate.stdout)
    return replace(
        scored,
        phase=Phase.PASSED if equal else Phase.OUTPUT,
        exact_match=equal,
        fuzzy_match=equal or similarity(reference.stdout, candidate.stdout, rules.tau) >= rules.tau,
        semantic_match=equal or (same_meaning if alike else False),
    )


def score(cases: Mapping[str, Sequence[CaseScore]]) -> TaskScore:
    """Return the scores of a task from its cases by class (eqs. 3 and 4).

    If installation failed, every metric is 0, even if no class has a valid case.
    """
    installed = not any(case.phase is Phase.INSTALL for scored in cases.values() for case in scored)
    valid = {name: [case for case in scored if case.valid] for name, scored in cases.items()}
    unjudged = any(
        case.exact_match is False and case.semantic_match is None
        for scored in valid.values()
        for case in scored
    )
    names = [name for name in METRICS if not (unjudged and name == "semantic_match")]
    classes = {name: _rates(scored, names) for name, scored in valid.items() if scored}
    metrics = {name: [rates[name] for rates in classes.values() if name in rates] for name in names}
    none = nan if installed else 0.0
    return TaskScore(
        float(installed),
        {name: fmean(rates) if rates else none for name, rates in metrics.items()},
        classes,
        tuple(name for name, scored in valid.items() if not scored),
    )


def _rates(cases: Sequence[CaseScore], names: Sequence[str]) -> dict[str, float]:
    """Return each metric's share over the cases in which it is decided; without such a case it is absent."""
    decided = {
        name: [value for case in cases if (value := getattr(case, name)) is not None] for name in names
    }
    return {name: fmean(values) for name, values in decided.items() if values}


def robustness(cases: Sequence[CaseScore]) -> Robustness:
    """Return how often both sides succeed if the reference does, and how often both fail if it fails."""
    positive = [case.agreed for case in cases if case.valid]
    negative = [case.agreed for case in cases if not case.valid]
    return Robustness(
        len(positive),
        fmean(positive) if positive else nan,
        len(negative),
        fmean(negative) if negative else nan,
    )


def funnel(cases: Sequence[CaseScore]) -> dict[Phase, int]:
    """Count the valid cases that ended in each phase (section 5.2)."""
    counts = Counter(case.phase for case in cases if case.valid)
    return {phase: counts[phase] for phase in Phase}


def runtime_ratio(pairs: Sequence[tuple[float, float]]) -> RuntimeRatio:
    """Return the runtime ratio over (reference, candidate) seconds of the same cases.

    Pairs whose reference took no time are left out; without any other pair, mean and median are NaN.
    """
    ratios = [candidate / reference for reference, candidate in pairs if reference > 0]
    if not ratios:
        return RuntimeRatio(0, nan, nan)
    return RuntimeRatio(len(ratios), fmean(ratios), median(ratios))
