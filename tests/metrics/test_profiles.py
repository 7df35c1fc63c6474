"""Profiles beside the scores: tables small enough to work out by hand, and the laws that tie profiles to scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.ams import ams, tier_scores
from metrics.profiles import (
    budget_curve,
    by_attempt,
    cache_view,
    composition,
    effort_of_outcomes,
    over_attempts,
    pass_curve,
    pass_profile,
    passes_by,
    tokens_across_agents,
)
from metrics.table import summary
from tests.metrics.tables import SCORING, line, table, trial
from tests.metrics.test_ams import ROWS, trials_of

LAW = settings(max_examples=10)


def test_passes_by_tier() -> None:
    trials = table(
        trial("easy-1", 1.0),
        trial("easy-2", 0.5),
        trial("hard-1", None),
        trial("hard-2", 1.0),
        trial("easy-1", cell="b"),
    )
    profile = pass_profile(trials, "latest_completed")
    assert line(profile, ("a", "easy")).tolist() == [2, 2, 1, 0.5]
    assert line(profile, ("a", "hard")).tolist() == [2, 1, 1, 0.5]
    assert profile.index.tolist() == [("a", "easy"), ("a", "hard"), ("b", "easy")]


def with_model(task: str, reward: float | None, tokens: int, **other: Any) -> dict[str, Any]:
    """Return a trial of agent a with model m; another agent is a cell of its own."""
    return trial(
        task, reward, tokens=tokens, **{"agent": "a", "model": "m", "cell": other.get("agent", "a"), **other}
    )


def test_sources_by_tier_and_passes_by_source() -> None:
    trials = table(
        trial("easy-1", 1.0, source="s"),
        trial("easy-2", 0.5, source="s"),
        trial("hard-1", None, source="t"),
        trial("easy-1", 1.0, source="s", cell="b"),
    )
    split = composition(trials, "source")
    assert split.to_dict("index") == {"s": {"easy": 2, "hard": 0}, "t": {"easy": 0, "hard": 1}}
    found = passes_by(trials, "mean", "source")
    assert line(found, ("a", "s")).to_dict() == {
        "planned": 2,
        "passes": 1,
        "pass_rate": 0.5,
        "mean_reward": 0.75,
    }
    assert line(found, ("a", "t")).to_dict() == {"planned": 1, "passes": 0, "pass_rate": 0, "mean_reward": 0}
    assert ("b", "t") not in found.index


@LAW
@given(ROWS)
def test_tiers_as_strata_are_the_pass_profile(rows: list[Any]) -> None:
    trials = trials_of(rows)
    profile, found = pass_profile(trials, "mean"), passes_by(trials, "mean", "tier")
    shared = ["planned", "passes", "pass_rate"]
    pd.testing.assert_frame_equal(found[shared], profile[shared], check_dtype=False)
    assert composition(trials, "tier").sum(axis=None) == trials["task"].nunique()


def test_tokens_of_one_task_under_different_agents() -> None:
    trials = table(
        with_model("easy-1", 1.0, 100),
        with_model("easy-1", 0.0, 300, agent="b"),
        with_model("easy-1", 1.0, 700, agent="b", attempt=2),
        with_model("easy-1", 1.0, 200, agent="c"),
        with_model("easy-1", None, 9999, agent="d"),
        with_model("easy-2", 1.0, 5),
        with_model("easy-2", 1.0, 0, agent="b"),
        with_model("hard-1", 1.0, 50),
        with_model("hard-1", 1.0, 10, agent="b", model="other"),
    )
    found = tokens_across_agents(trials)
    assert len(found) == 1, "one agent with tokens is nothing to compare"
    assert (found.index[0][0], found.index[0][-1]) == ("m", "easy-1")
    row = found.iloc[0]
    assert row[["agents", "least", "most"]].tolist() == [3, "a", "b"]
    assert row[["least_tokens", "most_tokens", "ratio"]].tolist() == [100, 500, 5]
    assert row[["least_passed", "most_passed"]].tolist() == [1, 0.5]
    assert row[["least_repeated", "most_repeated"]].isna().all()
    counted = tokens_across_agents(trials.assign(repeated_reads=[0, 4, 8, *[2] * (len(trials) - 3)])).iloc[0]
    assert counted[["least_repeated", "most_repeated"]].tolist() == [0, 6]


def test_nothing_is_compared_without_tokens() -> None:
    assert tokens_across_agents(table(with_model("easy-1", None, 10))).empty


@LAW
@given(ROWS)
def test_the_profile_sums_to_the_summary(rows: list[Any]) -> None:
    trials = trials_of(rows)
    profile = pass_profile(trials, "latest_completed").groupby("cell").sum()
    cell = line(summary(trials, "latest_completed"), "a")
    assert (
        line(profile, "a")[["planned", "valid", "passes"]].tolist()
        == cell[["planned", "valid", "passes"]].tolist()
    )


def test_a_curve_by_hand() -> None:
    trials = table(
        trial("easy-1", 1.0, 0.1),
        trial("easy-2", 0.5, 0.2),
        trial("easy-3", 1.0, None),
        trial("easy-4", None),
    )
    curve = budget_curve(trials, "latest_completed", (0.05, 0.1, 0.2, 9.0))
    assert line(curve, ("a", "easy")).tolist() == [0, 0.25, 0.375, 0.375]
    assert list(map(float, curve.columns)) == [0.05, 0.1, 0.2, 9.0]


@LAW
@given(ROWS)
def test_the_mean_of_a_curve_over_the_budgets_of_a_tier_is_its_part_of_ams(rows: list[Any]) -> None:
    trials = trials_of(rows)
    for name, tier in SCORING.tiers.items():
        curve = line(budget_curve(trials, "latest_completed", tier.budgets), ("a", name))
        assert curve.mean() == pytest.approx(line(tier_scores(trials, SCORING), ("a", name))["CostAUBQC"])
        assert (curve.diff().dropna() >= -1e-12).all()


def test_effort_of_passes_against_failures() -> None:
    trials = table(
        trial("easy-1", 1.0, 0.1, tokens=10, turns=1),
        trial("easy-2", 1.0, None, tokens=30, turns=3),
        trial("hard-1", 1.0, 0.4, tokens=100, turns=9),
        trial("hard-2", 0.0, 0.8, tokens=500, turns=50),
        trial("hard-3", None, 9.0, tokens=9999),
    )
    table5 = effort_of_outcomes(trials)
    assert line(table5, ("all", "pass")).tolist() == pytest.approx([3, 30, 140 / 3, 0.25, 0.25, 3, 1])
    assert line(table5, ("hard", "fail")).tolist() == pytest.approx([1, 500, 500, 0.8, 0.8, 50, 0])
    assert line(table5, ("easy", "pass"))["median_tokens"] == 20
    assert ("easy", "fail") not in table5.index


def repeated() -> pd.DataFrame:
    """Return three attempts at two tasks: the first passes both, the second one of them, the third none."""
    passes = {
        ("easy-1", 1): 1,
        ("easy-1", 2): 1,
        ("easy-1", 3): 0,
        ("hard-1", 1): 1,
        ("hard-1", 2): 0,
        ("hard-1", 3): 0,
    }
    return table(*(trial(task, float(passed), attempt=number) for (task, number), passed in passes.items()))


def test_each_attempt_alone_and_the_spread_over_attempts() -> None:
    alone = by_attempt(repeated(), SCORING)
    assert alone["pass_rate"].tolist() == [1, 0.5, 0]
    assert alone["AMS"].tolist() == [1, 0.5, 0]
    assert alone.index.tolist() == [("a", 1), ("a", 2), ("a", 3)]
    spread = line(over_attempts(repeated(), SCORING), "a")
    names = ["attempts", "pass_rate_mean", "pass_rate_sd", "AMS_mean", "AMS_sd", "repeated", "unsteady"]
    assert spread[names].tolist() == pytest.approx([3, 0.5, 0.5, 0.5, 0.5, 2, 2])


def test_a_task_that_never_passes_is_steady_and_an_attempt_without_a_tier_has_no_ams() -> None:
    passes = {("easy-1", 1): 1, ("easy-1", 2): 0, ("easy-1", 3): 0, ("hard-1", 1): 0, ("hard-1", 2): 0}
    trials = table(*(trial(task, float(passed), attempt=number) for (task, number), passed in passes.items()))
    spread = line(over_attempts(trials, SCORING), "a")
    assert spread[["attempts", "pass_rate_mean", "repeated", "unsteady"]].tolist() == pytest.approx(
        [3, 0.5 / 3, 2, 1]
    )
    assert spread[["AMS_mean", "AMS_sd"]].isna().all()


def test_one_attempt_has_no_spread_and_an_invalid_one_counts_as_in_every_score() -> None:
    trials = table(trial("easy-1"), trial("hard-1", None), trial("easy-1", None, cell="b"))
    spread = over_attempts(trials, SCORING)
    assert line(spread, "a")[["attempts", "pass_rate_mean", "repeated", "unsteady"]].tolist() == [
        1,
        0.5,
        0,
        0,
    ]
    assert math.isnan(line(spread, "a")["pass_rate_sd"])
    assert line(spread, "b")[["attempts", "pass_rate_mean", "repeated"]].tolist() == [1, 0, 0]


@LAW
@given(ROWS)
def test_an_only_attempt_scores_as_the_cell_does(rows: list[Any]) -> None:
    trials = trials_of(rows)
    cell = ams(tier_scores(trials, SCORING), SCORING)
    assert line(by_attempt(trials, SCORING), ("a", 1))["AMS"] == pytest.approx(line(cell, "a")["AMS"])


def test_pass_curve_of_the_repeated_tasks() -> None:
    spoiled = table(trial("easy-1", attempt=4, status="infra_invalid"))
    for trials in (repeated(), pd.concat([repeated(), spoiled], ignore_index=True)):
        assert line(pass_curve(trials, 3), "a").tolist() == pytest.approx([0.5, 5 / 6, 1])


def cached(cell: str = "a", model: str = "m", **other: Any) -> dict[str, Any]:
    counts = {"input_tokens": 100, "cache_creation_tokens": 20, "cache_hit_tokens": 50, "output_tokens": 10}
    return {**trial(f"easy-{cell}", 1.0, 0.9, cell=cell, model=model), **counts, **other}


UNPRICED = pd.DataFrame(columns=["p_in", "p_out"], dtype=float)
"""Rates without any model."""


def test_what_caches_did() -> None:
    trials = table(
        cached(), {**cached(), "attempt": 2, "input_tokens": 300, "cost_usd": 1.1}, cached("b", "unpriced")
    )
    rates = pd.DataFrame({"p_in": [0.01], "p_out": [0.05]}, index=["m"])
    view = cache_view(trials, rates)
    names = [
        "cache_share",
        "creation_share",
        "fresh_share",
        "usd",
        "usd_uncached",
        "usd_uncached_per_pass",
        "cache_saving",
    ]
    assert line(view, "a")[names].tolist() == pytest.approx([0.25, 0.1, 0.65, 2.0, 5.0, 2.5, 0.6])
    assert line(view, "b")[["cache_share", "usd"]].tolist() == [0.5, 0.9]
    assert line(view, "b")[["usd_uncached", "usd_uncached_per_pass", "cache_saving"]].isna().all()
    unpriced = cache_view(trials, UNPRICED)
    pd.testing.assert_frame_equal(unpriced[names[:4]], view[names[:4]])
    assert unpriced[names[4:]].isna().all(axis=None)


def test_a_cell_that_read_nothing_has_no_share_of_it() -> None:
    view = cache_view(table(cached(input_tokens=0, cache_hit_tokens=0, cache_creation_tokens=0)), UNPRICED)
    assert line(view, "a")[["cache_share", "creation_share", "fresh_share"]].isna().all()


def test_nothing_is_fresh_where_more_was_cached_than_read() -> None:
    assert line(cache_view(table(cached(input_tokens=60)), UNPRICED), "a")["fresh_share"] == 0


@settings(max_examples=50)
@given(*(st.integers(0, 1000) for _ in range(3)))
def test_shares_are_shares(fresh: int, created: int, hit: int) -> None:
    spent = cached(input_tokens=fresh + created + hit, cache_creation_tokens=created, cache_hit_tokens=hit)
    view = cache_view(table(spent), UNPRICED)
    shares = line(view, "a")[["cache_share", "creation_share", "fresh_share"]]
    assert np.isnan(shares).all() or shares.sum() == pytest.approx(1)
