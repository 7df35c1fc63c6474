"""What the gateway must know of one wire format. One file per format implements it; nothing else tells them apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Literal, Protocol

from runner.records import Record, ToolCall, Usage

Json = dict[str, Any]
ADDRESSES = ("http://", "https://", "ftp://", "file://", "gs://", "s3://")
ABSURD = 2**53
"""Tokens that no model writes, and no price can be multiplied with."""
COMMENT = b": the model is at work\n\n"
"""A server-sent comment: keeps a stream alive where the format has no event for it."""
PART = "part"
"""What an item of a list is, to whoever walks through a request."""
TTL = "cache_control.ttl"
"""Label of a wish that is dropped: to be kept longer costs more than the one rate that price lists have for a cache."""
BY_ADDRESS = "Images and files by address are not fetched; send them inside the request, as data: URLs."


class Outbound(Record):
    """An agent's request as it is sent on."""

    fields: Json
    """Arguments of the provider call; model, key and transport settings are added by the backend."""
    dropped: tuple[str, ...] = ()
    """Fields and tools that were left out."""


class Stream(Protocol):
    """A provider's answer as it comes, in the agent's own API."""

    def pass_on(self, event: Json) -> bytes:
        """Take in one event; what the agent gets of it now, which is nothing of what ends its stream."""

    @property
    def ending(self) -> bytes | None:
        """What ends the agent's stream; None as long as the provider has not ended its own."""

    @property
    def answer(self) -> Json:
        """The object that the events so far make: at the end, what the provider would have sent at once."""


class Api(Protocol):
    """One wire format, pure but for `send`."""

    @property
    def name(self) -> Literal["chat", "responses", "messages"]:
        """As the ledger has it."""

    @property
    def path(self) -> str:
        """Of its route."""

    @property
    def ping(self) -> bytes:
        """Sent on an open stream while the agent waits."""

    def complaint(self, body: Json) -> str | None:
        """Why this body cannot be served at all; None when it can."""

    def wanted_output(self, body: Json) -> int | None:
        """Most output tokens that the agent asks for; None when it names no bound."""

    def outbound(self, body: Json, params: Json, max_output: int | None) -> Outbound:
        """The request to send: known fields of `body`, over them the model's `params`, and the bound on output."""

    async def send(self, litellm: ModuleType, arguments: Json) -> Json:
        """One call of the provider through litellm; the finished object."""

    def streaming(self, body: Json) -> Json:
        """A request as it goes to a provider of this very API, asking for a stream with all counts."""

    def stream(self, request: Json) -> Stream:
        """The beginning of a streamed answer to an agent's request, from a provider of this very API."""

    def usage(self, response: Json) -> Usage | None:
        """Tokens of an answer; None when the provider sent no counts."""

    def error(self, message: str, kind: str, code: str | None = None) -> Json:
        """Body of an error."""

    def events(self, request: Json, response: Json) -> Iterator[bytes]:
        """A finished answer as server-sent events, to the last."""

    def error_events(self, error: Json) -> Iterator[bytes]:
        """An error body as server-sent events, for when the headers are gone already."""

    def text(self, response: Json) -> str:
        """What the model said."""

    def reasoning(self, response: Json) -> str:
        """What the model thought, as far as the provider shows it."""

    def tool_calls(self, response: Json) -> tuple[ToolCall, ...]:
        """The tool calls that the model made."""

    def tool_results(self, request: Json) -> dict[str, str]:
        """Tool call id -> what the tool returned, of all results that the request repeats."""


