"""No trial holds up another, and the time of a stalled gateway counts against nobody."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import enumerate as threads
from typing import Any

import httpx
import pytest

from runner.gateway import Gateway, provider
from runner.gateway import session as session_module
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import Budget, Usage
from tests.gateway.conftest import HELLO, Http, Open
from tests.gateway.test_matrix import APIS, SPEAKS
from tests.support.waiting import until

STALL_SECONDS = 1.5


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)


def _lanes() -> int:
    return sum(thread.name == "gateway-lane" for thread in threads())


def test_a_gateway_that_stands_still_takes_no_time_of_a_trial(
    gateway: Gateway, session: Open, http: Http
) -> None:
    """A deadline passed during the stall, and its timer ran before anything else."""
    with FakeUpstream(Behaviour(text="worth it", held="answer")) as upstream, ThreadPoolExecutor(1) as pool:
        trial = session(upstream.url, seconds=STALL_SECONDS)
        asking = pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO)
        until(lambda: upstream.requests)
        gateway._loop.call_soon_threadsafe(time.sleep, STALL_SECONDS)
        time.sleep(STALL_SECONDS)
        upstream.release()
        assert asking.result().status_code == 200
    assert trial.meter.refusal is None
    assert trial.meter.waited_seconds >= 0.9 * STALL_SECONDS


def test_a_trial_that_asks_nothing_meanwhile_is_given_nothing(
    gateway: Gateway, session: Open, http: Http
) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, seconds=60)
        http(trial).post("/v1/chat/completions", json=HELLO).raise_for_status()
        before = trial.meter.waited_seconds
        gateway._loop.call_soon_threadsafe(time.sleep, 0.3)
        time.sleep(0.5)
    assert trial.meter.waited_seconds == before


@pytest.mark.parametrize("stream", ["collect", "through"])
@pytest.mark.parametrize("model", SPEAKS)
@pytest.mark.parametrize("name", APIS)
def test_a_large_call_is_that_of_any_other(
    session: Open, http: Http, name: str, model: str, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same ledger, same answer, same events; the lane ends with the trial."""
    api, request = APIS[name]
    failing = Behaviour(status_code=503)
    lines: list[Any] = []
    answers: list[Any] = []
    lanes = _lanes()
    for large in (False, True):
        monkeypatch.setattr(session_module, "LARGE_VALUES", 1 if large else 1_000)
        with FakeUpstream(failing, Behaviour(text="One two.", calls=(("shell", "{}"),))) as upstream:
            trial = session(upstream.url, id=model, stream=stream, name=str(large), budget=Budget(turns=1))
            posts = [
                http(trial).post(api.path, json=request() | {"model": "any", "stream": stream == "through"})
                for _ in range(2)
            ]
            assert [post.status_code for post in posts] == [200, 403]
            assert (trial._lane is not None) == large
            trial.close()
        made_up = {"started_at", "latency_seconds", "waited_seconds", "response", "request"}
        lines.append([call.model_dump(exclude=made_up) for call in trial.calls])
        answer = trial.calls[0].response or {}
        answers.append((api.text(answer), [call.name for call in api.tool_calls(answer)], len(posts[0].text)))
    assert lines[0] == lines[1]
    assert answers[0][:2] == answers[1][:2] == ("One two.", ["shell"])
    assert abs(answers[0][2] - answers[1][2]) < 100, "but for ids of litellm's"
    until(lambda: _lanes() == lanes)


def test_an_agent_that_hangs_up_on_a_large_call_stops_the_provider(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "LARGE_VALUES", 1)
    with FakeUpstream(Behaviour(text="too late", held="answer")) as upstream:
        trial = session(upstream.url)
        agent = http(trial)
        with pytest.raises(httpx.ReadTimeout):
            agent.post("/v1/chat/completions", json=HELLO, timeout=1.0)
        until(lambda: upstream.hung_up == 1 and len(trial.calls) == 1)
    (call,) = trial.calls
    assert (call.status_code, call.attempts, call.lost) == (499, 1, 1)
    assert call.error is not None
    assert call.error.message == "the agent hung up"


