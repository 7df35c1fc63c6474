"""A recorded trial is replayed: same answers for same requests, a readable difference for others, and no keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.errors import ConfigError
from runner.gateway import Session
from runner.gateway.cassette import MISMATCH, digest, find, keep_digests, lines, sealed, tape, write_tape
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.gateway.http import CHAT
from runner.records import Model, ModelCall
from runner.records.trial_files import LEDGER, SHARED
from tests.gateway.conftest import Http, Json, Open
from tests.support.records_factory import model_call

BEHAVIOURS = (
    Behaviour(calls=(("sh", '{"c": "ls"}'),)),
    Behaviour(status_code=400),
    Behaviour(text="Done."),
)
FORMS: dict[str, Callable[[str], Json]] = {
    "chat/completions": lambda text: {"messages": [{"role": "user", "content": text}]},
    "responses": lambda text: {"input": [{"role": "user", "content": text}]},
    "messages": lambda text: {"max_tokens": 50, "messages": [{"role": "user", "content": text}]},
}


def _record(session: Open, http: Http, folder: Path, path: str, *texts: str) -> tuple[Path, list[Json]]:
    """Record a trial with these texts. Return its tape and the bodies of its answers."""
    with FakeUpstream(*BEHAVIOURS) as upstream:
        trial = session(upstream.url, name="recorded")
        answers = [http(trial).post(f"/v1/{path}", json=FORMS[path](text)) for text in texts]
    into = tape(folder, "codex·m·d·default", "greet", 1)
    write_tape(trial.spec.ledger.parent, into)
    return into, [answer.json() for answer in answers if answer.is_success]


def _replay(session: Open, recording: Path, **fields: Any) -> Session:
    model = {
        "id": "cassette/replay",
        "backend": "cassette",
        "api_key_env": None,
        "path": recording.parents[2],
    }
    return session(name="replayed", cassette=recording, **model | fields)


@pytest.mark.parametrize("path", FORMS)
def test_the_same_requests_get_the_same_answers_for_nothing(
    session: Open, http: Http, tmp_path: Path, path: str
) -> None:
    recording, answered = _record(session, http, tmp_path, path, "one", "failed", "two")
    trial = _replay(session, recording)
    agent = http(trial)
    replayed = [agent.post(f"/v1/{path}", json=FORMS[path](text)).json() for text in ("one", "two")]
    assert replayed == answered
    assert all(call.replayed and call.model == "cassette/replay" for call in trial.calls)
    assert (trial.meter.usage.input_tokens, trial.meter.turns) == (2000, 2)
    assert agent.post(f"/v1/{path}", json=FORMS[path]("two")).status_code == 403, "each is played once"


def test_calls_that_a_trial_shared_are_on_its_tape(session: Open, http: Http, tmp_path: Path) -> None:
    """Chance decides which of several trials asks, and that one may belong to another sweep."""
    asker, answered = _record(session, http, tmp_path / "asker", "chat/completions", "one", "failed", "two")
    folder = tmp_path / "trial"
    folder.mkdir()
    into = tape(tmp_path, "codex·m·d·default", "other", 1)
    write_tape(folder, into)
    assert not into.exists(), "it called nothing and shared nothing"
    (folder / SHARED).write_bytes(asker.read_bytes())
    write_tape(folder, into)
    trial = http(_replay(session, into))
    form = FORMS["chat/completions"]
    assert [trial.post("/v1/chat/completions", json=form(text)).json() for text in ("one", "two")] == answered
    (folder / LEDGER).write_bytes(asker.read_bytes())
    write_tape(folder, into)
    calls = [ModelCall.model_validate_json(line) for line in into.read_bytes().splitlines()]
    assert [call.index for call in calls] == [0, 1, 2, 3], "no number stands for two calls"


def test_an_agent_is_told_the_name_of_the_recorded_model(session: Open, http: Http, tmp_path: Path) -> None:
    recording, _ = _record(session, http, tmp_path, "chat/completions", "one")
    assert _replay(session, recording).endpoint.model == "x"


def test_a_stream_is_replayed_as_a_stream(session: Open, http: Http, tmp_path: Path) -> None:
    recording, _ = _record(session, http, tmp_path, "chat/completions", "one")
    trial = _replay(session, recording)
    asked = FORMS["chat/completions"]("one") | {"stream": True, "max_tokens": 7}
    assert "data: [DONE]" in http(trial).post("/v1/chat/completions", json=asked).text


def test_parallel_calls_may_come_in_another_order(session: Open, http: Http, tmp_path: Path) -> None:
    recording, (first, last) = _record(session, http, tmp_path, "responses", "one", "failed", "two")
    agent = http(_replay(session, recording))
    assert agent.post("/v1/responses", json=FORMS["responses"]("two")).json() == last
    assert agent.post("/v1/responses", json=FORMS["responses"]("one")).json() == first


def test_another_request_fails_with_the_difference(session: Open, http: Http, tmp_path: Path) -> None:
    text = "Please\nlist all\nfiles." + json.dumps({"output": "many\nlines"})
    recording, _ = _record(session, http, tmp_path, "chat/completions", text)
    trial = _replay(session, recording)
    answer = http(trial).post(
        "/v1/chat/completions", json=FORMS["chat/completions"](text.replace("all", "no"))
    )
    assert answer.status_code == 403
    (call,) = trial.calls
    assert call.error is not None
    assert call.error.type == MISMATCH
    difference = call.error.message.splitlines()
    changed = [line.replace(" ", "") for line in difference if line[0] in "-+"]
    assert changed[2:] == ['-"listall",', '+"listno",']
    assert "recorded call 0" in difference[1]
    assert (trial.meter.turns, trial.meter.cost_usd) == (0, 0.0)


def test_nearest_answers_as_the_most_similar_request_was_and_says_so(
    session: Open, http: Http, tmp_path: Path
) -> None:
    texts = ("a\nb\nc\nd", "failed", "x\ny\nz\nw")
    recording, (_, last) = _record(session, http, tmp_path, "chat/completions", *texts)
    trial = _replay(session, recording, mismatch="nearest")
    answer = http(trial).post("/v1/chat/completions", json=FORMS["chat/completions"]("x\ny\nz\nv"))
    assert answer.json() == last
    (call,) = trial.calls
    assert (call.status_code, call.error and call.error.type) == (200, MISMATCH)


def test_a_cassette_of_digests_quotes_no_request_and_replays_as_well(
    session: Open, http: Http, tmp_path: Path
) -> None:
    recording, answered = _record(session, http, tmp_path, "chat/completions", "their words", "failed", "two")
    keep_digests(recording, CHAT, {})
    assert b"their words" not in recording.read_bytes()
    agent = http(_replay(session, recording))
    replayed = [
        agent.post("/v1/chat/completions", json=FORMS["chat/completions"](text)).json()
        for text in ("their words", "two")
    ]
    assert replayed == answered
    trial = _replay(session, recording)
    assert http(trial).post("/v1/chat/completions", json=FORMS["chat/completions"]("no")).status_code == 403
    (call,) = trial.calls
    assert call.error is not None
    assert "recorded as a digest alone" in call.error.message


def test_no_key_is_on_a_cassette(session: Open, http: Http, tmp_path: Path, canary: str) -> None:
    """Neither the provider's key, which an upstream echoes, nor the trial's, which an agent shows to its model."""
    with FakeUpstream(
        Behaviour(text=f"You sent {canary}."), Behaviour(status_code=400, message=canary)
    ) as upstream:
        trial = session(upstream.url, name="recorded")
        body = FORMS["chat/completions"](f"env says OPENAI_API_KEY={trial.key}")
        agent = http(trial)
        for _ in range(2):
            agent.post("/v1/chat/completions", json=body)
    trial.close()
    write_tape(trial.spec.ledger.parent, tmp_path / "tapes/1.jsonl")
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) == 2
    assert upstream.keys == [f"Bearer {canary}"] * 2
    for content in written:
        assert canary.encode() not in content
        assert trial.key.encode() not in content
        assert b"OPENAI_API_KEY=[key]" in content
    # A replay has another key, but the request counts as the same.
    again = _replay(session, tmp_path / "tapes/1.jsonl", path=tmp_path)
    asked = FORMS["chat/completions"](f"env says OPENAI_API_KEY={again.key}")
    assert http(again).post("/v1/chat/completions", json=asked).status_code == 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2031-03-14T08:41:07Z INFO", "2031-04-15T09:00:00.125+01:00 INFO"),
        ("Sat Nov 21 23:59:59 UTC 2026", "Sun Nov 22 00:00:01 UTC 2026"),
        ("-rw-r--r-- 1 agent agent 5 Nov 21 23:59 a", "-rw-r--r-- 1 agent agent 5 Dec  2 00:01 a"),
        ("real\t0m1.411s", "real\t0m0.950s"),
        ("3 passed in 0.12s", "3 passed in 11.5s"),
        ("Wall time: 0.0631 seconds", "Wall time: 1.2 seconds"),
        ("Chunk ID: ceadd5", "Chunk ID: 0000aa"),
        ("msg_01a2008a-3b9d-7812-840e-6e504f3755c8", "msg_01a2008b-00ae-7933-8356-496eb2192b7b"),
        ("host 6fe1b2c3d4e5", "host 0123456789ab"),
    ],
)
def test_what_differs_from_run_to_run_is_not_compared(one: str, other: str) -> None:
    first, second = ({"messages": [{"content": f"x {text} y"}]} for text in (one, other))
    assert digest(lines(first)) == digest(lines(second))


@pytest.mark.parametrize(
    ("one", "other"),
    [("12 files", "13 files"), ("exit 1", "exit 0"), ("v1.2.3", "v1.2.4"), ("port 80", "port 81")],
)
def test_what_an_agent_decides_upon_is_compared(one: str, other: str) -> None:
    assert digest(lines({"messages": [one]})) != digest(lines({"messages": [other]}))


def test_bounds_and_names_of_sessions_are_not_compared() -> None:
    request: Json = {
        "input": "x",
        "max_output_tokens": 5,
        "prompt_cache_key": "a",
        "metadata": {"user_id": "b"},
    }
    assert lines(request) == lines({"input": "x"})


# --- which recording --------------------------------------------------------------------------------------------------


def _found(path: Path, attempt: int = 2) -> Path:
    model = Model(name="cassette", backend="cassette", path=path)
    return find(model, "codex", "d", "org/greet", attempt)


def _write(path: Path, *calls: ModelCall) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(call.model_dump_json() + "\n" for call in calls))


def test_a_trial_finds_its_recording(tmp_path: Path) -> None:
    ours = tape(tmp_path, "codex·gpt·d·tight", "org/greet", 2)
    for path in (ours, tape(tmp_path, "qwen·gpt·d·tight", "org/greet", 2)):
        _write(path, model_call())
    assert _found(tmp_path) == ours
    assert _found(ours.parents[1]) == ours, "model.path may end in one cell"
    with pytest.raises(ConfigError, match="no recording of codex on org/greet, attempt 1"):
        _found(tmp_path, attempt=1)
    _write(tape(tmp_path, "codex·glm·d·default", "org/greet", 2), model_call())
    with pytest.raises(ConfigError, match=r"several cells \(codex·glm·d·default, codex·gpt·d·tight\)"):
        _found(tmp_path)


def test_another_recording_is_another_model(tmp_path: Path) -> None:
    model = Model(name="cassette", backend="cassette", path=tmp_path)
    with pytest.raises(ConfigError, match="there is no recording in"):
        sealed(model)
    with pytest.raises(ConfigError, match="is not a folder"):
        sealed(model.model_copy(update={"path": tmp_path / "none"}))
    _write(tape(tmp_path, "c", "t", 1), model_call())
    before = sealed(model)
    assert sealed(model) == before
    _write(tape(tmp_path, "c", "t", 1), model_call(index=1))
    assert sealed(model) != before


def test_a_file_that_is_no_recording_is_named(session: Open, tmp_path: Path) -> None:
    wrong = tmp_path / "a/b/1.jsonl"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(json.dumps({"index": 0}) + "\n")
    with pytest.raises(ConfigError, match=r"1\.jsonl is not a recording: Field required"):
        _replay(session, wrong)
