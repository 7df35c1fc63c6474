"""Rank agreement against scipy and by hand; winners and their leads; Pareto fronts; one model under several agents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from metrics.ams import ams, tier_scores
from metrics.errors import TableError
from metrics.ranking import CRITERIA, agreement, delta_best, four_criteria, gap_to_best, pareto
from metrics.table import summary
from metrics.uncertainty import bootstrap
from tests.metrics.tables import SCORING, line, table, trial

LAW = settings(max_examples=50)
SCORES = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=12)


def series(*values: float, names: str = "abcdefgh") -> pd.Series[float]:
    return pd.Series(values, index=list(names[: len(values)]), dtype=float)


def test_agreement_by_hand() -> None:
    found = agreement(series(0.9, 0.8, 0.7, 0.1), series(0.8, 0.9, 0.2, 0.3), k=2)
    assert found.spearman == pytest.approx(1 - 6 * (1 + 1 + 1 + 1) / (4 * 15))
    assert found.kendall == pytest.approx((4 - 2) / 6)
    assert (found.cells, found.top1, found.topk, found.overlap, found.why) == (4, False, True, 1.0, "")
    assert found.mae == pytest.approx((0.1 + 0.1 + 0.5 + 0.2) / 4)
    assert agreement(series(0.9, 0.8, 0.7, 0.1), series(0.8, 0.9, 0.2, 0.3), k=3).overlap == pytest.approx(
        2 / 3
    )


@LAW
@given(SCORES)
def test_correlations_are_scipys(drawn: list[tuple[int, int]]) -> None:
    left, right = np.array(drawn, float).T
    assume(len(set(left)) > 1 and len(set(right)) > 1)
    found = agreement(pd.Series(left), pd.Series(right))
    assert found.spearman == pytest.approx(stats.spearmanr(left, right).statistic)
    assert found.kendall == pytest.approx(stats.kendalltau(left, right).statistic)


@LAW
@given(SCORES, st.randoms(use_true_random=False))
def test_agreement_is_symmetric_and_deaf_to_order(drawn: list[tuple[int, int]], random: Any) -> None:
    left, right = (pd.Series(side, dtype=float) for side in zip(*drawn, strict=True))
    order = list(left.index)
    random.shuffle(order)
    for one, other in zip(agreement(left, right), agreement(right.loc[order], left), strict=True):
        assert one == pytest.approx(other, nan_ok=True)


@LAW
@given(st.lists(st.floats(-9, 9), min_size=3, max_size=9, unique=True))
def test_a_scoring_agrees_with_itself_and_disagrees_with_its_contrary(values: list[float]) -> None:
    scores = pd.Series(values)
    same, contrary = agreement(scores, scores), agreement(scores, -scores)
    assert (same.top1, same.mae) == (True, 0)
    assert same.topk is (True if len(scores) > 3 else None)
    assert (same.spearman, same.kendall) == pytest.approx((1, 1))
    assert (contrary.spearman, contrary.kendall) == pytest.approx((-1, -1))


@pytest.mark.parametrize("cells", [0, 1, 2])
def test_fewer_than_three_common_cells_say_nothing(cells: int) -> None:
    found = agreement(series(*range(cells)), series(*range(cells)))
    assert (found.cells, found.top1, found.topk) == (cells, None, None)
    assert all(math.isnan(value) for value in (found.spearman, found.kendall, found.overlap, found.mae))
    assert found.why == f"{cells} common cells, 3 are needed"


def test_cells_of_one_side_and_cells_without_a_score_are_left_out() -> None:
    left, right = series(1, 2, 3, 4, math.nan), series(1, 2, 3, math.nan, 5, 6)
    assert agreement(left, right).cells == 3


def test_infinite_prices_have_ranks_and_no_mean_difference() -> None:
    """Regression: a cell infinite on both sides was left out of the mean; one infinite side made the mean "no pass"."""
    for other in (-math.inf, -3.0):
        found = agreement(series(-1, -2, -math.inf, -2.5), series(-1, -2.2, other, -2.5))
        assert math.isnan(found.mae)
        assert found.spearman > 0
        assert "1 cells have an infinite score, so there is no mean difference" in found.why
    assert "2 cells have" in agreement(series(1, math.inf, 3, 2), series(1, 2, 3, -math.inf)).why


def test_no_more_cells_than_k_have_no_k_best_to_agree_on() -> None:
    found = agreement(series(1, 2, 3), series(3, 2, 1))
    assert (found.topk, found.top1) == (None, False)
    assert math.isnan(found.overlap)
    assert found.why == "3 common cells are the 3 best on both sides"
    assert agreement(series(1, 2, 3, 4), series(4, 3, 2, 1)).topk is False


def test_equal_scores_have_no_order_to_agree_with() -> None:
    found = agreement(series(1, 1, 1), series(1, 2, 3))
    assert math.isnan(found.spearman)
    assert math.isnan(found.kendall)
    assert found.why.startswith("all cells have the same score on one side")
    assert (found.top1, found.mae) == (False, 1.0)  # all, and c


@pytest.mark.parametrize("names", ["abcd", "badc", "dcba"])
def test_the_best_of_equal_scores_was_the_first_by_name(names: str) -> None:
    """Regression: whether both sides had the same best cells depended on the cells' names."""
    assert agreement(series(2, 2, 1, 0, names=names), series(2, 1, 1.5, 0, names=names)).top1 is False
    assert agreement(series(2, 2, 1, 0, names=names), series(3, 3, 0, 1, names=names)).top1 is True


