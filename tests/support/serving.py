"""Run servers for tests, over real HTTP."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from runner.sandbox.docker.engine import connect

KEY_VARIABLE = "FAKE_API_KEY"
"""Variable that holds the key of the fake provider; the fixture `gateway` sets it."""


def bridge_address() -> str:
    """Return this machine's address on the engine's default bridge.

    Docker Engine 20.10 names no gateway in the bridge's IPAM configuration until it is started a second time. The
    bridge then has the first address of its subnet.
    """
    (bridge,) = connect().api.networks(names=["bridge"])
    (config,) = (one for one in bridge["IPAM"]["Config"] if "." in one["Subnet"])
    return str(config.get("Gateway") or next(ipaddress.ip_network(config["Subnet"]).hosts()))


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler], host: str = "127.0.0.1") -> Iterator[int]:
    """Serve requests with a handler; yield the port. `host` is an address of this machine."""
    with ThreadingHTTPServer((host, 0), handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
