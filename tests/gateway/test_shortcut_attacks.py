"""Odd requests after a shortcut was learned: each is answered as without one, and no call is missing in the ledger."""

from __future__ import annotations

import pytest

from runner.gateway import shortcuts
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from tests.gateway.conftest import Http, Open


def _nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def _said(content: str) -> str:
    return f'{{"role": "user", "content": {content}}}'


def _called(arguments: str, id_: str = "a") -> str:
    used = f'{{"type": "tool_use", "id": "{id_}", "name": "b", "input": {arguments}}}'
    return f'{{"role": "assistant", "content": [{used}]}}'


USER = _said('"hello"')
ZEROS = "0" * 400
ODD_ITEMS = {
    "a number": "1",
    "a text": '"hello"',
    "null": "null",
    "a list": "[[]]",
    "no role": "{}",
    "a role that is a number": '{"role": 5, "content": "x"}',
    "a role that is a list": '{"role": ["user"], "content": "x"}',
    "a type that is an object": _said('[{"type": {}, "text": "x"}]'),
    "content of 500 levels": _said(_nested(500)),
    "content of 5,000 levels": _said(_nested(5000)),
    "arguments of 60 levels": _called(f'{{"a": {_nested(58)}}}'),
    "arguments of 500 levels": _called(f'{{"a": {_nested(500)}}}'),
    "arguments of 5,000 levels": _called(f'{{"a": {_nested(5000)}}}'),
    "arguments with a type and a role of any kind": _called('{"type": {"a": []}, "role": [1], "id": {}}'),
    "arguments with a picture's name": _called('{"image_url": {"url": 1}, "": null}'),
    "NaN": _called('{"a": NaN}'),
    "a huge number": _called(f'{{"a": 1{ZEROS}}}'),
    "an infinite number": _called('{"a": 1e999}'),
    "half of a surrogate pair": _said('"\\ud800"'),
    "half of a pair as a field": '{"role": "user", "content": "x", "\\udc00": 1}',
    "one field twice": '{"role": "user", "role": 5, "content": "x", "content": "y"}',
    "300 forms": ",".join(
        _called("{}", f"{'a:' * (number % 100)}{chr(200 + number)}") for number in range(300)
    ),
    "an id of 10,000 characters": _called("{}", "a:" * 5000),
}
"""What is odd -> items of a conversation as JSON."""
ODD_FIELDS = {
    "the conversation twice": f'"messages": [{USER}], "input": [{USER}], "messages": 5, "input": 5',
    "a huge bound": f'"max_tokens": 1{ZEROS}, "max_output_tokens": 1{ZEROS}',
    "a bound that is NaN": '"max_tokens": NaN, "max_output_tokens": NaN',
    "a bound that is true": '"max_tokens": true, "max_output_tokens": true',
    "a bound below the least": '"max_tokens": 5, "max_output_tokens": 5',
    "tools of 500 levels": f'"tools": {_nested(500)}',
    "tools of 5,000 levels": f'"tools": {_nested(5000)}',
}
"""What is odd -> fields that follow the others, as JSON."""
APIS = {
    "chat": ("openai/x", "/v1/chat/completions"),
    "messages": ("anthropic/x", "/v1/messages"),
    "responses": ("openai/x", "/v1/responses"),
}


@pytest.mark.parametrize("api", APIS)
def test_an_odd_request_is_answered_as_without_a_shortcut(
    session: Open, http: Http, monkeypatch: pytest.MonkeyPatch, api: str
) -> None:
    vendor, path = APIS[api]
    field = "input" if api == "responses" else "messages"
    bound = ', "max_tokens": 900' if api == "messages" else ""
    plain = f'{{"{field}": [{USER}]{bound}}}'
    odd = {name: f'{{"{field}": [{USER}, {items}]{bound}}}' for name, items in ODD_ITEMS.items()}
    odd |= {name: plain.removesuffix("}") + f", {more}}}" for name, more in ODD_FIELDS.items()}
    codes: list[dict[str, int]] = []
    for most in (64, 0):
        monkeypatch.setattr(shortcuts, "MOST_LEARNED", most)
        with FakeUpstream(Behaviour(text="ok")) as upstream:
            trial = session(upstream.url, id=vendor, name=f"most{most}")
            posted = {"first": plain} | odd | {f"{name}, again": one for name, one in odd.items()}
            posted |= {"last": plain}
            agent = http(trial)
            answers = {name: agent.post(path, content=one.encode()) for name, one in posted.items()}
        codes.append({name: answer.status_code for name, answer in answers.items()})
        assert all(answer.json() for answer in answers.values()), "an agent can read each"
        assert sum(call.attempts for call in trial.calls) == len(upstream.requests), "every request is booked"
        assert len(trial.calls) == len(posted)
    assert codes[0] == codes[1]
    assert set(codes[0].values()) == {200, 400}
    assert (codes[0]["first"], codes[0]["last"]) == (200, 200)
