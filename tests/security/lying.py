"""A provider that answers with any bytes, from the status line on, and then hangs up."""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from runner.gateway.fake_upstream import STREAMS, Behaviour, body

TRUTH = Behaviour(text="The truth.")
LONGEST_DRIP_SECONDS = 5.0


class Answer:
    """The bytes of an answer, and the time before each piece."""

    def __init__(self, head: bytes, *pieces: bytes, seconds: float = 0.0) -> None:
        """`seconds` pass before each of the `pieces`, and then the last one is repeated."""
        self.head, self.pieces, self.seconds = head, pieces, seconds


Lie = Answer | Callable[[str], Answer]
"""An answer, or a function that makes one for an API."""


def response(
    content: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str
) -> Answer:
    """Return an HTTP response."""
    standard = {"content-type": kind, "content-length": str(len(content)), "connection": "close"}
    lines = [f"{name.replace('_', '-')}: {value}\r\n" for name, value in (standard | headers).items()]
    return Answer(f"HTTP/1.1 {status}\r\n{''.join(lines)}\r\n".encode(), content)


def stream(*events: bytes) -> Answer:
    """Return a stream of events, which ends with its connection."""
    return Answer(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n", b"".join(events)
    )


def true_events(api: str, request: dict[str, Any]) -> list[bytes]:
    """Return a true answer in events."""
    return list(STREAMS[api](request, body(api, TRUTH)))


class Liar:
    """A provider that sends each of `lies` once, in order, and then the truth."""

    def __init__(self, *lies: Lie, forever: bool = False) -> None:
        self.lies, self.forever = lies, forever
        self.requests: list[tuple[str, str]] = []
        """Path and head of each request."""
        self.url = ""

    def answer(self, path: str, head: str, request: dict[str, Any]) -> Answer:
        """Return the answer to a request."""
        number = len(self.requests)
        self.requests.append((path, head))
        named = (name for name in ("chat", "responses", "messages") if f"/{name}" in path)
        api = next(named, "gemini")
        if number < len(self.lies) or self.forever:
            lie = self.lies[min(number, len(self.lies) - 1)]
            return lie if isinstance(lie, Answer) else lie(api)
        if request.get("stream") or ":stream" in path:
            return stream(*true_events(api, request))
        return response(json.dumps(body(api, TRUTH)).encode())


@contextmanager
def lying(*lies: Lie, forever: bool = False) -> Iterator[Liar]:
    """Serve a liar."""
    liar = Liar(*lies, forever=forever)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            text = head.decode()
            length = next(
                int(line.split(":")[1])
                for line in text.splitlines()
                if line.lower().startswith("content-length:")
            )
            request = json.loads(self.rfile.read(length))
            self._send(liar.answer(text.split()[1], text, request))

        def _send(self, answer: Answer) -> None:
            try:
                self.wfile.write(answer.head)
                end = time.monotonic() + LONGEST_DRIP_SECONDS
                for piece in answer.pieces:
                    self.wfile.write(piece)
                while answer.seconds and time.monotonic() < end:
                    time.sleep(answer.seconds)
                    self.wfile.write(answer.pieces[-1])
            except OSError:
                return  # the gateway hung up

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads, block_on_close, allow_reuse_address = True, False, True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        liar.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        try:
            yield liar
        finally:
            server.shutdown()
            thread.join()
