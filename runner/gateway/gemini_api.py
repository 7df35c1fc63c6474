"""Gemini's API, `generateContent` and `streamGenerateContent`.

A request is read into one of the chat API and an answer is written from one of it, so that every provider that serves
chat serves Gemini's agents too, and litellm sends the same to a provider for both. See ADR 0024.
"""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from types import ModuleType
from typing import Any, Literal
from uuid import uuid4

import runner.gateway.request_shapes as sh
from runner.gateway.answer_checks import MALFORMED
from runner.gateway.api import Json, Outbound, append_text, encode_event, token_bound, token_count, tool_call
from runner.gateway.chat_api import Chat
from runner.gateway.gemini_requests import OURS, REQUEST, answered, as_chat
from runner.records import ToolCall, Usage

CHAT = Chat()
STATUSES = {
    "authentication_error": (HTTPStatus.UNAUTHORIZED, "UNAUTHENTICATED"),
    "budget_exceeded": (HTTPStatus.FORBIDDEN, "PERMISSION_DENIED"),
    "cancelled": (HTTPStatus.SERVICE_UNAVAILABLE, "CANCELLED"),
    "internal_error": (HTTPStatus.INTERNAL_SERVER_ERROR, "INTERNAL"),
    "invalid_request_error": (HTTPStatus.BAD_REQUEST, "INVALID_ARGUMENT"),
    "upstream_error": (HTTPStatus.BAD_GATEWAY, "UNAVAILABLE"),
}
"""Our kind of error -> Gemini's code and status."""
TOO_LONG = "The input token count exceeds the maximum number of tokens allowed: "
"""Start of the message about a full context: this API has no code for it."""
REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
"""Chat's reason for an end -> Gemini's; all others are `STOP`."""
FIELDS_OF_EVENTS = frozenset({"candidates", "usageMetadata"})
"""Fields of which each event of a stream has at least one."""
OF_TEXTS = frozenset({"text", "thought", "thoughtSignature"})
"""Fields of a part that is a text, which a stream may continue."""
SIGNED = "__thought__"
"""litellm's mark between a call's id and its signature."""


class Gemini:
    """`POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`."""

    name: Literal["gemini"] = "gemini"
    path = "/v1beta/models/{model:path}:generateContent"
    stream_path = "/v1beta/models/{model:path}:streamGenerateContent"
    ping = b"\n"  # Google's own client reads no comment: it waits for the whole line to be data
    streaming: Json = {}
    shortest: Json = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}

    def accept(self, body: Json) -> Outbound:
        fields, dropped = sh.read(REQUEST, body, OURS.keys())
        return Outbound(fields=as_chat(fields), dropped=dropped)

    def wanted_output(self, body: Json) -> int | None:
        config = body.get("generationConfig")
        return token_bound(config.get("maxOutputTokens")) if isinstance(config, dict) else None

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        return CHAT.outbound(accepted, params, max_output)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        return from_chat(await CHAT.send(litellm, arguments))

    def own(self, answer: Json) -> Json | None:  # noqa: ARG002 - no shortcut is taken in this API
        return None

    def stream(self, request: Json) -> GeminiStream:  # noqa: ARG002 - only chat uses it
        return GeminiStream()

    def usage(self, response: Json) -> Usage | None:
        counts = response.get("usageMetadata")
        read = token_count(counts, "promptTokenCount")
        if not read:  # see `openai_usage`
            return None
        return Usage(
            input_tokens=read,
            cache_creation_tokens=token_count(counts, "cacheCreationTokenCount"),
            cache_hit_tokens=token_count(counts, "cachedContentTokenCount"),
            output_tokens=token_count(counts, "candidatesTokenCount")
            + token_count(counts, "thoughtsTokenCount"),
        )

    def error(self, message: str, kind: str, code: str | None = None) -> Json:
        if code == "context_length_exceeded":
            kind, message = "invalid_request_error", TOO_LONG + message
        number, status = STATUSES.get(kind, STATUSES["internal_error"])
        return {"error": {"code": int(number), "message": message, "status": status}}

    def events(self, request: Json, response: Json) -> Iterator[bytes]:  # noqa: ARG002 - only chat uses it
        yield encode_event(response)

    def error_events(self, error: Json) -> Iterator[bytes]:
        yield encode_event(error)

    def text(self, response: Json) -> str:
        return "".join(part["text"] for part in _parts(response, "text") if not part.get("thought"))

    def reasoning(self, response: Json) -> str:
        return "".join(part["text"] for part in _parts(response, "text") if part.get("thought"))

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        calls = (part["functionCall"] for part in _parts(response, "functionCall"))
        return tuple(tool_call(call.get("id"), call.get("name"), call.get("args")) for call in calls)

    def tool_results(self, request: Json) -> dict[str, str]:
        return answered(request)


