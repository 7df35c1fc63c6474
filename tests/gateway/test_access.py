"""A session opens for its own key only, as long as it lives, and the provider's key never gets out."""

from __future__ import annotations

import gc
import json
import logging
import socket
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from runner.errors import ConfigError, GatewayError
from runner.gateway import Gateway, SessionSpec
from runner.gateway import http as http_module
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.provider import load_litellm
from runner.gateway.server import CONNECTIONS, provider_key
from runner.gateway.trajectory import atif
from runner.records import Model, Usage
from tests.gateway.conftest import HELLO, Http, Open
from tests.support.waiting import until

OK = Behaviour(text="ok")
DEEP = b'{"messages": ' + b"[" * 198 + b"]" * 198 + b"}"
"""JSON with one level more than a line of the ledger can hold."""
CROWDED = b'{"messages": [{"role": "user", "content": [' + b"[0]," * (http_module.VALUES // 2) + b"0]}]}"
"""3 MB of values. Each such request used to stop the model calls of all trials for ten seconds."""


@pytest.mark.parametrize("path", ["chat/completions", "responses"])
def test_only_its_own_key_opens_a_trial(session: Open, http: Http, canary: str, path: str) -> None:
    with FakeUpstream(OK) as upstream:
        mine, other = session(upstream.url), session(upstream.url, name="other")
        for key in (
            "wrong",
            other.key,
            canary,
            mine.key[:-1],
            mine.key + "x",
        ):
            answer = http(mine, key=key).post(f"/v1/{path}", json=HELLO | {"input": "x"})
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
        foreign = {b"authorization": "Bearer ключ".encode()}
        assert http(mine).get("/v1/models", headers=foreign).status_code == 401
        assert upstream.requests == []
        assert http(mine).post(f"/v1/{path}", json=HELLO | {"input": "x"}).status_code == 200
    assert len(mine.calls) == 1
    assert other.calls == ()


def test_an_idle_connection_is_not_closed_on_an_agent_that_is_about_to_use_it(session: Open) -> None:
    """A server that closed idle connections first ended agents that ran a command of five seconds between two calls."""
    trial = session("http://127.0.0.1:1")
    agent = HTTPConnection("gateway")
    with socket.socket(socket.AF_UNIX) as agent.sock:
        agent.sock.connect(str(trial.socket_dir / "gateway.sock"))
        for seconds in (5.5, 0):
            agent.request("GET", "/v1/models", headers={"authorization": f"Bearer {trial.key}"})
            answer = agent.getresponse()
            assert (answer.status, answer.read()[:1]) == (200, b"{")
            time.sleep(seconds)


def test_the_key_is_taken_from_both_headers(session: Open, http: Http) -> None:
    trial = session("http://127.0.0.1:1")
    agent = http(trial, key="wrong")
    assert agent.get("/v1/models", headers={"x-api-key": trial.key}).status_code == 200
    assert agent.get("/v1/models", headers={"authorization": f"bearer {trial.key}"}).status_code == 200
    assert agent.get("/v1/models", headers={"authorization": f"Basic {trial.key}"}).status_code == 401


def test_a_key_is_dead_when_its_trial_ends(session: Open) -> None:
    """The socket is gone, and the key no longer works on an open connection.

    Not httpx: if the server has closed the connection already, it would try to open another one, fail, and leave its
    socket open.
    """
    agent = HTTPConnection("gateway")
    agent.auto_open = 0

    def ask() -> int:
        headers = {"authorization": f"Bearer {trial.key}"}
        agent.request("POST", "/v1/chat/completions", json.dumps(HELLO), headers)
        with agent.getresponse() as answer:
            answer.read()
            return answer.status

    with FakeUpstream(OK) as upstream, socket.socket(socket.AF_UNIX) as agent.sock:
        trial = session(upstream.url)
        agent.sock.connect(str(trial.socket_dir / "gateway.sock"))
        assert ask() == 200, trial.calls[0].error
        trial.close()
        assert not trial.socket_dir.exists()
        with suppress(ConnectionError, HTTPException):  # the server may have closed the connection already
            assert ask() == 401
        with socket.socket(socket.AF_UNIX) as late, pytest.raises(FileNotFoundError):
            late.connect(str(trial.socket_dir / "gateway.sock"))
        trial.close()
        assert len(upstream.requests) == 1
    assert len(trial.calls) == trial.meter.turns == 1


def test_a_body_that_ends_after_its_trial_is_not_served(session: Open) -> None:
    """The key used to be checked only before the body was read: such a call reached the provider and no ledger."""
    body = json.dumps(HELLO).encode()
    with FakeUpstream(OK) as upstream, socket.socket(socket.AF_UNIX) as agent:
        trial = session(upstream.url)
        agent.connect(str(trial.socket_dir / "gateway.sock"))
        head = f"Authorization: Bearer {trial.key}\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n"
        agent.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\n{head}\r\n".encode())
        assert agent.recv(100).startswith(b"HTTP/1.1 100 ")  # the body is being read
        agent.sendall(body[:10])
        trial.close()
        agent.sendall(body[10:])
        assert agent.recv(100).startswith(b"HTTP/1.1 401 ")
        assert upstream.requests == []
    assert trial.calls == ()


def test_the_socket_is_for_any_user_of_the_sandbox_and_nobody_else_on_the_host(session: Open) -> None:
    folder = session("http://127.0.0.1:1").socket_dir
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, folder / "gateway.sock")]
    assert modes[1:] == [0o755, 0o666]
    assert modes[0] == 0o700
    assert len(str(folder / "gateway.sock")) < 108


