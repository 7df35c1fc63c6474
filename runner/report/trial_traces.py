"""Traces of trials, from their records, ledgers and trajectories; `tracking.traces` writes them to MLflow.

Texts of agents, models, tasks and verifiers are other people's: they are freed of secrets, shortened, and fenced
against pages that render Markdown (`report.hostile_text`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from runner.records import ErrorInfo, Prices, TrialRecord, Verdict
from runner.records.trial_files import JUDGE_LEDGER
from runner.report.hostile_text import Redaction, harmless_line, harmless_name, shortened
from runner.report.trace_steps import BRIEF, Calls, Extent, judge_answers, read_calls
from runner.report.traces import Cost, Json, Judgement, Kind, Step, Trace
from runner.report.trials_table import outcome
from runner.sweeps import sweep_file
from runner.sweeps.store import Store

LAYOUT: Final = 1
"""Version of the layout. It is raised when traces must be written again."""
LONGEST: Final = 1_500
"""Most characters of one text of the record."""
_PHASES: dict[str, tuple[str, Kind]] = {
    "environment": ("environment", "CHAIN"),
    "agent": ("agent", "AGENT"),
    "collect": ("collect", "CHAIN"),
    "verify": ("verifier", "EVALUATOR"),
}
"""Phase of a trial -> name and kind of its step."""


class TracedTrial(NamedTuple):
    """A trial that is to be traced."""

    cell: str
    key: str
    digest: str
    """Digest of all sources of its trace."""
    make: Callable[[], Trace]
    """Function that makes the trace from the trial's files."""


class TracedTrials(NamedTuple):
    """The trials of a sweep that are to be traced."""

    trials: tuple[TracedTrial, ...]
    left_out: int
    """Number of further trials that the limit leaves out."""


def traced_trials(sweep: Path, which: str, most: int) -> TracedTrials:
    """Return the trials of the sweep in this folder that have records: all, those that did not pass, or none.

    If there are more than `most`, whole tasks are left out, so that the cells of the others can still be compared. An
    imported sweep has no records.
    """
    plan, store = sweep_file.read(sweep), Store(sweep.parent)
    rows = sorted(plan.planned, key=lambda row: (row.task, row.attempt, row.cell))
    records = store.load([row.key for row in rows if not row.refused]) if which != "none" else {}
    wanted = [row for row in rows if row.key in records and (which == "all" or not records[row.key].passed)]
    chosen = wanted[:most]
    return TracedTrials(
        tuple(
            _traced(row.cell, records[row.key], store, plan.prices.get(row.model, Prices())) for row in chosen
        ),
        len(wanted) - len(chosen),
    )


def _traced(cell: str, record: TrialRecord, store: Store, prices: Prices) -> TracedTrial:
    make = partial(trial_trace, record, store.folder(record.key), prices)
    return TracedTrial(cell, record.key, trace_digest(record, prices), make)


def trace_digest(record: TrialRecord, prices: Prices) -> str:
    """Return a digest of all sources of a trace. Ledger and trajectory are as old as the record."""
    parts = (str(LAYOUT), record.model_dump_json(), prices.model_dump_json())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def trial_trace(record: TrialRecord, folder: Path, prices: Prices, extent: Extent = BRIEF) -> Trace:
    """Return the trace of a trial, from its record and the files in its folder, which may be missing.

    `prices` are the model's, which divide a call's cost into input and output. `extent` bounds the texts.
    """
    redacted = Redaction(record.host_env)
    model = marked_model(record)
    # Calls of a helper model have other rates, so that costs are not divided.
    calls = read_calls(folder, Prices() if record.helper else prices, model, redacted, extent)
    answers = judge_answers(folder / JUDGE_LEDGER, redacted, extent)
    return Trace(
        key=record.key,
        invalid=_why_not_judged(record, redacted),
        steps=tuple(_Steps(record, calls, redacted, extent).all()),
        judgements=(*_verdicts(record, redacted, extent), *answers),
        tags=_tags(record),
    )


def marked_model(record: TrialRecord) -> str:
    """Return the model, with a mark if no language model answered in this trial."""
    marks = (("scripted", record.scripted), ("replayed", record.replayed))
    return " ".join([harmless_name(record.model), *(f"({mark})" for mark, holds in marks if holds)])