class GeminiStream:
    """An answer in events, each of which is an answer with more of the parts."""

    def __init__(self) -> None:
        self._head: Json = {}
        self._candidates: dict[int, Json] = {}
        self._last = b""

    def pass_on(self, event: Json) -> bytes:
        if event.keys().isdisjoint(FIELDS_OF_EVENTS) or (event.get("promptFeedback") or {}).get(
            "blockReason"
        ):
            raise ValueError("no part of an answer")
        for candidate in event.get("candidates") or ():
            index = candidate.get("index", 0)
            whole = self._candidates.setdefault(index, {"content": {"role": "model", "parts": []}})
            parts = (candidate.get("content") or {}).get("parts") or ()
            for part in parts:
                _extend(whole["content"]["parts"], part)
            whole |= {key: value for key, value in candidate.items() if key != "content"}
        counts = (self._head.get("usageMetadata") or {}) | (event.get("usageMetadata") or {})
        self._head |= {key: value for key, value in event.items() if key != "candidates"}
        if counts:
            self._head["usageMetadata"] = counts
        # An ending has no event of its own, so the latest is held once the model has said why it stopped.
        before, self._last = self._last, b""
        if not self._ended:
            return before + encode_event(event)
        self._last = encode_event(event)
        return before

    @property
    def ending(self) -> bytes | None:
        return self._last if self._ended else None

    @property
    def answer(self) -> Json:
        return self._head | {"candidates": list(self._candidates.values())}

    @property
    def _ended(self) -> bool:
        candidates = self._candidates.values()
        return bool(candidates) and all(one.get("finishReason") for one in candidates)


def _extend(parts: list[Json], part: Json) -> None:
    """Add a part to those of an answer. A piece of text continues the last part, up to its signature.

    A call without an id is given one in place, as litellm does, so that the agent and the ledger have the same.
    """
    last = parts[-1] if parts else {}
    if "functionCall" in part and not part["functionCall"].get("id"):
        part["functionCall"]["id"] = f"call_{uuid4().hex}"
    continued = (
        "text" in last and "thoughtSignature" not in last and "text" in part and part.keys() <= OF_TEXTS
    )
    if continued and bool(part.get("thought")) == bool(last.get("thought")):
        append_text(last, "text", part["text"])
        last.update({key: value for key, value in part.items() if key != "text"})
    else:
        parts.append(dict(part))


def from_chat(answer: Json) -> Json:
    """Return a chat completion, as litellm writes it, as Gemini's answer."""
    choices = answer.get("choices") or ()
    return {
        "candidates": [_candidate(choice, index) for index, choice in enumerate(choices)],
        "usageMetadata": _counts(answer.get("usage") or {}),
        "modelVersion": answer.get("model"),
        "responseId": answer.get("id"),
    }


def _candidate(choice: Json, index: int) -> Json:
    message = choice["message"]
    calls = [_called(call) for call in message.get("tool_calls") or ()]
    of_calls = [part.get("thoughtSignature") for part in calls]
    signatures = (message.get("provider_specific_fields") or {}).get("thought_signatures") or ()
    own = next((one for one in signatures if one not in of_calls), None)
    parts: list[Json] = []
    if thought := message.get("reasoning_content"):
        parts.append({"text": thought, "thought": True})
    if text := message.get("content"):
        parts.append({"text": text} | ({"thoughtSignature": own} if own else {}))
    parts += calls
    return {
        "content": {"role": "model", "parts": parts},
        "finishReason": REASONS.get(str(choice.get("finish_reason")), "STOP"),
        "index": index,
    }


def _called(call: Json) -> Json:
    function = call.get("function") or {}
    # litellm writes a signature into the id, too, for clients that know of none.
    id_ = str(call.get("id") or "").partition(SIGNED)[0]
    made = {"id": id_, "name": function.get("name"), "args": _object(function.get("arguments"))}
    signature = (call.get("provider_specific_fields") or {}).get("thought_signature")
    return {"functionCall": made} | ({"thoughtSignature": signature} if signature else {})


def _object(arguments: object) -> Json:
    """Return a call's arguments as an object, whatever text the model wrote."""
    try:
        value: Any = json.loads(str(arguments or "{}"))
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {MALFORMED: str(arguments)}


def _counts(usage: Json) -> Json:
    """Return Gemini's counts: thoughts are not among the tokens of candidates, but cached tokens are in the prompt."""
    read, written = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    thoughts = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    details = usage.get("prompt_tokens_details") or {}
    thoughts = min(thoughts, written)
    counts = {
        "promptTokenCount": read,
        "candidatesTokenCount": written - thoughts,
        "totalTokenCount": read + written,
    }
    more = {
        "thoughtsTokenCount": thoughts,
        "cachedContentTokenCount": details.get("cached_tokens"),
        "cacheCreationTokenCount": details.get("cache_creation_tokens"),  # not Gemini's own, and dearer
    }
    return counts | {name: count for name, count in more.items() if count}


def _parts(response: Json, kind: str) -> list[Json]:
    """Return the parts of one kind in the first candidate."""
    candidates = response.get("candidates") or [{}]
    parts = (candidates[0].get("content") or {}).get("parts") or ()
    return [part for part in parts if kind in part]