@pytest.mark.parametrize(("third", "said"), [(1.0, True), (1.5, False)])
def test_names_that_decide_on_the_last_place_among_the_best_are_said_to(third: float, said: bool) -> None:  # noqa: FBT001
    found = agreement(series(3, 2, third, 1, 0), series(5, 4, 3, 2, 1))
    assert found.topk is True
    assert ("cells share place 3" in found.why) is said


def test_of_cells_that_tie_the_first_by_name_is_shown_whatever_their_order() -> None:
    trials = race(("b", 0.5, 0.01), ("a", 0.5, 0.01))
    winners = four_criteria(cells_of(trials).loc[["b", "a"]], bootstrap(trials, SCORING))
    assert winners["best"].tolist() == ["a"] * len(CRITERIA)


def cells_of(trials: pd.DataFrame) -> pd.DataFrame:
    return summary(trials, "latest_completed").join(ams(tier_scores(trials, SCORING), SCORING))


def race(*cells: tuple[str, float, float], tasks: int = 30) -> pd.DataFrame:
    """Return trials of cells given as name, share of tasks passed, USD per trial."""
    return table(
        *(
            trial(f"{tier}-{n}", float(n < tasks * share), usd, cell=name, tokens=int(usd * 1000))
            for name, share, usd in cells
            for tier in ("easy", "hard")
            for n in range(tasks)
        )
    )


def test_winners_runners_up_and_leads_by_hand() -> None:
    trials = race(("a", 1.0, 0.04), ("b", 0.5, 0.01), ("c", 0.4, 0.03))
    winners = four_criteria(cells_of(trials), bootstrap(trials, SCORING))
    assert winners.index.tolist() == list(CRITERIA)
    assert winners["best"].tolist() == ["a", "b", "b", "a"]
    passes, usd = line(winners, "passes"), line(winners, "usd_per_pass")
    assert passes[["value", "runner_up", "runner_up_value", "lead"]].tolist() == [60, "b", 30, 30]
    assert usd[["value", "runner_up", "runner_up_value"]].tolist() == [
        pytest.approx(0.02),
        "a",
        pytest.approx(0.04),
    ]
    assert usd["lead"] == pytest.approx(0.02)
    assert passes["clear"]
    assert 0 < passes["low"] <= 30 <= passes["high"]
    assert 0 < usd["low"] < 1, "less than a dollar"
    assert usd["clear"]


def test_the_same_results_on_other_tasks_are_a_tie() -> None:
    """Regression: sums in another order gave equal cells two scores, and one of them a lead of almost 0."""
    rewards = {"a": (0.3, 0.3, 0.7), "b": (0.7, 0.3, 0.3), "c": (0.1, 0.1, 0.1), "d": (0.0, 0.0, 0.0)}
    trials = table(
        *(trial(f"easy-{n}", of, cell=cell) for cell, own in rewards.items() for n, of in enumerate(own)),
        *(trial("hard-0", 0.0, cell=cell) for cell in rewards),
    )
    scores = cells_of(trials)["AMS"]
    assert scores["a"] == scores["b"]
    assert line(four_criteria(cells_of(trials), bootstrap(trials, SCORING)), "AMS")["lead"] == 0
    assert agreement(scores, pd.Series({"a": 2.0, "b": 2.0, "c": 1.0, "d": 0.0})).kendall == pytest.approx(1)


def test_the_same_costs_and_rewards_of_other_tasks_are_a_tie_too() -> None:
    """Regression: one of two equal cells was the cheapest, by a lead of 1e-17 USD."""
    amounts = {"a": (0.1, 0.2, 0.3), "b": (0.3, 0.2, 0.1)}
    trials = table(
        *(
            trial(f"easy-{n}", usd, usd, cell=cell, passed=True)
            for cell, own in amounts.items()
            for n, usd in enumerate(own)
        )
    )
    found = summary(trials, "latest_completed")
    one, other = (line(found, cell)[["usd_per_pass", "mean_reward"]].tolist() for cell in "ab")
    assert one == other


def test_a_lead_that_is_no_larger_than_its_interval_is_not_clear() -> None:
    trials = race(("a", 0.5, 0.04), ("b", 0.4, 0.01), tasks=10)
    trials = trials.assign(
        reward=np.where(trials["cell"].eq("b"), trials["reward"].shift(5, fill_value=0), trials["reward"])
    )
    trials = trials.assign(passed=trials["reward"] >= 1)
    winners = four_criteria(cells_of(trials), bootstrap(trials, SCORING))
    passes = line(winners, "passes")
    assert (passes["best"], passes["lead"], passes["clear"]) == ("a", 2, False)
    assert passes["low"] < 0 < passes["high"]


