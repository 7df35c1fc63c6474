"""Checks of providers' answers: their form in each API, their token counts and their tool calls' arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial

import httpx

from runner.gateway.api import Json, is_count
from runner.gateway.request_shapes import DEEPEST, RequestError, anything

EXCERPT_CHARACTERS = 1000
"""Length of the excerpts from false answers in errors and the ledger."""
ANSWER_VALUES = 100_000
"""Limit on the objects, lists, numbers and texts in an answer. The longest real ones have some thousands."""
CHAT, RESPONSES, MESSAGES, GEMINI = "/chat/completions", "/responses", "/messages", ":generateContent"
"""Ends of the paths of the four APIs; providers have different prefixes."""
PARTS: dict[str, dict[str, type]] = {
    "text": {"text": str},
    "thinking": {"thinking": str},
    "tool_use": {"input": dict},
    "message": {"content": list},
    "function_call": {"arguments": str},
    "custom_tool_call": {"input": str},
    "output_text": {"text": str},
    "refusal": {"refusal": str},
}
"""Type of a part of an answer -> its required fields. Parts of other types are passed on unread. The name of a tool
call is not required: a missing one is the model's failure and not its provider's."""
NESTED = {"message": "content", "reasoning": "summary"}
"""Type of a part -> the field with its own parts."""
COUNTS: dict[str, tuple[str, ...]] = {
    CHAT: ("prompt_tokens", "completion_tokens"),
    RESPONSES: ("input_tokens", "output_tokens"),
    MESSAGES: ("input_tokens", "output_tokens"),
    GEMINI: ("promptTokenCount",),
}
"""API -> its required counts, of tokens read and written. Gemini leaves out a count of 0."""
MORE_COUNTS = (
    "cacheCreationTokenCount",
    "cache_creation_input_tokens",
    "cache_creation_tokens",
    "cache_read_input_tokens",
    "cache_write_tokens",
    "cachedContentTokenCount",
    "cached_tokens",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "totalTokenCount",
)
"""Optional counts, at the top of an API's usage or in its details."""
DETAILS = ("prompt_tokens_details", "input_tokens_details")
NO_COUNTS: dict[str, Json | None] = {
    CHAT: None,
    RESPONSES: None,
    MESSAGES: {"input_tokens": 0, "output_tokens": 0},
    GEMINI: {"promptTokenCount": 0, "candidatesTokenCount": 0, "totalTokenCount": 0},
}
"""API -> an empty usage in a form that litellm accepts."""

MALFORMED = "malformed_arguments"
"""Name of the argument that holds, as text, arguments that are not an object."""


class NotAnAnswer(httpx.RequestError):
    """A provider reported success or a redirection, but did not send an answer."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The provider sent no answer: {why}")


def api_of(path: str) -> str | None:
    """Return the API at the path of a URL, or None for a provider's own API."""
    return next((api for api in COUNTS if path.endswith(api)), None)


def excerpt(body: bytes | str) -> str:
    """Return the beginning of a body for an error message."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    return text if len(text) <= EXCERPT_CHARACTERS else f"{text[:EXCERPT_CHARACTERS]}… ({len(text)} in all)"


def read(body: bytes) -> Json:
    """Return the object in a body. Raises `NotAnAnswer`."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise NotAnAnswer(f"it is not JSON: {excerpt(body)!r}") from None
    if not isinstance(answer, dict):
        raise NotAnAnswer(f"it is not an object: {excerpt(body)!r}")
    return answer


def check(answer: Json, api: str) -> None:
    """Raise `NotAnAnswer` unless this is an answer of that API."""
    fault = "it has too many values" if is_crowded(answer, ANSWER_VALUES) else CHECKS[api](answer)
    if fault:
        raise NotAnAnswer(f"{fault}: {excerpt(json.dumps(answer))!r}")


def countable(answer: Json, api: str) -> Json:
    """Return the answer; without its usage, if a count in the usage is missing or invalid.

    litellm takes null for 0 and true for 1, so the caps would count too few tokens.
    """
    field = "usageMetadata" if api == GEMINI else "usage"
    return answer if _has_counts(answer.get(field), COUNTS[api]) else answer | {field: NO_COUNTS[api]}


def with_arguments(answer: Json, api: str, *, objects: bool) -> Json:
    """Return the answer with arguments of tool calls that litellm can read. Changes it in place.

    The model writes the arguments and can be asked to write any, so they are not the provider's failure. Those that are
    nested too deeply are cut to `DEEPEST` characters. With `objects`, for an API whose arguments are an object, all
    others are wrapped in one.
    """
    for call in _calls(answer, api):
        if isinstance(call.get("arguments"), str):
            call["arguments"] = _arguments(call["arguments"], objects=objects)
    return answer


