"""A made-up sweep on disk: a plan, its records, and what a real sweep leaves beside them."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from runner.records import (
    ErrorInfo,
    PhaseSeconds,
    PlannedRow,
    Retry,
    Scoring,
    Status,
    TierScoring,
    TrialRecord,
    Usage,
    Verdict,
)
from runner.sweeps.store import Store
from tests.support.records_factory import NOON, trial_record

SCORING = Scoring(
    name="test",
    tiers={
        "easy": TierScoring(budgets=(0.01, 0.02), tau=0.02),
        "hard": TierScoring(budgets=(0.1, 0.2), tau=0.15),
    },
    resamples=200,
)
TASKS = ("easy-1", "easy-2", "easy-3", "hard-1", "hard-2", "hard-3")
SKILL = {"oracle": 6, "nop": 0, "codex": 4, "mini_swe_agent": 3}
"""Tasks that each agent passes."""


def row(agent: str, task: str, **changed: Any) -> PlannedRow:
    """A planned trial; its key is a digest of agent, model, task and attempt."""
    model = changed.get("model") or ("none" if agent in ("oracle", "nop") else "scripted_careful")
    identity = f"{agent} {model} {task} {changed.get('attempt', 1)}"
    return PlannedRow(
        key=hashlib.sha256(identity.encode()).hexdigest()[:32],
        agent=agent,
        model=model,
        **{
            "dataset": "quickstart",
            "budget": "default",
            "task": task,
            "attempt": 1,
            "tier": task.split("-", 1)[0],
            "category": "repair",
            "language": "python",
            "scripted": model.startswith("scripted"),
            **{key: value for key, value in changed.items() if key != "model"},
        },
    )


def record(planned: PlannedRow, *, passed: bool | None = True, **changed: Any) -> TrialRecord:
    """Return the record of a trial: dearer if it failed, free without a model; `passed` None is not judged."""
    free = planned.model == "none"
    reward = None if passed is None else float(passed)
    cost = 0.0 if free else 0.015 if passed else 0.16
    return trial_record(
        **planned.model_dump(exclude={"refused", "context_window"}),
        **{
            "reward": reward,
            "passed": passed,
            "verdict": None
            if reward is None
            else Verdict(reward=reward, components={"reward": reward, "build": 1.0}),
            "usage": Usage() if free else Usage(input_tokens=4000, cache_hit_tokens=1000, output_tokens=500),
            "cost_usd": cost,
            "turns": 0 if free else 5,
            "interactions": 0 if free else 4,
            "finished_at": NOON + timedelta(seconds=20),
            "wall_seconds": 20.0,
            "seconds": PhaseSeconds(environment=1, agent=15, verify=4),
            **changed,
        },
    )


def sweep_of_four(passed: dict[str, int] | None = None) -> tuple[list[PlannedRow], dict[str, TrialRecord]]:
    """Oracle, nop and two agents on six tasks, with one trial of each kind of trouble."""
    passed = {**SKILL, **(passed or {})}
    planned = [row(agent, task) for agent in SKILL for task in TASKS]
    planned += [row(agent, "hard-4", refused="It needs a GPU.") for agent in SKILL]
    records = {
        p.key: record(p, passed=TASKS.index(p.task) < passed[p.agent]) for p in planned if not p.refused
    }
    spoiled = Retry(reason=ErrorInfo(type="EngineError", message="gone"), cost_usd=0.25, wall_seconds=3)
    codex = {p.task: p for p in planned if p.agent == "codex"}
    records[codex["hard-3"].key] = record(
        codex["hard-3"],
        passed=None,
        status=Status.INFRA_INVALID,
        error=ErrorInfo(type="EngineError", message="The container\nis gone.", phase="agent"),
        retries=(spoiled,),
        cost_usd=0.5,
    )
    records[codex["hard-2"].key] = record(codex["hard-2"], passed=False, status=Status.TIMEOUT)
    mini = next(p for p in planned if p.agent == "mini_swe_agent" and p.task == "hard-3")
    del records[mini.key]
    return planned, records


def write_sweep(
    outputs: Path, planned: list[PlannedRow], records: dict[str, TrialRecord], name: str = "quickstart"
) -> Path:
    """The folder of a sweep as the sweep job leaves it, records and trajectories beside it."""
    store = Store(outputs)
    for each in records.values():
        store.write(each)
        (store.folder(each.key) / "trajectory.json").write_text(json.dumps({"steps": [], "task": each.task}))
    sweep = outputs / name
    sweep.mkdir(exist_ok=True)
    lock = {
        "schema_version": 1,
        "name": name,
        "created": NOON.isoformat(),
        "planned": [p.model_dump() for p in planned],
        "scoring": SCORING.model_dump(),
        "versions": {"assay": "0.1.0"},
    }
    (sweep / "sweep.json").write_text(json.dumps(lock))
    (sweep / "config.yaml").write_text("agent: codex\n")
    return sweep
