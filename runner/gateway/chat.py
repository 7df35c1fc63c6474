"""OpenAI's Chat Completions."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Literal

from runner.gateway.api import (
    COMMENT,
    Json,
    Outbound,
    append,
    event,
    made,
    numbers,
    openai_error,
    plain,
    positive,
)
from runner.gateway.shapes import (
    CACHED,
    FILE,
    IMAGE,
    INLINE,
    JSON_SCHEMA,
    Shape,
    base64,
    by,
    data_url,
    flag,
    integer,
    listing,
    mapping,
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

NAMED: dict[str, Shape] = {"name": short(256)} | CACHED
SIGNED: dict[str, Shape] = {"thought_signature": text, "thought_signatures": listing(text), "refusal": text}
"""What litellm adds to answers and reads again: signatures of thoughts, without which some models refuse their own."""


def _media(name: str, shape: Shape) -> Shape:
    return record(name, {"type": word, name: shape}, CACHED, closed=INLINE)


def _linked(name: str, address: Shape) -> Shape:
    """A part that holds a picture or film where the API would have its address."""
    return _media(name, text_or(record(name, {"url": address}, {"detail": word}, closed=INLINE), address))


PART = by(
    "type",
    {
        "text": record("text", {"type": word, "text": text}, CACHED),
        "refusal": record("refusal", {"type": word, "refusal": text}),
        "image_url": _linked("image_url", IMAGE),
        "video_url": _linked("video_url", data_url("video/[a-z0-9.+-]{1,80}")),
        "file": _media("file", record("file", {"file_data": FILE}, {"filename": short(256)}, closed=INLINE)),
        "input_audio": _media(
            "input_audio", record("input_audio", {"data": base64, "format": word}, closed=INLINE)
        ),
    },
)
CONTENT = text_or(listing(PART))
CALLED = record("function", {"name": text}, {"arguments": text})
"""What the model called: its name may be none that there is."""
CALL = record(
    "tool_call",
    {"function": CALLED},
    {
        "id": text,
        "type": one_of("function"),
        "index": integer,
        "provider_specific_fields": record("provider_specific_fields", {}, SIGNED),
    },
)
THOUGHT = by(
    "type",
    {
        "thinking": record("thinking", {"type": word, "thinking": text}, {"signature": text} | CACHED),
        "redacted_thinking": record("redacted_thinking", {"type": word, "data": text}, CACHED),
    },
)
SAID = record("message", {"role": word, "content": CONTENT}, NAMED)
MESSAGE = by(
    "role",
    {
        "system": SAID,
        "developer": SAID,
        "user": SAID,
        "assistant": record(
            "message",
            {"role": word},
            {
                "content": CONTENT,
                "function_call": CALLED,
                "partial": flag,
                "prefix": flag,
                "provider_specific_fields": record("provider_specific_fields", {}, SIGNED),
                "reasoning": text,
                "reasoning_content": text,
                "refusal": text,
                "thinking_blocks": listing(THOUGHT),
                "tool_calls": listing(CALL),
            }
            | NAMED,
        ),
        "tool": record("message", {"role": word, "tool_call_id": text, "content": CONTENT}, NAMED),
        "function": record("message", {"role": word, "name": text, "content": CONTENT}),
    },
)
TOOL = record(
    "tool",
    {
        "function": record(
            "function",
            {"name": tool_name},
            {"description": text, "parameters": schema, "strict": flag} | CACHED,
        )
    },
    {"type": word} | CACHED,
)
CHOICE = record("tool_choice", {"type": word, "function": record("function", {"name": tool_name})})
FORMAT = by(
    "type",
    {
        "text": record("response_format", {"type": word}),
        "json_object": record("response_format", {"type": word}),
        "json_schema": record(
            "response_format", {"type": word, "json_schema": record("json_schema", {}, JSON_SCHEMA)}
        ),
    },
)
STOP = short(1000)
OURS: dict[str, Shape] = {
    "model": short(256),
    "stream": flag,
    "stream_options": record("stream_options", {}, {"include_usage": flag, "include_obfuscation": flag}),
    "max_tokens": integer,
    "max_completion_tokens": integer,
}
"""Fields that the gateway itself answers for."""
REQUEST = record(
    "",
    {"messages": listing(MESSAGE, least=1)},
    {
        "frequency_penalty": number,
        "logit_bias": mapping(number, most=1024),
        "parallel_tool_calls": flag,
        "presence_penalty": number,
        "prompt_cache_key": short(1024),
        "reasoning_effort": text_or(record("reasoning_effort", {}, {"effort": word, "summary": word}), word),
        "response_format": FORMAT,
        "seed": integer,
        "stop": text_or(listing(STOP, most=64), STOP),
        "temperature": number,
        "thinking": record(
            "thinking",
            {"type": word},
            {"budget_tokens": integer, "clear_thinking": flag, "effort": word, "keep": word},
        ),
        "tool_choice": text_or(by("type", {"function": CHOICE}), word),
        "tools": tools({"function": TOOL}, "function"),
        "top_p": number,
        "verbosity": word,
    }
    | OURS,
)
"""All that is passed on. litellm reads every unknown argument as its own or the provider's, and `api_base` in a request
would send the provider's key wherever an agent likes."""
MOST_CALLS = 1000
"""Tool calls of one answer. A stream says the number of each: an enormous one would be a list of that length."""
DONE = b"data: [DONE]\n\n"
WRITTEN = frozenset({"content", "reasoning_content", "reasoning", "refusal", "arguments"})
"""What comes in pieces; all else of a delta comes whole."""


