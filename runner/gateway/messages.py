"""Anthropic's Messages."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Literal

from runner.gateway.api import (
    BY_ADDRESS,
    Json,
    Outbound,
    event,
    made,
    names_address,
    no_messages,
    numbers,
    plain,
    positive,
    select,
    tool_fields,
)
from runner.records import ToolCall, Usage

ALLOWED = frozenset(
    {
        "cache_control",
        "context_management",
        "messages",
        "output_config",
        "output_format",
        "stop_sequences",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
"""As for chat: a list of the good."""
OURS = frozenset({"model", "stream", "max_tokens"})
NAMED: dict[str, str | None] = {"function": None, "custom": None}
"""Tools that the agent runs: `custom`, or without a type, which counts as `function`."""
WORDS = frozenset({"text", "thinking", "redacted_thinking", "tool_use"})
"""Parts of a message that hold no address to be fetched, whatever they say."""
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
    ping = event({"type": "ping"}, "ping")

    def complaint(self, body: Json) -> str | None:
        if complaint := no_messages(body):
            return complaint
        if positive(body.get("max_tokens")) is None:
            return "max_tokens: a positive number is required."
        return BY_ADDRESS if any(_remote(message.get("content")) for message in body["messages"]) else None

    def wanted_output(self, body: Json) -> int | None:
        return positive(body.get("max_tokens"))

    def outbound(self, body: Json, params: Json, max_output: int | None) -> Outbound:
        fields, dropped = select(body, ALLOWED, OURS)
        dropped += tool_fields(fields, NAMED)
        extra = dict(params)
        if "reasoning_effort" in extra:  # a model's parameters are written as chat has them
            effort = {"effort": extra.pop("reasoning_effort")}
            fields["output_config"] = fields.get("output_config", {}) | effort
            fields["thinking"] = {"type": "adaptive"}
        if _compacts(fields.get("context_management")):
            del fields["context_management"]
            dropped += ("context_management",)
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
                counts = {key: n for key, n in (event_.get("usage") or {}).items() if n is not None}
                self.answer |= event_["delta"] | {"usage": (self.answer.get("usage") or {}) | counts}
            case {"type": "message_stop"}:
                self.ending = event(event_, "message_stop")
                return b""
        return event(event_, event_.get("type"))

    def _extend(self, index: int, delta: Json) -> None:
        block = self.answer["content"][index]
        match delta:
            case {"type": "input_json_delta", "partial_json": piece}:
                self._inputs[index] = self._inputs.get(index, "") + piece
            case {"type": "citations_delta", "citation": citation}:
                block["citations"] = [*(block.get("citations") or ()), citation]
            case _:
                for key, piece in delta.items():
                    if key != "type":
                        block[key] = (block.get(key) or "") + piece


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


def _remote(content: object) -> bool:
    """Whether parts of a message name an address, or a file that lies at the provider."""
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict) or part.get("type") in WORDS:
            continue
        if part.get("type") == "tool_result":
            found = _remote(part.get("content"))
        else:
            source = part.get("source")
            found = names_address(part) or (isinstance(source, dict) and source.get("type") == "file")
        if found:
            return True
    return False


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
