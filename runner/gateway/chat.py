"""OpenAI's Chat Completions."""

# ruff: noqa: D102 - the protocol says what each method does
from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Literal

from runner.gateway.api import (
    BY_ADDRESS,
    COMMENT,
    Json,
    Outbound,
    event,
    numbers,
    openai_error,
    plain,
    positive,
    remote,
    select,
    tool_fields,
)
from runner.records import ToolCall, Usage

ALLOWED = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "messages",
        "parallel_tool_calls",
        "presence_penalty",
        "prompt_cache_key",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_p",
        "verbosity",
    }
)
"""Fields that are passed on. A list of the good: litellm reads every unknown argument as its own or the provider's,
and `api_base` in a request would send the provider's key wherever an agent likes."""
OURS = frozenset({"model", "stream", "stream_options", "max_tokens", "max_completion_tokens"})
"""Fields that the gateway itself answers for."""
NAMED: dict[str, str | None] = {"function": "function"}


class Chat:
    """`POST /v1/chat/completions`."""

    name: Literal["chat"] = "chat"
    path = "/v1/chat/completions"
    ping = COMMENT

    def complaint(self, body: Json) -> str | None:
        messages = body.get("messages")
        if (
            not isinstance(messages, list)
            or not messages
            or not all(isinstance(one, dict) for one in messages)
        ):
            return "messages: a list of at least one message object is required."
        return BY_ADDRESS if remote(messages) else None

    def wanted_output(self, body: Json) -> int | None:
        return positive(body.get("max_completion_tokens")) or positive(body.get("max_tokens"))

    def outbound(self, body: Json, params: Json, max_output: int | None) -> Outbound:
        fields, dropped = select(body, ALLOWED, OURS)
        dropped += tool_fields(fields, NAMED)
        if max_output is not None:
            fields["max_tokens"] = (
                max_output  # litellm renames it where needed; the newer name it drops for some
            )
        return Outbound(fields=fields | params, dropped=dropped)

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        finished: Json = (await litellm.acompletion(**arguments)).model_dump(mode="json")
        return finished

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
        options = request.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage"):
            yield event(head | {"choices": [], "usage": response.get("usage")})
        yield b"data: [DONE]\n\n"

    def error_events(self, error: Json) -> Iterator[bytes]:
        yield event(error)

    def text(self, response: Json) -> str:
        return plain(_message(response).get("content"))

    def reasoning(self, response: Json) -> str:
        return plain(_message(response).get("reasoning_content"))

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(
                id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"] or ""
            )
            for call in _message(response).get("tool_calls") or ()
        )

    def tool_results(self, request: Json) -> dict[str, str]:
        return {
            str(message.get("tool_call_id")): plain(message.get("content"))
            for message in request.get("messages", ())
            if message.get("role") == "tool"
        }


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