def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    spec = SessionSpec(trial="t", task="t", model=Model(name="m", id="openai/x"), ledger=tmp_path / "ledger")
    deep = tmp_path / ("d" * 100)
    with Gateway(deep) as gateway, pytest.raises(GatewayError, match="choose a shorter folder"):
        gateway.open(spec)
    assert list(deep.iterdir()) == []


def test_a_missing_key_names_its_variable(session: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAKE_API_KEY")
    with pytest.raises(ConfigError, match="set the environment variable FAKE_API_KEY"):
        session("http://127.0.0.1:1")
    monkeypatch.setenv("FAKE_API_KEY", "  ")
    with pytest.raises(ConfigError, match="FAKE_API_KEY"):
        session("http://127.0.0.1:1")
    assert provider_key(Model(name="local")) is None


def test_a_model_without_a_key_sends_none_of_the_environment(
    session: Open, http: Http, canary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    with FakeUpstream(OK) as upstream:
        http(session(upstream.url, api_key_env=None)).post("/v1/chat/completions", json=HELLO)
        assert upstream.keys == ["Bearer none"]


@pytest.mark.parametrize("model", ["openai/x", "zai/x", "deepseek/x"])
def test_the_providers_key_is_nowhere(
    session: Open, http: Http, canary: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, model: str
) -> None:
    """The provider echoes its key in an error, in an answer and in a tool call."""
    caplog.set_level(logging.DEBUG)
    echoes = [
        Behaviour(status_code=401, message=f"Incorrect API key provided: {canary}"),
        Behaviour(
            text=f"your key is {canary}", calls=(("shell", json.dumps({"command": f"echo {canary}"})),)
        ),
    ]
    with FakeUpstream(*echoes) as upstream:
        trial = session(upstream.url, id=model)
        seen = [
            http(trial).post(f"/v1/{path}", json=body | {"stream": stream}).text
            for path, body in (("chat/completions", HELLO), ("responses", {"input": "x"}))
            for stream in (False, True)
        ]
        assert upstream.keys == [f"Bearer {canary}"] * 4
    trial.close()
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    trajectory = atif(trial.calls, agent="a", version="1", session_id="s", instruction="i")
    assert "your key is [key]" in seen[1]
    for text in (*seen, *written, json.dumps(trajectory), caplog.text, repr(trial.endpoint)):
        assert canary not in text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"messages": NaN}',
        b"\xff\xfe{}",
        b'{"messages": "\\ud800"}',
        DEEP,
        b"{}],[{}",
        CROWDED,
    ],
    ids=["empty", "cut", "list", "number", "nan", "latin", "half a pair", "deep", "two", "crowded"],
)
def test_bodies_that_are_no_json_object(session: Open, http: Http, body: bytes) -> None:
    trial = session("http://127.0.0.1:1")
    answer = http(trial).post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert [call.status_code for call in trial.calls] == [400]


def test_what_is_as_deep_as_can_be_comes_back_from_the_ledger(session: Open, http: Http) -> None:
    trial = session("http://127.0.0.1:1")
    body = json.loads(DEEP.replace(b"[", b"", 1).replace(b"]", b"", 1))
    assert http(trial).post("/v1/chat/completions", json=body).status_code == 400
    assert trial.calls[0].request == body


def test_one_trial_cannot_hold_every_connection(session: Open, http: Http) -> None:
    trial = session("http://127.0.0.1:1")
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            idle = stack.enter_context(socket.socket(socket.AF_UNIX))
            idle.connect(str(trial.socket_dir / "gateway.sock"))
        assert http(trial).get("/v1/models").status_code == 503
    assert http(trial).get("/v1/models").status_code == 200


