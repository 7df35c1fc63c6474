"""Connections beneath litellm: the failures that may have been charged, their route, and their number."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import ClassVar

import pytest

from runner.gateway import provider
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.provider import load_litellm
from tests.gateway.conftest import HELLO, Http, Open
from tests.support.waiting import until

PROVIDERS = ["openai/x", "zai/x", "deepseek/x"]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)


class _Resetting(BaseHTTPRequestHandler):
    """A provider that reads a whole request and resets its connection."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *_: object) -> None:
        pass


class _Stalling(BaseHTTPRequestHandler):
    """A provider that begins an answer, and reports when its client has left."""

    begun: ClassVar[Event]
    left: ClassVar[Event]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{")
        self.begun.set()
        self.rfile.read()
        self.left.set()

    def log_message(self, *_: object) -> None:
        pass


class _Proxy(BaseHTTPRequestHandler):
    """An HTTP proxy that answers in place of every host."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a self-signed certificate for 127.0.0.1, with its key."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=x -addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", "req", "-x509", *key.split(), "-keyout", str(file)]
    certificate_file = subprocess.run(command, check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + certificate_file.stdout)
    return file


@pytest.mark.parametrize("model", PROVIDERS)
def test_a_connection_that_is_reset_after_the_request_may_have_been_charged(
    session: Open, http: Http, model: str
) -> None:
    """The transport of litellm reports such a reset as a connection that was never made."""
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
    """The time left was part of the name under which litellm caches a client."""
    cache = load_litellm().in_memory_llm_clients_cache.cache_dict
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial, clients = session(upstream.url, id=model, seconds=60), []
        for _ in range(2):
            body = HELLO | {"input": "hello", "max_tokens": 100}
            assert http(trial).post(f"/v1/{path}", json=body).status_code == 200
            clients.append(set(cache))
    assert clients[0] == clients[1]


@pytest.mark.parametrize("model", [*PROVIDERS, "anthropic/x"])
def test_an_agent_that_hangs_up_in_the_middle_of_an_answer_ends_it(session: Open, model: str) -> None:
    """The connection is closed, whatever client holds it, and the possible cost of the answer is counted."""
    _Stalling.begun, _Stalling.left = Event(), Event()
    content = json.dumps(HELLO | {"max_tokens": 100})
    with _serving(_Stalling) as url, socket.socket(socket.AF_UNIX) as agent:
        trial = session(url, id=model)
        agent.connect(str(trial.socket_dir / "gateway.sock"))
        head = f"authorization: Bearer {trial.key}\r\nhost: x\r\ncontent-length: {len(content)}"
        agent.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n\r\n{content}".encode())
        until(_Stalling.begun.is_set)
        agent.close()
        until(_Stalling.left.is_set)
        until(lambda: trial.calls)
    (call,) = trial.calls
    assert (call.status_code, call.attempts, call.lost) == (499, 1, 1)
    assert trial.meter.charged["usd"] >= 100 * 10e-6


@pytest.mark.parametrize("model", [*PROVIDERS, "anthropic/x"])
def test_a_provider_without_a_certificate_gets_no_key(
    session: Open, http: Http, model: str, self_signed: Path
) -> None:
    with _serving(_Proxy, self_signed) as url:
        before = len(_Proxy.asked)
        trial = session(url, id=model)
        assert http(trial).post("/v1/chat/completions", json=HELLO).status_code == 502
        assert len(_Proxy.asked) == before
    (call,) = trial.calls
    assert (call.attempts, call.lost) == (provider.ATTEMPTS, 0)
    assert call.error is not None
    assert "certificate verify failed" in call.error.message, "and not only `Connection error.`"


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
def test_a_request_of_megabytes_arrives_whole(session: Open, http: Http) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3_000_000}}
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url)
        asked = {"messages": [{"role": "user", "content": [picture]}]}
        assert http(trial).post("/v1/chat/completions", json=asked).status_code == 200
        assert upstream.requests[0]["messages"] == asked["messages"]
    assert trial.calls[0].request == asked
