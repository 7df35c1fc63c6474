"""Parts of a trial's trace, as values that know no store."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from runner.records import ErrorInfo, Usage

Json = dict[str, Any]
Kind = Literal["TASK", "AGENT", "CHAT_MODEL", "TOOL", "EVALUATOR", "CHAIN"]
"""Kind of a span, in MLflow's words."""


class Cost(NamedTuple):
    """The cost of model calls in USD. The parts are None where no rates tell them."""

    total: float
    input: float | None = None
    output: float | None = None


class Step(NamedTuple):
    """One step of a trial: a span of its trace."""

    name: str
    kind: Kind
    started: int
    """Beginning, in nanoseconds since 1970."""
    ended: int
    parent: int | None
    """Position of the step that contains this one; None for the whole trial."""
    inputs: Json
    outputs: Json
    error: str = ""
    """Reason for its failure; empty if it did not fail."""
    model: str = ""
    """Model that answered, with its marks; empty if this is not a model call."""
    usage: Usage | None = None
    cost: Cost | None = None


class Judgement(NamedTuple):
    """The judgement of a verifier or a judge model on a trial: an assessment of its trace."""

    name: str
    value: bool | float | str | None
    """The judgement; None if there is none, for the reason in `error`."""
    source: str
    """Name of who judged."""
    is_model: bool = False
    """True if a language model judged."""
    rationale: str = ""
    error: ErrorInfo | None = None
    usage: Usage | None = None
    """Tokens of the judge model."""
    cost_usd: float | None = None


class Trace(NamedTuple):
    """A trial as it should be traced."""

    key: str
    """Key of the trial."""
    invalid: str
    """Reason why the trial says nothing about its configuration; empty if it does."""
    steps: tuple[Step, ...]
    """The whole trial first, and parents before their parts."""
    judgements: tuple[Judgement, ...]
    tags: dict[str, str]
