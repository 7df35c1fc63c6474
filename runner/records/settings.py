"""Configuration as data: models and prices, budgets and limits, scoring."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from runner.records.base import ApiName, Record
from runner.records.servers import FREE, of_a_server

HOUR_SECONDS: Final = 3600


class Rates(Record):
    """USD per **million** tokens. A rate that is None was not published: a cost that needs it is missing, not 0."""

    input: float | None = Field(default=None, ge=0)
    """Rate of fresh input: X - A - H."""
    output: float | None = Field(default=None, ge=0)
    """Rate of output: Y."""
    cache_creation: float | None = Field(default=None, ge=0)
    """Rate of A."""
    cache_hit: float | None = Field(default=None, ge=0)
    """Rate of H."""


class PriceTier(Rates):
    """Rates of calls with long input."""

    above_input_tokens: int = Field(ge=0)
    """Input (X, caches included) above which every token of a call is charged at these rates."""


class Prices(Rates):
    """Rates of one model, including those of its long calls."""

    tiers: tuple[PriceTier, ...] = ()
    """Tiers in ascending order. A rate that a tier lacks is missing there; that of shorter calls does not
    replace it."""
    source: str = ""
    """Source of the rates."""
    date: str = ""
    """Date on which they were read (ISO)."""
    gpu_hour: float | None = Field(default=None, ge=0, exclude_if=lambda usd: usd is None)
    """USD per hour of the machine that serves the model, instead of rates per token: a call costs the seconds from its
    sending to its end at this price, divided by `calls_at_once`."""
    calls_at_once: int = Field(default=1, ge=1, exclude_if=lambda calls: calls == 1)
    """Number of calls among which an hour's price is divided, that is, how many the server usually works on at once. 1
    charges each call as if it had the machine to itself, which is never too little."""

    @model_validator(mode="before")
    @classmethod
    def _free(cls, prices: Any) -> Any:
        return FREE if prices == "free" else prices

    @model_validator(mode="after")
    def _by_one_measure(self) -> Prices:
        if self.gpu_hour is not None and (self.tiers or self.input is not None or self.output is not None):
            raise ValueError("gpu_hour is charged instead of rates per token: leave one of them out")
        return self

    @field_validator("tiers")
    @classmethod
    def _ascend(cls, tiers: tuple[PriceTier, ...]) -> tuple[PriceTier, ...]:
        bounds = [tier.above_input_tokens for tier in tiers]
        if bounds != sorted(set(bounds)):
            raise ValueError("above_input_tokens must rise from tier to tier")
        return tiers

    @property
    def known(self) -> bool:
        """Return whether there is a price per hour, or one for input and for output, whatever a call's length."""
        return self.gpu_hour is not None or all(
            rates.input is not None and rates.output is not None for rates in (self, *self.tiers)
        )

    @property
    def per_second(self) -> float | None:
        """USD of a second of a call, for a model that is priced by the hour; None for all others."""
        return None if self.gpu_hour is None else self.gpu_hour / HOUR_SECONDS / self.calls_at_once

    @property
    def free(self) -> bool:
        """Return whether every rate is zero, so that no call costs anything."""
        rates = [self.gpu_hour] + [
            getattr(each, name) for each in (self, *self.tiers) for name in Rates.model_fields
        ]
        return self.known and not any(rates)


def provider_name(model_id: str) -> str:
    """Return the last part of a litellm id: the provider's own name for the model."""
    return model_id.rpartition("/")[2]


PREFLIGHT_SMALLEST: Final = 16
"""Limit on the output tokens of a smallest call. Some providers refuse a lower one."""
PREFLIGHT_OUTPUT: Final = 16_384
"""The same limit for providers that refuse the smallest one, as for models that think first."""
BOUNDS: Final = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens", "n"})
"""Parameters that bound a model's output."""


SENT_AS: Final[dict[str, tuple[str, ...]]] = {"reasoning_effort": ("reasoning", "output_config")}
"""Parameter of a model -> its names in requests of other APIs than chat, whose names `params` have."""


