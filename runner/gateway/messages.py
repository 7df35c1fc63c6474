"""Anthropic's Messages."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Literal

from runner.gateway.api import (
    Json,
    Outbound,
    append,
    event,
    made,
    numbers,
    plain,
    positive,
)
from runner.gateway.shapes import (
    CACHED,
    IMAGE_KINDS,
    INLINE,
    RequestError,
    Shape,
    anything,
    base64,
    by,
    flag,
    integer,
    listing,
    number,
    one_of,
    read,
    record,
    schema,
    short,
    text,
    text_or,
    tool_name,
    tools,
    word,
)
from runner.records import ToolCall, Usage


def _source(*kinds: str) -> Shape:
    """What a picture or document is made of: bytes in the request, and neither an address nor a file."""
    required = {"type": one_of("base64"), "media_type": one_of(*kinds), "data": base64}
    return record("source", required, closed=INLINE)


TEXT = record("text", {"type": one_of("text"), "text": text}, CACHED)
SHOWN = {
    "text": TEXT,
    "image": record("image", {"type": word, "source": _source(*IMAGE_KINDS)}, CACHED, closed=INLINE),
    "document": record(
        "document",
        {"type": word, "source": _source("application/pdf")},
        {"title": text, "context": text, "citations": record("citations", {}, {"enabled": flag})} | CACHED,
        closed=INLINE,
    ),
    "tool_reference": record("tool_reference", {"type": word, "tool_name": text}, CACHED),
}
"""What a tool may return."""
PART = by(
    "type",
    SHOWN
    | {
        "thinking": record("thinking", {"type": word, "thinking": text}, {"signature": text}),
        "redacted_thinking": record("redacted_thinking", {"type": word, "data": text}),
        "tool_use": record("tool_use", {"type": word, "id": text, "name": text, "input": anything}, CACHED),
        "tool_result": record(
            "tool_result",
            {"type": word, "tool_use_id": text},
            {"content": text_or(listing(by("type", SHOWN))), "is_error": flag} | CACHED,
        ),
    },
)
MESSAGE = record(
    "message", {"role": one_of("user", "assistant", "system"), "content": text_or(listing(PART))}
)
TOOL = record(
    "tool",
    {"name": tool_name},
    {"type": word, "description": text, "input_schema": schema, "strict": flag, "defer_loading": flag}
    | {"eager_input_streaming": flag}
    | CACHED,
)
"""A tool that the agent runs: of type `custom`, or without one, which counts as `function`."""
COUNT = record("count", {"type": word, "value": integer})
EDIT = record(
    "edit",
    {"type": word},
    {
        "clear_at_least": COUNT,
        "clear_tool_inputs": flag,
        "exclude_tools": listing(text),
        "keep": text_or(COUNT, word),
        "trigger": COUNT,
    },
)
FORMAT = record("format", {"type": one_of("json_schema"), "schema": schema})


def positive_integer(value: object, _: set[str]) -> object:
    """A bound on tokens."""
    if positive(value) is None:
        raise RequestError("a positive number is required")
    return value


OURS: dict[str, Shape] = {"model": short(256), "stream": flag, "max_tokens": positive_integer}
REQUEST = record(
    "",
    {"messages": listing(MESSAGE, least=1), "max_tokens": positive_integer},
    {
        "context_management": record("context_management", {}, {"edits": listing(EDIT)}),
        "output_config": record("output_config", {}, {"effort": word, "format": FORMAT}),
        "output_format": FORMAT,
        "stop_sequences": listing(short(1000), most=64),
        "system": text_or(listing(TEXT)),
        "temperature": number,
        "thinking": record("thinking", {"type": word}, {"budget_tokens": integer, "display": word}),
        "tool_choice": record(
            "tool_choice", {"type": word}, {"name": tool_name, "disable_parallel_tool_use": flag}
        ),
        "tools": tools({"function": TOOL, "custom": TOOL}, "function"),
        "top_k": integer,
        "top_p": number,
    }
    | CACHED
    | OURS,
)
"""All that is passed on, as for chat."""
KINDS = {
    "budget_exceeded": "permission_error",
    "cancelled": "api_error",
    "internal_error": "api_error",
    "upstream_error": "api_error",
}
"""Our kinds of errors in Anthropic's words."""
TOO_LONG = "prompt is too long: "
"""Begins the message of an overfull context, which is what clients compact upon: this API has no code for it."""
DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


