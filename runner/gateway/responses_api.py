"""OpenAI's Responses API."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import ModuleType
from typing import Literal

import runner.gateway.request_shapes as sh
from runner.gateway.api import (
    COMMENT,
    Json,
    Outbound,
    encode_event,
    openai_error,
    openai_usage,
    text_of,
    token_bound,
    tool_call,
)
from runner.records import ToolCall, Usage

ITEM: dict[str, sh.Shape] = {"id": sh.text, "status": sh.word}
"""Fields of every kind of item. Its id refers to nothing, since `store` is always false."""
PART = sh.tagged(
    "type",
    {
        "input_text": sh.part("text", {"text": sh.text}),
        "output_text": sh.part(
            "text",
            {"text": sh.text},
            {"annotations": sh.listing(sh.refused("citations are not supported"), most=0)},
        ),
        "refusal": sh.part("refusal", {"refusal": sh.text}),
        "input_image": sh.part("image", {"image_url": sh.IMAGE}, {"detail": sh.word}, closed=sh.INLINE),
        "input_file": sh.part(
            "file", {"file_data": sh.FILE}, {"filename": sh.short(256), "detail": sh.word}, closed=sh.INLINE
        ),
        "input_audio": sh.part("audio", {"input_audio": sh.AUDIO}, closed=sh.INLINE),
    },
)
CONTENT = sh.text_or(sh.listing(PART))
THOUGHT = sh.struct("reasoning", {"type": sh.one_of("summary_text", "reasoning_text"), "text": sh.text})
OUTPUT = sh.part(
    "output", {"call_id": sh.text, "output": CONTENT}, ITEM | {"name": sh.text, "namespace": sh.text}
)
INPUT = sh.tagged(
    "type",
    {
        "message": sh.struct(
            "message",
            {"role": sh.one_of("user", "assistant", "system", "developer"), "content": CONTENT},
            ITEM | {"type": sh.word, "phase": sh.word},
        ),
        "reasoning": sh.part(
            "reasoning",
            {"summary": sh.listing(THOUGHT)},
            ITEM | {"content": sh.listing(THOUGHT), "encrypted_content": sh.text},
        ),
        "function_call": sh.part(
            "call",
            {"call_id": sh.text, "name": sh.text, "arguments": sh.text},
            ITEM | {"namespace": sh.text},
        ),
        "function_call_output": OUTPUT,
        "custom_tool_call": sh.part(
            "call", {"call_id": sh.text, "name": sh.text, "input": sh.text}, ITEM | {"namespace": sh.text}
        ),
        "custom_tool_call_output": OUTPUT,
    },
    default="message",
)
NAMED: dict[str, sh.Shape] = {"name": sh.tool_name}
DESCRIBED: dict[str, sh.Shape] = {"type": sh.word, "description": sh.text}
TOOLS = {
    "function": sh.struct("tool", NAMED, DESCRIBED | {"parameters": sh.schema, "strict": sh.flag}),
    "custom": sh.struct(
        "tool",
        NAMED,
        DESCRIBED
        | {
            "format": sh.tagged(
                "type",
                {
                    "text": sh.part("format"),
                    "grammar": sh.part("format", {"definition": sh.text, "syntax": sh.word}),
                },
            )
        },
    ),
}
CHOICE = sh.part("tool_choice", {"name": sh.tool_name})
FORMAT = sh.tagged(
    "type",
    {
        "text": sh.part("format"),
        "json_object": sh.part("format"),
        "json_schema": sh.part("format", {}, sh.JSON_SCHEMA),
    },
)
OURS: dict[str, sh.Shape] = {
    "model": sh.short(256),
    "stream": sh.flag,
    "stream_options": sh.struct("stream_options", {}, {"include_obfuscation": sh.flag}),
    "max_output_tokens": sh.integer,
    "store": sh.flag,
} | dict.fromkeys(
    ("previous_response_id", "conversation", "prompt", "background"),
    sh.refused("not supported; send the whole input with each request"),
)
"""Fields that the gateway handles itself. Some depend on state at the provider, which the ledger does not have."""
REQUEST = sh.struct(
    "",
    {"input": sh.text_or(sh.listing(INPUT, least=1))},
    {
        "include": sh.listing(sh.word, most=16),
        "instructions": sh.text,
        "parallel_tool_calls": sh.flag,
        "prompt_cache_key": sh.short(1024),
        "reasoning": sh.struct(
            "reasoning", {}, {"effort": sh.word, "summary": sh.word, "generate_summary": sh.word}
        ),
        "temperature": sh.number,
        "text": sh.struct("text", {}, {"verbosity": sh.word, "format": FORMAT}),
        "tool_choice": sh.text_or(sh.tagged("type", {"function": CHOICE, "custom": CHOICE}), sh.word),
        "tools": sh.tools(TOOLS, "function"),
        "top_p": sh.number,
        "truncation": sh.word,
    }
    | OURS,
)
"""The fields that are passed on. See `chat.REQUEST`."""
PLAIN = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})
"""Types of an answer's items that agents read as they are."""
PLAIN_COUNTS = frozenset(
    {
        *("input_tokens", "output_tokens", "total_tokens"),
        *("input_tokens_details", "output_tokens_details"),
    }
)
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Types of the events that end a stream."""


class Responses:
    """`POST /v1/responses`."""

    name: Literal["responses"] = "responses"
    path = "/v1/responses"
    stream_path = None
    ping = COMMENT
    error = staticmethod(openai_error)
    streaming: Json = {"stream": True}
    shortest: Json = {"input": "hello"}

    def accept(self, body: Json) -> Outbound:
        fields, dropped = sh.read(REQUEST, body, OURS.keys())
        stored = ("store",) if body.get("store") else ()
        return Outbound(fields=fields | {"store": False}, dropped=(*dropped, *stored))

    def wanted_output(self, body: Json) -> int | None:
        return token_bound(body.get("max_output_tokens"))

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        fields, extra = dict(accepted.fields), dict(params)
        if max_output is not None:
            fields["max_output_tokens"] = max_output
        if "reasoning_effort" in extra:  # a model's `params` have chat's names
            fields["reasoning"] = fields.get("reasoning", {}) | {"effort": extra.pop("reasoning_effort")}
        return Outbound(fields=fields | extra, dropped=accepted.dropped)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        return _finished((await litellm.aresponses(**arguments)).model_dump(mode="json"))

    def own(self, answer: Json) -> Json | None:
        output, usage = answer.get("output") or (), answer.get("usage")
        plain = isinstance(usage, dict) and usage.keys() <= PLAIN_COUNTS and output
        return _finished(answer) if plain and all(item["type"] in PLAIN for item in output) else None

    def stream(self, request: Json) -> ResponsesStream:  # noqa: ARG002 - only chat uses it
        return ResponsesStream()

    def usage(self, response: Json) -> Usage | None:
        created = ("cache_write_tokens", "cache_creation_tokens")
        return openai_usage(response, "input_tokens", "output_tokens", *created)

    def events(self, request: Json, response: Json) -> Iterator[bytes]:  # noqa: ARG002 - only chat uses it
        number = count()
        begun: Json = response | {"status": "in_progress", "output": [], "usage": None}
        body: list[tuple[str, Json]] = [
            ("response.created", {"response": begun}),
            ("response.in_progress", {"response": begun}),
        ]
        for index, item in enumerate(response["output"]):
            body += [(name, {"output_index": index} | data) for name, data in _item_events(item)]
        body.append((f"response.{response.get('status') or 'completed'}", {"response": response}))
        for name, data in body:
            yield encode_event({"type": name, "sequence_number": next(number)} | data, name)

    def error_events(self, error: Json) -> Iterator[bytes]:
        why = {"code": error["error"]["code"] or error["error"]["type"], "message": error["error"]["message"]}
        failed = {"id": "resp_failed", "object": "response", "status": "failed", "output": [], "error": why}
        yield encode_event(
            {"type": "response.failed", "sequence_number": 0, "response": failed}, "response.failed"
        )

    def text(self, response: Json) -> str:
        return "\n".join(text_of(item.get("content")) for item in _items(response, "message"))

    def reasoning(self, response: Json) -> str:
        items = _items(response, "reasoning")
        return "\n".join(
            filter(None, (text_of(item.get(key)) for item in items for key in ("summary", "content")))
        )

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        return tuple(
            tool_call(item.get("call_id"), item.get("name"), item.get("arguments") or item.get("input"))
            for item in _items(response, "function_call", "custom_tool_call")
        )

    def tool_results(self, request: Json) -> dict[str, str]:
        items = request.get("input", ())
        return {
            str(item.get("call_id")): text_of(item.get("output"))
            for item in (items if isinstance(items, list) else ())
            if item.get("type") in ("function_call_output", "custom_tool_call_output")
        }


class ResponsesStream:
    """A response in events. Events that change its state repeat the whole response."""

    def __init__(self) -> None:
        self.answer: Json = {}
        self.ending: bytes | None = None

    def pass_on(self, event: Json) -> bytes:
        response = event.get("response") or self.answer
        if not isinstance(response, dict):
            raise TypeError("response")
        self.answer = response
        if event.get("type") in ENDS:
            self.ending = encode_event(event, event["type"])
            return b""
        return encode_event(event, event.get("type"))


def _finished(answer: Json) -> Json:
    """Return an answer as agents get it, without the echo of instructions and tools, which is most of its bytes."""
    output = [_reasoning(item) if item["type"] == "reasoning" else item for item in answer["output"]]
    return answer | {"output": output, "instructions": None, "tools": []}


def _reasoning(item: Json) -> Json:
    """Return a reasoning item in OpenAI's form. litellm's bridge from chat writes a message's parts instead."""
    if "summary" in item:
        return item
    summary = [{"type": "summary_text", "text": text_of(item.get("content"))}]
    signed = {"encrypted_content": item["encrypted_content"]} if item.get("encrypted_content") else {}
    return {"type": "reasoning", "id": item.get("id"), "summary": summary} | signed