def test_no_rival_no_lead_and_no_value_no_winner() -> None:
    trials = table(trial("easy-1", 0.0, None), trial("hard-1", 1.0, None))
    winners = four_criteria(cells_of(trials), bootstrap(trials, SCORING))
    usd, passes = line(winners, "usd_per_pass"), line(winners, "passes")
    assert usd[["best", "value", "runner_up", "lead"]].isna().all()
    assert passes[["best", "value", "clear"]].tolist() == ["a", 1, False]
    assert passes[["runner_up", "runner_up_value", "lead", "low", "high"]].isna().all()


def test_a_cell_without_a_pass_is_infinitely_behind() -> None:
    trials = race(("a", 1.0, 0.04), ("b", 0.0, 0.01))
    usd = line(four_criteria(cells_of(trials), bootstrap(trials, SCORING)), "usd_per_pass")
    assert usd[["best", "lead", "low", "clear"]].tolist() == ["a", math.inf, math.inf, True]


def test_nobody_passes_and_nobody_leads() -> None:
    trials = race(("a", 0.0, 0.04), ("b", 0.0, 0.01))
    usd = line(four_criteria(cells_of(trials), bootstrap(trials, SCORING)), "usd_per_pass")
    assert usd[["best", "lead", "low", "high", "clear"]].tolist() == ["a", 0, 0, 0, False]


def test_winners_are_of_one_dataset() -> None:
    trials = pd.concat([race(("a", 1.0, 0.1)), race(("b", 1.0, 0.1)).assign(dataset="e")], ignore_index=True)
    with pytest.raises(TableError, match=r"several datasets \(d, e\)") as caught:
        four_criteria(cells_of(trials), bootstrap(trials, SCORING))
    assert caught.value.rows == ("a", "b")
    assert line(four_criteria(cells_of(trials).loc[["b"]], bootstrap(trials, SCORING)), "AMS")["best"] == "b"


def test_the_gap_between_agents_of_a_model() -> None:
    cells = pd.DataFrame(
        {
            "agent": ["z", "y", "x", "x", "y"],
            "model": ["m", "m", "m", "n", "n"],
            "dataset": ["d", "d", "d", "d", "d"],
            "AMS": [0.5, 0.5, 0.2, 0.7, np.nan],
            "usd_per_pass": np.nan,
        },
        index=list("abcde"),
    )
    found = delta_best(cells)
    assert found.reset_index().to_numpy().tolist() == [
        ["m", "d", 3, "y", 0.5, "x", 0.2, 0.3],
        ["n", "d", 1, "x", 0.7, "x", 0.7, 0.0],
    ]
    assert gap_to_best(cells).tolist() == pytest.approx([0, 0, 0.3, 0, np.nan], nan_ok=True)
    apart = cells.assign(dataset=list("dedde"))
    assert delta_best(apart)["gap"].tolist() == pytest.approx([0.3, 0, 0])


@LAW
@given(
    st.dictionaries(st.tuples(st.sampled_from("ab"), st.sampled_from("mno")), st.integers(0, 9), min_size=1)
)
def test_models_of_an_agent_are_compared_as_agents_of_a_model(scores: dict[tuple[str, str], int]) -> None:
    agents, models = zip(*scores, strict=True)
    cells = pd.DataFrame({"agent": agents, "model": models, "AMS": [n / 10 for n in scores.values()]})
    turned = cells.rename(columns={"agent": "model", "model": "agent"})
    fixed, varied = delta_best(cells, "agent"), delta_best(turned).rename(columns={"agents": "models"})
    pd.testing.assert_frame_equal(fixed, varied, check_names=False)
    gaps = gap_to_best(cells, "agent")
    assert gaps.tolist() == gap_to_best(turned).tolist()
    assert (gaps >= 0).all()
    assert gaps.groupby(cells["agent"]).max().tolist() == pytest.approx(fixed["gap"].tolist())


POINTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0.1, 0.2, 0.3, math.inf, math.nan])), max_size=9
)


@LAW
@given(POINTS)
def test_nobody_beats_the_front_and_everybody_else_is_beaten_by_it(points: list[tuple[int, float]]) -> None:
    rate, usd = np.array(points, float).reshape(-1, 2).T
    front = pareto(rate, usd)
    assert front.shape == rate.shape
    for n in np.flatnonzero(np.isfinite(usd)):
        better = (rate >= rate[n]) & (usd <= usd[n]) & ((rate > rate[n]) | (usd < usd[n])) & np.isfinite(usd)
        assert front[n] == (not better.any())
        assert front[n] or (better & front).any()
    assert not front[~np.isfinite(usd)].any()


def test_equal_points_share_the_front() -> None:
    assert pareto(np.array([0.5, 0.5, 0.4]), np.array([1.0, 1.0, 1.0])).tolist() == [True, True, False]
