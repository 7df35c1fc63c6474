"""A provider over real HTTP that answers with any object that a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from runner.gateway.api import Json
from tests.support.serving import serving


@contextmanager
def answering(answer: Callable[[str], Json]) -> Iterator[str]:
    """Serve a provider that answers each POST with `answer(path)`. Yields its base URL."""

    class Provider(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps(answer(self.path)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with serving(Provider) as port:
        yield f"http://127.0.0.1:{port}/v1"
