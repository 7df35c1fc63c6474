"""The fake provider's answers as server-sent events, in single words and pieces of arguments like real ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count

from runner.gateway.api import Json, encode_event


def chat(request: Json, body: Json) -> Iterator[bytes]:
    """Yield a stream of `POST /v1/chat/completions`. The counts come last, and only if asked for."""
    (choice,) = body["choices"]
    message, usage = choice["message"], body.get("usage")
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in _pieces(message.get("reasoning_content"))]
    deltas += [{"content": piece} for piece in _pieces(message["content"])]
    for index, call in enumerate(message.get("tool_calls") or ()):
        first, *rest = _pieces(call["function"]["arguments"])
        function = {"name": call["function"]["name"], "arguments": first}
        deltas.append({"tool_calls": [call | {"index": index, "function": function}]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in rest]
    head = {key: body[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    for delta in deltas:
        yield encode_event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    ending = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    yield encode_event(head | {"choices": [ending]})
    if usage and (request.get("stream_options") or {}).get("include_usage"):
        yield encode_event(head | {"choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def messages(_request: Json, body: Json) -> Iterator[bytes]:
    """Yield a stream of `POST /v1/messages`. The input's counts come first, the output's last."""
    begun = body | {"content": [], "stop_reason": None, "usage": body["usage"] | {"output_tokens": 1}}
    yield _named({"type": "message_start", "message": begun})
    yield _named({"type": "ping"})
    for index, block in enumerate(body["content"]):
        empty, deltas = _block(block)
        yield _named({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"]}
    counts = {"output_tokens": body["usage"]["output_tokens"]}
    yield _named({"type": "message_delta", "delta": ending, "usage": counts})
    yield _named({"type": "message_stop"})


def responses(_request: Json, body: Json) -> Iterator[bytes]:
    """Yield a stream of `POST /v1/responses`. The last event is the complete object with the counts."""
    number = count()

    def numbered(name: str, data: Json) -> bytes:
        return _named({"type": f"response.{name}", "sequence_number": next(number)} | data)

    yield numbered("created", {"response": body | {"status": "in_progress", "output": [], "usage": None}})
    for index, item in enumerate(body["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        yield numbered("output_item.added", {"output_index": index, "item": _begun(item)})
        for name, data in _progress(item):
            yield numbered(name, at | data)
        yield numbered("output_item.done", {"output_index": index, "item": item})
    yield numbered("completed", {"response": body})


def gemini(_request: Json, body: Json) -> Iterator[bytes]:
    """Yield a stream of `:streamGenerateContent`. Each event counts the input, and the output up to there."""
    (candidate,) = body["candidates"]
    head = {key: body[key] for key in ("modelVersion", "responseId")}
    usage = body.get("usageMetadata")
    parts: list[Json] = []
    for part in candidate["content"]["parts"]:
        pieces = _pieces(part["text"]) if "text" in part else ()
        parts += [part | {"text": piece} for piece in pieces] if pieces else [part]
    counted = {"usageMetadata": usage | {"candidatesTokenCount": 1}} if usage else {}
    for part in parts:
        yield encode_event(head | {"candidates": [_candidate([part])]} | counted)
    ending = _candidate([{"text": ""}]) | {"finishReason": candidate["finishReason"]}
    yield encode_event(head | {"candidates": [ending]} | ({"usageMetadata": usage} if usage else {}))


def error(message: str) -> bytes:
    """Return the event of an error, in any API."""
    return _named({"type": "error", "error": {"type": "overloaded_error", "message": message}})


def failed(message: str) -> bytes:
    """Return the event of a failed response of `POST /v1/responses`."""
    why = {"code": "server_error", "message": message}
    response = {"id": "resp_failed", "object": "response", "status": "failed", "output": [], "error": why}
    return _named({"type": "response.failed", "sequence_number": 0, "response": response})


def _block(block: Json) -> tuple[Json, list[Json]]:
    """Return the start of a part of a message, and the deltas that follow."""
    if block["type"] == "tool_use":
        pieces = _pieces(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        return block | {"input": {}}, deltas
    if block["type"] == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {"type": "thinking", "thinking": "", "signature": ""}, deltas
    return block | {"text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]


def _candidate(parts: list[Json]) -> Json:
    return {"content": {"role": "model", "parts": parts}, "index": 0}


def _begun(item: Json) -> Json:
    begun: dict[str, Json] = {
        "message": {"content": [], "status": "in_progress"},
        "reasoning": {"summary": []},
        "function_call": {"arguments": "", "status": "in_progress"},
        "custom_tool_call": {"input": "", "status": "in_progress"},
    }
    return item | begun[item["type"]]


def _progress(item: Json) -> Iterator[tuple[str, Json]]:
    """Yield the events between an item's start and its end."""
    if item["type"] == "function_call":
        for piece in _pieces(item["arguments"]):
            yield "function_call_arguments.delta", {"delta": piece}
        yield "function_call_arguments.done", {"arguments": item["arguments"], "name": item["name"]}
        return
    if item["type"] == "custom_tool_call":
        for piece in _pieces(item["input"]):
            yield "custom_tool_call_input.delta", {"delta": piece}
        yield "custom_tool_call_input.done", {"input": item["input"]}
        return
    is_message = item["type"] == "message"
    field = "content" if is_message else "summary"
    part, text = (
        ("content_part", "output_text")
        if is_message
        else ("reasoning_summary_part", "reasoning_summary_text")
    )
    extra: Json = {"logprobs": []} if is_message else {}
    for index, one in enumerate(item[field]):
        at = {f"{field}_index": index}
        yield f"{part}.added", at | {"part": one | {"text": ""}}
        for piece in _pieces(one["text"]):
            yield f"{text}.delta", at | {"delta": piece} | extra
        yield f"{text}.done", at | {"text": one["text"]} | extra
        yield f"{part}.done", at | {"part": one}


def _pieces(text: str | None) -> list[str]:
    """Split a text into words, each with the blanks that follow it."""
    return re.findall(r"\S+\s*|\s+", text or "")


def _named(data: Json) -> bytes:
    return encode_event(data, data["type"])
