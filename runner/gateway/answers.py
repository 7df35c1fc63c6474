"""What an answer of each API must look like, and what of it can be counted: a provider's word is not taken for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import httpx

from runner.gateway.api import Json, is_count
from runner.gateway.shapes import DEEPEST, RequestError, anything

SHOWN_CHARACTERS = 1000
"""Of what came instead of an answer, as errors and the ledger show it."""
ANSWER_VALUES = 100_000
"""Cap on objects, lists, numbers and texts in an answer. The longest real ones have some thousands."""
CHAT, RESPONSES, MESSAGES = "/chat/completions", "/responses", "/messages"
"""How the addresses of the three APIs end, whatever a provider puts before."""
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
"""Type of a part of an answer -> what it must have. Parts of other types are passed on and not read. A tool call may
name no tool: that is the model's failure, and not its provider's."""
NESTED = {"message": "content", "reasoning": "summary"}
"""Type of a part -> where it has parts of its own."""
COUNTS: dict[str, tuple[str, str]] = {
    CHAT: ("prompt_tokens", "completion_tokens"),
    RESPONSES: ("input_tokens", "output_tokens"),
    MESSAGES: ("input_tokens", "output_tokens"),
}
"""API -> its counts of what was read and written."""
MORE_COUNTS = (
    "cache_creation_input_tokens",
    "cache_creation_tokens",
    "cache_read_input_tokens",
    "cache_write_tokens",
    "cached_tokens",
)
"""Counts that an API may leave out, or leave empty, at the top of its usage or in its details."""
DETAILS = ("prompt_tokens_details", "input_tokens_details")
NO_COUNTS: dict[str, Json | None] = {
    CHAT: None,
    RESPONSES: None,
    MESSAGES: {"input_tokens": 0, "output_tokens": 0},
}
"""API -> a usage that says nothing, in the form in which litellm takes it."""

MALFORMED = "malformed_arguments"
"""Argument that holds, as text, what a model wrote in the place of an object of arguments."""


class NotAnAnswer(httpx.RequestError):
    """A provider reported success, or a redirection, and what it sent is not an answer."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The provider sent no answer: {why}")


def api_of(path: str) -> str | None:
    """The API that is spoken at the path of a URL; None for one of a provider's own."""
    return next((api for api in COUNTS if path.endswith(api)), None)


def shown(body: bytes | str) -> str:
    """The beginning of what came, for an error message."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}… ({len(text)} in all)"


def read(body: bytes) -> Json:
    """The object in a body. Raises `NotAnAnswer`."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise NotAnAnswer(f"it is not JSON: {shown(body)!r}") from None
    if not isinstance(answer, dict):
        raise NotAnAnswer(f"it is not an object: {shown(body)!r}")
    return answer


def check(answer: Json, api: str) -> None:
    """Raise `NotAnAnswer` unless this is an answer of that API."""
    fault = "it has too many values" if is_crowded(answer, ANSWER_VALUES) else CHECKS[api](answer)
    if fault:
        raise NotAnAnswer(f"{fault}: {shown(json.dumps(answer))!r}")


def countable(answer: Json, api: str) -> Json:
    """The same; without its usage if one of its counts is missing or is not a count.

    litellm takes null for 0 and true for 1, and with that the caps would count less than what may have been written.
    """
    usage = answer.get("usage")
    if isinstance(usage, dict) and all(is_count(usage.get(name)) for name in COUNTS[api]):
        holders = [usage, *(usage.get(name) for name in DETAILS)]
        details = [one.get(name) for one in holders if isinstance(one, dict) for name in MORE_COUNTS]
        if all(one is None or isinstance(one, dict) for one in holders) and all(
            one is None or is_count(one) for one in details
        ):
            return answer
    return answer | {"usage": NO_COUNTS[api]}


def with_arguments(answer: Json, api: str, *, objects: bool) -> Json:
    """The same; with arguments of tool calls that litellm can read.

    Arguments are the model's, and a model can be asked for any: what it wrote is no failure of its provider. Those that
    are nested too deeply are cut to as many characters as there may be levels. With `objects`, for an API in which
    arguments are an object, all others are wrapped in one.
    """
    for call in _calls(answer, api):
        if isinstance(call.get("arguments"), str):
            call["arguments"] = _arguments(call["arguments"], objects=objects)
    return answer


def is_crowded(body: Json, most: int) -> bool:
    """Whether there are more values in it than that."""
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
    """What holds the arguments of each tool call, of an answer that was checked."""
    if api == CHAT:
        messages = [choice["message"] for choice in answer["choices"]]
        return [call["function"] for message in messages for call in message.get("tool_calls") or ()]
    return [item for item in answer.get("output") or () if item.get("type") == "function_call"]


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


def _chat(answer: Json) -> str | None:
    choices = answer.get("choices")
    if _reports_error(answer) or not isinstance(choices, list) or not choices:
        return "it has no choices"
    return next(filter(None, map(_choice, choices)), None)


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
    CHAT: _chat,
    RESPONSES: _responses,
    MESSAGES: _messages,
}
"""API -> what is wrong with an answer of it; None if nothing is."""
