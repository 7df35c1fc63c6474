"""A budget refuses a call in the API's own form before it is sent, and parallel calls cannot overrun it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from pydantic import ValidationError

from runner.errors import ConfigError
from runner.gateway import Session, provider
from runner.gateway.budget import Hold, Meter, Refusal
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.session import PAUSE_SECONDS
from runner.records import Budget, Model, Prices, PriceTier, Usage
from tests.gateway.answering import answering
from tests.gateway.conftest import HELLO, Http, Open
from tests.support.waiting import until

COST = (600 * 2.0 + 400 * 0.5 + 50 * 10.0) / 1e6


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "BACK_OFF_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("budget", "answered"),
    [
        (Budget(turns=2), 2),
        (Budget(usd=COST * 2.5), 2),
        (Budget(usd=COST * 1.5), 1),
        (Budget(input_tokens=2500), 2),
        (Budget(output_tokens=100), 2),
        (Budget(turns=0), 0),
    ],
)
def test_each_budget_refuses_before_the_call_is_sent(
    session: Open, http: Http, budget: Budget, answered: int
) -> None:
    kind = next(name for name, limit in budget if name != "name" and limit is not None)
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=budget)
        agent = http(trial)
        answers = [agent.post("/v1/chat/completions", json=HELLO) for _ in range(answered + 2)]
        assert len(upstream.requests) == answered
    assert [answer.status_code for answer in answers] == [200] * answered + [403] * 2
    assert trial.meter.turns == answered
    assert trial.meter.refusal == kind
    assert [call.refused for call in trial.calls] == [None] * answered + [kind] * 2
    error = answers[-1].json()["error"]
    assert error["type"] == error["code"] == "budget_exceeded"
    assert f"{budget.model_dump()[kind]:.6g}" in error["message"]


def test_a_refusal_reaches_the_official_client_at_once(
    session: Open, client: Callable[[Session], openai.OpenAI]
) -> None:
    trial = session("http://127.0.0.1:1/v1", budget=Budget(turns=0))
    for stream in (False, True):
        with pytest.raises(openai.PermissionDeniedError, match="budget of model calls"):
            client(trial).with_options(max_retries=3).responses.create(model="m", input="x", stream=stream)
    assert len(trial.calls) == 2


def test_an_agent_that_asks_on_and_on_is_answered_slowly(session: Open, http: Http) -> None:
    """The pause holds for all connections together. On one connection, 1,500 lines a second were written."""
    trial = session("http://127.0.0.1:1/v1", budget=Budget(turns=0))
    began = time.monotonic()
    with ThreadPoolExecutor(5) as pool:
        posts = [pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO) for _ in range(5)]
        unread = [pool.submit(http(trial).post, "/v1/responses", content=b"{") for _ in range(5)]
    assert {post.result().status_code for post in posts} == {403}
    assert {post.result().status_code for post in unread} == {400}
    assert time.monotonic() - began >= 10 * PAUSE_SECONDS
    assert len(trial.calls) == 10


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("chat/completions", {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}),
        ("responses", {"type": "input_image", "image_url": "data:image/png;base64,eA=="}),
        (
            "messages",
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "eA=="}},
        ),
        (
            "messages",
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "eA=="},
            },
        ),
        ("responses", {"type": "input_file", "file_data": "data:application/pdf;base64,eA=="}),
        ("chat/completions", {"type": "file", "file": {"file_data": "data:application/pdf;base64,eA=="}}),
        ("chat/completions", {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,eA=="}}),
    ],
)
def test_a_picture_of_few_bytes_is_not_read_for_them(
    session: Open, http: Http, path: str, part: dict[str, Any]
) -> None:
    """A picture of a single colour has 500 bytes and costs as much as any of its size: a hundred overran every cap."""
    asked = [{"role": "user", "content": [part] * 100}]
    trial = session("http://127.0.0.1:1/v1", budget=Budget(usd=0.5))
    body = {"messages": asked, "input": asked, "max_tokens": 100}
    assert http(trial).post(f"/v1/{path}", json=body).status_code == 403
    assert trial.meter.refusal == "usd"


@pytest.mark.parametrize(
    "counts",
    [
        {"prompt_tokens": 100, "completion_tokens": -50},
        {"prompt_tokens": -100, "completion_tokens": 50},
        {"prompt_tokens": 100, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": -5000}},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
    ],
    ids=["output", "input", "cached", "absurd"],
)
def test_a_provider_cannot_pay_back(session: Open, http: Http, counts: dict[str, Any]) -> None:
    """A negative count made a negative cost, and so raised the caps."""
    message = {"role": "assistant", "content": "hi"}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"total_tokens": 0} | counts
    with answering(lambda _: {"id": "x", "model": "x", "choices": [choice], "usage": usage}) as url:
        trial = session(url, budget=Budget(usd=1.0, output_tokens=1000))
        assert http(trial).post("/v1/chat/completions", json=HELLO).status_code == 200
    (call,) = trial.calls
    assert (call.usage, call.cost_usd, trial.meter.cost_usd, trial.meter.usage) == (None, None, None, Usage())
    assert (trial.meter.charged["output_tokens"], trial.meter.charged["usd"] > 0) == (1000, True)


def test_parallel_calls_share_the_turns(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok", seconds=0.2)) as upstream:
        trial = session(upstream.url, budget=Budget(turns=3))
        with ThreadPoolExecutor(10) as pool:
            posts = [pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO) for _ in range(10)]
            statuses = [post.result().status_code for post in posts]
        assert len(upstream.requests) == 3
    assert sorted(statuses) == [200] * 3 + [403] * 7


def test_a_turn_that_failed_upstream_goes_to_the_next_call(session: Open, http: Http) -> None:
    """The hold of a call under way makes others wait, and is theirs if the call costs nothing."""
    refused = Behaviour(status_code=400, held="answer")
    with FakeUpstream(refused, Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=Budget(turns=1))
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO)
            until(lambda: upstream.requests)
            second = pool.submit(http(trial).post, "/v1/chat/completions", json=HELLO)
            time.sleep(0.1)  # time for it to come, and to wait
            upstream.release()
            assert (first.result().status_code, second.result().status_code) == (400, 200)
    assert trial.meter.refusal is None


def test_parallel_calls_cannot_overrun_usd_together(session: Open, http: Http) -> None:
    """Each call may cost a cent and the budget is a cent, so the calls run one by one."""
    request = HELLO | {"max_tokens": 1000}
    with FakeUpstream(
        Behaviour(text="ok", usage=Usage(input_tokens=10, output_tokens=1000), seconds=0.1)
    ) as upstream:
        trial = session(upstream.url, budget=Budget(usd=0.01))
        with ThreadPoolExecutor(5) as pool:
            posts = [pool.submit(http(trial).post, "/v1/chat/completions", json=request) for _ in range(5)]
            statuses = sorted(post.result().status_code for post in posts)
    assert statuses == [200] + [403] * 4


@pytest.mark.parametrize(
    ("asked", "sent"),
    [({"max_tokens": 5000}, 100), ({"max_completion_tokens": 30}, 30), ({}, 100), ({"max_tokens": -1}, 100)],
)
def test_output_is_clipped_to_what_is_left(
    session: Open, http: Http, asked: dict[str, int], sent: int
) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=Budget(output_tokens=100))
        http(trial).post("/v1/chat/completions", json=HELLO | asked)
        http(trial).post("/v1/responses", json={"input": "x", "max_output_tokens": 999})
        assert upstream.requests[0]["max_tokens"] == sent
        assert upstream.requests[1]["max_output_tokens"] == 50


CLIPS = [
    ("chat/completions", HELLO, "max_tokens", "openai/x"),
    ("chat/completions", HELLO, "max_completion_tokens", "openai/x"),
    ("responses", {"input": "x"}, "max_output_tokens", "openai/x"),
    ("messages", HELLO, "max_tokens", "anthropic/x"),
]


@pytest.mark.parametrize(("path", "body", "field", "model"), CLIPS)
def test_output_is_clipped_to_what_usd_are_left(
    session: Open, http: Http, path: str, body: dict[str, Any], field: str, model: str
) -> None:
    """At first 0.01 USD minus the input (a token for two of 15 to 70 bytes) pays for 994 tokens at 10 USD per million.

    After a call of 0.0019 USD the rest pays for 810, minus the 1000 counted input tokens at 2.5 USD per million.
    """
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, id=model, budget=Budget(usd=0.01), max_output_tokens=9000)
        for _ in range(2):
            assert http(trial).post(f"/v1/{path}", json=body | {field: 5000}).status_code == 200
        sent = [request[field.replace("completion_", "")] for request in upstream.requests]
    assert sent == pytest.approx([994, 560], abs=6)


def test_usd_bound_a_model_that_could_write_more_or_nobody_knows_how_much(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        rich = session(upstream.url, budget=Budget(usd=1.0), max_output_tokens=9000, name="rich")
        poor = session(upstream.url, budget=Budget(usd=0.05), max_output_tokens=9000, name="poor")
        unknown = session(upstream.url, budget=Budget(usd=0.05), name="unknown")
        for trial in (rich, poor, unknown):
            http(trial).post("/v1/chat/completions", json=HELLO)
        bounds = [request.get("max_tokens") for request in upstream.requests]
    assert bounds == [None, pytest.approx(4994, abs=3), pytest.approx(4994, abs=3)]


def test_too_little_for_an_answer_is_nothing(session: Open, http: Http) -> None:
    """An answer of a few tokens is useless, and some providers refuse such a bound."""
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        for budget in (Budget(output_tokens=65), Budget(usd=COST + 15 * 10e-6)):
            trial = session(upstream.url, budget=budget, name=f"{budget.usd}")
            agent = http(trial)
            statuses = [agent.post("/v1/chat/completions", json=HELLO).status_code for _ in range(2)]
            assert statuses == [200, 403]


@pytest.mark.parametrize(
    "budget", [Budget(input_tokens=2500), Budget(usd=0.0075), Budget(output_tokens=60)], ids=str
)
def test_parallel_calls_cannot_overrun_together(session: Open, http: Http, budget: Budget) -> None:
    """Each call reads 1000 tokens, at worst 2000, and has no bound on output: each waits for the one before it."""
    body = {"messages": [{"role": "user", "content": "words " * 650}]}
    usage = Usage(input_tokens=1000, output_tokens=50)
    with FakeUpstream(Behaviour(text="ok", usage=usage, seconds=0.1)) as upstream:
        trial = session(upstream.url, budget=budget, max_output_tokens=50)
        with ThreadPoolExecutor(5) as pool:
            posts = [pool.submit(http(trial).post, "/v1/chat/completions", json=body) for _ in range(5)]
            assert {post.result().status_code for post in posts} == {200, 403}
        assert len(upstream.requests) == (1 if budget.output_tokens else 2)
        assert upstream.most_at_once == 1
    assert all(trial.meter.charged[kind] <= limit for kind, limit in budget if kind != "name" and limit)


@pytest.mark.parametrize("budget", [Budget(usd=0.05), Budget(input_tokens=40_000)], ids=str)
def test_input_that_may_cost_more_than_is_left_is_not_sent(session: Open, http: Http, budget: Budget) -> None:
    """A request of 100 kB (0.13 USD at worst) was sent at a cap of 0.05. A smaller one is still served."""
    long = {"messages": [{"role": "user", "content": "words " * 17_000}]}
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=budget)
        answers = [http(trial).post("/v1/chat/completions", json=body) for body in (long, HELLO)]
        assert len(upstream.requests) == 1
    assert [answer.status_code for answer in answers] == [403, 200]
    assert "does not cover this call: 0 of" in answers[0].json()["error"]["message"]


def test_a_long_conversation_is_not_refused_far_below_its_cap(session: Open, http: Http) -> None:
    """The worst case of tokens that were counted is their count: only new bytes count as a token in two."""
    first = {"role": "user", "content": "words " * 17_000}
    answered = [first, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "more " * 200}]
    usage = Usage(input_tokens=25_000, cache_hit_tokens=24_000, output_tokens=10)
    with FakeUpstream(Behaviour(text="ok", usage=usage)) as upstream:
        trial = session(upstream.url, budget=Budget(usd=0.15), max_output_tokens=9000)
        for messages in ([first], answered, [first]):
            assert http(trial).post("/v1/chat/completions", json={"messages": messages}).status_code == 200
        bounds = [request.get("max_tokens") for request in upstream.requests]
    spent = (1000 * 2.0 + 24_000 * 0.5 + 10 * 10.0) / 1e6
    left = [0.15 - 51_000 * 2.5e-6, 0.15 - spent - 25_530 * 2.5e-6, 0.15 - 2 * spent - 25_000 * 2.5e-6]
    assert bounds == [pytest.approx(usd / 10e-6, abs=20) for usd in left]


def test_what_is_only_as_long_as_what_was_counted_is_new(session: Open, http: Http) -> None:
    """Otherwise an agent could have blanks counted, of which hundreds are one token, and then send words."""
    blank, words = (
        {"messages": [{"role": "user", "content": text * 13_000}]} for text in (" " * 8, "new words ")
    )
    with FakeUpstream(Behaviour(text="ok", usage=Usage(input_tokens=100, output_tokens=1))) as upstream:
        trial = session(upstream.url, budget=Budget(input_tokens=60_000))
        answers = [http(trial).post("/v1/chat/completions", json=body) for body in (blank, words, blank)]
    assert [answer.status_code for answer in answers] == [200, 403, 200]


WORDS = "words " * 17_000
HI, LONG = {"role": "user", "content": "hi"}, {"role": "user", "content": WORDS}
TOOL = {"type": "function", "function": {"name": "shell"}}
UNREAD = {
    "in a field that is dropped": ({"messages": [HI], "x": [LONG]}, {"messages": [HI, LONG]}),
    "in a part's field that means nothing": (
        {"messages": [HI | {"content_": WORDS}]},
        {"messages": [LONG]},
    ),
    "among the tools": ({"messages": [HI], "tools": [TOOL | LONG]}, {"messages": [TOOL | LONG]}),
    "once": ({"messages": [LONG]}, {"messages": [LONG] * 3}),
    "with a setting that leaves it out": (
        {"messages": [LONG], "thinking": {"type": "disabled"}},
        {"messages": [LONG]},
    ),
    "in a field that comes again": (
        f'{{"messages": [{json.dumps(LONG)}], "messages": [{json.dumps(HI)}]}}',
        f'{{"messages": [{json.dumps(LONG)}], "messagez": [{json.dumps(HI)}]}}',
    ),
}


@pytest.mark.parametrize("case", UNREAD)
def test_a_text_that_was_counted_where_it_is_not_read_is_new(session: Open, http: Http, case: str) -> None:
    """Calls were admitted with too small a hold, so that parallel ones could overrun the budget together."""
    first, second = (one if isinstance(one, str) else json.dumps(one) for one in UNREAD[case])
    with FakeUpstream(Behaviour(text="ok", usage=Usage(input_tokens=10, output_tokens=1))) as upstream:
        trial = session(upstream.url, budget=Budget(usd=0.5))
        for body in (first, second):
            assert http(trial).post("/v1/chat/completions", content=body).status_code == 200
        bound = upstream.requests[-1]["max_tokens"]
    assert bound <= (0.5 - len(WORDS) / 2 * 2.5e-6) / 10e-6


def test_a_bound_without_end_is_none(session: Open, http: Http) -> None:
    """A number of 400 digits made the gateway fail; one of 60 bits counts as no bound."""
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=Budget(output_tokens=100))
        answers = [
            http(trial).post("/v1/chat/completions", json=HELLO | {"max_tokens": bound})
            for bound in (2**60, 10**400)
        ]
        assert [answer.status_code for answer in answers] == [200, 400]
        assert [request["max_tokens"] for request in upstream.requests] == [100]


def test_output_is_clipped_to_what_the_model_can(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, max_output_tokens=4096)
        http(trial).post("/v1/chat/completions", json=HELLO | {"max_tokens": 262144})
        http(trial).post("/v1/chat/completions", json=HELLO)
        assert [request.get("max_tokens") for request in upstream.requests] == [4096, None]


def test_a_deadline_cuts_a_call_and_refuses_the_next(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="late", held="answer")) as upstream:
        trial = session(upstream.url, seconds=2.0)
        answers = [http(trial).post("/v1/chat/completions", json=HELLO) for _ in range(2)]
        assert len(upstream.requests) == 1
    assert [answer.status_code for answer in answers] == [403, 403]
    assert "deadline" in answers[0].json()["error"]["message"]
    assert [call.refused for call in trial.calls] == ["deadline", "deadline"]
    assert trial.meter.refusal == "deadline"


def test_the_deadline_starts_with_the_first_call(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, seconds=2.0)
        time.sleep(2.1)
        assert http(trial).post("/v1/chat/completions", json=HELLO).status_code == 200


@pytest.mark.parametrize("model", ["openai/x", "zai/x", "deepseek/x"])
def test_a_try_that_may_have_been_charged_is_counted_before_the_next(
    session: Open, http: Http, model: str
) -> None:
    """An answer that is cut off may have been charged: with its worst case the budget is spent."""
    request = HELLO | {"max_tokens": 1000}
    with FakeUpstream(Behaviour(cut=True)) as upstream:
        trial = session(upstream.url, id=model, budget=Budget(usd=0.01))
        assert http(trial).post("/v1/chat/completions", json=request).status_code == 403
        assert len(upstream.requests) == 1, "nor does litellm repeat it"
    (call,) = trial.calls
    assert (call.refused, call.attempts, call.lost, call.cut) == ("usd", 1, 1, True)


def test_a_try_that_was_refused_costs_nothing(session: Open, http: Http) -> None:
    request = HELLO | {"max_tokens": 1000}
    refused = [Behaviour(status_code=429), Behaviour(status_code=500)]
    with FakeUpstream(*refused, Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=Budget(usd=0.01, turns=1))
        assert http(trial).post("/v1/chat/completions", json=request).status_code == 200
        assert len(upstream.requests) == 3
    assert (trial.calls[0].lost, trial.calls[0].cut) == (0, False)
    assert trial.meter.charged["usd"] == trial.meter.cost_usd


def test_what_is_left_shrinks_from_try_to_try(session: Open, http: Http) -> None:
    """The second try may not write as much as the first may have written. Only the provider counts two turns."""
    with FakeUpstream(Behaviour(cut=True), Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, budget=Budget(output_tokens=100, turns=1))
        assert http(trial).post("/v1/chat/completions", json=HELLO | {"max_tokens": 60}).status_code == 200
        assert [request["max_tokens"] for request in upstream.requests] == [60, 40]
    assert (trial.calls[0].attempts, trial.calls[0].lost, trial.meter.refusal) == (2, 1, None)


@pytest.mark.parametrize(
    "budget", [Budget(usd=0.001), Budget(output_tokens=100), Budget(input_tokens=40)], ids=str
)
def test_an_answer_without_usage_still_counts_against_the_caps(
    session: Open, http: Http, budget: Budget
) -> None:
    """Its cost is unknown, not 0, and each cap counts its worst case."""
    with FakeUpstream(Behaviour(text="ok", usage=None)) as upstream:
        trial = session(upstream.url, budget=budget)
        answers = [
            http(trial).post("/v1/chat/completions", json=HELLO | {"max_tokens": 200}) for _ in range(2)
        ]
    assert [answer.status_code for answer in answers] == [200, 403]
    assert trial.calls[0].usage is None
    assert trial.meter.cost_usd is None
    assert trial.meter.usage == Usage()


COUNTS = dict.fromkeys(("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"), "many")
ODD_ANSWERS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}],
    },
    "/v1/responses": {"object": "response", "created_at": 1, "status": "completed", "output": []},
    "/v1/messages": {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
}


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1/chat/completions", "openai/x"),
        ("/v1/responses", "openai/x"),
        ("/v1/messages", "anthropic/x"),
    ],
)
def test_counts_that_are_no_numbers_leak_no_hold_and_lose_no_spend(
    session: Open, http: Http, path: str, model: str
) -> None:
    """Reading such counts failed before the call was settled: its hold remained, and its cost was lost."""
    body: dict[str, Any] = {"input": "x"} if path == "/v1/responses" else HELLO
    bound = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    with answering(lambda at: {"id": "x", "model": "x", "usage": COUNTS} | ODD_ANSWERS[at]) as url:
        trial = session(url, id=model, budget=Budget(usd=0.001), seconds=10)
        statuses = [http(trial).post(path, json=body | {bound: 200}).status_code for _ in range(2)]
    assert statuses[1] == 403
    assert trial.meter.refusal == "usd"
    assert trial.meter.charged["usd"] >= 0.0009


def test_a_missing_cache_rate_makes_the_cost_unknown_but_not_the_cap(session: Open, http: Http) -> None:
    with FakeUpstream(Behaviour(text="ok")) as upstream:
        trial = session(upstream.url, prices=Prices(input=2.0, output=10.0), budget=Budget(usd=0.002))
        answers = [http(trial).post("/v1/chat/completions", json=HELLO) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 403]
    assert trial.meter.cost_usd is None


def test_a_cap_in_usd_needs_prices(session: Open) -> None:
    with pytest.raises(ConfigError, match="no price for input or output"):
        session("http://127.0.0.1:1", prices=Prices(), budget=Budget(usd=1.0))
    assert session("http://127.0.0.1:1", prices=Prices(), budget=Budget(turns=1)).meter.cost_usd == 0.0


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "max_output_tokens", "n"])
def test_a_models_parameters_cannot_undo_the_clip(name: str) -> None:
    """A model's parameters override the request, and so the rest of the budget."""
    with pytest.raises(ValidationError, match=r"set model\.max_output_tokens"):
        Model(name="m", params={name: 5000})


