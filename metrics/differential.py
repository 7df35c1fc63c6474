"""Black-box differential evaluation of command-line tools (CLI-Tool-Bench, sections 2.3 and 3.2).

A *case* runs the reference (human-written tool, the paper's oracle) and the candidate from equal clean states. Pure
functions from what was observed of both to the paper's scores. Shares are in [0, 1]; what has no denominator is NaN.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, nan, sqrt
from pathlib import PurePosixPath
from statistics import NormalDist, fmean, median
from typing import Literal, NamedTuple

OUTPUT_METRICS = ("exact_match", "fuzzy_match", "semantic_match")
"""From strict to lenient (section 3.2.1)."""
METRICS = ("exec", "state", *OUTPUT_METRICS)
"""What eq. 4 averages; `state` is no column of the paper's tables, but a gate of three that are."""
Level = Literal["exit_code", "effects", "output"]
LEVELS: tuple[Level, ...] = ("exit_code", "effects", "output")
"""What two runs of one tool can differ in."""
CACHES = frozenset({"__pycache__", "node_modules"})
"""Names of folders without a leading dot that tools fill behind their users' backs."""
NOT_FOUND = (126, 127)
"""What a shell answers for a command that it cannot run, or find."""

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
"""Of the authors' runner: wherever such a name stands in a path. It does not ignore hidden paths otherwise."""


class Change(NamedTuple):
    """What became of one path."""

    kind: str
    """file, directory, symlink or deleted (anything else is compared as it is)."""
    content: str = ""
    """Digest of a file's content, target of a link."""
    mode: int | None = None
    """Permission bits; None if deleted."""
    was: str = ""
    """Kind of what was there before; empty for nothing."""
    head: str = ""
    """Digest of the first 2,000 characters of a file's content, and of whether there are more."""
    mode_only: bool = False
    """Whether kind and content are as before."""


class Observation(NamedTuple):
    """What one side did in one case."""

    exit_code: int | None
    """None: it did not end by itself."""
    stdout: str
    """With stderr merged into it where `semantics=artifact` (the authors' runner); else without."""
    changes: Mapping[str, Change]
    """ΔS: absolute path -> what became of it."""
    seconds: float = 0.0
    """Wall time of the command."""
    note: str = ""
    """What `stdout` as text does not say: that it was cut, and how long it was, or is no text. Outputs whose notes
    differ match neither exactly nor semantically, whatever they say."""


class Phase(StrEnum):
    """Where in the paper's funnel a case ended."""

    INSTALL = "install"
    NOT_FOUND = "not_found"
    """The tool was installed, and there is no such command."""
    CRASH = "crash"
    """Another exit code than 0, or none: it was stopped."""
    SIDE_EFFECTS = "side_effects"
    OUTPUT = "output"
    """All but the strictest comparison of stdout may still have succeeded."""
    UNDECIDED = "undecided"
    """Nothing that the reference does the same each time differs, and the rest cannot be compared."""
    PASSED = "passed"


@dataclass(frozen=True)
class Rules:
    """How observations are compared."""

    semantics: Literal["paper", "artifact"] = "paper"
    """artifact: as the authors' runner does it, but for the rulings in docs/metrics.md."""
    tau: float = 0.8
    """τ: least similarity of a fuzzy match (section 3.2.1)."""
    compare_modes: bool = False
    """Whether permission bits are part of ΔS."""
    roots: tuple[str, ...] = ("/workspace", "/test_data")
    """What `semantics=artifact` looks at."""


@dataclass(frozen=True)
class CaseScore:
    """Indicators of one case (eq. 3). Of a case that is not valid only `agreed` counts.

    None: undecided, as the reference itself does not do that the same each time; such a value is in no mean.
    """

    valid: bool
    """The reference ended with exit code 0 (section 2.3.3)."""
    agreed: bool
    """Both succeeded, or both failed as tools do: the candidate was found and ended by itself."""
    phase: Phase
    exec: bool = False
    state: bool | None = False
    """Equal ΔS. Asked whether or not `exec` holds; an output is compared only if both do."""
    exact_match: bool | None = False
    fuzzy_match: bool | None = False
    semantic_match: bool | None = False
    """None where `exact_match` is False: nobody has judged it."""


