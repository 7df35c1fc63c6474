"""`job=judge_agreement`: whether the judge of the semantic match says what people say (CLI-Tool-Bench, 3.2.1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isnan
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from pydantic import Field

from metrics.differential import Kappa, cohens_kappa
from runner.benchmarks.cli_tool_bench.labels import Label, read_labels
from runner.benchmarks.cli_tool_bench.semantic import JudgeVerdict, SemanticJudge, kept
from runner.benchmarks.cli_tool_bench.verifier import DifferentialVerifier
from runner.errors import ConfigError, LabelError
from runner.files import write_atomically
from runner.records import Judge
from runner.sweeps.cells import Job, Settings, Sweep
from runner.trials.scratch import scratch_folder

NAME = "judge_agreement"
WORDS = {True: "equivalent", False: "different"}


class Rated(NamedTuple):
    """A pair that both have judged."""

    label: Label
    verdict: JudgeVerdict


class JudgeAgreement(Job):
    """Compares the verdicts of the first cell's judge with a file of labels, and asks for those that are not kept."""

    # needs_keys stays False: where every verdict is kept, no model is called.
    plans: ClassVar[bool] = True
    labels: Path | None = None
    """See `runner.benchmarks.cli_tool_bench.labels`."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Of the interval of κ."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0. Raises `ConfigError` without a judge or a file, `LabelError`, `JudgeError`."""
        settings, verifier = sweep.settings, sweep.cells[0].dataset.verifier
        if not isinstance(verifier, DifferentialVerifier) or verifier.judge is None:
            raise ConfigError(
                "dataset.verifier.judge: there is none to be compared. Add dataset=cli_tool_bench_judged."
            )
        if self.labels is None:
            raise ConfigError("job.labels: name the CSV file of human labels (--help job=judge_agreement).")
        labels = read_labels(self.labels)
        unknown = _unknown(labels, verifier.judge, verifier.cache)
        judge = _capped(verifier.judge, settings.sweep_budget.usd)
        if settings.dry_run:
            print(f"{len(labels)} labels; {len(unknown)} to be asked, for at most {judge.usd:g} USD.")
            return 0
        if unknown and not judge.usd:
            raise ConfigError(
                f"sweep_budget.usd: nothing may be spent, and {len(unknown)} of {len(labels)} pairs have to be asked."
            )
        rated, usd = _rated(labels, judge, verifier.cache, settings)
        print(self._text(rated, judge))
        print(f"\n{len(unknown)} of {len(labels)} pairs were asked now, for {_usd(usd)} USD.")
        path = settings.folder / f"{NAME}.json"
        found = _found(rated, judge, self.confidence) | {"asked": len(unknown), "judge_usd": usd}
        write_atomically(path, json.dumps(found, indent=1).encode())
        print(f"Details, disagreements among them: {path}")
        return 0

    def _text(self, rated: Sequence[Rated], judge: Judge) -> str:
        kappa, counts = agreement(rated, self.confidence), confusion(rated)
        lines = [
            f"{judge.model.name} and people on {kappa.n} pairs: {_kappa(kappa, self.confidence)}",
            "",
            f"{'':<20}{'judge equivalent':>18}{'judge different':>18}",
            *(
                f"people {WORDS[human]:<13}{counts[human, True]:>18}{counts[human, False]:>18}"
                for human in (True, False)
            ),
        ]
        classes = _by_class(rated)
        if len(classes) > 1:
            lines += ["", *(f"{name or '(no class)'}: n = {len(some)}, "
                            f"{_kappa(agreement(some, self.confidence), self.confidence)}"
                            for name, some in classes.items())]  # fmt: skip
        apart = [str(one.label.row) for one in rated if one.label.equivalent is not one.verdict.equivalent]
        return "\n".join([*lines, "", f"They disagree in rows: {', '.join(apart) or 'none'}."])


def agreement(rated: Iterable[Rated], confidence: float) -> Kappa:
    """Cohen's κ of judge and people."""
    pairs = [(one.verdict.equivalent, one.label.equivalent) for one in rated]
    return cohens_kappa([ours for ours, _ in pairs], [theirs for _, theirs in pairs], confidence)


def confusion(rated: Iterable[Rated]) -> Counter[tuple[bool, bool]]:
    """(people say equivalent, the judge does) -> pairs."""
    return Counter((one.label.equivalent, one.verdict.equivalent) for one in rated)


def _rated(
    labels: Sequence[Label], judge: Judge, cache: Path, settings: Settings
) -> tuple[list[Rated], float | None]:
    """All labels with their verdicts, and USD of those that were asked for."""
    from runner.gateway import Gateway  # noqa: PLC0415 - its libraries take seconds, and help needs none
    from runner.gateway.asking import Asking  # noqa: PLC0415

    ledger = settings.folder / f"{NAME}.jsonl"
    with (
        scratch_folder() as folder,
        Gateway(folder, settings.gateway) as gateway,
        Asking(gateway, judge, NAME, ledger) as asking,
    ):
        semantic = SemanticJudge(judge, cache, asking.ask)
        verdicts = semantic.verdicts(label.pair for label in labels if label.pair)
    known = [(label, verdicts.get(label.digest) or kept(judge, cache, label.digest)) for label in labels]
    return [Rated(label, verdict) for label, verdict in known if verdict], asking.cost_usd


def _unknown(labels: Iterable[Label], judge: Judge, cache: Path) -> list[Label]:
    """Labels whose pair has to be asked. Raises `LabelError` for one of which there is but a digest."""
    unknown = [label for label in labels if kept(judge, cache, label.digest) is None]
    for label in unknown:
        if label.pair is None:
            raise LabelError(
                f"job.labels, row {label.row}: no verdict of this judge on pair {label.digest} is kept; "
                "give its texts in the columns reference and candidate."
            )
    return unknown


def _capped(judge: Judge, cap: float | None) -> Judge:
    return judge if cap is None else judge.model_copy(update={"usd": min(judge.usd, cap)})


def _by_class(rated: Iterable[Rated]) -> dict[str, list[Rated]]:
    classes: dict[str, list[Rated]] = {}
    for one in rated:
        classes.setdefault(one.label.command_class, []).append(one)
    return dict(sorted(classes.items()))


def _found(rated: Sequence[Rated], judge: Judge, confidence: float) -> dict[str, Any]:
    """What `judge_agreement.json` holds; κ is null where it is undefined."""
    return {
        "judge": {"name": judge.model.name, "id": judge.model.id},
        "confidence": confidence,
        **_figures(rated, confidence),
        "classes": {name: _figures(some, confidence) for name, some in _by_class(rated).items()},
        "disagreements": [
            {
                "row": label.row,
                "pair": label.digest,
                "label": WORDS[label.equivalent],
                "reason": verdict.reason,
            }
            for label, verdict in rated
            if label.equivalent is not verdict.equivalent
        ],
    }


def _figures(rated: Sequence[Rated], confidence: float) -> dict[str, Any]:
    kappa = agreement(rated, confidence)._asdict()
    table = {
        f"people_{WORDS[human]}_judge_{WORDS[judge]}": confusion(rated)[human, judge]
        for human in (True, False)
        for judge in (True, False)
    }
    return {name: None if isnan(value) else value for name, value in kappa.items()} | {"confusion": table}


def _kappa(found: Kappa, confidence: float) -> str:
    if isnan(found.kappa):
        return "κ is undefined: both gave one and the same label throughout"
    return f"κ = {found.kappa:.3f} [{found.low:.3f}, {found.high:.3f}] ({confidence:.0%})"


def _usd(usd: float | None) -> str:
    return "an unknown sum of" if usd is None else f"{usd:.4f}"
