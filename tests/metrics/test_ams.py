"""AMS: values worked out by hand, then the laws that hold for every table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from metrics.ams import ams, tier_scores
from metrics.profiles import budget_curve
from runner.records import Scoring, TierScoring
from tests.metrics.tables import SCORING, line, table, trial

LAW = settings(max_examples=15)
"""No deadline: a score takes milliseconds, but longer on a busy machine."""
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["easy", "hard"]),
        st.one_of(st.none(), st.floats(0, 1), st.just(1.0)),
        st.one_of(st.none(), st.floats(0, 6)),
    ),
    max_size=8,
)


def trials_of(rows: list[tuple[str, float | None, float | None]]) -> pd.DataFrame:
    """Draw a table: one trial per drawn row, and one of each tier so that AMS exists."""
    rows = [("easy", 1.0, 0.1), ("hard", 0.0, 0.1), *rows]
    return table(*(trial(f"{tier}-{n}", reward, cost) for n, (tier, reward, cost) in enumerate(rows)))


def score(trials: pd.DataFrame, scoring: Scoring = SCORING) -> float:
    return float(line(ams(tier_scores(trials, scoring), scoring), "a")["AMS"])


def with_(**changes: Any) -> Scoring:
    return SCORING.model_copy(update=changes)


def test_by_hand() -> None:
    trials = table(
        trial("easy-1", 1.0, 0.10),  # fits both budgets (equal counts as within)
        trial("easy-2", 1.0, 0.20),  # fits one of two
        trial("easy-3", 0.5, 0.16),  # partial, fits one, failed above tau
        trial("easy-4", 0.0, 0.15),  # failed at tau: not expensive
        trial("hard-1", 1.0, 3.5),  # fits one of four; a pass is never an expensive failure
        trial("hard-2", None, 9.0),  # no valid trial: zero everywhere
    )
    scores = tier_scores(trials, SCORING)
    easy, hard = line(scores, ("a", "easy")), line(scores, ("a", "hard"))
    assert easy[["tasks", "valid", "passes", "SR", "EFR"]].tolist() == [4, 4, 2, 2.5 / 4, 1 / 4]
    assert easy["CostAUBQC"] == (1 + 0.5 + 0.25 + 0) / 4
    assert easy["TierScore"] == pytest.approx((0.6 * 0.625 + 0.4 * 0.4375) * 0.75)
    assert hard[["tasks", "valid", "passes", "SR", "CostAUBQC", "EFR"]].tolist() == [2, 1, 1, 0.5, 0.125, 0]
    assert score(trials) == pytest.approx((easy["TierScore"] + hard["TierScore"]) / 2)


def test_an_unknown_cost_fits_no_budget_and_is_an_expensive_failure() -> None:
    scores = tier_scores(table(trial("easy-1", 1.0, None), trial("easy-2", 0.0, None)), SCORING)
    assert line(scores, ("a", "easy"))[["SR", "CostAUBQC", "EFR"]].tolist() == [0.5, 0, 0.5]


def test_a_cost_that_is_a_sum_and_equals_a_budget_fits_it() -> None:
    """Regression: 0.10 + 0.20 USD, from two calls or two attempts, exceeded a budget and a tau of 0.30."""
    tiers = {"easy": TierScoring(budgets=(0.3,), tau=0.3)}
    two = (trial("easy-1", 0.5, 0.1, attempt=1), trial("easy-1", 0.5, 0.2, attempt=2))
    for rule, rows in (("latest_completed", (trial("easy-1", 0.5, 0.1 + 0.2),)), ("pass@2", two)):
        scoring = SCORING.model_copy(update={"tiers": tiers, "attempts": rule})
        scores = line(tier_scores(table(*rows), scoring), ("a", "easy"))
        assert (scores["CostAUBQC"], scores["EFR"]) == (0.5, 0)
        assert budget_curve(table(*rows), rule, [0.3]).to_numpy().item() == 0.5


def test_partial_quality_of_a_failed_trial_is_read_in_two_ways() -> None:
    """AgentMeter section 4.2: reward 0.5 that is not a pass, within every budget, with alpha 0.6."""
    trials = table(trial("easy-1", 0.5, 0.05))
    for cbq, budgeted, total in (("quality", 0.5, 0.5), ("passes", 0.0, 0.3)):
        scores = line(tier_scores(trials, with_(cbq=cbq)), ("a", "easy"))
        assert scores[["SR", "CostAUBQC", "EFR"]].tolist() == [0.5, budgeted, 0]
        assert scores["TierScore"] == pytest.approx(total)
        assert budget_curve(trials, "mean", [0.1], cbq).to_numpy().item() == budgeted
    with pytest.raises(ValueError, match="quality or passes"):
        budget_curve(trials, "mean", [0.1], "both")


def test_attempts_are_averaged_before_tasks() -> None:
    trials = table(
        trial("easy-1", 1.0, 0.1, attempt=1),
        trial("easy-1", 0.0, 9.0, attempt=2),
        trial("easy-2", 0.0, 0.1),
    )
    scores = tier_scores(trials, with_(attempts="mean"))
    assert line(scores, ("a", "easy"))[["SR", "CostAUBQC", "EFR"]].tolist() == [0.25, 0.25, 0.25]


def test_a_tier_without_tasks_makes_ams_nan_and_says_which() -> None:
    result = line(ams(tier_scores(table(trial("easy-1"), trial("unknown-1")), SCORING), SCORING), "a")
    assert math.isnan(result["AMS"])
    assert result["why"] == "no task of tier hard"


def test_weight_zero_leaves_a_tier_out_and_other_weights_are_relative() -> None:
    easy, hard = SCORING.tiers["easy"], SCORING.tiers["hard"]
    only = with_(tiers={"easy": easy, "hard": hard.model_copy(update={"weight": 0.0})})
    assert score(table(trial("easy-1")), only) == 1.0
    double = with_(tiers={"easy": easy, "hard": hard.model_copy(update={"weight": 3.0})})
    assert score(table(trial("easy-1"), trial("hard-1", 0.0)), double) == 0.25


def test_no_weight_at_all_is_refused() -> None:
    none = with_(tiers={"easy": TierScoring(budgets=(1.0,), tau=1.0, weight=0.0)})
    with pytest.raises(ValueError, match="weight 0"):
        score(table(trial("easy-1")), none)


@LAW
@given(ROWS)
def test_bounds(rows: list[tuple[str, float | None, float | None]]) -> None:
    trials = trials_of(rows)
    scores = tier_scores(trials, SCORING)
    for part in ("SR", "CostAUBQC", "EFR", "TierScore"):
        assert scores[part].between(0, 1).all()
    assert (scores["CostAUBQC"] <= scores["SR"] + 1e-12).all()
    assert 0 <= score(trials) <= scores["SR"].mean() + 1e-12


@LAW
@given(ROWS, st.data())
def test_ams_does_not_rise_when_a_cost_rises(rows: list[Any], data: st.DataObject) -> None:
    trials = trials_of(rows)
    row = data.draw(st.integers(0, len(trials) - 1))
    rise = np.where(trials.index == row, data.draw(st.floats(0, 5)), 0)
    dearer = trials.assign(cost_usd=trials["cost_usd"].astype(float) + rise)
    assert score(dearer) <= score(trials) + 1e-12


@LAW
@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_is_irrelevant(rows: list[Any], random: Any) -> None:
    trials = trials_of(rows)
    order = list(trials.index)
    random.shuffle(order)
    assert score(trials.loc[order]) == pytest.approx(score(trials))


@LAW
@given(ROWS)
def test_counting_passes_alone_in_budgets_never_raises_ams(rows: list[Any]) -> None:
    drawn = trials_of(rows)
    assert score(drawn, with_(cbq="passes")) <= score(drawn) + 1e-12
    whole = drawn[drawn["reward"].isin([0.0, 1.0]) | drawn["reward"].isna()]
    if len(whole) == len(drawn):
        assert score(drawn, with_(cbq="passes")) == score(drawn)


@LAW
@given(ROWS)
def test_alpha_one_gives_success_less_expensive_failure(rows: list[Any]) -> None:
    scoring = with_(alpha=1.0)
    scores = tier_scores(trials_of(rows), scoring)
    assert score(trials_of(rows), scoring) == pytest.approx((scores["SR"] * (1 - scores["EFR"])).mean())


@LAW
@given(ROWS, ROWS)
def test_another_cell_changes_nothing(rows: list[Any], others: list[Any]) -> None:
    both = pd.concat([trials_of(rows), trials_of(others).assign(cell="b")], ignore_index=True)
    assert score(both) == pytest.approx(score(trials_of(rows)))


ATTEMPTS = st.lists(
    st.tuples(
        st.sampled_from(["easy-1", "easy-2", "hard-1"]), st.floats(0, 1) | st.just(1.0), st.floats(0, 6)
    ),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("rule", ["latest_completed", "mean", "pass@2"])
@settings(max_examples=8)
@given(drawn=ATTEMPTS, random=st.randoms(use_true_random=False), rise=st.floats(0, 5))
def test_the_laws_hold_with_several_attempts_whichever_count(
    rule: str, drawn: list[Any], random: Any, rise: float
) -> None:
    scoring = with_(attempts=rule)
    rows = [("hard-1", 0.0, 0.1), ("easy-1", 0.5, 0.1), *drawn]
    trials = table(*(trial(task, reward, cost, attempt=n) for n, (task, reward, cost) in enumerate(rows)))
    scores = tier_scores(trials, scoring)
    value = float(line(ams(scores, scoring), "a")["AMS"])
    assert 0 <= value <= scores["SR"].mean() + 1e-12 <= 1 + 1e-9
    order = list(trials.index)
    random.shuffle(order)
    assert score(trials.loc[order], scoring) == pytest.approx(value)
    dearer = trials.assign(cost_usd=trials["cost_usd"] + np.where(trials.index == order[0], rise, 0))
    assert score(dearer, scoring) <= value + 1e-12


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 6},
        {"tiers": {}},
        {"tiers": {"easy": {"budgets": [], "tau": 1}}},
        {"tiers": {"easy": {"budgets": [1], "tau": 1, "weight": 0}}},
        {"tiers": {"easy": {"budgets": [2, 1], "tau": 1}}},
        {"tiers": {"easy": {"budgets": [-1, 1], "tau": 1}}},
        {"tiers": {"easy": {"budgets": [1], "tau": -1}}},
        {"resamples": 0},
        {"confidence": 95},
    ],
)
def test_scoring_that_gives_no_score_is_refused_at_the_door(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Scoring(**{**SCORING.model_dump(), **wrong})
