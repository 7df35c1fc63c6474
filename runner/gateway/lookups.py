"""What a sandbox asks of the domain name system: heard, counted, and never answered with an address.

Programs that ignore HTTP(S)_PROXY look names up themselves. In a sandbox without a network that leads nowhere, but
which names they are is evidence. The supervisor inside carries each question here unread; all parsing of what an
agent may have made up is on this side. Messages are as on a TCP connection (RFC 1035, section 4.2.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from runner.sandbox.network import HOST

UNREADABLE: Final = "(unreadable)"
"""Stands for what is no question, or asks for what is no host's name."""
PAUSE_SECONDS = 0.001
"""Between two answers to one trial, on however many connections: a flood of questions costs the runner little."""
HEADER = 12
LONGEST_LABEL = 63
LONGEST_NAME = 255
TYPE_AND_CLASS = 4
NO_SUCH_NAME, MALFORMED = 3, 1


class Lookups:
    """Answers one trial's questions, in the event loop that it is used in."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        """`heard` is told of every question: a name in lower case, or `UNREADABLE`."""
        self._heard, self._turn = heard, asyncio.Lock()
        self.connected = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's questions until it ends. Raises `OSError`."""
        self.connected = True
        try:
            while True:
                message = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                name, reply = answer(message)
                self._heard(name)
                async with self._turn:
                    await asyncio.sleep(PAUSE_SECONDS)
                writer.write(len(reply).to_bytes(2) + reply)
                await writer.drain()
        except asyncio.IncompleteReadError:
            return


def answer(message: bytes) -> tuple[str, bytes]:
    """The name that a message asks for, and the answer: there is none such. Any bytes have an answer."""
    name, question = _question(message)
    code = NO_SUCH_NAME if question else MALFORMED
    head = message[:HEADER].ljust(HEADER, b"\0")
    # A response, of the same kind and with the same wish for recursion as the question, from one that recurses.
    flags = bytes((0x80 | head[2] & 0x79, 0x80 | code))
    counts = bytes((0, 1 if question else 0, 0, 0, 0, 0, 0, 0))
    return name, head[:2] + flags + counts + question


def _question(message: bytes) -> tuple[str, bytes]:
    """The name in a query and the bytes of its first question; none if it cannot be read. Follows no pointers."""
    labels, at = [], HEADER
    while at < len(message) and 0 < message[at] <= LONGEST_LABEL:
        labels.append(message[at + 1 : at + 1 + message[at]])
        at += 1 + message[at]
    end = at + 1 + TYPE_AND_CLASS
    is_query = len(message) > HEADER and not message[2] & 0x80
    if not is_query or message[at : at + 1] != b"\0" or len(message) < end or at >= HEADER + LONGEST_NAME:
        return UNREADABLE, b""
    name = b".".join(labels).decode("latin-1").lower()
    return name if HOST.fullmatch(name) else UNREADABLE, message[HEADER:end]
