"""A name server for a sandbox that counts every question and answers none with an address.

Programs that ignore HTTP(S)_PROXY look names up themselves. In a sandbox without a network such lookups lead nowhere,
but the names are evidence. The supervisor inside forwards each question unread, so that all parsing of an agent's bytes
is on this side. Messages are framed as on a TCP connection (RFC 1035, section 4.2.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from runner.sandbox.network import HOST

UNREADABLE: Final = "(unreadable)"
"""Name counted for a message that is not a question, or that asks for something other than a host's name."""
PAUSE_SECONDS = 0.001
"""Pause between two answers to one trial over all connections, so that a flood of questions costs the runner little."""
HEADER = 12
LONGEST_LABEL = 63
LONGEST_NAME = 255
TYPE_AND_CLASS = 4
NO_SUCH_NAME, MALFORMED = 3, 1


class Lookups:
    """The name server of one trial."""

    def __init__(self, count: Callable[[str], None]) -> None:
        """`count` is called with the name in every question, in lower case, or `UNREADABLE`."""
        self._count, self._turn = count, asyncio.Lock()
        self.connected = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's questions until it ends. Raises `OSError`."""
        self.connected = True
        try:
            while True:
                message = await reader.readexactly(int.from_bytes(await reader.readexactly(2)))
                name, reply = answer(message)
                self._count(name)
                async with self._turn:
                    await asyncio.sleep(PAUSE_SECONDS)
                writer.write(len(reply).to_bytes(2) + reply)
                await writer.drain()
        except asyncio.IncompleteReadError:
            return


def answer(message: bytes) -> tuple[str, bytes]:
    """Return the name that a message asks for and the answer, which is that there is no such name. Never fails."""
    name, question = _question(message)
    code = NO_SUCH_NAME if question else MALFORMED
    head = message[:HEADER].ljust(HEADER, b"\0")
    # A response with the question's kind and recursion flag, from a server that offers recursion.
    flags = bytes((0x80 | head[2] & 0x79, 0x80 | code))
    counts = bytes((0, 1 if question else 0, 0, 0, 0, 0, 0, 0))
    return name, head[:2] + flags + counts + question


def _question(message: bytes) -> tuple[str, bytes]:
    """Return the name in a query and the bytes of its first question, empty if unreadable. Follows no pointers."""
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
