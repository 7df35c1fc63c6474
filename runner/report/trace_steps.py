"""Model calls and tool calls of a trial's trace, from the ledger and the trajectory, and a judge's answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from runner.gateway.call_prices import price
from runner.records import ModelCall, Prices, Usage
from runner.records.trial_files import LEDGER, TRAJECTORY
from runner.report.hostile_text import Redaction, even_limit, fenced, harmless_line, harmless_name, shortened
from runner.report.traces import Cost, Json, Judgement, Step

STEPS: Final = 200
"""Number of model calls of a trace with a step of their own. Those in the middle of a longer trial share one."""
LAST: Final = 60
"""Number of these steps that are taken from the trial's end."""
TEXTS, TEXTS_PER_CALL = 2_000, 500
"""Largest number of characters of all texts of a trial's calls, and the addition to it for each call."""
LONGEST: Final = 3_000
"""Most characters of one text."""
JUDGED: Final = 20
"""Number of a judge model's answers that become judgements."""


class Extent(NamedTuple):
    """The extent to which a reader is shown a trial's texts, and their form for that reader."""

    steps: int = STEPS
    """Number of model calls with a step of their own."""
    last: int = LAST
    """Number of these at the trial's end."""
    texts: int = TEXTS
    """Largest number of characters of all texts of the calls together."""
    texts_per_call: int = TEXTS_PER_CALL
    """Addition to `texts` for each call, in characters."""
    longest: int = LONGEST
    """Most characters of one text."""
    markdown: bool = True
    """True if the reader's page renders Markdown, so that texts must be fenced. Otherwise it escapes them itself."""

    def dress(self, text: str) -> str:
        """Return a text in the form that the reader's page needs."""
        return fenced(text) if self.markdown else text


BRIEF: Final = Extent()
"""Extent for MLflow, whose page becomes slow with more."""


class _Call(NamedTuple):
    """A model call, with its part of the trajectory."""

    call: ModelCall
    texts: Json
    """Words and thoughts of the answer."""
    tools: tuple[tuple[str, str, str | None], ...]
    """Name, arguments and result of each tool call."""
    failure: str
    """Reason why the call has no answer, or only a part of one; empty for a whole answer."""


