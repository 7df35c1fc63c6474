"""Trials tables for tests: rows with sensible defaults, so that a test states only the values that matter."""

from __future__ import annotations

from typing import Any

import pandas as pd

from runner.records import Scoring, TierScoring

SCORING = Scoring(
    name="small",
    tiers={
        "easy": TierScoring(budgets=(0.1, 0.2), tau=0.15),
        "hard": TierScoring(budgets=(1.0, 2.0, 3.0, 4.0), tau=2.5),
    },
    resamples=200,
)


def trial(task: str, reward: float | None = 1.0, cost: float | None = 0.05, **other: Any) -> dict[str, Any]:
    """Return one row; `task` is `<tier>-<anything>`, and a passed trial has reward 1."""
    row = {
        "cell": "a",
        "dataset": "d",
        "tier": task.split("-", maxsplit=1)[0],
        "task": task,
        "attempt": 1,
        "status": "completed" if reward is not None else "infra_invalid",
        "finished_at": "2026-01-01T00:00:00Z",
        "reward": reward,
        "passed": None if reward is None else reward >= 1,
        "tokens": 100,
        "cost_usd": cost,
        "turns": 3,
    }
    return {**row, **other}


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    """Return a trials table of these rows."""
    return pd.DataFrame(list(rows))


def line(frame: pd.DataFrame, key: Any) -> Any:
    """Return one row of a result as a Series, whose precise type pandas cannot tell."""
    return frame.loc[key]