async def _admitted(meter: Meter, **wanted: Any) -> Hold:
    hold = await meter.admit((b" " * 200,), wanted.get("output_tokens"))
    assert not isinstance(hold, Refusal)
    return hold


def test_what_is_held_is_the_worst_case() -> None:
    async def story() -> None:
        prices = Prices(input=1.0, output=10.0, cache_creation=1.25, cache_hit=0.1)
        model = Model(name="m", max_output_tokens=400, prices=prices)
        meter = Meter(Budget(usd=1.0, output_tokens=1000), model, None)
        first, second = await _admitted(meter, output_tokens=900), await _admitted(meter)
        assert (first.max_output, second.max_output) == (400, 400)
        assert first.usd == pytest.approx((100 * 1.25 + 400 * 10.0) / 1e6), "all of it written to a cache"
        third = await _admitted(meter)
        assert third.max_output == 200
        meter.settle(first, Usage(input_tokens=100, output_tokens=10))
        meter.release(second)
        assert (await _admitted(meter)).max_output == 400
        assert (meter.turns, meter.usage.output_tokens) == (1, 10)

    asyncio.run(story())


def test_a_try_that_was_cut_off_is_charged_all_that_it_held_and_what_is_known_of_it_once() -> None:
    async def story() -> None:
        long = PriceTier(above_input_tokens=150, input=2.0, output=20.0)
        model = Model(name="m", prices=Prices(input=1.0, output=10.0, tiers=(long,)))
        meter = Meter(Budget(usd=1.0), model, None)
        first = await _admitted(meter, output_tokens=40)
        seen = Usage(input_tokens=30, output_tokens=4)
        assert meter.abandon(first, seen, turn=True) == pytest.approx((30 + 4 * 10) / 1e6)
        assert meter.usage == seen
        assert meter.cost_usd == pytest.approx(70e-6)
        assert meter.charged == pytest.approx(
            {"usd": (100 + 40 * 10) / 1e6, "input_tokens": 100, "output_tokens": 40, "turns": 1}
        )
        second = await _admitted(meter, output_tokens=1)
        more = Usage(input_tokens=160, output_tokens=9)
        assert meter.abandon(second, more, turn=False) == pytest.approx((160 * 2 + 9 * 20) / 1e6)
        assert meter.charged == pytest.approx(
            {"usd": 500e-6 + 500e-6, "input_tokens": 260, "output_tokens": 49, "turns": 1}
        )
        assert meter.abandon(await _admitted(meter, output_tokens=1), None, turn=False) is None
        assert meter.charged["usd"] == pytest.approx(1000e-6 + 110e-6)

    asyncio.run(story())