def is_crowded(body: Json, most: int) -> bool:
    """Return whether a body has more than `most` values."""
    values: list[object] = [body]
    while values:
        value = values.pop()
        within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        most -= len(within)
        if most < 0:
            return True
        values.extend(within)
    return False


def _calls(answer: Json, api: str) -> list[Json]:
    """Return the objects with the arguments of each tool call, in an answer that was checked."""
    if api == GEMINI:  # its arguments are objects
        return []
    if api == CHAT:
        messages = [choice["message"] for choice in answer["choices"]]
        return [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [item for item in answer.get("output") or () if item.get("type") == "function_call"]


def _has_counts(usage: object, required: tuple[str, ...]) -> bool:
    if not isinstance(usage, dict) or not all(is_count(usage.get(name)) for name in required):
        return False
    details = [one for name in DETAILS if (one := usage.get(name)) is not None]
    return all(isinstance(one, dict) for one in details) and all(
        count is None or is_count(count) for one in (usage, *details) for count in map(one.get, MORE_COUNTS)
    )


def _arguments(text: str, *, objects: bool) -> str:
    value: object = None
    try:
        value = anything(json.loads(text), set())
    except (RecursionError, RequestError):
        text = text[:DEEPEST]
    except ValueError:
        pass
    if not objects or isinstance(value, dict):
        return text
    return json.dumps({MALFORMED: text}) if text.strip() else ""


def _alternatives(key: str, fault: Callable[[object], str | None], answer: Json) -> str | None:
    """Return the first fault of an answer that is one or more alternatives, which it has under `key`."""
    found = answer.get(key)
    if _reports_error(answer) or not isinstance(found, list) or not found:
        return f"it has no {key}"
    return next(filter(None, map(fault, found)), None)


def _choice(choice: object) -> str | None:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return "a choice has no message"
    calls = message.get("tool_calls")
    if not isinstance(message.get("content"), str | list | None) or not isinstance(calls, list | None):
        return "a message is not one"
    functions = [call.get("function") if isinstance(call, dict) else None for call in calls or ()]
    return None if all(isinstance(one, dict) for one in functions) else "a tool call has no function"


def _responses(answer: Json) -> str | None:
    output = answer.get("output")
    if _reports_error(answer) or not isinstance(output, list):
        return "it has no output"
    if answer.get("status") not in ("completed", "incomplete", *([None] if output else [])):
        return "it does not say that it is complete"
    return next(_faults(output), None)


def _messages(answer: Json) -> str | None:
    content = answer.get("content")
    if _reports_error(answer) or not isinstance(content, list):
        return "it has no content"
    if not content and not isinstance(answer.get("stop_reason"), str):
        return "it has no content, and does not say why it stopped"
    return next(_faults(content), None)


def _candidate(candidate: object) -> str | None:
    if not isinstance(candidate, dict):
        return "a candidate is not one"
    content = candidate.get("content", {})
    parts = content.get("parts", []) if isinstance(content, dict) else None
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return "a candidate has no parts"
    if not parts and not isinstance(candidate.get("finishReason"), str):
        return "a candidate has no parts, and does not say why it stopped"
    for part in parts:
        call = part.get("functionCall", {})
        if not isinstance(part.get("text", ""), str) or not isinstance(call, dict):
            return "a part is not one"
        if not isinstance(call.get("args", {}), dict | None):
            return "a functionCall has no args"
    return None


def _faults(parts: list[object]) -> Iterator[str]:
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(kind, str):
            yield "a part of it has no type"
            return
        for name, needed in PARTS.get(kind, {}).items():
            if not isinstance(part.get(name), needed):
                yield f"a {kind} has no {name}"
        within = part.get(NESTED.get(kind, ""))
        if isinstance(within, list):
            yield from _faults(within)
        elif within is not None:
            yield f"a {kind} has parts that are no list"


def _reports_error(answer: Json) -> bool:
    return bool(answer.get("error")) or answer.get("type") == "error" or answer.get("status") == "failed"


CHECKS: dict[str, Callable[[Json], str | None]] = {
    CHAT: partial(_alternatives, "choices", _choice),
    RESPONSES: _responses,
    MESSAGES: _messages,
    GEMINI: partial(_alternatives, "candidates", _candidate),
}
"""API -> function that returns the fault of an answer, or None."""
