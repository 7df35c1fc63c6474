"""What the gateway must know of one wire format. One file per format implements it; nothing else tells them apart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, Protocol

from runner.records import ApiName, Record, ToolCall, Usage

Json = dict[str, Any]
ABSURD = 2**53
"""Tokens that no model writes, and no price can be multiplied with."""
COMMENT = b": the model is at work\n\n"
"""A server-sent comment: keeps a stream alive where the format has no event for it."""


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
    def name(self) -> ApiName:
        """As the ledger has it."""

    @property
    def path(self) -> str:
        """Of its route."""

    @property
    def ping(self) -> bytes:
        """Sent on an open stream while the agent waits."""

    @property
    def shortest(self) -> Json:
        """A body that nothing is wrong with."""

    def accept(self, body: Json) -> Outbound:
        """The fields of a body that may be sent on, checked. Raises `RequestError`."""

    def wanted_output(self, body: Json) -> int | None:
        """Most output tokens that the agent asks for; None when it names no bound."""

    def outbound(self, accepted: Outbound, params: Json, max_output: int | None) -> Outbound:
        """The request to send: what was accepted, over it the model's `params`, and the bound on output."""

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


def plain(content: object) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))


def append(record: dict[Any, Any], key: object, piece: str) -> None:
    """Add a piece to a text of a record. While nobody else holds the text, Python lengthens it in place: else each of
    many pieces would copy all that came before it.
    """
    text = record.pop(key, None) or ""
    text += piece
    record[key] = text


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
    count = next((value for value in found if value), 0)
    if not is_count(count):
        raise ValueError(f"{count!r} is not a count of tokens")
    return int(count)


def is_count(value: object) -> bool:
    """Whether this is a number of tokens. JSON's `true` is not."""
    return type(value) is int and 0 <= value < ABSURD