class Model(Record):
    """An LLM endpoint with prices. Holds the *name* of the variable with the key, never the key."""

    name: str
    """Name on the command line and on leaderboards."""
    backend: Literal["provider", "scripted", "cassette", "none"] = "provider"
    """Source of answers. provider: litellm. scripted: a deterministic policy, no language model. cassette: a recorded
    run, replayed. none: for agents that use no model."""
    id: str = ""
    """litellm's model id, `provider/model`."""
    api_key_env: str | None = None
    """Name of the environment variable with the key; None sends no key."""
    more_env: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Names of further environment variables that litellm reads for this provider, such as a region's."""
    api_base: str | None = None
    """Address of the API; None means the provider's own."""
    base_url: str | None = Field(default=None, exclude=True)
    """Address of a server that speaks OpenAI's chat completions, such as vLLM or Ollama. It stands for `api_base` and
    litellm's prefix of `id`, which is then the server's own name of the model."""
    apis: tuple[ApiName, ...] = Field(default=(), exclude_if=lambda apis: not apis)
    """APIs that the server at `api_base` speaks; the gateway translates all others to chat. Empty: what litellm knows
    of the provider."""
    policy: Path | None = None
    """Scripted only: YAML file of turns per task."""
    path: Path | None = None
    """Cassette only: folder that a run with `record=` wrote."""
    mismatch: Literal["fail", "nearest"] = "fail"
    """Cassette only: answer to a request that was not recorded: an error, or the answer to the most similar one."""
    recording: str = ""
    """Cassette only: digest of everything below `path`, filled in when arguments are read, so that another recording is
    another trial."""
    context_window: int | None = Field(default=None, ge=1)
    """Context window in tokens. The agent is told so that it compacts at the right time."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """Limit on the output tokens of one call; None means the model's own."""
    stream: Literal["collect", "through"] = "collect"
    """Treatment of a call whose agent wants a stream. collect: the provider is asked for the whole answer,
    and a failure on the way is retried. through: the provider streams, and its events reach the agent as they come, if
    both speak the same API. Any other call is collected, and has `stream` in `dropped`."""
    params: dict[str, Any] = {}
    """Parameters sent with each call unchanged (temperature, reasoning effort, ...). Bounds on output are refused: the
    gateway sets them by what a budget has left."""
    prices: Prices = Prices()
    """Rates that turn tokens into USD."""

    @model_validator(mode="before")
    @classmethod
    def _at_a_server(cls, fields: Any) -> Any:
        return of_a_server(fields) if isinstance(fields, dict) and fields.get("base_url") else fields

    @field_validator("apis")
    @classmethod
    def _speaks_chat(cls, apis: tuple[ApiName, ...]) -> tuple[ApiName, ...]:
        if apis and "chat" not in apis:
            raise ValueError("chat must be among them, because all others are translated to it")
        return apis

    @field_validator("params")
    @classmethod
    def _leave_the_bounds(cls, params: dict[str, Any]) -> dict[str, Any]:
        if named := sorted(params.keys() & BOUNDS):
            raise ValueError(
                f"{', '.join(named)} would override the budget; set model.max_output_tokens instead"
            )
        return params

    def lost_params(self, dropped: Iterable[str]) -> tuple[str, ...]:
        """Return the names of `params` that did not reach the provider, by what was dropped of a call."""
        names = set(dropped)
        return tuple(name for name in self.params if not names.isdisjoint((name, *SENT_AS.get(name, ()))))

    @property
    def preflight_output(self) -> int:
        """Limit on the output tokens of a smallest call, if the model must think first."""
        return min(self.max_output_tokens or PREFLIGHT_OUTPUT, PREFLIGHT_OUTPUT)

    @property
    def scripted(self) -> bool:
        """Return whether this is a script instead of a language model. This is shown wherever the model is shown."""
        return self.backend == "scripted"

    @property
    def replayed(self) -> bool:
        """Return whether the answers come from an earlier run. This is shown wherever the model is shown."""
        return self.backend == "cassette"

    @property
    def provider_name(self) -> str:
        """Name that agents are given: the provider's own, by which they know the model's window and tools."""
        return provider_name(self.id)


class SpendLimits(Record):
    """Limits on spending. None means no limit of that kind."""

    usd: float | None = Field(default=None, ge=0)
    """Limit on USD."""
    input_tokens: int | None = Field(default=None, ge=0)
    """Limit on input tokens (X), summed over all calls."""
    output_tokens: int | None = Field(default=None, ge=0)
    """Limit on output tokens (Y), summed over all calls."""
    turns: int | None = Field(default=None, ge=0)
    """Limit on the number of answered model calls."""
    wall_seconds: float | None = Field(default=None, ge=0)
    """Limit on the wall seconds of a trial's rollout, or of a sweep since its beginning."""


class Budget(SpendLimits):
    """Limits on the spending of one trial."""

    name: str = "default"
    """Name on leaderboards."""


class Judge(Record):
    """A language model that answers verifiers' questions that no rule can answer, and a limit on its cost."""

    model: Model
    """Model that is asked; must be a provider's."""
    usd: float = Field(gt=0)
    """Limit on the cost of one trial's questions in USD, apart from the agent's budget."""
    at_once: int = Field(default=4, ge=1)
    """Number of questions of one trial that may be asked at once."""

    @field_validator("model")
    @classmethod
    def _is_a_language_model(cls, model: Model) -> Model:
        if model.backend != "provider":
            raise ValueError("a judge must be a provider's model, not a script, a recording or none")
        return model