class Robustness(NamedTuple):
    """Positive and negative cases apart, pooled over classes; NaN where there is none."""

    positive: int
    """Cases in which the reference succeeds."""
    positive_agreement: float
    """Share of them in which the candidate does too."""
    negative: int
    """Cases in which the reference fails."""
    negative_agreement: float
    """Share of them in which the candidate fails too, by itself."""


class TaskScore(NamedTuple):
    """Eq. 4 for each metric, and what it is made of."""

    build: float
    metrics: Mapping[str, float]
    """Each of `METRICS`: mean over the classes that have it, 0 if installation failed. NaN: no class has it.
    `semantic_match` is absent if any case that needed a judge had none."""
    classes: Mapping[str, Mapping[str, float]]
    """P_metric(c) (eq. 3) over the valid cases of each class in which the metric is decided. A metric that is decided
    in none of them is absent; classes of `left_out` are not in it."""
    left_out: tuple[str, ...]
    """Classes without a valid case, which no mean counts."""


class RuntimeRatio(NamedTuple):
    """Seconds of the candidate over those of the reference, paired case by case."""

    cases: int
    mean: float
    median: float


class Kappa(NamedTuple):
    """Agreement of two raters beyond chance."""

    kappa: float
    low: float
    high: float
    n: int


def effective(changes: Mapping[str, Change], rules: Rules) -> dict[str, Change]:
    """ΔS' = ΔS without ignored paths (section 2.3.3), and without what `rules` does not compare.

    paper: hidden paths, caches and bytecode are ignored, wherever they are. artifact: only regular files below
    `roots` count, before and after; its list of ignored names replaces the paper's.
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
    """Whether a regular file at this path would be in the authors' list, which has a line a file and tabs in it."""
    pure = PurePosixPath(path)
    inside = any(pure.is_relative_to(root) for root in rules.roots)
    return inside and _ARTIFACT_IGNORED.isdisjoint(pure.parts) and not {"\t", "\n"} & {*path}


def _as_listed(path: str, change: Change) -> Change | None:
    """What becomes of a path in the authors' list; None for nothing.

    Contents are read by a shell command that holds the name in quotes. A name with a quote, a line break or bytes that
    are not UTF-8 is not found that way, so the file has no content.
    """
    if change.kind != "file":
        return Change("deleted") if change.was == "file" else None
    if change.mode_only:
        return None
    is_plain = "'" not in path and "\\" not in path.replace("\\\\", "")
    is_readable = is_plain and len(f"{path}/".splitlines()) == 1
    return Change("changed" if change.was == "file" else "added", change.head if is_readable else "")


def exact(reference: str, candidate: str) -> bool:
    """Equal once ANSI escapes and all white space are gone (EM, section 3.2.1)."""
    return _bare(reference) == _bare(candidate)


def similarity(reference: str, candidate: str, least: float = 0.0) -> float:
    """1 − Levenshtein(a, b) / max(len(a), len(b)), in characters, of the folded outputs (FM, section 3.2.1).

    Folded: ANSI escapes gone, runs of white space one blank, ends stripped. Two empty outputs are equal (1). Below
    `least` it is 0, which is found out far sooner: of unlike texts of a million characters in seconds, not in a minute.
    """
    from rapidfuzz.distance import Levenshtein  # noqa: PLC0415 - only who judges needs it

    texts = folded(reference), folded(candidate)
    longest = max(*map(len, texts), 1)
    # In whole characters: rapidfuzz's own bound on shares refuses what is exactly `least`.
    found = 1 - Levenshtein.distance(*texts, score_cutoff=ceil((1 - least) * longest)) / longest
    return found if found >= least else 0.0


def folded(output: str) -> str:
    """The output without ANSI escapes, its runs of white space one blank, its ends stripped."""
    return " ".join(unescaped(output).split())


def unescaped(output: str) -> str:
    """The output without ANSI escapes."""
    return _ANSI.sub("", output)


def _bare(output: str) -> str:
    return "".join(unescaped(output).split())


