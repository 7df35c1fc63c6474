"""Limits on calls across trials: they are kept, waited for in order, and no time of the agent's."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from runner.gateway import Gateway, Session, SessionSpec, limits, provider
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, CallLimits, Model, Prices

Json = dict[str, Any]
Trials = Callable[..., tuple[Gateway, list[Session]]]
HELLO: Json = {"messages": [{"role": "user", "content": "hello"}]}
SLOW = Behaviour(text="ok", seconds=0.3)


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    """A gateway of its own with limits, and a session at it for each model id."""
    with ExitStack() as stack:

        def start(url: str, ids: list[str], seconds: float | None = None, **given: Any) -> Any:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            gateway = stack.enter_context(Gateway(Path(folder), CallLimits.model_validate(given)))
            prices = Prices(input=2.0, output=10.0, cache_hit=0.5)
            sessions = [
                SessionSpec(
                    trial=f"t{number}",
                    task="greet",
                    model=Model(name=f"m{number}", id=model, api_base=url, prices=prices),
                    seconds=seconds,
                    budget=Budget(),
                    ledger=tmp_path / f"{number}.jsonl",
                )
                for number, model in enumerate(ids)
            ]
            return gateway, [stack.enter_context(gateway.open(spec)) for spec in sessions]

        yield start


def _ask(session: Session) -> int:
    transport = httpx.HTTPTransport(uds=str(session.socket_dir / "gateway.sock"))
    headers = {"authorization": f"Bearer {session.key}"}
    with httpx.Client(transport=transport, base_url="http://gateway", headers=headers, timeout=60) as client:
        return client.post("/v1/chat/completions", json=HELLO).status_code


def _ask_all(sessions: list[Session]) -> float:
    """All at once; the seconds until all were answered."""
    began = time.monotonic()
    with ThreadPoolExecutor(len(sessions)) as pool:
        assert set(pool.map(_ask, sessions)) == {200}
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"concurrency": 2}, 2),
        ({"providers": {"openai": {"concurrency": 1}}}, 3),
        ({"concurrency": 2, "providers": {"openai": {"concurrency": 1}}}, 2),
        ({}, 4),
    ],
)
def test_concurrency_is_kept_over_trials_and_per_provider(trials: Trials, given: Json, most: int) -> None:
    """Two trials of each of two providers."""
    with FakeUpstream(SLOW) as upstream:
        _, sessions = trials(upstream.url, ["openai/x", "openai/y", "zai/x", "zai/y"], **given)
        _ask(sessions[0])
        _ask_all(sessions)
    assert upstream.most_at_once == most
    assert sessions[0].calls[0].waited_seconds < 0.1
    assert sessions[0].limited == bool(given)


def test_a_minute_holds_no_more_calls_than_it_may(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WINDOW_SECONDS", 1.0)
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        _, (session,) = trials(upstream.url, ["openai/x"], requests_per_minute=2)
        began = time.monotonic()
        assert [_ask(session) for _ in range(5)] == [200] * 5
    assert time.monotonic() - began >= 2.0
    waited = [call.waited_seconds for call in session.calls]
    assert max(waited[:2]) < 0.1 < waited[2]


def test_a_retry_takes_its_turn_like_any_request(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider counts requests, whatever we call them."""
    monkeypatch.setattr(limits, "WINDOW_SECONDS", 1.0)
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.05)
    failed = Behaviour(status_code=500)
    with FakeUpstream(failed, failed, Behaviour(text="ok")) as upstream:
        _, (session,) = trials(upstream.url, ["zai/x"], seconds=0.9, requests_per_minute=2)
        assert _ask(session) == 200
        assert len(upstream.requests) == 3
    (call,) = session.calls
    assert call.attempts == 3
    assert call.waited_seconds > 0.5
    assert call.latency_seconds > 1.0, (
        "longer than the trial has, and in time, since waiting is no time of its"
    )
    assert session.refusal is None


def test_waiting_is_no_time_of_the_trials(trials: Trials) -> None:
    """Six calls of 0.3 s, one at a time, in trials that have 0.9 s each."""
    with FakeUpstream(SLOW) as upstream:
        gateway, sessions = trials(upstream.url, ["openai/x"] * 6, seconds=0.9, concurrency=1)
        with ThreadPoolExecutor(6) as pool:
            answers = [pool.submit(_ask, session) for session in sessions]
            while not gateway.waiting:
                assert not answers[0].done()
            assert gateway.waiting <= 5
            assert [answer.result() for answer in answers] == [200] * 6
    assert gateway.waiting == 0
    waited = sorted(session.waited_seconds for session in sessions)
    assert waited[0] < 0.3
    assert waited[-1] > 0.9
    assert {session.refusal for session in sessions} == {None}


def test_time_at_the_provider_is_the_trials_all_the_same(trials: Trials) -> None:
    with FakeUpstream(Behaviour(text="ok", seconds=30)) as upstream:
        _, (session,) = trials(upstream.url, ["openai/x"], seconds=0.5, concurrency=1)
        assert _ask(session) == 403
    assert session.refusal == "deadline"


def test_an_agent_that_leaves_the_queue_takes_no_place(trials: Trials) -> None:
    with FakeUpstream(Behaviour(text="ok", seconds=1.0)) as upstream:
        _, (first, second, third) = trials(upstream.url, ["openai/x"] * 3, concurrency=1)
        with ThreadPoolExecutor(2) as pool:
            answer = pool.submit(_ask, first)
            while not upstream.requests:
                time.sleep(0.01)
            waiting = pool.submit(_ask, second)
            while not second.waiting:
                time.sleep(0.01)
            second.close()
            assert (answer.result(), waiting.result()) == (200, 503)
        assert _ask(third) == 200
        assert len(upstream.requests) == 2
    assert second.calls[0].waited_seconds > 0
    assert second.calls[0].attempts == 0


def test_the_gateway_sums_what_all_trials_spend(trials: Trials) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        gateway, sessions = trials(upstream.url, ["openai/x", "zai/x"])
        _ask_all(sessions)
        sessions[0].close()
        costs = [session.cost_usd or 0.0 for session in sessions]
    spent = {"usd": sum(costs), "input_tokens": 2000, "output_tokens": 100, "turns": 2}
    assert gateway.spent == pytest.approx(spent)
    assert sum(costs) == pytest.approx(2 * 0.0019)