def _items(response: Json, *types: str) -> list[Json]:
    return [item for item in response.get("output") or () if item.get("type") in types]


def _item_events(item: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events of one output item, from added to done."""
    empty: Json = {"message": {"content": []}, "reasoning": {"summary": []}}.get(item["type"], {})
    if item["type"] in ("function_call", "custom_tool_call"):
        empty = {key: "" for key in ("arguments", "input") if key in item}
    yield "response.output_item.added", {"item": item | empty | {"status": "in_progress"}}
    at = {"item_id": item.get("id")}
    match item["type"]:
        case "message":
            for index, part in enumerate(item.get("content") or ()):
                key, name = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
                yield from _part_events(at | {"content_index": index}, part, "content_part", name, key)
        case "reasoning":
            names = ("reasoning_summary_part", "reasoning_summary_text")
            for index, part in enumerate(item.get("summary") or ()):
                yield from _part_events(at | {"summary_index": index}, part, *names)
        case "function_call":
            arguments = {"arguments": item["arguments"]}
            yield "response.function_call_arguments.delta", at | {"delta": item["arguments"]}
            yield "response.function_call_arguments.done", at | arguments | {"name": item.get("name")}
        case "custom_tool_call":
            yield "response.custom_tool_call_input.delta", at | {"delta": item["input"]}
            yield "response.custom_tool_call_input.done", at | {"input": item["input"]}
    yield "response.output_item.done", {"item": item}


def _part_events(
    at: Json, part: Json, holder: str, name: str, key: str = "text"
) -> Iterator[tuple[str, Json]]:
    """Yield the events of one part of a message or a summary, whose text is in the field `key`."""
    text = part.get(key) or ""
    extra: Json = {"logprobs": []} if name == "output_text" else {}
    yield f"response.{holder}.added", at | {"part": part | {key: ""}}
    yield f"response.{name}.delta", at | {"delta": text} | extra
    yield f"response.{name}.done", at | {key: text} | extra
    yield f"response.{holder}.done", at | {"part": part}
