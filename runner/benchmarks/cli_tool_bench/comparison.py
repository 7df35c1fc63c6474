"""Compare both sides of all cases: scores, components of the verdict, details and a summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isnan, nan
from statistics import fmean
from typing import Any

from metrics import differential as metric
from runner.benchmarks.cli_tool_bench.differences import explain_failure
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun, observe
from runner.benchmarks.cli_tool_bench.semantic import JudgeVerdict, Pair
from runner.benchmarks.cli_tool_bench.side_by_side import SideBySide
from runner.records.cases import Case, CaseResult, How

TIMES = {"seconds": "runtime", "cpu_seconds": "cpu"}
"""Field of a result -> name of its component. The paper uses wall time. The reference may have run at another hour, so
only processor time distinguishes a slow tool from a busy machine."""
MAX_DIFFERENCES = 3
"""Largest number of differences in the summary, each from a different class."""


@dataclass(frozen=True)
class Comparison:
    """A comparison of the candidate with the reference, over all cases of a task."""

    rules: metric.Rules
    cases: Sequence[Case]
    reference: ReferenceRun
    results: Sequence[CaseResult] | None
    """Results of the candidate, in the order of the cases; None if it could not be installed."""
    installation: str
    """Output of the candidate's installation."""
    verdicts: Mapping[str, JudgeVerdict] | None = None
    """A judge model's verdicts on `questions`, by `Pair.digest`; None: no model judges."""

    @cached_property
    def _scores(self) -> dict[int, metric.CaseScore]:
        """Score of each case, by its index. Cases in which the reference's exit code varies have none."""
        varying = self.reference.varying
        return {
            index: self._score(index)
            for index in range(len(self.cases))
            if "exit_code" not in varying.get(index, ())
        }

    @property
    def how(self) -> How:
        """The isolation in which the cases were run."""
        return self.reference.results[0].how

    @property
    def suspects(self) -> dict[int, Case]:
        """The cases, by index, that the candidate may have failed only because the reference ran at another time.

        Missing commands are missing at any time. Moving cases are run side by side in any case.
        """
        wrong = (metric.Phase.CRASH, metric.Phase.SIDE_EFFECTS, metric.Phase.OUTPUT)
        return {
            index: self.cases[index]
            for index, score in self._scores.items()
            if index not in self.reference.moving
            and (score.phase in wrong if score.valid else not score.agreed)
            and score.phase is not metric.Phase.NOT_FOUND
        }

    @property
    def questions(self) -> dict[int, Pair]:
        """Pairs of outputs for a judge, by index of the case: from valid cases that differ in their output alone."""
        if not self.results:
            return {}
        return {
            index: self._pair(index, self.results)
            for index, score in self._scores.items()
            if score.valid
            and score.phase is metric.Phase.OUTPUT
            and observe(self.results[index]).note == observe(self.reference.results[index]).note
        }

    def with_side_by_side(self, found: Mapping[int, SideBySide]) -> Comparison:
        """Return the comparison with these cases, by index, replaced by runs of both sides at the same moment."""
        reference, results = list(self.reference.results), list(self.results or ())
        varying = dict(self.reference.varying)
        for index, both in found.items():
            reference[index], results[index] = both.reference, both.candidate
            if levels := {*varying.get(index, ()), *both.varying}:
                varying[index] = tuple(level for level in metric.LEVELS if level in levels)
        moment = {"results": tuple(reference), "varying": varying, "moving": tuple(found)}
        return replace(self, reference=self.reference.model_copy(update=moment), results=results)

    def with_verdicts(self, verdicts: Mapping[str, JudgeVerdict]) -> Comparison:
        """Return the comparison with a judge model's verdicts."""
        return replace(self, verdicts=verdicts)

    def score(self) -> metric.TaskScore:
        """Return the paper's scores. A class without a valid case whose exit code is stable is left out."""
        classes: dict[str, list[metric.CaseScore]] = {case.command_class: [] for case in self.cases}
        for index, score in self._scores.items():
            classes[self.cases[index].command_class].append(score)
        scored = metric.score(classes)
        if self.verdicts is not None:
            return scored
        return scored._replace(
            metrics=_without_semantic_match(scored.metrics),
            classes={name: _without_semantic_match(rates) for name, rates in scored.classes.items()},
        )

    def components(self) -> dict[str, float]:
        """Return the verdict's components beside the scores, without those whose denominator is 0."""
        scores = list(self._scores.values())
        pairs = {field: [pair for some in self._times(field).values() for pair in some] for field in TIMES}
        ratios = {TIMES[field]: metric.runtime_ratio(some) for field, some in pairs.items()}
        seconds = pairs["seconds"]
        reference, candidate = (fmean(side) for side in zip(*seconds, strict=True)) if seconds else (nan, nan)
        robustness = metric.robustness(scores)
        figures = {
            "positive_agreement": robustness.positive_agreement,
            "negative_agreement": robustness.negative_agreement,
            **{f"{name}_mean": ratio.mean for name, ratio in ratios.items()},
            **{f"{name}_median": ratio.median for name, ratio in ratios.items()},
            "runtime_reference": reference,
            "runtime_candidate": candidate,
            "unstable_cases": len(self.reference.varying),
            "moving_cases": len(self.reference.moving),
            **{f"ended_{phase}": count for phase, count in metric.funnel(scores).items()},
        }
        return without_nan(figures)

    def details(self, scored: metric.TaskScore) -> dict[str, Any]:
        """Return the content of `differential.json`. Lines are those of the file of cases, from 1."""
        judged = {} if self.verdicts is None else {"judged": list(self._judged_pairs(self.verdicts))}
        return judged | {
            "scores": without_nan(scored.metrics),
            "classes": scored.classes,
            "left_out": scored.left_out,
            "unstable_lines": {index + 1: levels for index, levels in self.reference.varying.items()},
            "moving_lines": [index + 1 for index in self.reference.moving],
            "robustness": without_nan(metric.robustness(list(self._scores.values()))._asdict()),
            **{
                name: {
                    command_class: without_nan(metric.runtime_ratio(pairs)._asdict())
                    for command_class, pairs in self._times(field).items()
                }
                for field, name in TIMES.items()
            },
            "how": {"reference": self.how, "candidate": self.results[0].how if self.results else None},
            "cases": [
                {"line": index + 1, "class": self.cases[index].command_class, **asdict(score)}
                for index, score in self._scores.items()
            ],
        }

    def summary(self, scored: metric.TaskScore) -> str:
        """Return the scores, the funnel and the first differences, for people."""
        counts = metric.funnel(list(self._scores.values()))
        lines = [f"{name} {value:.3f}" for name, value in {"build": scored.build, **scored.metrics}.items()]
        lines += [f"valid cases that ended in {phase}: {count}" for phase, count in counts.items() if count]
        lines += [
            f"class {name} {self._explain_undecided(name)}"
            for name in dict.fromkeys(case.command_class for case in self.cases)
            if "exact_match" not in scored.classes.get(name, {})
        ]
        lines += [
            f"the {level.replace('_', ' ')} of the reference varies in line {numbers} and is not judged there"
            for level in metric.LEVELS
            if (numbers := _lines(at for at, levels in self.reference.varying.items() if level in levels))
        ]
        if self.reference.moving:
            numbers = _lines(self.reference.moving)
            lines.append(
                f"the reference changes with the clock in line {numbers}: both sides ran side by side"
            )
        if self.results is None:
            return "\n".join([*lines, "", self.installation[-3000:]])
        return "\n".join([*lines, *self._differences(self.results)])

    def _explain_undecided(self, name: str) -> str:
        """Return why no output of a class is compared."""
        of_class = [index for index, case in enumerate(self.cases) if case.command_class == name]
        steady = [index for index in of_class if index in self._scores]
        valid = sum(self._scores[index].valid for index in steady)
        if valid:
            return f"counts for exit codes alone: the reference varies in each of its {valid} valid cases"
        if len(steady) == len(of_class):
            return "is left out: the reference succeeds in none of its cases"
        return (
            f"is left out: the exit code of the reference varies in {len(of_class) - len(steady)} of its "
            f"{len(of_class)} cases, and it fails in the others"
        )

    def _score(self, index: int) -> metric.CaseScore:
        reference = observe(self.reference.results[index])
        if not self.results:
            return metric.judge_case(reference, None, self.rules)
        verdict = (self.verdicts or {}).get(self._pair(index, self.results).digest)
        return metric.judge_case(
            reference,
            observe(self.results[index]),
            self.rules,
            same_meaning=verdict.equivalent if verdict else None,
            varying=self.reference.varying.get(index, ()),
        )

    def _pair(self, index: int, results: Sequence[CaseResult]) -> Pair:
        return Pair.of(observe(self.reference.results[index]).stdout, observe(results[index]).stdout)

    def _judged_pairs(self, verdicts: Mapping[str, JudgeVerdict]) -> Iterator[dict[str, Any]]:
        """Yield each question with its verdict, in the form that a person needs to label the same pairs."""
        for index, pair in self.questions.items():
            case = {"line": index + 1, "class": self.cases[index].command_class}
            yield case | {"pair": pair.digest, **verdicts[pair.digest].model_dump(), **pair._asdict()}

    def _differences(self, results: Sequence[CaseResult]) -> Iterator[str]:
        """Yield one difference for each of the first `MAX_DIFFERENCES` classes that have any."""
        first: dict[str, int] = {}
        for index, score in self._scores.items():
            if score.valid and score.phase not in (metric.Phase.PASSED, metric.Phase.UNDECIDED):
                first.setdefault(self.cases[index].command_class, index)
        for index in list(first.values())[:MAX_DIFFERENCES]:
            case, phase = self.cases[index], self._scores[index].phase
            yield f"\nline {index + 1}, class {case.command_class}, ended in {phase}: {case.command}"
            yield explain_failure(self.reference.results[index], results[index], phase, self.rules)

    def _times(self, field: str) -> dict[str, list[tuple[float, float]]]:
        """Return (reference, candidate) seconds of the cases in which both succeeded, by class."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for index, score in self._scores.items():
            if score.valid and score.exec and self.results is not None:
                pair = (getattr(self.reference.results[index], field), getattr(self.results[index], field))
                pairs.setdefault(self.cases[index].command_class, []).append(pair)
        return pairs


def _lines(indices: Iterable[int]) -> str:
    """Return the line numbers, from 1, of these cases in the file of cases."""
    return ", ".join(str(index + 1) for index in indices)


def _without_semantic_match(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores without the semantic match, which without a judge would cover exact matches only."""
    return {name: value for name, value in scores.items() if name != "semantic_match"}


def without_nan(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the figures that have a denominator."""
    return {name: float(value) for name, value in figures.items() if not isnan(value)}
