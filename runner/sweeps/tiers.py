"""Tiers files, which `job=calibrate` writes once and scoring takes as given (AgentMeter sections 3.4, 4.2)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from runner.records import Record, TierScoring
from runner.sweeps.yaml_files import read_yaml


class TiersFile(Record):
    """Labels and budgets of tiers, and the trials that they rest on."""

    schema_version: Literal[1] = 1
    dataset: str
    """Dataset of the trials. Not checked: a core set of the dataset has another name."""
    inputs: dict[str, str]
    """Source -> digest of the trials read from it."""
    cells: int
    trials: int
    """Number of valid trials."""
    unpriced: int
    """Number of valid trials whose cost is unknown. They count for the labels, but not for budgets and tau."""
    quantiles: tuple[float, ...]
    """Quantiles of the cost of a tier's valid trials, which are its budgets."""
    tau_quantile: float
    """Quantile of the cost of a tier's failed trials, which is its tau."""
    measures: tuple[str, ...] = ("tokens", "turns", "interactions")
    """Measures of effort beside success."""
    tiers: dict[str, TierScoring]
    labels: dict[str, str]
    """Task -> tier."""
    effort: dict[str, float]
    """Task -> effort E in [0, 100] (eq. 1), by which the labels were cut."""


def read_tiers(path: Path) -> dict[str, Any]:
    """Return the keys of `Scoring` that a tiers file fixes. Raises `ConfigError` if the file cannot be read as one."""
    found = read_yaml(path, TiersFile, "scoring.tiers")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"tiers": found.tiers, "labels": found.labels, "calibrated": f"{path.name}@{digest}"}
