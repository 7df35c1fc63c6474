"""The connections beneath litellm: which failure may have cost something, by which way, and how many are made."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import httpx
import pytest

from runner.gateway import Session, provider
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.provider import load_litellm

Open = Callable[..., Session]
Http = Callable[..., httpx.Client]
HELLO = {"messages": [{"role": "user", "content": "hello"}]}
PROVIDERS = ["openai/x", "zai/x", "deepseek/x"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.05)


class _Resetting(BaseHTTPRequestHandler):
    """A provider that reads a whole request and resets its connection."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *_: object) -> None:
        pass


class _Proxy(BaseHTTPRequestHandler):
    """An HTTP proxy that answers for whoever is asked."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.mark.parametrize("model", PROVIDERS)
def test_a_connection_that_is_reset_after_the_request_may_have_been_charged(
    session: Open, http: Http, model: str
) -> None:
    """To litellm's transport that is a connection that was never made."""
    with _serving(_Resetting) as url:
        trial = session(url, id=model)
        assert http(trial).post("/v1/chat/completions", json=HELLO).status_code == 502
    (call,) = trial.calls
    assert (call.attempts, call.lost) == (provider.ATTEMPTS, provider.ATTEMPTS)


@pytest.mark.parametrize("host", ["127.0.0.1:9", "nowhere.example"])
def test_a_connection_that_was_never_made_costs_nothing(session: Open, http: Http, host: str) -> None:
    trial = session(f"http://{host}/v1")
    assert http(trial).post("/v1/chat/completions", json=HELLO).status_code == 502
    (call,) = trial.calls
    assert (call.attempts, call.lost) == (provider.ATTEMPTS, 0)


@pytest.mark.parametrize("model", PROVIDERS)
def test_providers_are_reached_through_the_proxy_that_the_environment_names(
    session: Open, http: Http, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = model.replace("/", ".") + ".example"
    with _serving(_Proxy) as url:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, url)
        http(session(f"http://{host}/v1", id=model)).post("/v1/chat/completions", json=HELLO)
    assert _Proxy.asked[-1] == f"http://{host}/v1/chat/completions"


@pytest.mark.parametrize("path", ["chat/completions", "responses", "messages"])
@pytest.mark.parametrize("model", [*PROVIDERS, "anthropic/x"])
def test_a_deadline_makes_no_client_for_every_call(session: Open, http: Http, model: str, path: str) -> None:
    """What was left of it was part of the name that litellm keeps a client by."""
    kept = load_litellm().in_memory_llm_clients_cache.cache_dict
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial, known = session(upstream.url, id=model, seconds=60), []
        for _ in range(2):
            body = HELLO | {"input": "hello", "max_tokens": 100}
            assert http(trial).post(f"/v1/{path}", json=body).status_code == 200
            known.append(set(kept))
    assert known[0] == known[1]
