"""Traces of trials in an MLflow store: one a trial, under the run of its cell.

Every id is a digest, so writing a trace again replaces it and its assessments. The spans of a trace are written last,
and all at once; MLflow then tags it with their location, and a trace that a crash left without that is written again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from runner.terminal.escaping import clock

if TYPE_CHECKING:
    from mlflow.entities import Assessment, Span, TraceInfo
    from mlflow.tracing.client import TracingClient

    from runner.report.traces import Judgement, Step, Trace
    from runner.report.trial_traces import TracedTrial

AT_ONCE = 20
"""Number of traces whose spans are written in one transaction."""
DECIMALS = 9
"""Decimals of a call's USD; a token may cost less than a millionth."""
PAGE = 100
"""Number of traces that one request finds or deletes."""
SILENCE_SECONDS = 10.0
"""Longest time without a line of progress."""
_SWEEP, _DIGEST = "assay.sweep", "assay.digest"
_RUN, _NAME = "mlflow.sourceRun", "mlflow.traceName"


class TraceStore:
    """The traces of one sweep in one experiment."""

    def __init__(self, client: TracingClient, experiment: str, sweep: str) -> None:
        self._client, self._experiment, self._sweep = client, experiment, sweep
        self._runs: Mapping[str, str] = {}
        self._progress = _Progress(0)

    def reconcile(self, wanted: Sequence[TracedTrial], runs: Mapping[str, str]) -> None:
        """Make these the sweep's traces: write what is new or changed, delete the rest, and link each to its run.

        `runs` has the run of each cell.
        """
        self._runs = runs
        stored = {info.trace_id: info for info in self._stored()}
        names = {self.trace_id(each.key): each for each in wanted}
        same = {
            name: each
            for name, each in names.items()
            if name in stored and _is_whole(stored[name]) and stored[name].tags.get(_DIGEST) == each.digest
        }
        moved = [
            (stored[name], runs[each.cell])
            for name, each in same.items()
            if stored[name].trace_metadata.get(_RUN) != runs[each.cell]
        ]
        new = [each for name, each in names.items() if name not in same]
        self._progress = _Progress(len(moved) + len(new))
        self._delete([name for name in stored if name not in same])
        for info, run_id in moved:
            self._link(info, run_id)
            self._progress.add(1)
        self._write(new)

    def trace_id(self, key: str) -> str:
        """Return the id of a trial's trace. Two sweeps may share a trial, and each has its own runs."""
        return f"tr-{_digest(self._experiment, self._sweep, key)[:32]}"

    def _stored(self) -> Iterator[TraceInfo]:
        token = None
        while True:
            page = self._client.search_traces(
                locations=[self._experiment],
                filter_string=f"tags.`{_SWEEP}` = '{self._sweep}'",
                max_results=PAGE,
                page_token=token,
                include_spans=False,
            )
            yield from (trace.info for trace in page)
            token = page.token
            if not token:
                return

    def _delete(self, names: Sequence[str]) -> None:
        for at in range(0, len(names), PAGE):
            self._client.delete_traces(self._experiment, trace_ids=list(names[at : at + PAGE]))

    def _link(self, info: TraceInfo, run_id: str) -> None:
        """Move a trace to the run that replaced the one it was under."""
        info.trace_metadata = {_RUN: run_id}
        info.assessments = []  # they stay, also those that people added
        self._client.start_trace(info)

    def _write(self, wanted: Sequence[TracedTrial]) -> None:
        waiting = iter(wanted)
        while some := list(islice(waiting, AT_ONCE)):
            made = [(each, each.make()) for each in some]
            for each, trace in made:
                self._client.start_trace(self._info(self.trace_id(each.key), each, trace))
            found = [span for each, trace in made for span in spans(self.trace_id(each.key), trace.steps)]
            self._client.log_spans(self._experiment, found)
            self._progress.add(len(some))

    def _info(self, name: str, wanted: TracedTrial, trace: Trace) -> TraceInfo:
        from mlflow.entities import TraceInfo, TraceLocation, TraceState  # noqa: PLC0415 - brings mlflow

        whole = trace.steps[0]
        return TraceInfo(
            trace_id=name,
            trace_location=TraceLocation.from_experiment_id(self._experiment),
            request_time=whole.started // 1_000_000,
            execution_duration=(whole.ended - whole.started) // 1_000_000,
            state=TraceState.ERROR if trace.invalid else TraceState.OK,
            request_preview=json.dumps(whole.inputs),
            response_preview=str(trace.invalid or whole.outputs["outcome"]),
            client_request_id=wanted.key,
            trace_metadata={_RUN: self._runs[wanted.cell]},
            tags={**trace.tags, _NAME: whole.name, _SWEEP: self._sweep, _DIGEST: wanted.digest},
            assessments=[
                _assessment(name, number, each, whole.ended // 1_000_000)
                for number, each in enumerate(trace.judgements)
            ],
        )


def _is_whole(info: TraceInfo) -> bool:
    return "mlflow.trace.spansLocation" in info.tags


def spans(trace_id: str, steps: Sequence[Step]) -> list[Span]:
    """Return the spans of a trace."""
    from mlflow.entities import Span  # noqa: PLC0415 - brings mlflow

    ids = [_digest(trace_id, str(at))[:16] for at in range(len(steps))]
    return [Span.from_dict(_span(trace_id, ids, at, step)) for at, step in enumerate(steps)]


def _span(trace_id: str, ids: Sequence[str], at: int, step: Step) -> dict[str, Any]:
    """Return a span in the form in which MLflow keeps it: every attribute is JSON."""
    attributes: dict[str, Any] = {
        "mlflow.traceRequestId": trace_id,
        "mlflow.spanType": step.kind,
        **({"mlflow.spanInputs": step.inputs} if step.inputs else {}),
        **({"mlflow.spanOutputs": step.outputs} if step.outputs else {}),
        **_spent(step),
    }
    return {
        "trace_id": trace_id,
        "span_id": ids[at],
        "parent_span_id": None if step.parent is None else ids[step.parent],
        "name": step.name,
        "start_time_unix_nano": step.started,
        "end_time_unix_nano": step.ended,
        "status": {"code": "STATUS_CODE_ERROR" if step.error else "STATUS_CODE_OK", "message": step.error},
        "attributes": {name: _json(value) for name, value in attributes.items()},
    }


def _spent(step: Step) -> dict[str, Any]:
    """Return tokens and USD in MLflow's own attributes, which its token and cost views add up."""
    found: dict[str, Any] = {}
    if step.model and step.cost:
        # With a model and no cost, MLflow would look one up in a price map of its own.
        found["mlflow.llm.model"] = step.model
    if usage := step.usage:
        found["mlflow.chat.tokenUsage"] = {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
            **({"cache_read_input_tokens": usage.cache_hit_tokens} if usage.cache_hit_tokens else {}),
            **({"cache_creation_input_tokens": written} if (written := usage.cache_creation_tokens) else {}),
        }
    if cost := step.cost:
        parts = {"input_cost": cost.input, "output_cost": cost.output, "total_cost": cost.total}
        found["mlflow.llm.cost"] = {
            name: round(value, DECIMALS) for name, value in parts.items() if value is not None
        }
    return found


def _assessment(trace_id: str, number: int, judged: Judgement, moment: int) -> Assessment:
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback  # noqa: PLC0415 - brings mlflow

    metadata = {} if judged.cost_usd is None else {"mlflow.assessment.judgeCost": str(judged.cost_usd)}
    if judged.usage:
        metadata["mlflow.assessment.judgeInputTokens"] = str(judged.usage.input_tokens)
        metadata["mlflow.assessment.judgeOutputTokens"] = str(judged.usage.output_tokens)
    feedback = Feedback(
        name=judged.name,
        value=judged.value,
        error=judged.error and AssessmentError(judged.error.type, judged.error.message),
        source=AssessmentSource("LLM_JUDGE" if judged.is_model else "CODE", judged.source),
        trace_id=trace_id,
        metadata=metadata or None,
        create_time_ms=moment,
        last_update_time_ms=moment,
        rationale=judged.rationale or None,
    )
    feedback.assessment_id = f"a-{_digest(trace_id, judged.name, str(number))[:32]}"
    return feedback


class _Progress:
    """Prints a line from time to time while traces are written."""

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._began = self._printed = time.monotonic()

    def add(self, count: int) -> None:
        """Count traces as written."""
        self._done += count
        now = time.monotonic()
        if now - self._printed >= SILENCE_SECONDS and self._done < self._total:
            left = (now - self._began) / self._done * (self._total - self._done)
            print(f"MLflow: {self._done} of {self._total} traces, {clock(left)} left", flush=True)
            self._printed = now


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
