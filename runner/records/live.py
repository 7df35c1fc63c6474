"""The present state of a sweep that runs. Nothing is computed from these records, and losing them loses no result."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from runner.records.base import Record
from runner.records.settings import SpendLimits


class Activity(Record):
    """Present work of a running trial's agent, and what this try has spent so far."""

    doing: Literal["model", "tool", ""] = ""
    """model: it waits for its model. tool: it has the answer and runs what that asks for. Empty: neither is known."""
    text: str = ""
    """The tool call that the model made last, with its command, shortened. Other people's text."""
    turns: int = 0
    """Answered model calls."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """Cost in USD; None if any price is missing."""


class LiveTrial(Record):
    """A trial that runs."""

    key: str
    phase: str
    """Phase in a word for people, such as `agent`."""
    image: str = ""
    """Image that is being made for it; empty if none is."""
    started_at: datetime
    phase_since: datetime
    """Time at which the phase began."""
    activity: Activity = Activity()
    activity_since: datetime
    """Time at which `activity` changed last."""
    limits: SpendLimits = SpendLimits()
    """Limits on the rollout; its time limit is the smaller of the task's and the budget's."""


class LiveSweep(Record):
    """Content of `live.json`: the state of a sweep's process, written again while it runs."""

    host: str
    """Name of the machine of the sweep's process."""
    pid: int
    """Number of the process on that machine."""
    began: datetime
    """Time at which this command began; spend and time against the sweep's limits count from here."""
    written: datetime
    ended: datetime | None = None
    """Time at which the process was done; None while it runs, and for ever if it was killed."""
    doing: str = ""
    """Work that is being done beside trials; empty if nothing is."""
    total: int = 0
    """Number of trials that this command runs."""
    done: int = 0
    """Number of trials of this command that have ended."""
    left: str = ""
    """Estimate of the time left in words; empty if there is none."""
    waiting: int = 0
    """Number of trials that wait for the limits on model calls."""
    spent: dict[str, float] = {}
    """Kind of budget -> spend of this command as the sweep's limits count it: scripts and recordings are free."""
    limits: SpendLimits = SpendLimits()
    """Limits of the sweep."""
    running: tuple[LiveTrial, ...] = ()
    """Trials that are running, in the order in which they began."""