class Chat:
    """`POST /v1/chat/completions`."""

    name: Literal["chat"] = "chat"
    path = "/v1/chat/completions"
    ping = COMMENT
    shortest: Json = {"messages": [{"role": "user", "content": "hello"}]}

    def accept(self, body: Json) -> Outbound:
        fields, dropped = read(REQUEST, body, OURS.keys())
        return Outbound(fields=fields, dropped=dropped)

    def wanted_output(self, body: Json) -> int | None:
        return positive(body.get("max_completion_tokens")) or positive(body.get("max_tokens"))

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        # litellm renames the bound where needed; the newer name it drops for some.
        bound = {"max_tokens": max_output} if max_output is not None else {}
        return Outbound(fields=accepted.fields | bound | params, dropped=accepted.dropped)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        finished: Json = (await litellm.acompletion(**arguments)).model_dump(mode="json")
        return finished

    def streaming(self, body: Json) -> Json:
        return body | {"stream": True, "stream_options": {"include_usage": True}}

    def stream(self, request: Json) -> ChatStream:
        return ChatStream(with_usage=_asks_usage(request))

    def usage(self, response: Json) -> Usage | None:
        counts = response.get("usage") or {}
        total = numbers(counts, "prompt_tokens")
        if not total:  # no model reads nothing: the provider sent no usage, and litellm filled in zeros
            return None
        details = counts.get("prompt_tokens_details")
        return Usage(
            input_tokens=total,
            cache_creation_tokens=numbers(details, "cache_creation_tokens"),
            cache_hit_tokens=numbers(details, "cached_tokens"),
            output_tokens=numbers(counts, "completion_tokens"),
        )

    def error(self, message: str, kind: str, code: str | None = None) -> Json:
        return openai_error(message, kind, code)

    def events(self, request: Json, response: Json) -> Iterator[bytes]:
        head = {key: response.get(key) for key in ("id", "created", "model")} | {
            "object": "chat.completion.chunk"
        }
        for choice in response["choices"]:
            at = {"index": choice["index"], "finish_reason": None}
            for delta in _deltas(choice["message"]):
                yield event(head | {"choices": [at | {"delta": delta}]})
            yield event(head | {"choices": [at | {"delta": {}, "finish_reason": choice["finish_reason"]}]})
        if _asks_usage(request):
            yield event(head | {"choices": [], "usage": response.get("usage")})
        yield DONE

    def error_events(self, error: Json) -> Iterator[bytes]:
        yield event(error)

    def text(self, response: Json) -> str:
        return plain(_message(response).get("content"))

    def reasoning(self, response: Json) -> str:
        return plain(_message(response).get("reasoning_content"))

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        calls = ((call, call.get("function") or {}) for call in _message(response).get("tool_calls") or ())
        return tuple(made(call.get("id"), of.get("name"), of.get("arguments")) for call, of in calls)

    def tool_results(self, request: Json) -> dict[str, str]:
        return {
            str(message.get("tool_call_id")): plain(message.get("content"))
            for message in request.get("messages", ())
            if message.get("role") == "tool"
        }


