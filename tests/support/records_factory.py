"""Make plausible records, for tests of code that reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from runner.records import ModelCall, Status, TrialRecord, Usage

NOON = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def trial_record(key: str = "ab" * 16, **changed: Any) -> TrialRecord:
    """Return the record of a completed, passed trial, except for `changed`."""
    values: dict[str, Any] = {
        "key": key,
        "agent": "codex",
        "model": "glm",
        "dataset": "quickstart",
        "budget": "default",
        "task": "a",
        "attempt": 1,
        "tier": "easy",
        "category": "x",
        "language": "python",
        "status": Status.COMPLETED,
        "reward": 1.0,
        "passed": True,
        "started_at": NOON,
        "finished_at": NOON,
        "wall_seconds": 1.0,
    }
    return TrialRecord(**(values | changed))


def model_call(index: int = 0, **changed: Any) -> ModelCall:
    """Return an answered chat call of 10 + 5 tokens and 0.01 USD, except for `changed`."""
    values: dict[str, Any] = {
        "index": index,
        "api": "chat",
        "model": "openai/x",
        "started_at": NOON,
        "latency_seconds": 0.1,
        "request": {"messages": []},
        "response": {"choices": []},
        "status_code": 200,
        "usage": Usage(input_tokens=10, output_tokens=5),
        "cost_usd": 0.01,
    }
    return ModelCall(**(values | changed))
