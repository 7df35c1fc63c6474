"""Cost of calls (AgentMeter eq. 2), for numbers and arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.cost import TokenCounts, TokenRates, call_cost, price_tier

COUNT = st.integers(0, 10**7)
RATE = st.floats(0.0, 1e-3, allow_nan=False)
RATES = st.tuples(RATE, RATE, RATE, RATE)
COUNTS = st.tuples(COUNT, COUNT, COUNT, COUNT)
Counts = tuple[int, int, int, int]
Rates = tuple[float, float, float, float]


def test_the_example() -> None:
    rates = TokenRates(p_in=3e-6, p_out=15e-6, p_create=3.75e-6, p_hit=0.3e-6)
    assert call_cost(TokenCounts(1000, 100, 400, 50), rates) == pytest.approx(
        500 * 3e-6 + 50 * 15e-6 + 100 * 3.75e-6 + 400 * 0.3e-6
    )


def test_more_cached_than_read_makes_no_negative_fresh_input() -> None:
    assert call_cost(TokenCounts(100, 80, 80, 0), TokenRates(1.0, 1.0, 0.0, 0.0)) == 0.0


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_rate_is_missed_only_where_it_is_needed(missing: float | None) -> None:
    rates = TokenRates(1.0, 1.0, missing, missing)
    assert call_cost(TokenCounts(10, 0, 0, 5), rates) == 15.0
    assert math.isnan(call_cost(TokenCounts(10, 1, 0, 5), rates))
    assert math.isnan(call_cost(TokenCounts(10, 0, 1, 5), rates))
    costs = call_cost(TokenCounts(np.array([10, 10]), np.array([0, 1]), 0, 5), rates)
    np.testing.assert_array_equal(costs, [15.0, math.nan])


def test_rates_may_differ_by_row() -> None:
    costs = call_cost(TokenCounts([1, 1], 0, 0, 0), TokenRates([1.0, math.nan], 0.0, None, None))
    np.testing.assert_array_equal(costs, [1.0, math.nan])


def test_a_missing_count_makes_the_cost_missing() -> None:
    assert math.isnan(call_cost(TokenCounts(math.nan, 0, 0, 5), TokenRates(1.0, 1.0, 1.0, 1.0)))


@given(counts=COUNTS, rates=RATES)
def test_a_cost_is_never_negative_and_grows_with_output(counts: Counts, rates: Rates) -> None:
    total, created, hit, output = counts
    cost = call_cost(TokenCounts(*counts), TokenRates(*rates))
    assert cost >= 0.0
    assert call_cost(TokenCounts(total, created, hit, output + 1000), TokenRates(*rates)) >= cost


@given(counts=COUNTS, rates=RATES, factor=st.floats(0.0, 100.0))
def test_a_cost_is_linear_in_the_rates(counts: Counts, rates: Rates, factor: float) -> None:
    scaled = TokenRates(*(rate * factor for rate in rates))
    tokens = TokenCounts(*counts)
    assert call_cost(tokens, scaled) == pytest.approx(
        call_cost(tokens, TokenRates(*rates)) * factor, rel=1e-9, abs=1e-12
    )


@given(fresh=COUNT, created=COUNT, hit=COUNT, output=COUNT, rate=st.floats(1e-9, 1e-3))
def test_at_one_rate_every_token_costs_the_same(
    fresh: int, created: int, hit: int, output: int, rate: float
) -> None:
    total = fresh + created + hit
    cost = call_cost(TokenCounts(total, created, hit, output), TokenRates(rate, rate, rate, rate))
    assert cost == pytest.approx((total + output) * rate)


@given(rows=st.lists(COUNTS, min_size=1, max_size=20), rates=RATES)
def test_arrays_agree_with_numbers(rows: list[Counts], rates: Rates) -> None:
    np.testing.assert_allclose(
        call_cost(TokenCounts(*np.array(rows).T), TokenRates(*rates)),
        [call_cost(TokenCounts(*row), TokenRates(*rates)) for row in rows],
    )


BOUNDS = st.lists(st.integers(1, 10**6), unique=True, max_size=4).map(sorted)


def test_a_long_call_is_in_the_last_tier_that_it_exceeds() -> None:
    assert [price_tier(tokens, [32_000, 128_000]) for tokens in (0, 32_000, 32_001, 128_000, 10**9)] == [
        0,
        0,
        1,
        1,
        2,
    ]
    assert price_tier(10**9, []) == 0


@given(bounds=BOUNDS, tokens=COUNT)
def test_every_call_has_one_tier(bounds: list[int], tokens: int) -> None:
    tier = price_tier(tokens, bounds)
    assert all(tokens > bound for bound in bounds[:tier])
    assert all(tokens <= bound for bound in bounds[tier:])


@given(bounds=BOUNDS, calls=st.lists(COUNT, min_size=2, max_size=20))
def test_tiers_rise_with_the_input_and_arrays_agree_with_numbers(bounds: list[int], calls: list[int]) -> None:
    tiers = price_tier(sorted(calls), bounds)
    assert list(tiers) == sorted(price_tier(tokens, bounds) for tokens in calls)
