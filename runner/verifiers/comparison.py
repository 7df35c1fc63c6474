"""Both sides of all cases, judged: the scores, the figures beside them, and a text for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isnan, nan
from statistics import fmean
from typing import Any

from metrics import differential as metric
from runner.cases import Case, CaseResult
from runner.verifiers.differences import difference
from runner.verifiers.reference_runs import ReferenceRun, observed
from runner.verifiers.semantic import JudgeVerdict, Pair

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
        self._rules, self._cases, self._reference, self._results = rules, cases, reference, results
        self._installation, self._verdicts = installation, verdicts
        self._scores = {
            index: self._score(index) for index in range(len(cases)) if index not in reference.unstable
        }

    @property
    def questions(self) -> dict[int, Pair]:
        """Index of each valid case that nothing but its output's wording can fail -> its two outputs."""
        ended = [i for i, score in self._scores.items() if score.valid and score.phase is metric.Phase.OUTPUT]
        results = self._results or ()
        return {
            index: self._pair(index, results)
            for index in ended
            if results and observed(results[index]).note == observed(self._reference.results[index]).note
        }

    def judged(self, verdicts: Mapping[str, JudgeVerdict]) -> Comparison:
        """The same with a judge model's verdicts."""
        return Comparison(
            self._rules, self._cases, self._reference, self._results, self._installation, verdicts
        )

    def scored(self) -> metric.TaskScore:
        """The paper's scores; a class all of whose cases are unstable is left out as one without a valid case is."""
        classes: dict[str, list[metric.CaseScore]] = {case.command_class: [] for case in self._cases}
        for index, score in self._scores.items():
            classes[self._cases[index].command_class].append(score)
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
            "unstable_cases": float(len(self._reference.unstable)),
        }
        return known(figures) | funnel

    def found(self, scored: metric.TaskScore) -> dict[str, Any]:
        """What `differential.json` holds. Lines are those of the cases' file, from 1."""
        judged = {} if self._verdicts is None else {"judged": list(self._words(self._verdicts))}
        return judged | {
            "scores": known(scored.metrics),
            "classes": scored.classes,
            "left_out": scored.left_out,
            "unstable_lines": [index + 1 for index in self._reference.unstable],
            "robustness": known(metric.robustness(list(self._scores.values()))._asdict()),
            **{
                TIMES[time]: {
                    name: known(metric.runtime_ratio(pairs)._asdict())
                    for name, pairs in self._pairs(time).items()
                }
                for time in TIMES
            },
            "how": {
                "reference": self._reference.results[0].how,
                "candidate": self._results[0].how if self._results else None,
            },
            "cases": [
                {"line": index + 1, "class": self._cases[index].command_class, **asdict(score)}
                for index, score in self._scores.items()
            ],
        }

    def text(self, scored: metric.TaskScore) -> str:
        """The verdict for people: scores, funnel, and where it went wrong first."""
        counts = metric.funnel(list(self._scores.values()))
        lines = [f"{name} {value:.3f}" for name, value in {"build": scored.build, **scored.metrics}.items()]
        lines += [f"valid cases that ended in {phase}: {count}" for phase, count in counts.items() if count]
        lines += [
            f"class {name} is left out: the reference succeeds in none of it" for name in scored.left_out
        ]
        if self._reference.unstable:
            numbers = ", ".join(str(index + 1) for index in self._reference.unstable)
            lines.append(f"the reference is not the same twice in line {numbers}, which count nowhere")
        if self._results is None:
            return "\n".join([*lines, "", self._installation[-3000:]])
        return "\n".join([*lines, *self._differences(self._results)])

    def _score(self, index: int) -> metric.CaseScore:
        reference = observed(self._reference.results[index])
        if not self._results:
            return metric.judge_case(reference, None, self._rules)
        verdict = (self._verdicts or {}).get(self._pair(index, self._results).digest)
        return metric.judge_case(
            reference,
            observed(self._results[index]),
            self._rules,
            same_meaning=verdict.equivalent if verdict else None,
        )

    def _pair(self, index: int, results: Sequence[CaseResult]) -> Pair:
        return Pair.of(observed(self._reference.results[index]).stdout, observed(results[index]).stdout)

    def _words(self, verdicts: Mapping[str, JudgeVerdict]) -> Iterator[dict[str, Any]]:
        """What the judge saw and said, as a person who labels the same pairs needs it."""
        for index, pair in self.questions.items():
            case = {"line": index + 1, "class": self._cases[index].command_class}
            yield case | {"pair": pair.digest, **verdicts[pair.digest].model_dump(), **pair._asdict()}

    def _differences(self, results: Sequence[CaseResult]) -> Iterator[str]:
        """The first difference of each of the first classes that have one."""
        seen: dict[str, int] = {}
        for index, score in self._scores.items():
            if score.phase is not metric.Phase.PASSED and score.valid:
                seen.setdefault(self._cases[index].command_class, index)
        for index in list(seen.values())[:SHOWN]:
            case, phase = self._cases[index], self._scores[index].phase
            yield f"\nline {index + 1}, class {case.command_class}, ended in {phase}: {case.command}"
            yield difference(self._reference.results[index], results[index], phase, self._rules)

    def _pairs(self, time: str) -> dict[str, list[tuple[float, float]]]:
        """By class: such seconds of both sides in the cases in which both succeeded."""
        pairs: dict[str, list[tuple[float, float]]] = {}
        for index, score in self._scores.items():
            if score.valid and score.exec and self._results is not None:
                pair = (getattr(self._reference.results[index], time), getattr(self._results[index], time))
                pairs.setdefault(self._cases[index].command_class, []).append(pair)
        return pairs


def _unjudged(scores: Mapping[str, float]) -> dict[str, float]:
    """Without the semantic match: no model judges here, so it could be said of exact matches only."""
    return {name: value for name, value in scores.items() if name != "semantic_match"}


def known(figures: Mapping[str, float]) -> dict[str, float]:
    """Those that have a denominator."""
    return {name: float(value) for name, value in figures.items() if not isnan(value)}