def test_an_agent_that_leaves_in_the_middle_of_its_request(
    session: Open, http: Http, caplog: pytest.LogCaptureFixture
) -> None:
    trial = session("http://127.0.0.1:1")
    with socket.socket(socket.AF_UNIX) as agent:
        agent.connect(str(trial.socket_dir / "gateway.sock"))
        head = f"POST /v1/responses HTTP/1.1\r\nhost: x\r\nx-api-key: {trial.key}\r\ncontent-length: 100\r\n\r\n{{"
        agent.sendall(head.encode())
        time.sleep(0.2)
    assert http(trial).get("/v1/models").status_code == 200
    time.sleep(0.1)
    assert trial.calls == ()
    assert caplog.text == ""


def test_a_body_that_is_too_large(session: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "BODY_BYTES", 1000)
    trial = session("http://127.0.0.1:1")
    assert http(trial).post("/v1/chat/completions", content=b" " * 1001).status_code == 413
    assert trial.calls[0].request == {}


def test_odd_text_survives_the_ledger(session: Open, http: Http) -> None:
    """Line separators and halves of surrogate pairs from a provider must not break a line of the ledger."""
    with FakeUpstream(Behaviour(text="a\u2028b\x85c \N{GRINNING FACE}")) as upstream:
        trial = session(upstream.url)
        body = {"messages": [{"role": "user", "content": "x\u2028y \N{GRINNING FACE}"}]}
        answer = http(trial).post("/v1/chat/completions", json=body)
    assert answer.json()["choices"][0]["message"]["content"] == "a\u2028b\x85c \N{GRINNING FACE}"
    assert trial.calls[0].request == body
    assert len(trial.spec.ledger.read_text().splitlines()) == 1


def test_sixteen_trials_at_once_stay_apart(session: Open, http: Http) -> None:
    usage = Usage(input_tokens=100, output_tokens=7)
    with FakeUpstream(Behaviour(text="ok", usage=usage, seconds=0.05)) as upstream:
        trials = [session(upstream.url, name=f"trial{number}") for number in range(16)]

        def work(number: int) -> None:
            agent = http(trials[number])
            for turn in range(number % 4 + 1):
                body = {"messages": [{"role": "user", "content": f"{number} {turn}"}]}
                assert agent.post("/v1/chat/completions", json=body).status_code == 200

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        assert sum((trial.meter.usage for trial in trials), Usage()) == sum(upstream.served, Usage())
    for number, trial in enumerate(trials):
        texts = [call.request["messages"][0]["content"] for call in trial.calls]
        assert texts == [f"{number} {turn}" for turn in range(number % 4 + 1)]
        assert trial.meter.usage.output_tokens == 7 * len(texts)


def test_a_gateway_that_closes_ends_its_sessions(tmp_path: Path) -> None:
    spec = SessionSpec(trial="t", task="t", model=Model(name="m", id="openai/x"), ledger=tmp_path / "ledger")
    with Gateway(tmp_path / "g") as gateway:
        trial = gateway.open(spec)
    assert not trial.socket_dir.exists()
    trial.close()
    gateway.close()


def test_a_gateway_that_closes_cuts_no_call_of_another(session: Open, http: Http, tmp_path: Path) -> None:
    with (
        FakeUpstream(Behaviour(text="slow", held="answer")) as slow,
        FakeUpstream(Behaviour(text="done")) as upstream,
    ):
        trial = session(slow.url)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO)
            until(lambda: slow.requests)
            model = Model(name="m", id="openai/x", api_key_env="FAKE_API_KEY", api_base=upstream.url)
            with Gateway(tmp_path / "g") as other:
                spec = SessionSpec(trial="t", task="t", model=model, ledger=tmp_path / "ledger")
                with other.open(spec) as another:
                    assert http(another).post("/v1/chat/completions", json=HELLO).status_code == 200
            slow.release()
            assert answer.result().status_code == 200
        assert [call.attempts for call in trial.calls] == [1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_falls_out_of_litellms_cache_is_not_closed_under_its_call(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default litellm keeps 200 clients, and closes an older one after a quarter of an hour unless it is busy."""
    cache = load_litellm().in_memory_llm_clients_cache
    monkeypatch.setattr(cache, "max_size_in_memory", 1)
    monkeypatch.setattr(cache.evicted_client_closer, "_grace_seconds", 0.0)
    with FakeUpstream(Behaviour(text="slow", held="answer")) as slow, FakeUpstream(OK) as upstream:
        trial = session(slow.url)
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO)
            until(lambda: slow.requests)
            for name in ("one", "two", "three"):
                assert (
                    http(session(upstream.url, name=name)).post("/v1/chat/completions", json=HELLO).is_success
                )
            slow.release()
            assert answer.result().status_code == 200
        assert [call.attempts for call in trial.calls] == [1]
    gc.collect()  # litellm leaves such clients to the garbage collector, whose warning would reach another test


def test_a_gateway_that_is_never_used_costs_nothing(tmp_path: Path) -> None:
    with Gateway(tmp_path / "g"):
        assert not (tmp_path / "g").exists()