class Messages:
    """`POST /v1/messages`."""

    name: Literal["messages"] = "messages"
    path = "/v1/messages"
    shortest: Json = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 16}
    ping = event({"type": "ping"}, "ping")

    def accept(self, body: Json) -> Outbound:
        fields, dropped = read(REQUEST, body, OURS.keys())
        if _compacts(fields.get("context_management")):
            del fields["context_management"]
            dropped += ("context_management",)
        return Outbound(fields=fields, dropped=dropped)

    def wanted_output(self, body: Json) -> int | None:
        return positive(body.get("max_tokens"))

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        fields, dropped, extra = dict(accepted.fields), accepted.dropped, dict(params)
        if "reasoning_effort" in extra:  # a model's parameters are written as chat has them
            effort = {"effort": extra.pop("reasoning_effort")}
            fields["output_config"] = fields.get("output_config", {}) | effort
            fields["thinking"] = {"type": "adaptive"}
        thinking = fields.get("thinking")
        bound = positive(thinking.get("budget_tokens")) if isinstance(thinking, dict) else None
        if bound is not None and max_output is not None and bound >= max_output:
            del fields["thinking"]  # refused by the provider, once the budget has cut the output below it
            dropped += ("thinking",)
        fields["max_tokens"] = max_output
        return Outbound(fields=fields | extra, dropped=dropped)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        finished: Json = dict(await litellm.anthropic.messages.acreate(**arguments))
        return finished | {"content": [_signed(block) for block in finished.get("content") or ()]}

    def streaming(self, body: Json) -> Json:
        return body | {"stream": True}

    def stream(self, request: Json) -> MessagesStream:  # noqa: ARG002 - chat needs the request
        return MessagesStream()

    def usage(self, response: Json) -> Usage | None:
        counts = response.get("usage")
        created = numbers(counts, "cache_creation_input_tokens")
        hit = numbers(counts, "cache_read_input_tokens")
        total = (
            numbers(counts, "input_tokens") + created + hit
        )  # this API's input_tokens are the fresh ones only
        if not total:  # as for chat
            return None
        return Usage(
            input_tokens=total,
            cache_creation_tokens=created,
            cache_hit_tokens=hit,
            output_tokens=numbers(counts, "output_tokens"),
        )

    def error(self, message: str, kind: str, code: str | None = None) -> Json:
        if code == "context_length_exceeded":
            kind, message = "invalid_request_error", TOO_LONG + message
        return {"type": "error", "error": {"type": KINDS.get(kind, kind), "message": message}}

    def events(self, request: Json, response: Json) -> Iterator[bytes]:  # noqa: ARG002 - chat needs the request
        counts = response.get("usage") or {}
        begun: Json = {
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": counts | {"output_tokens": 0},
        }
        body: list[Json] = [{"type": "message_start", "message": response | begun}]
        for index, block in enumerate(response.get("content") or ()):
            body += [{"index": index} | one for one in _block_events(block)]
        ending = {key: response.get(key) for key in ("stop_reason", "stop_sequence")}
        body += [{"type": "message_delta", "delta": ending, "usage": counts}, {"type": "message_stop"}]
        for data in body:
            yield event(data, data["type"])

    def error_events(self, error: Json) -> Iterator[bytes]:
        yield event(error, "error")

    def text(self, response: Json) -> str:
        return plain(_blocks(response, "text"))

    def reasoning(self, response: Json) -> str:
        return "\n".join(block["thinking"] for block in _blocks(response, "thinking"))

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        return tuple(
            made(block.get("id"), block.get("name"), block.get("input"))
            for block in _blocks(response, "tool_use")
        )

    def tool_results(self, request: Json) -> dict[str, str]:
        return {
            str(block.get("tool_use_id")): plain(block.get("content"))
            for message in request.get("messages", ())
            for block in _blocks(message, "tool_result")
        }


class MessagesStream:
    """The events of a message."""

    def __init__(self) -> None:
        self.answer: Json = {}
        self.ending: bytes | None = None
        self._inputs: dict[int, str] = {}

    def pass_on(self, event_: Json) -> bytes:
        match event_:
            case {"type": "message_start", "message": message}:
                self.answer = message | {"content": list(message.get("content") or ())}
            case {"type": "content_block_start", "content_block": block}:
                self.answer["content"].append(dict(block))
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                self._extend(index, delta)
            case {"type": "content_block_stop", "index": index} if index in self._inputs:
                self.answer["content"][index]["input"] = json.loads(self._inputs.pop(index) or "{}")
            case {"type": "message_delta"}:
                usage = event_.get("usage") or {}
                counts = {key: n for key, n in usage.items() if n is not None}
                counts["output_tokens"] = usage.get("output_tokens")  # what the beginning said is not the sum
                self.answer |= event_["delta"] | {"usage": (self.answer.get("usage") or {}) | counts}
            case {"type": "message_stop"}:
                self.ending = event(event_, "message_stop")
                return b""
        return event(event_, event_.get("type"))

    def _extend(self, index: int, delta: Json) -> None:
        block = self.answer["content"][index]
        match delta:
            case {"type": "input_json_delta", "partial_json": piece}:
                append(self._inputs, index, piece)
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or ()), citation]
            case _:
                for key, piece in delta.items():
                    if key != "type":
                        append(block, key, piece)


def _compacts(management: object) -> bool:
    """Whether the context is to be summarised, which is a model call that a bridge would make past the ledger."""
    edits = management.get("edits") if isinstance(management, dict) else None
    return not all(
        isinstance(edit, dict) and str(edit.get("type")).startswith("clear_")
        for edit in (edits if isinstance(edits, list) else ())
    )


def _blocks(message: Json, kind: str) -> list[Json]:
    """The parts of a message, or of an answer, that are of one kind."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]


def _signed(block: Json) -> Json:
    """Thoughts of other providers come without the signature that clients read as text."""
    return block | {"signature": block.get("signature") or ""} if block["type"] == "thinking" else block


def _block_events(block: Json) -> Iterator[Json]:
    """Events of one part of an answer, from start to stop."""
    kind = block["type"]
    deltas: list[Json] = []
    start = block
    if kind in DELTAS:
        name, key = DELTAS[kind]
        start = block | {key: ""}
        deltas = [{"type": name, key: block[key]}]
    if kind == "tool_use":
        start = block | {"input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
    if kind == "thinking":
        start = start | {"signature": ""}
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    yield {"type": "content_block_start", "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}
