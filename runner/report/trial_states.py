"""The states of planned trials, in signs and words that need no colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd

from metrics.table import valid
from runner.report.trial_endings import refused


class State(NamedTuple):
    """The state of a trial."""

    sign: str
    """Sign of the state, a single character."""
    word: str
    """Name of the state, which is also its class in style sheets."""
    about: str
    """Meaning, for the legend."""


PASSED = State("✓", "passed", "the trial passed")
FAILED = State("✗", "failed", "it was judged and did not pass")
INVALID = State("!", "invalid", "it ran, and our side or a provider spoiled it: it says nothing")
IDLE = State("–", "planned", "it is planned and was not run")
REFUSED = State("R", "refused", "its task cannot be run here")
STATES = (PASSED, FAILED, INVALID, IDLE, REFUSED)


def states(trials: pd.DataFrame) -> list[State]:
    """Return the state of each row of a trials table."""
    table = {
        "valid": valid(trials).tolist(),
        "refused": refused(trials).tolist(),
        "ran": trials["ran"].tolist(),
        "damaged": trials["reason"].eq("record damaged").tolist(),
        "passed": trials["passed"].eq(other=True).fillna(value=False).tolist(),
    }
    return [_state(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True)]


def _state(row: Mapping[str, Any]) -> State:
    if row["refused"]:
        return REFUSED
    if row["valid"]:
        return PASSED if row["passed"] else FAILED
    return INVALID if row["ran"] or row["damaged"] else IDLE