class Calls:
    """The model calls of one trial."""

    def __init__(
        self,
        calls: Sequence[_Call],
        told: Mapping[str, str],
        prices: Prices,
        model: str,
        extent: Extent,
    ) -> None:
        """`told` is what the agent was given, by name; `model` is what every call shows, with its marks."""
        self._calls, self._prices, self._model, self._extent = calls, prices, model, extent
        kept = [each for group in self._groups() if len(group) == 1 for each in group]
        texts = [text for each in kept for text in _all_texts(each)]
        self._limit = min(
            extent.longest,
            even_limit(map(len, [*texts, *told.values()]), extent.texts + extent.texts_per_call * len(kept)),
        )
        self.told: Json = {name: self._text(text) for name, text in told.items() if text}

    @property
    def unanswered(self) -> Json:
        """Return the number of calls without an answer under its name; an empty object if all were answered."""
        count = sum(each.call.response is None for each in self._calls)
        return {"calls without an answer": count} if count else {}

    def steps(self, agent: int, ended: int) -> Iterator[Step]:
        """Yield a step for each model call and each tool call. `agent` is the position of the step they belong to.

        Nobody measures tools: each has the time from the answer to the next model call, or to `ended`.
        """
        groups = list(self._groups())
        for at, group in enumerate(groups):
            began, done = _times(group[0].call)[0], _times(group[-1].call)[1]
            following = _times(groups[at + 1][0].call)[0] if at + 1 < len(groups) else ended
            if len(group) > 1:
                yield self._folded(group, agent, (began, done))
                continue
            (each,) = group
            yield self._answer(each, agent)
            for name, arguments, result in each.tools:
                yield Step(
                    name=harmless_name(name),
                    kind="TOOL",
                    started=done,
                    ended=max(done, following),
                    parent=agent,
                    inputs={"arguments": self._text(arguments)},
                    outputs={} if result is None else {"result": self._text(result)},
                )

    def _groups(self) -> Iterator[Sequence[_Call]]:
        """Yield the calls one by one, and those in the middle of a long trial together."""
        steps, last = self._extent.steps, self._extent.last
        many = len(self._calls) > steps
        first = self._calls[: steps - last] if many else self._calls
        yield from ([each] for each in first)
        if many:
            yield self._calls[steps - last : -last]
            yield from ([each] for each in self._calls[-last:])

    def _answer(self, each: _Call, agent: int) -> Step:
        call = each.call
        outputs: Json = {name: self._text(text) for name, text in each.texts.items() if text}
        began, done = _times(call)
        return Step(
            name=f"call {call.index + 1}",
            kind="CHAT_MODEL",
            started=began,
            ended=done,
            parent=agent,
            inputs=_how(call),
            outputs=outputs,
            error=each.failure,
            model=self._model,
            usage=call.usage,
            cost=_cost(call, self._prices),
        )

    def _folded(self, group: Sequence[_Call], agent: int, times: tuple[int, int]) -> Step:
        """Return one step for many calls, with the sums of their tokens and costs."""
        costs = [each.call.cost_usd for each in group if each.call.usage]
        known = [cost for cost in costs if cost is not None]
        return Step(
            name=f"calls {group[0].call.index + 1} to {group[-1].call.index + 1}",
            kind="CHAIN",
            started=times[0],
            ended=max(times),
            parent=agent,
            inputs={},
            outputs={"calls": len(group), "tools": sum(len(each.tools) for each in group)},
            model=self._model,
            usage=sum((each.call.usage for each in group if each.call.usage), Usage()),
            cost=Cost(sum(known)) if len(known) == len(costs) else None,
        )

    def _text(self, text: str) -> str:
        return self._extent.dress(shortened(text, self._limit))


def read_calls(folder: Path, prices: Prices, model: str, redacted: Redaction, extent: Extent) -> Calls:
    """Return the calls of the trial in this folder. Missing or unreadable files leave out what only they have."""
    calls = sorted(_ledger(folder / LEDGER), key=lambda call: call.index)
    document = _trajectory(folder / TRAJECTORY)
    steps = [step for step in document["steps"] if isinstance(step, dict)]
    version = str(document.get("agent", {}).get("version", ""))
    instruction = next((str(step.get("message", "")) for step in steps if step.get("source") == "user"), "")
    said = [step for step in steps if step.get("source") == "agent"]
    answered = [call.index for call in calls if call.response is not None]
    # Both have one entry for each answered call; were they of different tries, no text would be that of its call.
    by_index = dict(zip(answered, said, strict=True)) if len(answered) == len(said) else {}
    found = [_described(call, by_index.get(call.index, {}), redacted) for call in calls]
    told = {"version": redacted(version), "instruction": redacted(instruction)}
    return Calls(found, told, prices, model, extent)


