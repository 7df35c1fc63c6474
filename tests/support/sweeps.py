"""Write finished sweeps to disk, and run commands on them in this process."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from runner.__main__ import main
from runner.records import PlannedRow, Scoring
from runner.resources import CONF
from runner.sweeps.store import Store
from tests.report.plans import record, row, write_sweep

AGENTS = ("codex", "kimi_cli", "mini_swe_agent")
MODELS = ("glm", "gpt", "qwen")
TIERS = ("easy", "medium", "hard")
AGENTMETER = Scoring.model_validate(yaml.safe_load((CONF / "scoring/agentmeter.yaml").read_text()))
"""Scoring of a command by default."""
TASKS = tuple(f"{tier}-{n}" for tier in TIERS for n in range(1, 5))


def passes(planned: PlannedRow) -> bool:
    """Return whether a trial passed. Better cells pass more tasks, and harder tasks pass less often."""
    skill = 2 * AGENTS.index(planned.agent) + 3 * MODELS.index(planned.model)
    return skill + 4 > 5 * TIERS.index(planned.tier) + int(planned.task[-1])


def finished_sweep(
    outputs: Path,
    name: str = "full",
    *,
    tasks: Iterable[str] = TASKS,
    passed: Callable[[PlannedRow], bool] = passes,
    dataset: str = "bench",
) -> Path:
    """Write a sweep of nine cells on twelve tasks, four of each tier, scored as AgentMeter does.

    Costs differ by model, and are higher on harder tasks.
    """
    rows = [row(a, task, model=m, dataset=dataset) for a in AGENTS for m in MODELS for task in tasks]
    planned = [
        each.model_copy(update={"key": f"{zlib.crc32(dataset.encode()):08x}{each.key[8:]}"}) for each in rows
    ]
    records = {}
    for at, each in enumerate(planned):
        size = 1 + TIERS.index(each.tier)
        cost = round(0.02 * size * (1 + MODELS.index(each.model)) * (1 + at % 3 / 10), 4)
        effort = {"cost_usd": cost, "turns": 3 * size + at % 2, "interactions": 4 * size + at % 3}
        records[each.key] = record(each, passed=passed(each), **effort)
    folder = write_sweep(outputs, planned, records, name=name)
    content = json.loads((folder / "sweep.json").read_text())
    content["scoring"] = AGENTMETER.model_dump(mode="json")
    (folder / "sweep.json").write_text(json.dumps(content))
    return folder


def forget(outputs: Path, *keys: str) -> None:
    """Remove records, as if their trials had not run."""
    for key in keys:
        (Store(outputs).folder(key) / "record.json").unlink()


class Ended(NamedTuple):
    """Result of a command."""

    code: int
    out: str
    err: str


class Cli:
    """`python -m runner WORD...` with its own `outputs`, tracked nowhere."""

    def __init__(
        self, outputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.outputs = outputs
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *words: str) -> Ended:
        """Run one command."""
        self._monkeypatch.setattr(sys, "argv", ["runner"])
        code = main([f"outputs={self.outputs}", "tracker=none", *words])
        return Ended(code, *self._capsys.readouterr())
