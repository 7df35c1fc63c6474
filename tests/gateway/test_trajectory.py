"""ATIF 1.8 from the ledger alone, the same for every API."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.trajectory import atif, tool_calls
from runner.trials.behaviour import terminal_use
from tests.gateway.answering import answering
from tests.gateway.atif import Trajectory
from tests.gateway.conftest import Http, Json, Open

BEHAVIOURS = (
    Behaviour(
        text="Two looks.", reasoning="I must look.", calls=(("sh", '{"c": "ls"}'), ("sh", '{"c": "pwd"}'))
    ),
    Behaviour(status_code=400),
    Behaviour(text="Done."),
)


def _chat(results: list[tuple[str, str]]) -> Json:
    calls = [
        {"id": key, "type": "function", "function": {"name": "sh", "arguments": "{}"}} for key, _ in results
    ]
    messages: list[Json] = [{"role": "user", "content": "go"}]
    if results:
        messages.append({"role": "assistant", "content": "Two looks.", "tool_calls": calls})
    messages += [
        {"role": "tool", "tool_call_id": key, "content": [{"type": "text", "text": text}]}
        for key, text in results
    ]
    return {"messages": messages}


def _responses(results: list[tuple[str, str]]) -> Json:
    items: list[Json] = [{"type": "message", "role": "user", "content": "go"}]
    items += [
        {"type": "function_call", "call_id": key, "name": "sh", "arguments": "{}"} for key, _ in results
    ]
    items += [{"type": "function_call_output", "call_id": key, "output": text} for key, text in results]
    return {"input": items}


def _messages(results: list[tuple[str, str]]) -> Json:
    calls = [{"type": "tool_use", "id": key, "name": "sh", "input": {}} for key, _ in results]
    answers = [
        {"type": "tool_result", "tool_use_id": key, "content": [{"type": "text", "text": text}]}
        for key, text in results
    ]
    messages: list[Json] = [{"role": "user", "content": "go"}]
    if results:
        messages += [{"role": "assistant", "content": calls}, {"role": "user", "content": answers}]
    return {"messages": messages, "max_tokens": 100}


@pytest.mark.parametrize(
    ("path", "body"), [("chat/completions", _chat), ("responses", _responses), ("messages", _messages)]
)
@pytest.mark.parametrize("model", ["openai/x", "zai/x", "anthropic/x"])
def test_a_trajectory(
    session: Open,
    http: Http,
    model: str,
    path: str,
    body: Callable[[list[tuple[str, str]]], Json],
) -> None:
    with FakeUpstream(*BEHAVIOURS) as upstream:
        trial = session(upstream.url, id=model)
        agent = http(trial)
        agent.post(f"/v1/{path}", json=body([]))
        agent.post(f"/v1/{path}", json=body([]))
        calls = tool_calls(trial.calls[0])
        agent.post(f"/v1/{path}", json=body([(calls[0].id, "a.txt"), (calls[1].id, "/work")]))
    document = atif(trial.calls, agent="codex", version="1.0", session_id="s", instruction="Please go.")
    Trajectory.model_validate_json(json.dumps(document, allow_nan=False))
    assert document["schema_version"] == "ATIF-v1.8"
    assert document["agent"] == {"name": "codex", "version": "1.0", "model_name": model}
    first, second, third = document["steps"]
    assert first == {"step_id": 1, "source": "user", "message": "Please go."}
    assert (second["step_id"], second["source"], second["message"]) == (2, "agent", "Two looks.")
    assert second["reasoning_content"] == "I must look."
    assert [call["arguments"] for call in second["tool_calls"]] == [{"c": "ls"}, {"c": "pwd"}]
    assert second["observation"]["results"] == [
        {"source_call_id": calls[0].id, "content": "a.txt"},
        {"source_call_id": calls[1].id, "content": "/work"},
    ]
    assert second["metrics"] == {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "cached_tokens": 400,
        "cost_usd": pytest.approx(0.0019),
    }
    assert (third["step_id"], third["message"]) == (3, "Done.")
    assert "tool_calls" not in third
    assert "observation" not in third
    assert document["final_metrics"] == {
        "total_prompt_tokens": 2000,
        "total_completion_tokens": 100,
        "total_cached_tokens": 800,
        "total_steps": 3,
        "total_cost_usd": pytest.approx(0.0038),
    }
    assert document["extra"] == {"unanswered_calls": 1, "scripted": False, "replayed": False}


def test_a_rollout_without_calls_is_its_instruction() -> None:
    document = atif((), agent="nop", version="1", session_id="s", instruction="Go.")
    Trajectory.model_validate(document)
    assert [step["step_id"] for step in document["steps"]] == [1]
    assert document["final_metrics"]["total_prompt_tokens"] == 0


def _broken(document: Json, *path: str | int, value: object) -> Json:
    """Return the document with one error in it."""
    copied: Any = json.loads(json.dumps(document))
    place = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return dict(copied)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), "ATIF-v1.7"),
        (("unknown",), 1),
        (("session_id",), None),
        (("steps", 0, "step_id"), 2),
        (("steps", 0, "metrics"), {}),
        (("steps", 0, "timestamp"), "yesterday"),
        (("steps", 0, "observation"), {"results": [{"source_call_id": "x"}]}),
    ],
)
def test_the_validator_sees_what_is_wrong(path: tuple[str | int, ...], value: object) -> None:
    document = atif((), agent="nop", version="1", session_id="s", instruction="Go.")
    wrong = _broken(document, *path, value=value)
    with pytest.raises(ValidationError):
        Trajectory.model_validate(wrong)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("chat/completions", {"function": {"name": None, "arguments": "{}"}}),
        ("responses", {"name": "bash", "arguments": "[" * 100_000}),
        ("responses", {"arguments": "{}"}),
    ],
    ids=["null for a name", "bottomless", "no name"],
)
def test_a_tool_call_that_makes_no_sense_is_on_the_record(
    session: Open, http: Http, path: str, answer: Json
) -> None:
    """Trajectories are built at the end of a trial, where a failure ended the whole sweep."""
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "type": "function"} | answer]}
    body = {
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "output": [{"type": "function_call", "call_id": "t"} | answer],
    }
    with answering(lambda _: {"id": "x", "model": "x", "created_at": 1, "status": "completed"} | body) as url:
        trial = session(url)
        asked = {"messages": [{"role": "user", "content": "x"}], "input": "x"}
        assert http(trial).post(f"/v1/{path}", json=asked).status_code == 200
    (calls,) = tool_calls(trial.calls[0])
    terminal_use([calls], ["execute"])
    document = atif(trial.calls, agent="a", version="1", session_id="s", instruction="i")
    Trajectory.model_validate_json(json.dumps(document, allow_nan=False))
