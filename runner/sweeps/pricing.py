"""Dated snapshots of provider prices (`conf/pricing/`), which turn tokens into USD.

A run is priced by one snapshot, whose rates are merged into its models and frozen with them. The papers
price in CNY at a fixed rate (AgentMeter section 4.1: 1 USD = 6.77 CNY on 2026-06-04), so a snapshot may use CNY too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from runner.errors import ConfigError
from runner.records import Budget, Model, Prices, PriceTier, Rates, Record

RATES = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cache_creation": "cache_creation_input_token_cost",
    "cache_hit": "cache_read_input_token_cost",
}
"""Rate -> its name in litellm's map, which gives it in USD per token."""
_ABOVE = re.compile(rf"(?P<key>{'|'.join(RATES.values())})_above_(?P<thousands>\d+)k_tokens")
PER_MILLION = 10**6
DECIMALS = 9
"""Number of decimals of a rate per million: more than any provider uses, but few enough to drop rounding errors."""


class Entry(Rates):
    """Rates of one model in the snapshot's currency, per **million** tokens."""

    tiers: tuple[PriceTier, ...] = ()
    source: str = ""
    """Source of these rates, where it is not the snapshot's."""
    note: str = ""


class Pricing(Record):
    """A snapshot of prices, and whether models without a price may run."""

    name: str
    date: str = Field(pattern=r"^\d{4}-\d\d-\d\d$")
    """Day on which the prices were valid."""
    source: str
    currency: Literal["USD", "CNY"] = "USD"
    cny_per_usd: float | None = Field(default=None, gt=0, validate_default=True)
    """Exchange rate on that date, in CNY per USD; None if the prices are in USD."""
    allow_unknown: bool = False
    """True if models without a price may run. Their cost is then missing, never 0."""
    prices: dict[str, Entry] = {}
    """litellm's model id -> rates."""
    absent: tuple[str, ...] = ()
    """Ids of models that were looked up and have no price."""

    @field_validator("cny_per_usd")
    @classmethod
    def _convertible(cls, rate: float | None, info: ValidationInfo) -> float | None:
        if rate is None and info.data.get("currency") == "CNY":
            raise ValueError("prices in CNY need the exchange rate of their date")
        return rate

    @property
    def label(self) -> str:
        """Label for records: name and digest of the rates, as `name@digest`."""
        rates = self.model_dump_json(exclude={"allow_unknown"})
        return f"{self.name}@{hashlib.sha256(rates.encode()).hexdigest()}"

    def usd(self, model_id: str) -> Prices | None:
        """Return the prices of a model in USD; None if the snapshot has none."""
        entry = self.prices.get(model_id)
        if entry is None:
            return None
        divisor = self.cny_per_usd if self.currency == "CNY" and self.cny_per_usd else 1.0
        return Prices(
            **_divided(entry, divisor),
            tiers=tuple(
                PriceTier(above_input_tokens=tier.above_input_tokens, **_divided(tier, divisor))
                for tier in entry.tiers
            ),
            source=entry.source or self.source,
            date=self.date,
        )


def priced(model: Model, budget: Budget, pricing: Pricing) -> tuple[Model, str]:
    """Return the model with its prices, and the label of their snapshot ('' for the model's own prices).

    Only a provider's model without prices of its own is looked up. Raises `ConfigError` for a model without a price
    unless `pricing.allow_unknown`, and always if its budget caps USD, which could not be counted.
    """
    if model.backend != "provider" or model.prices != Prices():
        return model, ""
    found = pricing.usd(model.id) or Prices()
    if not found.known:
        _refuse(model, budget, pricing)
    return model.model_copy(update={"prices": found}), pricing.label if model.id in pricing.prices else ""


def _refuse(model: Model, budget: Budget, pricing: Pricing) -> None:
    """Raise `ConfigError` for a model without a price, unless it may run without one."""
    reason = f"{model.name} ({model.id}) has no price in pricing={pricing.name}"
    advice = (
        "set model.prices.input and model.prices.output (USD per million tokens), or choose another pricing="
    )
    if model.apis:
        reason = f"what {model.name} costs was not said, and nothing is free by default"
        advice = (
            "add model.prices=free, model.prices.gpu_hour=USD (per hour of the server), or model.prices.input=USD and "
            "model.prices.output=USD (per million tokens)"
        )
    if not pricing.allow_unknown:
        anyway = f"pricing.allow_unknown=true{'' if budget.usd is None else ' budget.usd=null'}"
        message = f"model: {reason}: {advice}; {anyway} runs it all the same, with costs missing."
        raise ConfigError(message)
    if budget.usd is not None:
        raise ConfigError(f"budget.usd: {reason}, so its USD cannot be capped: {advice}, or budget.usd=null.")


def _divided(rates: Rates, divisor: float) -> dict[str, Any]:
    return {name: rate / divisor for name in RATES if (rate := getattr(rates, name)) is not None}


# --- the first snapshot: from the map that the pinned litellm carries -------------------------------------------------


def from_litellm(model_ids: Iterable[str], date: str) -> Pricing:
    """Return a snapshot of these models from litellm's bundled map, a data file; litellm is not imported."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        raise ConfigError("litellm is not installed: run `make setup`.")
    path = Path(spec.origin).parent / "model_prices_and_context_window_backup.json"
    known = json.loads(path.read_text())
    found = {model: _entry(raw) for model in model_ids if (raw := _raw(known, model))}
    prices = {model: entry for model, entry in sorted(found.items()) if entry.input is not None}
    return Pricing(
        name=date,
        date=date,
        source=f"litellm {version('litellm')}, bundled map of model prices",
        prices=prices,
        absent=tuple(sorted(set(model_ids) - prices.keys())),
    )


def _raw(known: Mapping[str, Any], model: str) -> Mapping[str, Any] | None:
    """Return a model's entry under its id, or under its bare name if that entry is of the same provider."""
    provider, _, name = model.partition("/")
    raw: Mapping[str, Any] | None = known.get(model)
    bare = known.get(name)
    return raw or (bare if bare and bare.get("litellm_provider") == provider else None)


def _entry(raw: Mapping[str, Any]) -> Entry:
    """Convert litellm's flat keys, or its list of `tiered_pricing`, to rates per million."""
    ranges = raw.get("tiered_pricing") or ()
    tiers = [_tier(int(part["range"][0]), part) for part in ranges if part["range"][0] > 0]
    first = next((part for part in ranges if part["range"][0] == 0), raw)
    for bound in sorted({int(match["thousands"]) for key in raw if (match := _ABOVE.fullmatch(key))}):
        suffix = f"_above_{bound}k_tokens"
        tiers.append(_tier(bound * 1000, {key: raw.get(key + suffix) for key in RATES.values()}))
    hour = raw.get("cache_creation_input_token_cost_above_1hr")
    note = f"caches that live an hour cost {hour * PER_MILLION:g} to create" if hour else ""
    return Entry(**dict(_per_million(first)), tiers=tuple(tiers), note=note)


def _tier(above: int, raw: Mapping[str, Any]) -> PriceTier:
    return PriceTier(above_input_tokens=above, **dict(_per_million(raw)))


def _per_million(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, key in RATES.items():
        if raw.get(key) is not None:
            yield name, round(raw[key] * PER_MILLION, DECIMALS)