def event(data: Json, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def openai_error(message: str, kind: str, code: str | None) -> Json:
    """The error body of OpenAI's APIs."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def positive(value: object) -> int | None:
    """A bound on tokens as agents send it; anything else is no bound, and the provider's to refuse."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < ABSURD else None


def no_messages(body: Json) -> str | None:
    """A complaint of a request that is no conversation; None of one that is."""
    messages = body.get("messages")
    if isinstance(messages, list) and messages and all(isinstance(one, dict) for one in messages):
        return None
    return "messages: a list of at least one message object is required."


def plain(content: object) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def remote(items: object) -> bool:
    """Whether a message's parts name an address: the provider, or litellm, would fetch it, past the sandbox."""
    parts = [
        part
        for item in (items if isinstance(items, list) else ())
        for content in (item.get("content"), item.get("output"))
        for part in (content if isinstance(content, list) else ())
        if isinstance(part, dict) and part.get("type") not in ("text", "input_text", "output_text")
    ]
    return names_address(parts)


def names_address(value: object) -> bool:
    """Whether any text within begins as an address does."""
    return any(text.startswith(ADDRESSES) for text in _strings(value))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(inner)


def select(body: Json, allowed: frozenset[str], ignored: frozenset[str]) -> tuple[Json, tuple[str, ...]]:
    """The allowed fields that are set, and the names of those set that are neither allowed nor ours to ignore.

    Of the allowed ones a wish to be cached for longer is dropped as well (`TTL`).
    """
    given = {name: value for name, value in body.items() if value is not None}
    asked = {name: value for name, value in given.items() if name in allowed}
    kept = {name: _kept_shortly(name, value) for name, value in asked.items()}
    dropped = given.keys() - allowed - ignored | (set() if kept == asked else {TTL})
    return kept, tuple(sorted(dropped))


def _kept_shortly(name: str, value: Any) -> Any:
    """The same, each mark of a part that asks for the provider's cache with the cache's usual time to live."""
    if isinstance(value, list):
        return [_kept_shortly(PART, one) for one in value]
    if isinstance(value, dict) and name == "cache_control":
        return {key: mark for key, mark in value.items() if key != "ttl"}
    if isinstance(value, dict) and name in (PART, "function"):
        return {key: _kept_shortly(key, inner) for key, inner in value.items()}
    return value


def callable_tools(tools: object, named: Mapping[str, str | None]) -> tuple[list[Json], tuple[str, ...]]:
    """Tools that the agent itself runs, and labels of the others.

    `named` maps the types that are kept to the key under which such a tool keeps its name (None: at the top).
    All else is the provider's own (web search, code interpreter, ...): some providers refuse it, and where it
    works it is a way out of the sandbox.
    """
    kept, dropped = [], []
    for tool in tools if isinstance(tools, list) else []:
        kind = tool.get("type", "function") if isinstance(tool, dict) else type(tool).__name__
        holder = (
            (tool.get(named[kind]) if named[kind] else tool)
            if kind in named and isinstance(tool, dict)
            else None
        )
        if isinstance(holder, dict) and holder.get("name"):
            kept.append(tool)
        else:
            dropped.append(f"tools:{kind}")
    return kept, tuple(sorted(set(dropped)))


def tool_fields(fields: Json, named: Mapping[str, str | None]) -> tuple[str, ...]:
    """Leave only callable tools in `fields`, and no word about tools where none is left; returns what was dropped."""
    if "tools" not in fields:
        return ()
    fields["tools"], dropped = callable_tools(fields["tools"], named)
    if not fields["tools"]:
        for name in ("tools", "tool_choice", "parallel_tool_calls"):
            fields.pop(name, None)
    return dropped


def made(id_: object, name: object, arguments: object) -> ToolCall:
    """A tool call of an answer, whatever its provider has in these places: all of it is text on the record."""
    said = ("" if value is None else value for value in (id_, name, arguments))
    id_, name, arguments = (value if isinstance(value, str) else json.dumps(value) for value in said)
    return ToolCall(id=id_, name=name, arguments=arguments)


def numbers(record: object, *names: str) -> int:
    """The first of the named counts that a usage object carries; 0 when it carries none.

    Raises `ValueError` for what no count can be: less than nothing would be paid back to the caps.
    """
    found: Iterable[Any] = (record.get(name) for name in names) if isinstance(record, dict) else ()
    count = next((int(value) for value in found if value), 0)
    if not 0 <= count < ABSURD:
        raise ValueError(f"{count} is no count of tokens")
    return count