def test_the_end_of_a_trial_cancels_its_large_calls(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "LARGE_VALUES", 1)
    with FakeUpstream(Behaviour(text="too late", held="answer")) as upstream, ThreadPoolExecutor(3) as pool:
        trial = session(upstream.url)
        posts = [pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO) for _ in range(3)]
        until(lambda: len(upstream.requests) == 3)
        trial.close()
        assert {post.result().status_code for post in posts} == {503}
    assert [call.status_code for call in trial.calls] == [499] * 3


def test_many_calls_at_once_have_a_lane(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok", held="answer")) as upstream, ThreadPoolExecutor(8) as pool:
        trial = session(upstream.url)
        posts = [pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO) for _ in range(8)]
        until(lambda: len(upstream.requests) == 8)
        assert trial._lane is not None
        upstream.release()
        assert {post.result().status_code for post in posts} == {200}
    assert len({call.index for call in trial.calls}) == 8


BIG: dict[str, Any] = {
    "messages": {"messages": [{"role": "user", "content": "x" * 300}] * 8_000},
    "tool calls": {
        "messages": [
            {"role": "user", "content": "x"},
            *(
                message
                for n in range(2_000)
                for message in (
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": f"c{n}",
                                "type": "function",
                                "function": {"name": "bash", "arguments": "{}"},
                            }
                        ],
                    },
                    {"role": "tool", "tool_call_id": f"c{n}", "content": "y" * 300},
                )
            ),
        ]
    },
    "text": {"messages": [{"role": "user", "content": "lorem ipsum " * 1_000_000}]},
}


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")  # aiohttp's, about its own loop
@pytest.mark.parametrize("attack", BIG)
def test_a_quiet_trial_is_answered_while_another_attacks(session: Open, http: Http, attack: str) -> None:
    """The neighbour is answered before the attacker's call, which used to block the one loop for seconds."""
    with FakeUpstream(Behaviour(text="ok")) as upstream, ThreadPoolExecutor(1) as pool:
        attacker, quiet = session(upstream.url, name="attacker"), session(upstream.url, name="quiet")
        agent = http(quiet)
        agent.post("/v1/chat/completions", json=HELLO).raise_for_status()
        content = json.dumps(BIG[attack])
        attacking = pool.submit(http(attacker).post, "/v1/chat/completions", content=content)
        until(lambda: attacker._lane)
        answered = 0
        while not attacking.done():
            agent.post("/v1/chat/completions", json=HELLO).raise_for_status()
            answered += not attacking.done()
        assert attacking.result().status_code == 200, attacker.calls[0].error
    assert answered >= 1


@pytest.mark.parametrize(
    ("fields", "worst"),
    [({}, 128_000), ({"context_window": 50_000}, 50_000), ({"max_output_tokens": 9_000}, 9_000)],
)
def test_to_hang_up_on_a_call_without_a_bound_is_not_free(
    session: Open, http: Http, fields: dict[str, int], worst: int
) -> None:
    """Ten such calls, worth 2 USD, counted only 0.0005 for `sweep_budget`."""
    with FakeUpstream(Behaviour(text="too late", held="answer")) as upstream:
        trial = session(upstream.url, **fields)
        with pytest.raises(httpx.ReadTimeout):
            http(trial).post("/v1/chat/completions", json=HELLO, timeout=1.0)
        until(lambda: len(trial.calls) == 1)
        assert "max_tokens" not in upstream.requests[0]
    assert trial.meter.charged["output_tokens"] == worst
    assert trial.meter.charged["usd"] >= worst * 10.0 / 1e6
    assert (trial.meter.usage, trial.meter.cost_usd) == (Usage(), 0.0)
