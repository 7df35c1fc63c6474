"""The parts of a request that did not reach its provider.

litellm translates every API for every provider and silently drops settings that a provider does not have. Its input
callback shows the body that it is about to send, which is compared with the request that it was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from contextvars import ContextVar

from runner.gateway.api import Json, text_of

SENT: ContextVar[list[Json] | None] = ContextVar("SENT", default=None)
"""Bodies sent in the call under way. A context variable belongs to one call; see `scripted.SCRIPT`."""

THINKING = ("reasoning", "reasoning_effort", "thinking", "thinkingConfig")
FORMAT = ("response_format", "text", "output_format", "output_config")
COUNTERPARTS: dict[str, tuple[str, ...]] = {
    "input": ("messages", "contents"),
    "instructions": ("system", "messages", "system_instruction"),
    "max_tokens": ("max_output_tokens", "max_completion_tokens", "maxTokens"),
    "max_output_tokens": ("max_tokens", "max_completion_tokens", "maxTokens"),
    "messages": ("input", "contents"),
    "output_config": (*THINKING, *FORMAT),
    "output_format": FORMAT,
    "parallel_tool_calls": ("disable_parallel_tool_use",),
    "disable_parallel_tool_use": ("parallel_tool_calls",),
    "reasoning": THINKING,
    "reasoning_effort": (*THINKING, "output_config"),
    "response_format": (*FORMAT, "response_mime_type"),
    "stop": ("stop_sequences", "stopSequences"),
    "stop_sequences": ("stop", "stopSequences"),
    "system": ("instructions", "messages", "system_instruction"),
    "text": (*FORMAT, "verbosity"),
    "thinking": THINKING,
    "tool_choice": ("toolConfig", "tool_config"),
    "tools": ("toolConfig",),
    "top_p": ("topP",),
    "verbosity": ("text",),
}
"""Field -> its names in other APIs."""
WITHIN = ("additionalModelRequestFields", "generationConfig", "inferenceConfig")
"""Fields of Bedrock and of Gemini that hold settings which other APIs have at the top."""
GRANTED = frozenset({"store"})
"""Settings that need not reach the provider: the gateway always asks it not to store answers."""
MARKS = {"cache_control": ("cache_control", "cachePoint"), "is_error": ("is_error",)}
"""Keys in parts of messages and tools that some APIs do not have -> their names."""


def note(call: Json) -> None:
    """Note the body that litellm is about to send. This is its input callback."""
    sent, bodies = (call.get("additional_args") or {}).get("complete_input_dict"), SENT.get()
    if isinstance(sent, str):  # Bedrock's bodies are written before they are shown
        with suppress(ValueError):
            sent = json.loads(sent)
    if isinstance(sent, dict) and bodies is not None:
        bodies.append(sent)


def lost(fields: Json, sent: Json) -> tuple[str, ...]:
    """Return the names of settings, marks on parts and earlier thoughts that are in `fields` and not in `sent`."""
    text = json.dumps(sent, default=str)
    there = _settings(sent)
    asked = _settings(fields) - GRANTED
    names = {name for name in asked if there.isdisjoint((name, *COUNTERPARTS.get(name, ())))}
    given = json.dumps(fields)
    for mark, there_called in MARKS.items():
        if f'"{mark}": ' in given and not any(f'"{name}": ' in text for name in there_called):
            names.add(mark)
    if any(json.dumps(thought)[1:-1] not in text for thought in _thoughts(fields)):
        names.add("reasoning items")
    return tuple(sorted(names))


def _settings(body: Json) -> set[str]:
    choice = body.get("tool_choice")
    within = [body[name].keys() for name in WITHIN if isinstance(body.get(name), dict)]
    return set(body.keys()).union(*within) | (
        choice.keys() & {"disable_parallel_tool_use"} if isinstance(choice, dict) else set()
    )


def _thoughts(body: Json) -> Iterator[str]:
    """Yield the lines of earlier thoughts that the request repeats, in words or encrypted."""
    items = body.get("input", body.get("messages"))
    for item in items if isinstance(items, list) else ():
        content = item.get("content")
        yield from str(item.get("reasoning_content") or "").splitlines()
        for part in (item, *(content if isinstance(content, list) else ())):
            if isinstance(part, dict) and part.get("type") in ("thinking", "reasoning"):
                words = text_of(part.get("summary")) or part.get("thinking") or part.get("encrypted_content")
                yield from str(words or "").splitlines()
