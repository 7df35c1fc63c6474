"""The price of one model call: what it cost, and the most that it may cost."""

from __future__ import annotations

import math

from metrics.cost import TokenCounts, TokenRates, call_cost, price_tier
from runner.records import Model, Prices, Rates, Usage

PER_MILLION = 1e-6
LEAST_SECONDS = 1.0
"""Shortest useful time of a call that is priced by the hour."""


def price(usage: Usage, prices: Prices) -> float | None:
    """Return the USD of one call at the rates for its length, or None if a rate that it needs was not published.

    A free model costs nothing, whichever of its rates are given. One that is priced by the hour has no price by tokens.
    """
    return 0.0 if prices.free else _charge(usage, _rates(usage, prices))


def worst(input_tokens: int, output_tokens: int, model: Model) -> float:
    """Return the highest cost in USD: nothing read from a cache, and all input written to it if that costs more.

    A call that is priced by the hour must be able to take `LEAST_SECONDS`.
    """
    rate = model.prices.per_second
    if rate is not None:
        return rate * LEAST_SECONDS
    tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    return max(capped(Usage(**tokens, cache_creation_tokens=cached), model) for cached in (0, input_tokens))


def capped(usage: Usage, model: Model) -> float:
    """Return the USD that the cap counts. Unlike a cost, it takes a missing cache rate for that of fresh input."""
    rates = _rates(usage, model.prices)
    filled = {name: rates.input for name in ("cache_creation", "cache_hit") if getattr(rates, name) is None}
    return _charge(usage, rates.model_copy(update=filled)) or 0.0


def paid_seconds(usd: float | None, model: Model) -> float | None:
    """Return the longest time of a call that is priced by the hour and has so much left; None without a limit.

    Nobody can say beforehand how long a call takes. So it holds all that is left of a cap in USD, the next one
    waits for it, and it is cut off where the money ends.
    """
    rate = model.prices.per_second
    return usd / rate if rate and usd is not None else None


def most_output(usd: float, input_tokens: int, model: Model) -> int | None:
    """Return the number of output tokens that so much pays for beside the input; None if output has no price."""
    rate = _rates(Usage(input_tokens=input_tokens), model.prices).output
    return int((usd - worst(input_tokens, 0, model)) / rate / PER_MILLION) if rate else None


def _rates(usage: Usage, prices: Prices) -> Rates:
    """Return the rates for a call of this length."""
    tier: int = price_tier(usage.input_tokens, [tier.above_input_tokens for tier in prices.tiers])
    return (prices, *prices.tiers)[tier]


def _charge(usage: Usage, rates: Rates) -> float | None:
    tokens = TokenCounts(
        usage.input_tokens, usage.cache_creation_tokens, usage.cache_hit_tokens, usage.output_tokens
    )
    published = (rates.input, rates.output, rates.cache_creation, rates.cache_hit)
    cost = call_cost(tokens, TokenRates(*map(_per_token, published)))
    return None if math.isnan(cost) else float(cost)


def _per_token(rate: float | None) -> float:
    return math.nan if rate is None else rate * PER_MILLION
