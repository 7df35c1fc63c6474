"""Findings of `job=verify_ground_truth` about a Harbor task: the mode in which its solution passes and nothing fails.

It stands in `truth.json` in the task's folder. A dataset may also bring such findings for tasks of others, in one file
for all tasks (`dataset.modes`). Findings about other files of the task than those that are there do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from runner.errors import ConfigError
from runner.records import Beside, Record, VerifierSpec

TRUTH = "truth.json"
ModeName = Literal["separate", "shared", "beside", "live"]


class Tried(Record):
    """Rewards in one mode."""

    solution: tuple[float | None, ...]
    """Rewards of the task's solution, one for each run. A run without a verdict gives None."""
    nothing: tuple[float | None, ...] = ()
    """Rewards of an untouched machine; empty if the solution failed already."""
    reason: str = ""
    """End of the output of the first run that went wrong."""


class HarborTruth(Record):
    """The mode in which a task is judged, and what showed it."""

    digest: str = ""
    """Digest of the task's files that were tried. Empty if the findings hold for any files of that name."""
    mode: ModeName | None
    """First mode in which the solution passes in both runs and an untouched machine fails; None if there is none."""
    ports: tuple[int, ...] | None = None
    """TCP ports on which services of the solution listen, in mode beside; None if they are not known."""
    tried: dict[ModeName, Tried] = {}
    """Modes that were tried, the strictest first."""
    found_on: str = ""
    """Files and images that were tried, where they are not those beside which this stands."""
    by_hand: bool = False
    """True if nothing was tried: somebody read what the tests look at."""

    def applied(self, spec: VerifierSpec) -> VerifierSpec:
        """Return a verifier in this mode."""
        return in_mode(spec, self.mode, self.ports) if self.mode else spec

    @property
    def complaint(self) -> str | None:
        """Reason why the task cannot judge agents here; None if it can."""
        if self.mode:
            return None
        last = next(reversed(self.tried.values()), None)
        if last and last.nothing:
            return f"An untouched machine gets {last.nothing[0]}, as the solution does."
        return f"Its own solution fails here: {last.reason.strip() if last else 'it was not tried'}"


def in_mode(spec: VerifierSpec, mode: ModeName, ports: tuple[int, ...] | None = None) -> VerifierSpec:
    """Return a verifier that judges in this mode."""
    beside = Beside(ports=ports) if mode == "beside" else None
    return spec.model_copy(update={"keep_processes": mode == "live", "beside": beside})


def read_modes(file: Path) -> Mapping[str, HarborTruth]:
    """Return the findings of a file for all tasks, by the names of their folders. Raises `ConfigError`."""
    try:
        return TypeAdapter(dict[str, HarborTruth]).validate_python(
            yaml.safe_load(file.read_text("utf-8")) or {}
        )
    except (OSError, yaml.YAMLError, UnicodeDecodeError, ValidationError) as error:
        raise ConfigError(f"dataset.modes: {file} cannot be read: {error}") from error
