"""Both sides of all cases, judged: the scores, the figures beside them, and a text for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isnan, nan
from statistics import fmean
from typing import Any

from metrics import differential as metric
from runner.benchmarks.cli_tool_bench.beside import Beside
from runner.benchmarks.cli_tool_bench.differences import difference
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun, observed
from runner.benchmarks.cli_tool_bench.semantic import JudgeVerdict, Pair
from runner.records.cases import Case, CaseResult, How

TIMES = {"seconds": "runtime", "cpu_seconds": "cpu"}
"""Field of a result -> what is said of it. Wall time is the paper's; as the reference's was taken earlier, only that of
the processor tells a slow tool from a busy hour."""
SHOWN = 3
"""Differences that are shown readably, each of another class."""


class Comparison:
    """Both sides of all cases, judged."""

    def __init__(
        self,
        rules: metric.Rules,
        cases: Sequence[Case],
        reference: ReferenceRun,
        results: Sequence[CaseResult] | None,
        installation: str,
        verdicts: Mapping[str, JudgeVerdict] | None = None,
    ) -> None:
        """`verdicts`: those of a judge model on `questions`, by `Pair.digest`; None: no model judges."""
        self.cases, self.reference = cases, reference
        self._rules, self._results = rules, results
        self._installation, self._verdicts = installation, verdicts
        self._scores = {
            index: self._score(index)
            for index in range(len(cases))
            if "exit_code" not in reference.varying.get(index, ())
        }

    @property
    def how(self) -> How:
        """The way in which the cases were run."""
        return self.reference.results[0].how

    @property
    def suspects(self) -> dict[int, Case]:
        """Index and case of all that a candidate failed, where that may be the clock's doing.

        A command that is not found is wrong at any hour; what is looked at beside each candidate needs no suspicion.
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
        """Index of each valid case that nothing but its output's wording can fail -> its two outputs."""
        ended = [i for i, score in self._scores.items() if score.valid and score.phase is metric.Phase.OUTPUT]
        results = self._results or ()
        return {
            index: self._pair(index, results)
            for index in ended
            if results and observed(results[index]).note == observed(self.reference.results[index]).note
        }

    def beside(self, found: Mapping[int, Beside]) -> Comparison:
        """The same with both sides of these cases as they were within one moment."""
        reference, results = list(self.reference.results), list(self._results or ())
        varying = dict(self.reference.varying)
        for index, one in found.items():
            reference[index], results[index] = one.reference, one.candidate
            if levels := {*varying.get(index, ()), *one.varying}:
                varying[index] = tuple(level for level in metric.LEVELS if level in levels)
        moment = self.reference.model_copy(
            update={"results": tuple(reference), "varying": varying, "moving": tuple(found)}
        )
        return Comparison(self._rules, self.cases, moment, results, self._installation)

    def judged(self, verdicts: Mapping[str, JudgeVerdict]) -> Comparison:
        """The same with a judge model's verdicts."""
        return Comparison(
            self._rules, self.cases, self.reference, self._results, self._installation, verdicts
        )

    def scored(self) -> metric.TaskScore:
        """The paper's scores; a class without a valid case whose exit code is stable is left out."""
        classes: dict[str, list[metric.CaseScore]] = {case.command_class: [] for case in self.cases}
        for index, score in self._scores.items():
            classes[self.cases[index].command_class].append(score)
        scored = metric.score(classes)
        if self._verdicts is not None:
            return scored
        return scored._replace(
            metrics=_unjudged(scored.metrics),
            classes={name: _unjudged(rates) for name, rates in scored.classes.items()},
        )

    def components(self) -> dict[str, float]:
        """Figures beside the scores; those that have no denominator are left out."""
        scores = list(self._scores.values())
        robustness = metric.robustness(scores)
        ratios = {
            name: metric.runtime_ratio([pair for pairs in self._pairs(name).values() for pair in pairs])
            for name in TIMES
        }
        seconds = [pair for pairs in self._pairs("seconds").values() for pair in pairs]
        reference, candidate = (fmean(side) for side in zip(*seconds, strict=True)) if seconds else (nan, nan)
        funnel = {f"ended_{phase}": float(count) for phase, count in metric.funnel(scores).items()}
        figures = {
            "positive_agreement": robustness.positive_agreement,
            "negative_agreement": robustness.negative_agreement,
            **{f"{TIMES[name]}_mean": ratio.mean for name, ratio in ratios.items()},
            **{f"{TIMES[name]}_median": ratio.median for name, ratio in ratios.items()},
            "runtime_reference": reference,
            "runtime_candidate": candidate,
            "unstable_cases": float(len(self.reference.varying)),
            "moving_cases": float(len(self.reference.moving)),
        }
        return known(figures) | funnel

    def found(self, scored: metric.TaskScore) -> dict[str, Any]:
        """What `differential.json` holds. Lines are those of the cases' file, from 1."""
        judged = {} if self._verdicts is None else {"judged": list(self._words(self._verdicts))}
        return judged | {
            "scores": known(scored.metrics),
            "classes": scored.classes,
            "left_out": scored.left_out,
            "unstable_lines": {index + 1: levels for index, levels in self.reference.varying.items()},
            "moving_lines": [index + 1 for index in self.reference.moving],
            "robustness": known(metric.robustness(list(self._scores.values()))._asdict()),
            **{
                TIMES[time]: {
                    name: known(metric.runtime_ratio(pairs)._asdict())
                    for name, pairs in self._pairs(time).items()
                }
                for time in TIMES
            },
            "how": {
                "reference": self.reference.results[0].how,
                "candidate": self._results[0].how if self._results else None,
            },
            "cases": [
                {"line": index + 1, "class": self.cases[index].command_class, **asdict(score)}
                for index, score in self._scores.items()
            ],
        }

    def text(self, scored: metric.TaskScore) -> str:
        """The verdict for people: scores, funnel, and where it went wrong first."""
        counts = metric.funnel(list(self._scores.values()))
        lines = [f"{name} {value:.3f}" for name, value in {"build": scored.build, **scored.metrics}.items()]
        lines += [f"valid cases that ended in {phase}: {count}" for phase, count in counts.items() if count]
        lines += [
            f"class {name} {self._why_undecided(name)}"
            for name in dict.fromkeys(case.command_class for case in self.cases)
            if "exact_match" not in scored.classes.get(name, {})
        ]
        lines += [
            f"the {what.replace('_', ' ')} of the reference varies in line {numbers}, and decides nothing there"
            for what in metric.LEVELS
            if (numbers := _lines(at for at, levels in self.reference.varying.items() if what in levels))
        ]
        if self.reference.moving:
            numbers = _lines(self.reference.moving)
            lines.append(
                f"the reference moves with the clock in line {numbers}: looked at beside the candidate"
            )
        if self._results is None:
            return "\n".join([*lines, "", self._installation[-3000:]])
        return "\n".join([*lines, *self._differences(self._results)])

    def _why_undecided(self, name: str) -> str:
        """Why no output of a class is compared."""
        of_class = [index for index, case in enumerate(self.cases) if case.command_class == name]
        steady = [index for index in of_class if index in self._scores]
        valid = sum(self._scores[index].valid for index in steady)
        if valid:
            return f"counts for exit codes alone: what the reference does varies in each of its {valid} valid cases"
        if len(steady) == len(of_class):
            return "is left out: the reference succeeds in none of it"
        return (
            f"is left out: the exit code of the reference varies in {len(of_class) - len(steady)} of its "
            f"{len(of_class)} cases, and it fails in the others"
        )

    def _score(self, index: int) -> metric.CaseScore:
        reference = observed(self.reference.results[index])
        if not self._results:
            return metric.judge_case(reference, None, self._rules)
        verdict = (self._verdicts or {}).get(self._pair(index, self._results).digest)
        return metric.judge_case(
            reference,
            observed(self._results[index]),
            self._rules,
            same_meaning=verdict.equivalent if verdict else None,
            varying=self.reference.varying.get(index, ()),
        )

    def _pair(self, index: int, results: Sequence[CaseResult]) -> Pair:
        return Pair.of(observed(self.reference.results[index]).stdout, observed(results[index]).stdout)

    def _words(self, verdicts: Mapping[str, JudgeVerdict]) -> Iterator[dict[str, Any]]:
        """What the judge saw and said, as a person who labels the same pairs needs it."""
        for index, pair in self.questions.items():
            case = {"line": index + 1, "class": self.cases[index].command_class}
            yield case | {"pair": pair.digest, **verdicts[pair.digest].model_dump(), **pair._asdict()}

    def _differences(self, results: Sequence[CaseResult]) -> Iterator[str]:
        """The first difference of each of the first classes that have one."""
        seen: dict[str, int] = {}
        for index, score in self._scores.items():
            if score.valid and score.phase not in (metric.Phase.PASSED, metric.Phase.UNDECIDED):
                seen.setdefault(self.cases[index].command_class, index)
        for index in list(seen.values())[:SHOWN]:
            case, phase = self.cases[index], self._scores[index].phase
            yield f"\nline {index + 1}, class {case.command_class}, ended in {phase}: {case.command}"
            yield difference(self.reference.results[index], results[index], phase, self._rules)

    def _pairs(self, time: str) -> dict[str, list[tuple[float, float]]]:
        """By class: such seconds of both sides in the cases in which both succeeded."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for index, score in self._scores.items():
            if score.valid and score.exec and self._results is not None:
                pair = (getattr(self.reference.results[index], time), getattr(self._results[index], time))
                pairs.setdefault(self.cases[index].command_class, []).append(pair)
        return pairs


def _lines(indices: Iterable[int]) -> str:
    """As they are in the cases' file, from 1."""
    return ", ".join(str(index + 1) for index in indices)


def _unjudged(scores: Mapping[str, float]) -> dict[str, float]:
    """Without the semantic match: no model judges here, so it could be said of exact matches only."""
    return {name: value for name, value in scores.items() if name != "semantic_match"}


def known(figures: Mapping[str, float]) -> dict[str, float]:
    """Those that have a denominator."""
    return {name: float(value) for name, value in figures.items() if not isnan(value)}
