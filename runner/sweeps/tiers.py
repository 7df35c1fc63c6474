"""Tiers files: what `job=calibrate` fixes once and scoring then takes as given (AgentMeter sections 3.4, 4.2)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from runner.records import Record, TierScoring
from runner.sweeps.yaml_files import read_yaml


class TiersFile(Record):
    """Labels and budgets, and what they were made of."""

    schema_version: Literal[1] = 1
    dataset: str
    """That it was calibrated on; for people, as a core set of it goes by another name."""
    inputs: dict[str, str]
    """Source -> digest of the trials that were read from it."""
    cells: int
    trials: int
    """Valid ones."""
    unpriced: int
    """Of them, those whose cost is unknown: in the labels, and not in budgets or tau."""
    quantiles: tuple[float, ...]
    """Of cost over a tier's valid trials: its budgets."""
    tau_quantile: float
    """Of cost over a tier's failed trials: its tau."""
    measures: tuple[str, ...] = ("tokens", "turns", "interactions")
    """What effort rests on beside success."""
    tiers: dict[str, TierScoring]
    labels: dict[str, str]
    """Task -> tier."""
    effort: dict[str, float]
    """Task -> E of eq. 1, in [0, 100]: what the labels were cut by."""


def read_tiers(path: Path) -> dict[str, Any]:
    """The keys of `Scoring` that a tiers file fixes. Raises `ConfigError` when it is none, or cannot be read."""
    found = read_yaml(path, TiersFile, "scoring.tiers")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"tiers": found.tiers, "labels": found.labels, "calibrated": f"{path.name}@{digest}"}
