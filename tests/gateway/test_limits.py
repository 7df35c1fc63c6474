"""Limits on calls across trials are obeyed, in order, and the time of waiting is not the agent's."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import litellm
import pytest

from runner.gateway import Gateway, Session, SessionSpec, call_limits, provider
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, CallLimits, Model, Prices
from tests.gateway.conftest import Json
from tests.support.waiting import until

Trials = Callable[..., tuple[Gateway, list[Session]]]
HELLO: Json = {"messages": [{"role": "user", "content": "hello"}]}
OK, HELD = Behaviour(text="ok"), Behaviour(text="ok", held="answer")
NO_TIME = 2.0
"""Longest wait that counts as none on a slow and busy machine, in seconds."""


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[Trials]:
    """Start gateways with limits and a session for each model id; they end with the test."""
    with ExitStack() as stack:

        def start(url: str, ids: list[str], seconds: Sequence[float | None] = (), **given: Any) -> Any:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            gateway = stack.enter_context(Gateway(Path(folder), CallLimits.model_validate(given)))
            prices = Prices(input=2.0, output=10.0, cache_hit=0.5)
            sessions = [
                SessionSpec(
                    trial=f"t{number}",
                    task="greet",
                    model=Model(name=f"m{number}", id=model, api_base=url, prices=prices),
                    seconds=limit,
                    budget=Budget(),
                    ledger=tmp_path / f"{number}.jsonl",
                )
                for number, (model, limit) in enumerate(zip_longest(ids, seconds))
            ]
            return gateway, [stack.enter_context(gateway.open(spec)) for spec in sessions]

        yield start


def _ask(session: Session) -> int:
    transport = httpx.HTTPTransport(uds=str(session.socket_dir / "gateway.sock"), verify=False)
    headers = {"authorization": f"Bearer {session.key}"}
    with httpx.Client(transport=transport, base_url="http://gateway", headers=headers, timeout=60) as client:
        return client.post("/v1/chat/completions", json=HELLO).status_code


def _ask_all(sessions: list[Session], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Call from all sessions at once, and check that all calls are answered."""
    with ThreadPoolExecutor(len(sessions)) as pool:
        answers = [pool.submit(_ask, session) for session in sessions]
        meanwhile()
        assert {answer.result() for answer in answers} == {200}


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
    """Two trials of two providers each; no call is answered before the limit of calls is under way."""
    with FakeUpstream(OK, HELD) as upstream:

        def meanwhile() -> None:
            until(lambda: upstream.at_once == most)
            time.sleep(0.2)  # one more would come now
            upstream.release()

        _, sessions = trials(upstream.url, ["openai/x", "openai/y", "zai/x", "zai/y"], **given)
        _ask(sessions[0])
        _ask_all(sessions, meanwhile)
    assert upstream.most_at_once == most
    assert sessions[0].calls[0].waited_seconds < NO_TIME
    assert sessions[0].limited == bool(given)


def test_a_minute_holds_no_more_calls_than_it_may(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_limits, "WINDOW_SECONDS", 1.0)
    with FakeUpstream(OK) as upstream:
        _, (session,) = trials(upstream.url, ["openai/x"], requests_per_minute=2)
        began = time.monotonic()
        _ask_all([session] * 5)
    assert time.monotonic() - began >= 2.0
    waited = sorted(call.waited_seconds for call in session.calls)
    assert waited[1] < NO_TIME
    assert waited[4] > 0.1


def test_a_retry_takes_its_turn_like_any_request(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider counts requests, whatever we call them."""
    monkeypatch.setattr(call_limits, "WINDOW_SECONDS", 3.0)
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.05)
    failed = Behaviour(status_code=500)
    with FakeUpstream(failed, failed, OK) as upstream:
        _, (session,) = trials(upstream.url, ["zai/x"], seconds=(2.7,), requests_per_minute=2)
        assert _ask(session) == 200
        assert len(upstream.requests) == 3
    (call,) = session.calls
    assert call.attempts == 3
    assert call.waited_seconds > 0
    assert call.latency_seconds > 3.0, (
        "longer than the trial has, and in time, since waiting is no time of its"
    )
    assert session.meter.refusal is None


def test_waiting_is_no_time_of_the_trials(trials: Trials) -> None:
    """One call at a time, and the first takes longer than the deadline of the others' trials."""
    with FakeUpstream(HELD) as upstream:
        gateway, sessions = trials(
            upstream.url, ["openai/x"] * 6, seconds=(None, *[NO_TIME] * 5), concurrency=1
        )

        def meanwhile() -> None:
            until(lambda: gateway.waiting == 5)
            time.sleep(NO_TIME + 0.1)
            upstream.release()

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(_ask, sessions[0])
            until(lambda: upstream.requests)
            _ask_all(sessions[1:], meanwhile)
            assert first.result() == 200
    assert gateway.waiting == 0
    assert sessions[0].meter.waited_seconds < NO_TIME
    assert min(session.meter.waited_seconds for session in sessions[1:]) > NO_TIME
    assert {session.meter.refusal for session in sessions} == {None}


def test_time_at_the_provider_is_the_trials_all_the_same(trials: Trials) -> None:
    with FakeUpstream(Behaviour(text="ok", seconds=30)) as upstream:
        _, (session,) = trials(upstream.url, ["openai/x"], seconds=(0.5,), concurrency=1)
        assert _ask(session) == 403
    assert session.meter.refusal == "deadline"


def test_a_deadline_while_litellm_makes_the_request_leaves_no_coroutine_behind(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a warning appears on the user's terminal and in any other test under way. It once failed CI."""
    created = Event()
    with FakeUpstream(OK) as upstream:
        _, (session,) = trials(upstream.url, ["openai/x"], seconds=(0.5,))
        make = litellm.main.completion

        def slow(*args: Any, **given: Any) -> Any:
            until(lambda: session.meter.refusal)
            try:
                return make(*args, **given)
            finally:
                created.set()

        monkeypatch.setattr(litellm.main, "completion", slow)
        assert _ask(session) == 403
        assert created.wait(60)
        assert not upstream.requests
    assert session.meter.refusal == "deadline"
    gc.collect()  # an error would be raised here, and pytest would assign it to this test


def test_an_agent_that_leaves_the_queue_takes_no_place(trials: Trials) -> None:
    with FakeUpstream(HELD) as upstream:
        _, (first, second, third) = trials(upstream.url, ["openai/x"] * 3, concurrency=1)
        with ThreadPoolExecutor(2) as pool:
            answer = pool.submit(_ask, first)
            until(lambda: upstream.requests)
            waiting = pool.submit(_ask, second)
            until(lambda: second.meter.waits)
            second.close()
            upstream.release()
            assert (answer.result(), waiting.result()) == (200, 503)
        assert _ask(third) == 200
        assert len(upstream.requests) == 2
    assert second.calls[0].waited_seconds > 0
    assert second.calls[0].attempts == 0


def test_the_gateway_sums_what_all_trials_spend(trials: Trials) -> None:
    with FakeUpstream(OK) as upstream:
        gateway, sessions = trials(upstream.url, ["openai/x", "zai/x"])
        _ask_all(sessions)
        sessions[0].close()
        costs = [session.meter.cost_usd or 0.0 for session in sessions]
    spent = {"usd": sum(costs), "input_tokens": 2000, "output_tokens": 100, "turns": 2}
    assert gateway.spent == pytest.approx(spent)
    assert sum(costs) == pytest.approx(2 * 0.0019)
