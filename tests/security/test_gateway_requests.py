"""A wrong request is the agent's error, answered at once: it cannot make the gateway fail, be retried, hold up other
trials, or void its own.

A trial whose last call fails on our side is repeated with a full budget, which an agent that is about to lose would
like.
"""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from runner.gateway.api import Api
from runner.gateway.http import APIS, CHAT
from tests.security.attacked import PLAIN, PROVIDERS, Attacked, Json, Outcome, attacked

SECONDS = 2.0
"""A time in seconds that is longer than any answer may take."""
LONG = 1_500_000
VALUES: dict[str, bytes] = {
    "null": b"null",
    "true": b"true",
    "zero": b"0",
    "minus one": b"-1",
    "half": b"0.5",
    "2 to the 63": b"9223372036854775808",
    "400 digits": b"9" * 400,
    "5000 digits": b"9" * 5000,
    "1e999": b"1e999",
    "-1e999": b"-1e999",
    "NaN": b"NaN",
    "empty text": b'""',
    "text": b'"x"',
    "number in a text": b'"1"',
    "NUL": b'"\\u0000"',
    "half a pair": b'"\\ud800"',
    "escapes": b'"\\u001b]0;x\\u0007\\r\\n"',
    "percents": b'"%s%n{0}{x.__class__}"',
    "long text": b'"' + b"x" * LONG + b'"',
    "empty list": b"[]",
    "list": b'["x"]',
    "list of lists": b'[["x"]]',
    "list of null": b"[null]",
    "list of numbers": b"[1, 2.5, -3]",
    "empty object": b"{}",
    "type of a list": b'{"type": ["x"]}',
    "list of type of a list": b'[{"type": ["x"]}]',
    "type of an object": b'{"type": {}}',
    "list of type null": b'[{"type": null}]',
    "unknown type": b'[{"type": "x"}]',
    "odd keys": b'{"": 1, "\\u0000": 2, "__proto__": 3, "__class__": 4}',
    "the same key twice": b'{"type": "text", "type": []}',
    "deep list": b"[" * 150 + b"]" * 150,
    "deep object": b'{"a":' * 150 + b"1" + b"}" * 150,
    "10000 levels": b"[" * 10_000 + b"]" * 10_000,
    "half a value": b"[1, ",
    "nothing": b"",
}
OURS = {
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "metadata",
}
"""Fields that the gateway handles itself, or drops."""
HERE = "@here@"
"""Placeholder for the odd value in a request."""
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
FUNCTION = {"name": "x", "description": "d", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "t", "index": 0, "type": "function", "function": {"name": "x", "arguments": "{}"}}
RESULT = {
    "role": "tool",
    "tool_call_id": "t",
    "content": "x",
    "name": "x",
    "cache_control": {"type": "ephemeral"},
}
USED = {"type": "tool_use", "id": "t", "name": "x", "input": {}, "cache_control": {"type": "ephemeral"}}
TOOL_RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "eA=="}
WHOLE: dict[str, Json] = {
    "chat": {
        "messages": [
            {"role": "system", "content": "Be good.", "name": "s"},
            {"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}, IMAGE
            ]},
            {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]},
            RESULT,
            {"role": "user", "content": "x"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": {"type": "function", "function": {"name": "x"}},
        "response_format": {
            "type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}, "strict": True}
        },
        "stream_options": {"include_usage": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "logit_bias": {"1": 1},
        "stop": ["x"],
    }
    | dict.fromkeys(("temperature", "top_p", "frequency_penalty", "presence_penalty"), 0.5)
    | dict.fromkeys(("max_tokens", "max_completion_tokens", "seed"), 64)
    | dict.fromkeys(("model", "prompt_cache_key"), "x")
    | {"stream": False, "parallel_tool_calls": True, "reasoning_effort": "low", "verbosity": "low"},
    "responses": {
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
            {"type": "reasoning", "id": "r",
             "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "t", "name": "x", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": "x"},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "x", "annotations": []}
            ]},
            {"role": "user", "content": [
                {"type": "input_image", "image_url": "data:image/png;base64,eA==", "detail": "low"}
            ]},
        ],
        "tools": [
            {"type": "function", "strict": False} | FUNCTION,
            {"type": "custom", "name": "y", "format": {"type": "text"}}
        ],
        "tool_choice": {"type": "function", "name": "x"},
        "text": {
            "verbosity": "low",
            "format": {"type": "json_schema", "name": "x", "schema": {"type": "object"}, "strict": True}
        },
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    }
    | dict.fromkeys(("temperature", "top_p"), 0.5)
    | dict.fromkeys(("model", "prompt_cache_key", "instructions"), "x")
    | {"max_output_tokens": 64, "stream": False, "store": False, "parallel_tool_calls": True, "truncation": "auto"},
    "messages": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image", "source": SOURCE}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, USED]},
            {"role": "user", "content": [TOOL_RESULT | {"is_error": False}]},
        ],
        "system": [{"type": "text", "text": "Be good.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "x", "description": "d", "input_schema": {"type": "object"}, "type": "custom"}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "stop_sequences": ["x"],
        "metadata": {"user_id": "u"},
    }
    | {"model": "x", "max_tokens": 2000, "stream": False, "temperature": 1.0, "top_p": 0.5, "top_k": 5},
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "eA=="}}]},
            {"role": "model", "parts": [
                {"text": "Hm.", "thought": True},
                {"functionCall": {"id": "t", "name": "x", "args": {}}, "thoughtSignature": "eA=="},
            ]},
            {"role": "user", "parts": [{"functionResponse": {"id": "t", "name": "x", "response": {"output": "x"}}}]},
        ],
        "systemInstruction": {"role": "user", "parts": [{"text": "Be good."}]},
        "tools": [{"functionDeclarations": [
            {"name": "x", "description": "d", "parameters": {"type": "OBJECT", "properties": {}}}
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["x"]}},
        "generationConfig": {
            "temperature": 0.5, "topP": 0.5, "seed": 1, "maxOutputTokens": 64, "candidateCount": 1,
            "stopSequences": ["x"], "presencePenalty": 0.5, "frequencyPenalty": 0.5,
            "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
        },
    },
}  # fmt: skip
"""A request of each API with everything that agents send."""


