"""Configuration that is data: models and prices, budgets and limits, scoring."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, field_validator

from runner.records.base import Record


class Rates(Record):
    """USD per **million** tokens. A rate that is None was not published: a cost that needs it is missing, not 0."""

    input: float | None = Field(default=None, ge=0)
    """Fresh input: X - A - H."""
    output: float | None = Field(default=None, ge=0)
    cache_creation: float | None = Field(default=None, ge=0)
    cache_hit: float | None = Field(default=None, ge=0)


class PriceTier(Rates):
    """What a call costs whose input is longer."""

    above_input_tokens: int = Field(ge=0)
    """Of calls with more input than this (X, caches included), every token is charged at these rates."""


class Prices(Rates):
    """Rates of one model, and those of its long calls."""

    tiers: tuple[PriceTier, ...] = ()
    """Ascending. A rate that a tier lacks is missing there; that of shorter calls does not stand in for it."""
    source: str = ""
    """Where the rates come from."""
    date: str = ""
    """When they were read, ISO date."""

    @field_validator("tiers")
    @classmethod
    def _ascend(cls, tiers: tuple[PriceTier, ...]) -> tuple[PriceTier, ...]:
        bounds = [tier.above_input_tokens for tier in tiers]
        if bounds != sorted(set(bounds)):
            raise ValueError("above_input_tokens must rise from tier to tier")
        return tiers

    @property
    def known(self) -> bool:
        """Whether there is a price for input and for output, whatever a call's length."""
        return all(rates.input is not None and rates.output is not None for rates in (self, *self.tiers))

    @property
    def free(self) -> bool:
        """Whether every rate is zero: no call costs anything."""
        rates = [getattr(each, name) for each in (self, *self.tiers) for name in Rates.model_fields]
        return self.known and not any(rates)


def name_told(model_id: str) -> str:
    """The last part of a litellm id: what the provider itself calls the model."""
    return model_id.rpartition("/")[2]


PREFLIGHT_SMALLEST: Final = 16
"""Output tokens that a smallest call asks for at most. Fewer are refused by some providers."""
PREFLIGHT_OUTPUT: Final = 16_384
"""The same where a provider refuses that bound, as for models that think first."""
BOUNDS: Final = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "n"})
"""Parameters by which a model writes more or less."""


class Model(Record):
    """An LLM endpoint with prices. Holds the *name* of the variable with the key, never the key."""

    name: str
    """The word typed on the command line; what leaderboards show."""
    backend: Literal["provider", "scripted", "cassette", "none"] = "provider"
    """provider: litellm. scripted: a deterministic policy, no language model. cassette: a recorded run, replayed.
    none: for agents that use no model."""
    id: str = ""
    """litellm model id, `provider/model`."""
    api_key_env: str | None = None
    api_base: str | None = None
    policy: Path | None = None
    """Scripted only: YAML file of turns per task."""
    path: Path | None = None
    """Cassette only: folder that a run with `record=` wrote."""
    mismatch: Literal["fail", "nearest"] = "fail"
    """Cassette only: what a request gets that was not recorded: an error, or the answer to the most similar one."""
    recording: str = ""
    """Cassette only: digest of all below `path`, filled in at the door, so that another recording is another trial."""
    context_window: int | None = Field(default=None, ge=1)
    """Tokens; told to the agent so that it compacts at the right time."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    stream: Literal["collect", "through"] = "collect"
    """What becomes of a call that its agent wants streamed. collect: the provider is asked for the whole answer, and a
    failure on its way is tried again. through: the provider streams, and its events reach the agent as they come, where
    both speak the same API; any other call is collected, and says `stream` in `dropped`."""
    params: dict[str, Any] = {}
    """Sent with each call as it is (temperature, reasoning effort, ...); no bounds on output, which the gateway
    sets by what a budget has left."""
    prices: Prices = Prices()

    @field_validator("params")
    @classmethod
    def _leave_the_bounds(cls, params: dict[str, Any]) -> dict[str, Any]:
        if named := sorted(params.keys() & BOUNDS):
            raise ValueError(
                f"{', '.join(named)} would undo what a budget allows; set model.max_output_tokens"
            )
        return params

    @property
    def preflight_output(self) -> int:
        """Output tokens of a smallest call at most, if the model must think first."""
        return min(self.max_output_tokens or PREFLIGHT_OUTPUT, PREFLIGHT_OUTPUT)

    @property
    def scripted(self) -> bool:
        """Whether this is no language model at all; shown wherever the model is shown."""
        return self.backend == "scripted"

    @property
    def replayed(self) -> bool:
        """Whether its answers are those of an earlier run; shown wherever the model is shown."""
        return self.backend == "cassette"

    @property
    def told(self) -> str:
        """What agents are told it is called: its provider's word, from which they know its window and its tools."""
        return name_told(self.id)


class SpendLimits(Record):
    """What may be spent. None means no limit of that kind."""

    usd: float | None = Field(default=None, ge=0)
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    turns: int | None = Field(default=None, ge=0)
    """Model calls that are answered."""
    wall_seconds: float | None = Field(default=None, ge=0)
    """Of a trial's rollout, or since a sweep began."""


