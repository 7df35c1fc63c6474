"""OpenAI's Responses."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from types import ModuleType
from typing import Literal

from runner.gateway.api import (
    COMMENT,
    Json,
    Outbound,
    event,
    made,
    numbers,
    openai_error,
    plain,
    positive,
)
from runner.gateway.shapes import (
    FILE,
    IMAGE,
    INLINE,
    JSON_SCHEMA,
    Shape,
    base64,
    by,
    flag,
    integer,
    listing,
    number,
    one_of,
    read,
    record,
    refused,
    schema,
    short,
    text,
    text_or,
    tool_name,
    tools,
    word,
)
from runner.records import ToolCall, Usage

ITEM: dict[str, Shape] = {"id": text, "status": word}
"""What any item may have. Its id leads nowhere, since `store` is always false."""
PART = by(
    "type",
    {
        "input_text": record("text", {"type": word, "text": text}),
        "output_text": record(
            "text",
            {"type": word, "text": text},
            {"annotations": listing(refused("citations are not supported"), most=0)},
        ),
        "refusal": record("refusal", {"type": word, "refusal": text}),
        "input_image": record("image", {"type": word, "image_url": IMAGE}, {"detail": word}, closed=INLINE),
        "input_file": record(
            "file", {"type": word, "file_data": FILE}, {"filename": short(256), "detail": word}, closed=INLINE
        ),
        "input_audio": record(
            "audio",
            {"type": word, "input_audio": record("audio", {"data": base64, "format": word}, closed=INLINE)},
            closed=INLINE,
        ),
    },
)
CONTENT = text_or(listing(PART))
THOUGHT = record("reasoning", {"type": one_of("summary_text", "reasoning_text"), "text": text})
OUTPUT = record(
    "output", {"type": word, "call_id": text, "output": CONTENT}, ITEM | {"name": text, "namespace": text}
)
INPUT = by(
    "type",
    {
        "message": record(
            "message",
            {"role": one_of("user", "assistant", "system", "developer"), "content": CONTENT},
            ITEM | {"type": word, "phase": word},
        ),
        "reasoning": record(
            "reasoning",
            {"type": word, "summary": listing(THOUGHT)},
            ITEM | {"content": listing(THOUGHT), "encrypted_content": text},
        ),
        "function_call": record(
            "call",
            {"type": word, "call_id": text, "name": text, "arguments": text},
            ITEM | {"namespace": text},
        ),
        "function_call_output": OUTPUT,
        "custom_tool_call": record(
            "call", {"type": word, "call_id": text, "name": text, "input": text}, ITEM | {"namespace": text}
        ),
        "custom_tool_call_output": OUTPUT,
    },
    default="message",
)
NAMED: dict[str, Shape] = {"name": tool_name}
DESCRIBED: dict[str, Shape] = {"type": word, "description": text}
TOOLS = {
    "function": record("tool", NAMED, DESCRIBED | {"parameters": schema, "strict": flag}),
    "custom": record(
        "tool",
        NAMED,
        DESCRIBED
        | {
            "format": by(
                "type",
                {
                    "text": record("format", {"type": word}),
                    "grammar": record("format", {"type": word, "definition": text, "syntax": word}),
                },
            )
        },
    ),
}
CHOICE = record("tool_choice", {"type": word, "name": tool_name})
FORMAT = by(
    "type",
    {
        "text": record("format", {"type": word}),
        "json_object": record("format", {"type": word}),
        "json_schema": record("format", {"type": word}, JSON_SCHEMA),
    },
)
OURS: dict[str, Shape] = {
    "model": short(256),
    "stream": flag,
    "stream_options": record("stream_options", {}, {"include_obfuscation": flag}),
    "max_output_tokens": integer,
    "store": flag,
} | dict.fromkeys(
    ("previous_response_id", "conversation", "prompt", "background"),
    refused("not supported; send the whole input with each request"),
)
"""Fields that the gateway itself answers for. Some lean on state at the provider, which neither the ledger nor another
provider has."""
REQUEST = record(
    "",
    {"input": text_or(listing(INPUT, least=1))},
    {
        "include": listing(word, most=16),
        "instructions": text,
        "parallel_tool_calls": flag,
        "prompt_cache_key": short(1024),
        "reasoning": record("reasoning", {}, {"effort": word, "summary": word, "generate_summary": word}),
        "temperature": number,
        "text": record("text", {}, {"verbosity": word, "format": FORMAT}),
        "tool_choice": text_or(by("type", {"function": CHOICE, "custom": CHOICE}), word),
        "tools": tools(TOOLS, "function"),
        "top_p": number,
        "truncation": word,
    }
    | OURS,
)
"""All that is passed on, as for chat."""
ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
"""Events that end a stream."""


class Responses:
    """`POST /v1/responses`."""

    name: Literal["responses"] = "responses"
    path = "/v1/responses"
    ping = COMMENT
    shortest: Json = {"input": "hello"}

    def accept(self, body: Json) -> Outbound:
        fields, dropped = read(REQUEST, body, OURS.keys())
        kept = ("store",) if body.get("store") else ()
        return Outbound(fields=fields | {"store": False}, dropped=(*dropped, *kept))

    def wanted_output(self, body: Json) -> int | None:
        return positive(body.get("max_output_tokens"))

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        fields, extra = dict(accepted.fields), dict(params)
        if max_output is not None:
            fields["max_output_tokens"] = max_output
        if "reasoning_effort" in extra:  # a model's parameters are written as chat has them
            fields["reasoning"] = fields.get("reasoning", {}) | {"effort": extra.pop("reasoning_effort")}
        return Outbound(fields=fields | extra, dropped=accepted.dropped)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        finished: Json = (await litellm.aresponses(**arguments)).model_dump(mode="json")
        output = [_reasoning(item) if item["type"] == "reasoning" else item for item in finished["output"]]
        # Without the echo of instructions and tools, which is most of an answer's bytes.
        return finished | {"output": output, "instructions": None, "tools": []}

    def streaming(self, body: Json) -> Json:
        return body | {"stream": True}

    def stream(self, request: Json) -> ResponsesStream:  # noqa: ARG002 - chat needs the request
        return ResponsesStream()

    def usage(self, response: Json) -> Usage | None:
        counts = response.get("usage") or {}
        total = numbers(counts, "input_tokens")
        if not total:  # as for chat
            return None
        details = counts.get("input_tokens_details")
        return Usage(
            input_tokens=total,
            cache_creation_tokens=numbers(details, "cache_write_tokens", "cache_creation_tokens"),
            cache_hit_tokens=numbers(details, "cached_tokens"),
            output_tokens=numbers(counts, "output_tokens"),
        )

    def error(self, message: str, kind: str, code: str | None = None) -> Json:
        return openai_error(message, kind, code)

    def events(self, request: Json, response: Json) -> Iterator[bytes]:  # noqa: ARG002 - chat needs the request
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
            yield event({"type": name, "sequence_number": next(number)} | data, name)

    def error_events(self, error: Json) -> Iterator[bytes]:
        why = {"code": error["error"]["code"] or error["error"]["type"], "message": error["error"]["message"]}
        failed = {"id": "resp_failed", "object": "response", "status": "failed", "output": [], "error": why}
        yield event({"type": "response.failed", "sequence_number": 0, "response": failed}, "response.failed")

    def text(self, response: Json) -> str:
        return "\n".join(plain(item.get("content")) for item in _items(response, "message"))

    def reasoning(self, response: Json) -> str:
        items = _items(response, "reasoning")
        return "\n".join(
            filter(None, (plain(item.get(key)) for item in items for key in ("summary", "content")))
        )

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        return tuple(
            made(item.get("call_id"), item.get("name"), item.get("arguments") or item.get("input"))
            for item in _items(response, "function_call", "custom_tool_call")
        )

    def tool_results(self, request: Json) -> dict[str, str]:
        items = request.get("input", ())
        return {
            str(item.get("call_id")): plain(item.get("output"))
            for item in (items if isinstance(items, list) else ())
            if item.get("type") in ("function_call_output", "custom_tool_call_output")
        }


class ResponsesStream:
    """The events of a response, each of which that changes its state repeats the whole of it."""

    def __init__(self) -> None:
        self.answer: Json = {}
        self.ending: bytes | None = None

    def pass_on(self, event_: Json) -> bytes:
        response = event_.get("response") or self.answer
        if not isinstance(response, dict):
            raise TypeError("response")
        self.answer = response
        if event_.get("type") in ENDS:
            self.ending = event(event_, event_["type"])
            return b""
        return event(event_, event_.get("type"))


def _reasoning(item: Json) -> Json:
    """As OpenAI has it. litellm's bridge from chat writes thoughts as a message's parts, which clients cannot read."""
    if "summary" in item:
        return item
    summary = [{"type": "summary_text", "text": plain(item.get("content"))}]
    signed = {"encrypted_content": item["encrypted_content"]} if item.get("encrypted_content") else {}
    return {"type": "reasoning", "id": item.get("id"), "summary": summary} | signed


def _items(response: Json, *types: str) -> list[Json]:
    return [item for item in response.get("output") or () if item.get("type") in types]


def _item_events(item: Json) -> Iterator[tuple[str, Json]]:
    """Events of one output item, from added to done."""
    empty: Json = {"message": {"content": []}, "reasoning": {"summary": []}}.get(item["type"], {})
    if item["type"] in ("function_call", "custom_tool_call"):
        empty = {key: "" for key in ("arguments", "input") if key in item}
    yield "response.output_item.added", {"item": item | empty | {"status": "in_progress"}}
    at = {"item_id": item.get("id")}
    match item["type"]:
        case "message":
            for index, part in enumerate(item.get("content") or ()):
                yield from _part_events(at | {"content_index": index}, part)
        case "reasoning":
            for index, part in enumerate(item.get("summary") or ()):
                yield from _summary_events(at | {"summary_index": index}, part)
        case "function_call":
            yield "response.function_call_arguments.delta", at | {"delta": item["arguments"]}
            yield (
                "response.function_call_arguments.done",
                at | {"arguments": item["arguments"], "name": item.get("name")},
            )
        case "custom_tool_call":
            yield "response.custom_tool_call_input.delta", at | {"delta": item["input"]}
            yield "response.custom_tool_call_input.done", at | {"input": item["input"]}
    yield "response.output_item.done", {"item": item}


def _part_events(at: Json, part: Json) -> Iterator[tuple[str, Json]]:
    key, name = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
    text = part.get(key) or ""
    yield "response.content_part.added", at | {"part": part | {key: ""}}
    logprobs: Json = {} if key == "refusal" else {"logprobs": []}
    yield f"response.{name}.delta", at | {"delta": text} | logprobs
    yield f"response.{name}.done", at | {key: text} | logprobs
    yield "response.content_part.done", at | {"part": part}


def _summary_events(at: Json, part: Json) -> Iterator[tuple[str, Json]]:
    text = part.get("text") or ""
    yield "response.reasoning_summary_part.added", at | {"part": part | {"text": ""}}
    yield "response.reasoning_summary_text.delta", at | {"delta": text}
    yield "response.reasoning_summary_text.done", at | {"text": text}
    yield "response.reasoning_summary_part.done", at | {"part": part}