def paths(value: Any, *before: str | int) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value in a request."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*before, key)
        if isinstance(inner, dict | list):
            yield from paths(inner, *before, key)


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """Return the request with another value at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def odd(api: str, path: tuple[str | int, ...], value: bytes) -> bytes:
    """Return the bytes of a request with an odd value at a path."""
    return json.dumps(replaced(WHOLE[api], path, HERE)).encode().replace(f'"{HERE}"'.encode(), value)


@pytest.fixture(scope="module")
def trials() -> Iterator[Attacked]:
    with attacked() as trials:
        for api in PLAIN:  # litellm loads more of itself with the first request of each kind
            for provider in PROVIDERS:
                assert trials.ask(api, WHOLE[api], provider).status == 200
        yield trials


def check(outcome: Outcome) -> None:
    """Check that the answer is proper, whatever the request."""
    assert outcome.status in (200, 400, 413), outcome.answer
    assert len(outcome.sent) == (outcome.status == 200), "sent once, if at all"
    assert outcome.call.attempts == len(outcome.sent), "and not tried again"
    assert outcome.judged
    assert len(json.dumps(outcome.answer)) < 10_000
    if outcome.call.error:
        assert len(outcome.call.error.message) < 1000
    assert outcome.seconds < SECONDS


@pytest.mark.parametrize("api", [api for api in APIS if api.name != "gemini"], ids=lambda api: api.name)
def test_what_agents_send_is_passed_on_whole(api: Api) -> None:
    """This is the counterpart of all tests below. Gemini's requests are rewritten; tests/gateway/test_gemini.py."""
    body = {name: value for name, value in WHOLE[api.name].items() if name not in OURS}
    accepted = api.accept(WHOLE[api.name])
    assert accepted.fields == body
    assert set(accepted.dropped) <= {"metadata"}


