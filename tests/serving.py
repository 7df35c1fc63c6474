"""Servers of tests, over real HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], host: str = "127.0.0.1") -> Iterator[int]:
    """The port at which requests are answered by such handlers. `host` is an address of this machine."""
    with ThreadingHTTPServer((host, 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