def unlike(one: Observation, other: Observation, rules: Rules) -> tuple[Level, ...]:
    """Name what two runs of a case differ in."""
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
    """One case. `candidate` is None if it could not be installed. `same_meaning` is the judge model's word on outputs
    that are no exact match; None: not asked. `varying` is what the reference does not do the same each time; a case
    whose exit code varies says nothing, and is not to be judged.

    `fuzzy_match` is `similarity` ≥ τ, or an exact match. **Ruling:** the paper has no second clause; without it "abc"
    and "a b c" (0.6) would pass the strict metric and fail the lenient one.

    **Ruling:** an indicator counts where what does not vary decides it. The paper compares outputs only where exit code
    and ΔS are right, so a candidate that fails there has no match, whether or not the reference's output varies; one
    that is right there is undecided. Failing never helps: it can only turn an undecided case into a 0.
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
    """The scores of a task from its cases by class (eqs. 3 and 4).

    Where installation failed every metric is 0 by its cases themselves; also if no class has a valid one.
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
    """Share of each metric over the cases in which it is decided, if there are any."""
    decided = {
        name: [value for case in cases if (value := getattr(case, name)) is not None] for name in names
    }
    return {name: fmean(values) for name, values in decided.items() if values}


def robustness(cases: Sequence[CaseScore]) -> Robustness:
    """How often both succeed where the reference does, and both fail where it fails."""
    positive = [case.agreed for case in cases if case.valid]
    negative = [case.agreed for case in cases if not case.valid]
    return Robustness(
        len(positive),
        fmean(positive) if positive else nan,
        len(negative),
        fmean(negative) if negative else nan,
    )


def funnel(cases: Sequence[CaseScore]) -> dict[Phase, int]:
    """How many of the valid cases ended in each phase."""
    counts = Counter(case.phase for case in cases if case.valid)
    return {phase: counts[phase] for phase in Phase}


def runtime_ratio(pairs: Sequence[tuple[float, float]]) -> RuntimeRatio:
    """Of (reference, candidate) seconds of the same cases; NaN if there is none, or a reference took no time."""
    ratios = [candidate / reference for reference, candidate in pairs if reference > 0]
    if not ratios:
        return RuntimeRatio(0, nan, nan)
    return RuntimeRatio(len(ratios), fmean(ratios), median(ratios))


def cohens_kappa(judge: Sequence[bool], human: Sequence[bool], confidence: float = 0.95) -> Kappa:
    """Cohen's κ of two raters over the same items, with its large-sample interval (Fleiss, Cohen and Everitt 1969).

    NaN where both gave one and the same label throughout: there is nothing beyond chance to agree on. Raises
    `ValueError` when they rated different numbers of items.
    """
    n = len(judge)
    if n != len(human):
        raise ValueError(f"{n} judgements and {len(human)} labels: each item needs one of both")
    share = {
        (ours, theirs): sum(pair == (ours, theirs) for pair in zip(judge, human, strict=True)) / n
        if n
        else nan
        for ours in (False, True)
        for theirs in (False, True)
    }
    rows = {label: share[label, False] + share[label, True] for label in (False, True)}
    columns = {label: share[False, label] + share[True, label] for label in (False, True)}
    observed = share[False, False] + share[True, True]
    chance = sum(rows[label] * columns[label] for label in (False, True))
    if n == 0 or chance == 1.0:
        return Kappa(nan, nan, nan, n)
    kappa = (observed - chance) / (1 - chance)
    same = sum(
        share[label, label] * ((1 - chance) - (rows[label] + columns[label]) * (1 - observed)) ** 2
        for label in (False, True)
    )
    crossed = sum(
        share[ours, theirs] * (columns[ours] + rows[theirs]) ** 2
        for ours, theirs in ((False, True), (True, False))
    )
    variance = same + (1 - observed) ** 2 * crossed - (observed * chance - 2 * chance + observed) ** 2
    half = NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(max(variance, 0.0) / n) / (1 - chance) ** 2
    return Kappa(kappa, max(kappa - half, -1.0), min(kappa + half, 1.0), n)