ATTACKS: dict[str, tuple[str, bytes]] = {
    "a format that is searched for secrets": ("chat", odd("chat", ("response_format",), VALUES["long text"])),
    "a tool whose type is a list": ("chat", odd("chat", ("tools",), b'[{"type":["x"]}]')),
    "content that is a number": ("chat", odd("chat", ("messages", 1, "content"), b"5")),
    "content that is a list of lists": ("chat", odd("chat", ("messages", 1, "content"), b'[["x"]]')),
    "a temperature without end": ("chat", odd("chat", ("temperature",), b"1e999")),
    "a bound without end": ("messages", odd("messages", ("max_tokens",), b"1e999")),
    "a number without end in a schema": (
        "chat",
        odd("chat", ("tools", 0, "function", "parameters", "properties"), b'{"a": {"maximum": 1e999}}'),
    ),
    "a number without end in a call": (
        "messages",
        odd("messages", ("messages", 1, "content", 1, "input"), b'{"a": 1e999}'),
    ),
    "digits without end in a call": (
        "messages",
        odd("messages", ("messages", 1, "content", 1, "input"), b'{"a": ' + b"9" * 5000 + b"}"),
    ),
    "a role of a megabyte": ("chat", odd("chat", ("messages", 0, "role"), VALUES["long text"])),
    "a type of a megabyte": ("responses", odd("responses", ("input", 0, "type"), VALUES["long text"])),
    "a tool's type of a megabyte": ("responses", odd("responses", ("tools", 0, "type"), VALUES["long text"])),
    "a tool's name of a megabyte": ("messages", odd("messages", ("tools", 0, "name"), VALUES["long text"])),
    "an effort of a megabyte": ("responses", odd("responses", ("reasoning", "effort"), VALUES["long text"])),
    "a choice of a megabyte": ("chat", odd("chat", ("tool_choice",), VALUES["long text"])),
    "a model of a megabyte": ("chat", odd("chat", ("model",), VALUES["long text"])),
    "a field with a name of a megabyte": (
        "chat",
        b'{"' + b"x" * LONG + b'": 1, "messages": [{"role": "user", "content": "x"}]}',
    ),
    "a thousand unknown fields": (
        "chat",
        json.dumps(WHOLE["chat"] | {f"field {number}": number for number in range(1000)}).encode(),
    ),
    "a thousand kinds of tools": (
        "chat",
        json.dumps(WHOLE["chat"] | {"tools": [{"type": f"t{number}"} for number in range(1000)]}).encode(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", ATTACKS)
def test_what_once_made_the_gateway_fail_is_the_agents_error(
    trials: Attacked, case: str, provider: str
) -> None:
    api, body = ATTACKS[case]
    outcome = trials.ask(api, body, provider)
    check(outcome)
    assert len(outcome.call.dropped) <= 100
    assert sum(map(len, outcome.call.dropped)) < 10_000


FIELDS = [
    pytest.param(api, path, list(VALUES)[number % 9 :: 3 if len(path) == 1 else 9], id=f"{api}-{path}")
    for number, (api, path) in enumerate((api, path) for api, whole in WHOLE.items() for path in paths(whole))
]
"""Every field with some of the values in turn: all combinations are 7,000 requests."""


@pytest.mark.parametrize(("api", "path", "values"), FIELDS)
def test_an_odd_value_is_the_agents_error_at_once(
    trials: Attacked, api: str, path: tuple[str | int, ...], values: list[str]
) -> None:
    for value in values:
        provider = PROVIDERS[len(value) % len(PROVIDERS)]
        check(trials.ask(api, odd(api, path, VALUES[value]), provider))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("api", WHOLE)
def test_requests_with_several_odd_values_are_the_agents_error(
    trials: Attacked, api: str, provider: str
) -> None:
    """Values replace others, fields vanish, and odd ones are added."""
    chance = random.Random(f"{api} {provider}")  # the same requests each time
    places = list(paths(WHOLE[api]))
    small = [value for value in VALUES.values() if len(value) < 10_000]
    for _ in range(60):
        body: Any = WHOLE[api]
        for path in chance.sample(places, 3):
            value = body
            try:
                for key in chance.choice(places):
                    value = value[key]
                body = replaced(body, path, value)
            except (AttributeError, IndexError, KeyError, TypeError):
                continue  # an earlier change has removed the place
        content = json.dumps(body).encode()
        if chance.random() < 0.5:
            content = content.replace(b'"x"', chance.choice(small), 1)
        check(trials.ask(api, content, provider))


WRITTEN: dict[str, tuple[bytes, dict[str, str]]] = {
    "nothing": (b"", {}),
    "a blank": (b" ", {}),
    "null": (b"null", {}),
    "a text": (b'"x"', {}),
    "a list": (b"[]", {}),
    "an empty object": (b"{}", {}),
    "two objects": (b"{}{}", {}),
    "an object and more": (b"{} x", {}),
    "half an object": (b'{"messages": [', {}),
    "no UTF-8": (b'{"messages": "\xff\xfe"}', {}),
    "UTF-16": (json.dumps(PLAIN["chat"]).encode("utf-16"), {}),
    "a byte order mark": (b"\xef\xbb\xbf" + json.dumps(PLAIN["chat"]).encode(), {}),
    "NUL": (b"\0" * 1000, {}),
    "compressed": (gzip.compress(json.dumps(PLAIN["chat"]).encode()), {"content-encoding": "gzip"}),
    "a form": (b"messages=x", {"content-type": "application/x-www-form-urlencoded"}),
    "XML": (b"<messages/>", {"content-type": "text/xml"}),
    "comments": (b"{/* */}", {}),
    "deep": (b"[" * 100_000, {}),
    "deep objects": (b'{"a":' * 100_000, {}),
    "many values": (b'{"messages": [' + b"0," * 60_000 + b"0]}", {}),
    "17 MB": (b'{"messages": "' + b"x" * (17 << 20) + b'"}', {}),
}


@pytest.mark.parametrize("case", WRITTEN)
@pytest.mark.parametrize("api", PLAIN)
def test_a_body_that_is_no_request_is_the_agents_error(trials: Attacked, api: str, case: str) -> None:
    body, headers = WRITTEN[case]
    outcome = trials.ask(api, body, **headers)
    check(outcome)
    assert outcome.status in (400, 413)


@pytest.mark.parametrize("kind", ["text/plain", "application/octet-stream", "multipart/form-data", "x", ""])
@pytest.mark.parametrize("api", PLAIN)
def test_what_a_body_is_called_does_not_matter(trials: Attacked, api: str, kind: str) -> None:
    outcome = trials.ask(api, PLAIN[api], **{"content-type": kind})
    check(outcome)
    assert outcome.status == 200


@pytest.mark.parametrize("api", [api for api in WHOLE if api != "gemini"])
def test_an_error_names_the_field_and_repeats_nothing_of_it(trials: Attacked, api: str) -> None:
    secret = "what the agent wrote"
    name = "input" if api == "responses" else "messages"
    outcome = trials.ask(api, WHOLE[api] | {name: [{"role": "user", "content": [{"type": secret}]}]})
    assert outcome.status == 400
    assert outcome.answer["error"]["type"] == "invalid_request_error"
    assert outcome.answer["error"]["message"].startswith(f"{name}[0].content[0].type: ")
    assert secret not in str(outcome.answer)


UNSENDABLE: dict[str, tuple[str, Json]] = {
    "nothing but a system message": ("chat", {"messages": [{"role": "system", "content": "x"}]}),
    "a schema without a schema": (
        "chat",
        PLAIN["chat"] | {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
    ),
    "a tool without a type": ("chat", PLAIN["chat"] | {"tools": [{"function": {"name": "x"}}]}),
    "a schema in a circle": (
        "responses",
        PLAIN["responses"]
        | {
            "tools": [
                {"name": "x", "parameters": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}}
            ]
        },
    ),
}


@pytest.mark.parametrize("case", UNSENDABLE)
def test_what_litellm_cannot_send_is_the_agents_error_at_once(trials: Attacked, case: str) -> None:
    """Their form is correct, but they cannot be translated for this provider."""
    api, body = UNSENDABLE[case]
    outcome = trials.ask(api, body, "anthropic/x")
    check(outcome)
    assert (outcome.status, outcome.call.attempts) == (400, 0)
    assert outcome.answer["error"]["type"] == "invalid_request_error"
    assert "Traceback" not in str(outcome.answer)


FULL: dict[str, Json] = {
    "one picture": WHOLE["chat"]
    | {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "eHh4" * 3_900_000}}
                ],
            }
        ]
    },
    "one text": {"messages": [{"role": "user", "content": "x" * 15_600_000}]},
    "many texts": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 600}] * 12}] * 1300
    },
    "a wide schema": WHOLE["chat"]
    | {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "x",
                    "parameters": {"properties": {f"p{n}": {"type": "string"} for n in range(15_000)}},
                },
            }
        ]
    },
}


@pytest.mark.parametrize("case", FULL)
def test_the_largest_requests_are_looked_at_in_no_time(case: str) -> None:
    """The loop that checks requests serves every trial. Measured in CPU time, since the machine may be busy."""
    began = time.thread_time()
    CHAT.accept(FULL[case])
    assert time.thread_time() - began < 0.3


def test_the_names_of_what_is_left_out_are_short_and_can_be_shown(trials: Attacked) -> None:
    """Names of the agent's choosing stand in the ledger and on a terminal."""
    outcome = trials.ask("chat", PLAIN["chat"] | {"\x1b]0;x\x07": 1, "é\u202e": 2, "\u0000" * 100_000: 3})
    assert outcome.call.dropped == ("??", "?" * 64, "?]0;x?")
