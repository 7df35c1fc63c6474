"""Anthropic's Messages API."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Literal

import runner.gateway.request_shapes as sh
from runner.gateway.api import (
    Json,
    Outbound,
    append_text,
    encode_event,
    text_of,
    token_bound,
    token_count,
    tool_call,
)
from runner.records import ToolCall, Usage


def _source(*kinds: str) -> sh.Shape:
    """Return the shape of a picture's or document's source: bytes in the request, no address and no file."""
    required = {"type": sh.one_of("base64"), "media_type": sh.one_of(*kinds), "data": sh.base64}
    return sh.struct("source", required, closed=sh.INLINE)


TEXT = sh.struct("text", {"type": sh.one_of("text"), "text": sh.text}, sh.CACHED)
RESULTS = {
    "text": TEXT,
    "image": sh.part("image", {"source": _source(*sh.IMAGE_KINDS)}, sh.CACHED, closed=sh.INLINE),
    "document": sh.part(
        "document",
        {"source": _source("application/pdf")},
        {"title": sh.text, "context": sh.text, "citations": sh.struct("citations", {}, {"enabled": sh.flag})}
        | sh.CACHED,
        closed=sh.INLINE,
    ),
    "tool_reference": sh.part("tool_reference", {"tool_name": sh.text}, sh.CACHED),
}
"""Parts of a tool's result."""
PART = sh.tagged(
    "type",
    RESULTS
    | {
        "thinking": sh.part("thinking", {"thinking": sh.text}, {"signature": sh.text}),
        "redacted_thinking": sh.part("redacted_thinking", {"data": sh.text}),
        "tool_use": sh.part("tool_use", {"id": sh.text, "name": sh.text, "input": sh.anything}, sh.CACHED),
        "tool_result": sh.part(
            "tool_result",
            {"tool_use_id": sh.text},
            {"content": sh.text_or(sh.listing(sh.tagged("type", RESULTS))), "is_error": sh.flag} | sh.CACHED,
        ),
    },
)
MESSAGE = sh.struct(
    "message", {"role": sh.one_of("user", "assistant", "system"), "content": sh.text_or(sh.listing(PART))}
)
TOOL = sh.struct(
    "tool",
    {"name": sh.tool_name},
    {
        "type": sh.word,
        "description": sh.text,
        "input_schema": sh.schema,
        "strict": sh.flag,
        "defer_loading": sh.flag,
    }
    | {"eager_input_streaming": sh.flag}
    | sh.CACHED,
)
"""A tool that the agent runs. Its type is `custom` or absent, which counts as `function`."""
COUNT = sh.part("count", {"value": sh.integer})
EDIT = sh.part(
    "edit",
    {},
    {
        "clear_at_least": COUNT,
        "clear_tool_inputs": sh.flag,
        "exclude_tools": sh.listing(sh.text),
        "keep": sh.text_or(COUNT, sh.word),
        "trigger": COUNT,
    },
)
FORMAT = sh.struct("format", {"type": sh.one_of("json_schema"), "schema": sh.schema})


def positive_integer(value: object, _: set[str]) -> object:
    """Accept a positive integer, such as a bound on tokens."""
    if token_bound(value) is None:
        raise sh.RequestError("a positive number is required")
    return value


OURS: dict[str, sh.Shape] = {"model": sh.short(256), "stream": sh.flag, "max_tokens": positive_integer}
REQUEST = sh.struct(
    "",
    {"messages": sh.listing(MESSAGE, least=1), "max_tokens": positive_integer},
    {
        "context_management": sh.struct("context_management", {}, {"edits": sh.listing(EDIT)}),
        "output_config": sh.struct("output_config", {}, {"effort": sh.word, "format": FORMAT}),
        "output_format": FORMAT,
        "stop_sequences": sh.listing(sh.short(1000), most=64),
        "system": sh.text_or(sh.listing(TEXT)),
        "temperature": sh.number,
        "thinking": sh.part("thinking", {}, {"budget_tokens": sh.integer, "display": sh.word}),
        "tool_choice": sh.part(
            "tool_choice", {}, {"name": sh.tool_name, "disable_parallel_tool_use": sh.flag}
        ),
        "tools": sh.tools({"function": TOOL, "custom": TOOL}, "function"),
        "top_k": sh.integer,
        "top_p": sh.number,
    }
    | sh.CACHED
    | OURS,
)
"""The fields that are passed on. See `chat.REQUEST`."""
KINDS = {
    "budget_exceeded": "permission_error",
    "cancelled": "api_error",
    "internal_error": "api_error",
    "upstream_error": "api_error",
}
"""Our kind of error -> Anthropic's kind."""
TOO_LONG = "prompt is too long: "
"""Start of the message about a full context. Clients compact when they see it: this API has no code for it."""
PLAIN = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""Types of an answer's parts that agents read as they are."""
DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}