def judge_answers(ledger: Path, redacted: Redaction, extent: Extent) -> list[Judgement]:
    """Return the answers of the verifier's judge model, at most `JUDGED` of them, and how many more there were."""
    from runner.gateway.trajectory import words  # noqa: PLC0415 - brings a web server, and few trials have a judge

    calls = [(call, words(call)) for call in _ledger(ledger, whole=True) if call.response]
    found = [
        Judgement(
            name="judge",
            value=_truth(answer),
            source=harmless_name(call.model),
            is_model=True,
            rationale=extent.dress(shortened(redacted(answer), extent.longest // 4)),
            usage=call.usage,
            cost_usd=call.cost_usd,
        )
        for call, answer in calls[:JUDGED]
    ]
    if len(calls) > JUDGED:
        found.append(Judgement("judge_answers", float(len(calls)), "runner"))
    return found


def _truth(answer: str) -> bool | str:
    """Return the only truth value in an answer that is a JSON object; for any other answer, that it exists."""
    begin, end = answer.find("{"), answer.rfind("}")
    try:
        said = json.loads(answer[begin : end + 1])
    except (ValueError, RecursionError):
        said = None
    values = [value for value in said.values() if isinstance(value, bool)] if isinstance(said, dict) else []
    return values[0] if len(values) == 1 else "answered"


def _ledger(path: Path, *, whole: bool = False) -> Iterator[ModelCall]:
    """Yield the calls of a ledger, without request and answer unless `whole`; lines that a crash cut are left out."""
    content = path.read_bytes() if path.is_file() else b""
    for line in content.splitlines():
        try:
            call = json.loads(line)
            if not whole:
                call |= {"request": {}, "response": {} if call["response"] is not None else None}
            yield ModelCall.model_validate(call)
        except (ValueError, KeyError, TypeError, ValidationError):
            continue


def _trajectory(path: Path) -> Json:
    """Return a trajectory; one without steps if it is missing or damaged."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        document = None
    whole = isinstance(document, dict) and isinstance(document.get("steps"), list)
    return document if whole else {"steps": []}


def _described(call: ModelCall, step: Mapping[str, Any], redacted: Redaction) -> _Call:
    results = {
        each["source_call_id"]: redacted(str(each["content"]))
        for each in step.get("observation", {}).get("results", ())
    }
    tools = tuple(
        (
            tool["function_name"],
            redacted(_argument_text(tool["arguments"])),
            results.get(tool["tool_call_id"]),
        )
        for tool in step.get("tool_calls", ())
    )
    words = {"words": step.get("message"), "reasoning": step.get("reasoning_content")}
    texts = {name: redacted(text.strip()) for name, text in words.items() if text and text.strip()}
    return _Call(call, texts, tools, harmless_line(redacted(_failure(call))))


def _failure(call: ModelCall) -> str:
    if call.refused:
        return f"refused: the budget's {call.refused} is spent"
    if call.error:
        return f"{call.error.type}: {call.error.message}"
    return "" if call.response is not None else f"no answer, status {call.status_code}"


def _argument_text(arguments: Mapping[str, Any]) -> str:
    """Return a single text argument as it is, with its lines; other arguments as JSON."""
    values = list(arguments.values())
    return (
        str(values[0]) if len(values) == 1 and isinstance(values[0], str) else json.dumps(arguments, indent=1)
    )


def _all_texts(each: _Call) -> Iterator[str]:
    yield from each.texts.values()
    for _, arguments, result in each.tools:
        yield from (arguments, result or "")


def _how(call: ModelCall) -> Json:
    """Return what is particular about how a call was made."""
    inputs: Json = {}
    if call.attempts > 1:
        inputs["requests sent"] = call.attempts
    if call.waited_seconds >= 1:
        inputs["seconds waited"] = round(call.waited_seconds)
    if call.dropped:
        inputs["not passed on"] = [harmless_name(part) for part in call.dropped]
    return inputs


def _times(call: ModelCall) -> tuple[int, int]:
    """Return when a call began and ended, in nanoseconds since 1970."""
    ended = call.started_at + timedelta(seconds=call.latency_seconds)
    return int(call.started_at.timestamp() * 1e9), int(ended.timestamp() * 1e9)


def _cost(call: ModelCall, prices: Prices) -> Cost | None:
    """Return the cost of a call, in parts if the rates tell them; None if it is unknown."""
    if call.cost_usd is None or call.usage is None:
        return None
    read = price(call.usage.model_copy(update={"output_tokens": 0}), prices)
    if read is None or read > call.cost_usd:
        return Cost(call.cost_usd)
    return Cost(call.cost_usd, read, call.cost_usd - read)