class _Steps:
    """Collects the steps of one trial."""

    def __init__(self, record: TrialRecord, calls: Calls, redacted: Redaction, extent: Extent) -> None:
        self._record, self._calls, self._redacted, self._extent = record, calls, redacted, extent
        self._found: list[Step] = []

    def all(self) -> list[Step]:
        """Return the whole trial, its earlier tries, and its phases with their parts."""
        record, began = self._record, 0.0
        self._found = [self._whole(), *self._earlier()]
        for phase, (name, kind) in _PHASES.items():
            seconds = getattr(record.seconds, phase)
            if not seconds and not (phase == "agent" and record.turns):
                continue
            self._add_phase(phase, Step(name, kind, self._at(began), self._at(began + seconds), 0, {}, {}))
            began += seconds
        return self._found

    def _whole(self) -> Step:
        """Return the step of the whole trial. Its inputs are the same in every cell, and so comparisons pair them."""
        record = self._record
        outputs: Json = {
            "whole texts": f"python -m runner job=trajectory job.key={record.key[:12]} job.lines=0"
        }
        if record.scripted or record.replayed:
            outputs["note"] = f"No language model answered in this trial: {marked_model(record)}"
        if record.flags:
            outputs["flags"] = [harmless_name(flag) for flag in record.flags]
        outputs |= {
            "seconds": round(record.wall_seconds, 1),
            "turns": record.turns,
            "tokens": record.usage.input_tokens + record.usage.output_tokens,
            "usd": record.cost_usd and round(record.cost_usd, 6),
        }
        if error := _error(record):
            outputs["error"] = self._text(f"{error.type}: {error.message}")
        # MLflow's comparison shows the last three of them at once.
        outputs |= {"reward": record.reward, "outcome": outcome(record)}
        return Step(
            name=f"{harmless_name(record.agent)} · {marked_model(record)}",
            kind="TASK",
            started=self._at(0),
            ended=self._at(record.wall_seconds),
            parent=None,
            inputs={"task": harmless_name(record.task), "attempt": record.attempt},
            outputs=outputs,
            error=_why_not_judged(record, self._redacted),
        )

    def _earlier(self) -> list[Step]:
        """Return the tries that our side spoiled, with their spend. Their beginnings are unknown."""
        return [
            Step(
                name=f"earlier try {number}",
                kind="CHAIN",
                started=self._at(0),
                ended=self._at(0),
                parent=0,
                inputs={},
                outputs={"turns": retry.turns, "seconds": round(retry.wall_seconds, 1)},
                error=self._line(retry.reason),
                model=marked_model(self._record) if retry.turns else "",
                usage=retry.usage if retry.turns else None,
                cost=Cost(retry.cost_usd) if retry.turns and retry.cost_usd is not None else None,
            )
            for number, retry in enumerate(self._record.retries, start=1)
        ]

    def _add_phase(self, phase: str, step: Step) -> None:
        record, position = self._record, len(self._found)
        if phase == "agent":
            failure = record.error if record.status != "completed" else None
            outputs: Json = {"exit code": record.agent_exit_code, "turns": record.turns}
            step = step._replace(
                name=harmless_name(record.agent),
                inputs=self._calls.told,
                outputs=outputs | self._calls.unanswered,
                error=self._line(failure) if failure else "",
            )
            self._found += [step, *self._calls.steps(position, step.ended)]
        elif phase == "verify" and record.verdict:
            self._found.append(self._judged(step, record.verdict))
            if record.verdict.again:
                again = step._replace(name="second verdict", parent=position)
                self._found.append(self._judged(again, record.verdict.again))
        else:
            failed = record.error if record.error and record.error.phase == phase else None
            self._found.append(step._replace(error=self._line(failed) if failed else ""))

    def _judged(self, step: Step, verdict: Verdict) -> Step:
        """Return the step of a verifier with its verdict."""
        outputs: Json = {
            "reward": verdict.reward,
            "components": {
                harmless_name(name): value for name, value in list(verdict.components.items())[:50]
            },
            "exit code": verdict.exit_code,
            "output": self._text(verdict.output, from_end=True),
        }
        error = self._line(verdict.error) if verdict.error else ""
        return step._replace(inputs={"mode": verdict.mode}, outputs=outputs, error=error)

    def _at(self, seconds: float) -> int:
        return int((self._record.started_at + timedelta(seconds=seconds)).timestamp() * 1e9)

    def _text(self, text: str, *, from_end: bool = False) -> str:
        return self._extent.dress(shortened(self._redacted(text), LONGEST, from_end=from_end))

    def _line(self, error: ErrorInfo) -> str:
        return _in_one_line(error, self._redacted)


def _in_one_line(error: ErrorInfo, redacted: Redaction) -> str:
    return harmless_line(redacted(f"{error.type}: {error.message}"))


def _error(record: TrialRecord) -> ErrorInfo | None:
    """Return a trial's error, or its verdict's."""
    return record.error or (record.verdict.error if record.verdict else None)


def _why_not_judged(record: TrialRecord, redacted: Redaction) -> str:
    """Return the reason why a trial was not judged, as one line of harmless text; empty for one that was judged."""
    if record.judged:
        return ""
    error = _error(record)
    return _in_one_line(error, redacted) if error else f"{record.status}: no verdict"


def _verdicts(record: TrialRecord, redacted: Redaction, extent: Extent) -> list[Judgement]:
    """Return the verifier's judgements: whether the trial passed, its reward, and how the agent ended."""
    ended = Judgement("status", record.status.value, "runner")
    if not record.judged:
        error, message = _error(record), _why_not_judged(record, redacted)
        why = ErrorInfo(type=error.type if error else record.status.value, message=message)
        return [Judgement("passed", None, "verifier", error=why), ended]
    output = record.verdict.output if record.verdict else ""
    words = extent.dress(shortened(redacted(output), LONGEST // 4, from_end=True))
    return [
        Judgement("passed", record.passed, "verifier", rationale=words),
        Judgement("reward", record.reward, "verifier"),
        ended,
    ]


def _tags(record: TrialRecord) -> dict[str, str]:
    """Return the tags by which traces are searched, and which a list of traces may show as columns."""
    names = ("agent", "task", "tier", "category")
    tags = {name: getattr(record, name) for name in names} | {"flags": " ".join(record.flags)}
    named = {name: harmless_name(value, 250) for name, value in tags.items() if value}
    return named | {"model": marked_model(record)}