class Messages:
    """`POST /v1/messages`."""

    name: Literal["messages"] = "messages"
    path = "/v1/messages"
    stream_path = None
    streaming: Json = {"stream": True}
    shortest: Json = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 16}
    ping = encode_event({"type": "ping"}, "ping")

    def accept(self, body: Json) -> Outbound:
        fields, dropped = sh.read(REQUEST, body, OURS.keys())
        if _compacts(fields.get("context_management")):
            del fields["context_management"]
            dropped += ("context_management",)
        return Outbound(fields=fields, dropped=dropped)

    def wanted_output(self, body: Json) -> int | None:
        return token_bound(body.get("max_tokens"))

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        fields, dropped, extra = dict(accepted.fields), accepted.dropped, dict(params)
        if "reasoning_effort" in extra:  # a model's `params` have chat's names
            effort = {"effort": extra.pop("reasoning_effort")}
            fields["output_config"] = fields.get("output_config", {}) | effort
            fields["thinking"] = {"type": "adaptive"}
        bound = token_bound(fields.get("thinking", {}).get("budget_tokens"))
        if bound is not None and max_output is not None and bound >= max_output:
            del fields["thinking"]  # the budget has cut the output below it, which the provider would refuse
            dropped += ("thinking",)
        fields["max_tokens"] = max_output
        return Outbound(fields=fields | extra, dropped=dropped)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        return _finished(dict(await litellm.anthropic.messages.acreate(**arguments)))

    def own(self, answer: Json) -> Json | None:
        content, usage = answer.get("content") or (), answer.get("usage")
        plain = answer.get("role") == "assistant" and isinstance(usage, dict) and content
        return _finished(answer) if plain and all(block["type"] in PLAIN for block in content) else None

    def stream(self, request: Json) -> MessagesStream:  # noqa: ARG002 - only chat uses it
        return MessagesStream()

    def usage(self, response: Json) -> Usage | None:
        counts = response.get("usage")
        created = token_count(counts, "cache_creation_input_tokens")
        hit = token_count(counts, "cache_read_input_tokens")
        total = token_count(counts, "input_tokens") + created + hit  # input_tokens are the fresh ones only
        if not total:  # see `openai_usage`
            return None
        return Usage(
            input_tokens=total,
            cache_creation_tokens=created,
            cache_hit_tokens=hit,
            output_tokens=token_count(counts, "output_tokens"),
        )

    def error(self, message: str, kind: str, code: str | None = None) -> Json:
        if code == "context_length_exceeded":
            kind, message = "invalid_request_error", TOO_LONG + message
        return {"type": "error", "error": {"type": KINDS.get(kind, kind), "message": message}}

    def events(self, request: Json, response: Json) -> Iterator[bytes]:  # noqa: ARG002 - only chat uses it
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
            yield encode_event(data, data["type"])

    def error_events(self, error: Json) -> Iterator[bytes]:
        yield encode_event(error, "error")

    def text(self, response: Json) -> str:
        return text_of(_blocks(response, "text"))

    def reasoning(self, response: Json) -> str:
        return "\n".join(block["thinking"] for block in _blocks(response, "thinking"))

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        return tuple(
            tool_call(block.get("id"), block.get("name"), block.get("input"))
            for block in _blocks(response, "tool_use")
        )

    def tool_results(self, request: Json) -> dict[str, str]:
        return {
            str(block.get("tool_use_id")): text_of(block.get("content"))
            for message in request.get("messages", ())
            for block in _blocks(message, "tool_result")
        }


class MessagesStream:
    """A message in events."""

    def __init__(self) -> None:
        self.answer: Json = {}
        self.ending: bytes | None = None
        self._inputs: dict[int, str] = {}

    def pass_on(self, event: Json) -> bytes:
        match event:
            case {"type": "message_start", "message": message}:
                self.answer = message | {"content": list(message.get("content") or ())}
            case {"type": "content_block_start", "content_block": block}:
                self.answer["content"].append(dict(block))
            case {"type": "content_block_delta", "index": index, "delta": delta}:
                self._extend(index, delta)
            case {"type": "content_block_stop", "index": index} if index in self._inputs:
                self.answer["content"][index]["input"] = json.loads(self._inputs.pop(index) or "{}")
            case {"type": "message_delta"}:
                usage = event.get("usage") or {}
                counts = {key: n for key, n in usage.items() if n is not None}
                counts["output_tokens"] = usage.get("output_tokens")  # the first event's count is not the sum
                self.answer |= event["delta"] | {"usage": (self.answer.get("usage") or {}) | counts}
            case {"type": "message_stop"}:
                self.ending = encode_event(event, "message_stop")
                return b""
        return encode_event(event, event.get("type"))

    def _extend(self, index: int, delta: Json) -> None:
        block = self.answer["content"][index]
        match delta:
            case {"type": "input_json_delta", "partial_json": piece}:
                append_text(self._inputs, index, piece)
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or ()), citation]
            case _:
                for key, piece in delta.items():
                    if key != "type":
                        append_text(block, key, piece)


def _compacts(management: Json | None) -> bool:
    """Return whether the context is to be summarised, for which litellm would make a call that the ledger misses."""
    edits = (management or {}).get("edits") or ()
    return any(not edit["type"].startswith("clear_") for edit in edits)


def _blocks(message: Json, kind: str) -> list[Json]:
    """Return the parts of one kind in a message or an answer."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]


def _finished(answer: Json) -> Json:
    """Return an answer as agents get it."""
    return answer | {"content": [_signed(block) for block in answer.get("content") or ()]}


def _signed(block: Json) -> Json:
    """Add an empty signature to thoughts without one, because clients read the signature as text."""
    return block | {"signature": block.get("signature") or ""} if block["type"] == "thinking" else block


def _block_events(block: Json) -> Iterator[Json]:
    """Yield the events of one part of an answer, from start to stop."""
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