def test_what_usd_are_left_buys_is_reckoned_at_the_rates_of_the_calls_length() -> None:
    async def story() -> None:
        long = PriceTier(above_input_tokens=99, input=2.0, output=20.0)
        model = Model(name="m", prices=Prices(input=1.0, output=10.0, tiers=(long,)))
        hold = await _admitted(Meter(Budget(usd=1200e-6), model, None))
        assert hold.max_output == pytest.approx((1200 - 100 * 2) / 20, abs=1)
        assert hold.usd == pytest.approx(1200e-6)

    asyncio.run(story())


def test_the_deadline_moves_on_by_all_that_was_waited_and_overlaps_count_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [50.0]
    for module in ("budget", "call_limits"):
        monkeypatch.setattr(f"runner.gateway.{module}.time", SimpleNamespace(monotonic=lambda: now[0]))

    async def story() -> None:
        meter = Meter(Budget(), Model(name="m"), 10.0)
        deadlines = [meter.deadline]
        meter.release(await _admitted(meter))
        deadlines.append(meter.deadline)
        with meter.waiting():
            now[0] += 3
            with meter.waiting():
                now[0] += 4
                assert meter.waited_seconds == 7.0
            now[0] += 1
        now[0] += 9
        assert [*deadlines, meter.deadline] == [None, 60.0, 68.0], "it starts with the first call"
        meter.release(await _admitted(meter))
        now[0] += 2
        refused = await meter.admit((b"",), None)
        assert isinstance(refused, Refusal)
        assert (refused.kind, refused.spent, refused.limit) == ("deadline", 11.0, 10.0)
        assert "The deadline of this trial is spent: 11 of 10 seconds." in refused.message

    asyncio.run(story())