class ChatStream:
    """The chunks of an answer."""

    def __init__(self, *, with_usage: bool) -> None:
        """`with_usage`: the agent asked for the counts, which we ask for always."""
        self._with_usage = with_usage
        self._head: Json = {}
        self._choices: dict[int, Json] = {}

    def pass_on(self, event_: Json) -> bytes:
        self._head |= {key: value for key, value in event_.items() if key != "choices" and value is not None}
        for choice in event_.get("choices") or ():
            begun: Json = {"index": choice["index"], "message": {"role": "assistant", "content": None}}
            known = self._choices.setdefault(choice["index"], begun | {"finish_reason": None})
            _extend(known["message"], choice.get("delta") or {})
            known["finish_reason"] = choice.get("finish_reason") or known["finish_reason"]
        counts_only = not event_.get("choices") and "usage" in event_
        return b"" if counts_only and not self._with_usage else event(event_)

    @property
    def ending(self) -> bytes | None:
        choices = self._choices.values()
        return DONE if choices and all(choice["finish_reason"] for choice in choices) else None

    @property
    def answer(self) -> Json:
        return self._head | {"object": "chat.completion", "choices": list(self._choices.values())}


def _extend(known: Json, delta: Json) -> None:
    """Add what came to a message, or to one of its tool calls."""
    for key, value in delta.items():
        if key == "tool_calls":
            _extend_calls(known.setdefault("tool_calls", []), value or ())
        elif isinstance(value, dict):
            _extend(known.setdefault(key, {}), value)
        elif key in WRITTEN and value is None:
            known.setdefault(key)
        elif key in WRITTEN:
            append(known, key, value)
        elif value is not None:
            known[key] = value


def _extend_calls(known: list[Json], deltas: Iterable[Json]) -> None:
    for delta in deltas:
        index = delta.get("index", _unnumbered(known, delta.get("id")))
        if not 0 <= index < MOST_CALLS:
            raise ValueError(f"there is no tool call number {index}")
        while len(known) <= index:
            known.append({"type": "function", "function": {"arguments": ""}})
        _extend(known[index], {key: value for key, value in delta.items() if key != "index"})


def _unnumbered(known: list[Json], id_: str | None) -> int:
    """Where a piece of a call without a number belongs: to the call with its id, or a new one; without, the last."""
    places = [at for at, call in enumerate(known) if not id_ or call.get("id") == id_]
    return places[-1] if places else len(known)


def _asks_usage(request: Json) -> bool:
    options = request.get("stream_options")
    return isinstance(options, dict) and bool(options.get("include_usage"))


def _message(response: Json) -> Json:
    choices = response.get("choices") or [{}]
    message: Json = choices[0].get("message") or {}
    return message


def _deltas(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    if message.get("reasoning_content"):
        yield {"reasoning_content": message["reasoning_content"]}
    if message.get("content"):
        yield {"content": message["content"]}
    for index, call in enumerate(message.get("tool_calls") or ()):
        yield {"tool_calls": [call | {"index": index}]}