class CallLimit(Record):
    """Limits on the rate of calls to a provider; a call waits for its turn. None means no limit."""

    concurrency: int | None = Field(default=None, ge=1)
    """Number of calls at a provider at once. A call that waits before a retry does not count."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    """Number of requests begun in any 60 s, including retries."""


class CallLimits(CallLimit):
    """Treatment of model providers by a run: limits on the calls of all its trials, and consequences of refusals."""

    providers: dict[str, CallLimit] = {}
    """First part of a model's id (`openai`, `zai`) -> limit on all models of that provider."""
    preflight: bool = True
    """Ask each model once, by each API that its agents speak, before the first trial; refuse the run if one fails."""
    refusals: int | None = Field(default=3, ge=1)
    """Number of consecutive trials refused by a model's provider after which the model's remaining trials are not
    started. None starts them all."""


class Endpoint(Record):
    """The model as an agent inside the sandbox reaches it."""

    base_url: str
    """Origin without `/v1`."""
    key: str
    """The trial's own key. It opens nothing but this trial, and stops working when the trial ends."""
    model: str
    """Name of the model for the agent."""
    context_window: int | None = None
    """Context window in tokens; None: unknown."""
    max_output_tokens: int | None = None
    """Limit on the output tokens of one call; None: unknown."""


class TierScoring(Record):
    """Parameters of AMS for one tier (AgentMeter Table 1)."""

    budgets: tuple[float, ...] = Field(min_length=1)
    """Budgets B_g in USD per trial, ascending."""
    tau: float = Field(ge=0)
    """Threshold τ_g: USD above which a failure counts as expensive."""
    weight: float = Field(default=1.0, ge=0)
    """Weight of the tier; 0 leaves it out of AMS."""

    @field_validator("budgets")
    @classmethod
    def _rising(cls, budgets: tuple[float, ...]) -> tuple[float, ...]:
        if list(budgets) != sorted(budgets) or budgets[0] < 0:
            raise ValueError("budgets must rise, from 0 or more")
        return budgets


class Scoring(Record):
    """Rules that turn records into scores. Not a part of a trial's key: changing them never re-runs a trial."""

    name: str
    """Name on leaderboards."""
    alpha: float = Field(default=0.6, ge=0, le=1)
    """Share of plain success in AMS; the rest is success within budgets."""
    tiers: dict[str, TierScoring]
    """Parameters of each tier by its name."""
    labels: dict[str, str] = {}
    """Task -> tier, from a tiers file (`job=calibrate`); empty: each task's own tier."""
    calibrated: str = ""
    """Tiers file from which `tiers` and `labels` come, `name@digest`; empty when there is none."""
    attempts: str = "mean"
    """Rule for the attempts of one (cell, task). mean: all valid ones count equally. latest_completed: the last one
    (AgentMeter section 3.5). pass@k: the best of k at the price of k."""
    cbq: Literal["quality", "passes"] = Field(default="quality", exclude_if=lambda cbq: cbq == "quality")
    """Reading of AgentMeter section 4.2. quality: a failed trial contributes its partial reward within its budget.
    passes: it contributes zero. The default is not written, so that files and digests of earlier versions hold."""
    resamples: int = Field(default=2000, ge=1)
    """Number of bootstrap resamples over tasks."""
    confidence: float = Field(default=0.95, gt=0, lt=1)
    """Confidence level of the intervals."""
    seed: int = Field(default=0, ge=0)
    """Seed of the resamples."""

    @property
    def title(self) -> str:
        """Name, with the tiers file if there is one."""
        file, _, digest = self.calibrated.partition("@")
        return f"{self.name} {file}@{digest[:8]}" if file else self.name

    def taking(self, other: Scoring, keys: Iterable[str]) -> Scoring:
        """Return this scoring with `other`'s values at these dotted `keys` only.

        A tiers file is a value of `tiers`: its labels come with it.
        """
        own, theirs = self.model_dump(), other.model_dump()
        whole = {"tiers": ("tiers", "labels", "calibrated")}
        for changed in (part for key in keys for part in whole.get(key, (key,))):
            *path, last = changed.split(".")
            node, source = own, theirs
            for name in path:
                source = source[name]
                node = node.setdefault(name, dict(source))  # a tier that is missing here is copied as a whole
            if last in source:
                node[last] = source[last]
            else:  # a default that is not written
                node.pop(last, None)
        return Scoring.model_validate(own)

    def scaled(self, alpha: float, factor: float) -> Scoring:
        """Return this scoring with another alpha, and with budgets and thresholds times `factor`."""
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
            raise ValueError("must be latest_completed, mean, or pass@k such as pass@1")
        return attempts

    @field_validator("tiers")
    @classmethod
    def _some_tier_counts(cls, tiers: dict[str, TierScoring]) -> dict[str, TierScoring]:
        if not any(tier.weight for tier in tiers.values()):
            raise ValueError("at least one tier needs a weight above 0")
        return tiers
