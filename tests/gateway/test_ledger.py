"""The ledger loses no call to a crash."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from runner.gateway import ledger as module
from runner.gateway.ledger import Ledger
from runner.records import ModelCall, Usage

SECRET = "the-key-of-the-trial"


def _call(index: int) -> ModelCall:
    return ModelCall(
        index=index,
        api="chat",
        model="openai/x",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        latency_seconds=0.5,
        request={"text": "a\u2028b"},
        status_code=200,
        usage=Usage(input_tokens=3),
    )


def test_calls_come_back_in_the_order_of_arrival(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "deep" / "ledger.jsonl", SECRET)
    for index in (1, 0, 2):
        ledger.append(_call(index))
    ledger.close()
    assert ledger.calls() == (_call(0), _call(1), _call(2))


def test_a_call_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", SECRET)
    ledger.append(_call(0))
    assert ModelCall.model_validate_json((tmp_path / "ledger").read_text()) == _call(0)
    ledger.close()


def test_a_line_cut_by_a_crash_does_not_spoil_the_next(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "ledger", SECRET)
    first.append(_call(0))
    first.close()
    with (tmp_path / "ledger").open("a") as file:
        file.write('{"index": 1, "api"')
    second = Ledger(tmp_path / "ledger", SECRET)
    second.append(_call(7))
    second.close()
    assert second.calls() == (_call(7),)
    assert [
        ModelCall.model_validate_json(line).index for line in (tmp_path / "ledger").read_text().splitlines()
    ] == [0, 7]


def test_requests_without_an_answer_are_not_kept_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent with a spent budget wrote 36 MB a second."""
    monkeypatch.setattr(module, "UNANSWERED_BYTES", 5000)
    answered = _call(0).model_copy(update={"request": {"text": "x" * 9000}, "response": {"text": "y"}})
    refused = _call(0).model_copy(update={"request": {"text": "x" * 2000}, "refused": "usd"})
    ledger = Ledger(tmp_path / "ledger", SECRET)
    for call in (answered, refused, refused, refused, refused, answered):
        ledger.append(call)
    ledger.close()
    without = refused.model_copy(update={"request": {}})
    assert ledger.calls() == (answered, refused, refused, without, without, answered)


def test_the_trials_key_is_not_on_it_wherever_an_agent_says_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger", SECRET)
    ledger.append(_call(0).model_copy(update={"request": {SECRET: [f'"env\\n OPENAI_API_KEY={SECRET}"']}}))
    ledger.close()
    assert SECRET not in (tmp_path / "ledger").read_text()
    assert ledger.calls()[0].request == {"[key]": ['"env\\n OPENAI_API_KEY=[key]"']}