class Budget(SpendLimits):
    """What one trial may spend."""

    name: str = "default"


class Judge(Record):
    """A language model that verifiers ask what no rule can say, and what its answers may cost."""

    model: Model
    usd: float = Field(gt=0)
    """USD that the questions of one trial may cost; apart from the agent's budget."""
    at_once: int = Field(default=4, ge=1)
    """Questions of one trial under way at once."""

    @field_validator("model")
    @classmethod
    def _is_a_language_model(cls, model: Model) -> Model:
        if model.backend != "provider":
            raise ValueError("a judge is a provider's model: no script, no recording, not none")
        return model


class CallLimit(Record):
    """How fast a provider may be called; a call waits for its turn. None means no limit."""

    concurrency: int | None = Field(default=None, ge=1)
    """Calls at a provider at once; one that waits before its next try is not there."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Requests begun in any 60 s, repetitions included."""


class CallLimits(CallLimit):
    """How a run treats model providers: limits of the calls of all trials together, and what a refusal leads to."""

    providers: dict[str, CallLimit] = {}
    """First part of a model's id (`openai`, `zai`) -> limit of all models of that provider."""
    preflight: bool = True
    """Ask each model once, by each API that its agents speak, before the first trial; refuse the run if one fails."""
    refusals: int | None = Field(default=3, ge=1)
    """Consecutive trials that a model's provider refuses, after which the model's remaining trials are not started.
    None starts them all."""


class Endpoint(Record):
    """What an agent is told about its model, as seen from inside its sandbox."""

    base_url: str
    """Origin without `/v1`."""
    key: str
    """The trial's own key: opens nothing but this trial, and is dead when it ends."""
    model: str
    context_window: int | None = None
    max_output_tokens: int | None = None


class TierScoring(Record):
    """What AMS needs of one tier (AgentMeter Table 1)."""

    budgets: tuple[float, ...] = Field(min_length=1)
    """B_g: USD per trial, ascending."""
    tau: float = Field(ge=0)
    """τ_g: USD above which a failure counts as expensive."""
    weight: float = Field(default=1.0, ge=0)
    """0 leaves the tier out of AMS."""

    @field_validator("budgets")
    @classmethod
    def _rising(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if list(budgets) != sorted(budgets) or budgets[0] < 0:
            raise ValueError("budgets rise, from 0 on")
        return budgets


class Scoring(Record):
    """How records become scores. No part of a trial's key: changing it never re-runs a trial."""

    name: str
    alpha: float = Field(default=0.6, ge=0, le=1)
    tiers: dict[str, TierScoring]
    labels: dict[str, str] = {}
    """Task -> tier, which a tiers file fixed (`job=calibrate`); empty: each task's own tier."""
    calibrated: str = ""
    """Tiers file that `tiers` and `labels` are from, `name@digest`; empty when there is none."""
    attempts: str = "mean"
    """Which attempts of one (cell, task) count: all valid ones equally; `latest_completed`, the last one of them
    (AgentMeter section 3.5); or `pass@k`, the best of k at the price of k."""
    resamples: int = Field(default=2000, ge=1)
    """Bootstrap resamples over tasks."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    seed: int = Field(default=0, ge=0)

    @property
    def title(self) -> str:
        """Its name, with the tiers file if there is one."""
        file, _, digest = self.calibrated.partition("@")
        return f"{self.name} {file}@{digest[:8]}" if file else self.name

    def taking(self, other: Scoring, keys: Iterable[str]) -> Scoring:
        """This scoring with the values that `other` has at dotted `keys`, and nothing else of it. A tiers file is a
        value of `tiers`: its labels come with it.
        """
        own, theirs = self.model_dump(), other.model_dump()
        whole = {"tiers": ("tiers", "labels", "calibrated")}
        for changed in (part for key in keys for part in whole.get(key, (key,))):
            *path, last = changed.split(".")
            node, source = own, theirs
            for name in path:
                source = source[name]
                node = node.setdefault(name, dict(source))  # a tier that this one lacks comes whole
            node[last] = source[last]
        return Scoring.model_validate(own)

    def scaled(self, alpha: float, factor: float) -> Scoring:
        """This scoring with another alpha, and with budgets and thresholds times `factor`."""
        tiers = {
            name: tier.model_copy(
                update={"budgets": tuple(factor * of for of in tier.budgets), "tau": factor * tier.tau}
            )
            for name, tier in self.tiers.items()
        }
        name = self.name if factor == 1 else f"{self.name} budgets x{factor:g}"
        return self.model_copy(update={"name": name, "alpha": alpha, "tiers": tiers})

    @field_validator("attempts")
    @classmethod
    def _is_a_rule(cls, attempts: str) -> str:
        if not re.fullmatch(r"latest_completed|mean|pass@[1-9][0-9]*", attempts):
            raise ValueError("there are latest_completed, mean and pass@1, pass@2, ...")
        return attempts

    @field_validator("tiers")
    @classmethod
    def _some_tier_counts(cls, tiers: dict[str, TierScoring]) -> dict[str, TierScoring]:
        if not any(tier.weight for tier in tiers.values()):
            raise ValueError("no tier has a weight above 0, so there would be no score")
        return tiers
