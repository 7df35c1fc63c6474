"""Effort scores worked out by hand, the laws of eq. 1, and tables that cannot be calibrated."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.ams import ams, tier_scores
from metrics.calibration import TIERS, budget_grid, calibrate, effort, percentile_rank, thirds
from metrics.checks import relabel
from metrics.errors import TableError
from runner.records import Scoring, TierScoring
from tests.metrics.tables import line, table, trial

LAW = settings(max_examples=15)


def seen(
    task: str, reward: float | None, size: int, cell: str = "a", cost: float | None = 0.05
) -> dict[str, object]:
    """Return one trial whose tokens, turns and interactions rise with `size`."""
    return trial(task, reward, cost, cell=cell, tokens=100 * size, turns=size, interactions=2 * size)


def graded(tasks: int) -> pd.DataFrame:
    """Return trials of tasks t-00.. of rising effort: cell a passes and cell b fails each; costs rise by 0.01 USD."""
    return table(
        *(seen(f"t-{n:02d}", 1.0, n + 1, cost=0.10 + n / 100) for n in range(tasks)),
        *(seen(f"t-{n:02d}", 0.0, n + 1, cell="b", cost=0.20 + n / 100) for n in range(tasks)),
    )


def test_effort_by_hand() -> None:
    trials = table(
        seen("t-1", 1.0, 1),
        seen("t-1", 0.5, 3, cell="b"),  # partial credit is no pass
        seen("t-2", 0.0, 5),
        seen("t-2", 0.0, 5, cell="b"),
        seen("t-3", 1.0, 2),
        seen("t-3", None, 999, cell="b"),  # says nothing
    )
    tasks = effort(trials)
    first, second, third = (line(tasks, f"t-{n}") for n in (1, 2, 3))
    assert first[["trials", "p", "r", "s", "tokens", "turns", "interactions"]].tolist() == pytest.approx(
        [2, 0.5, 0.75, 0.575, 200, 2, 4]
    )
    # t-1 and t-3 share the two lowest ranks of all three medians: (1.5 - 1) / 2.
    assert first["E"] == pytest.approx(55 * 0.425 + 45 * 0.25)
    assert second["E"] == pytest.approx(55 + 45)
    assert third["E"] == pytest.approx(0 + 45 * 0.25)


def test_each_median_has_its_own_weight() -> None:
    rows = [
        trial("t-1", 1.0, tokens=9, turns=1, interactions=1),
        trial("t-2", 1.0, tokens=1, turns=9, interactions=1),
        trial("t-3", 1.0, tokens=1, turns=1, interactions=9),
    ]
    points = effort(table(*rows))["E"]
    assert points.tolist() == pytest.approx([25 + 2.5 + 2.5, 25 / 4 + 10 + 2.5, 25 / 4 + 2.5 + 10])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_percentile_ranks(values: list[int]) -> None:
    ranks = percentile_rank(pd.Series(values, dtype=float))
    assert ranks.between(0, 1).all()
    assert ranks.mean() == pytest.approx(0.5 if len(values) > 1 else 0)
    order = np.argsort(values, kind="stable")
    assert (np.diff(ranks.to_numpy()[order]) >= 0).all()


@LAW
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 10**6), st.integers(0, 99)), min_size=3, max_size=9),
    st.randoms(use_true_random=False),
)
def test_effort_is_a_percentage_and_deaf_to_order_cost_and_who_it_was(
    drawn: list[tuple[float, int, int]], random: object
) -> None:
    trials = table(
        *(
            trial(f"t-{n}", reward, tokens=tokens, turns=turns, interactions=turns)
            for n, (reward, tokens, turns) in enumerate(drawn)
        )
    )
    points = effort(trials)["E"]
    assert points.between(0, 100).all()
    order = list(trials.index)
    random.shuffle(order)  # type: ignore[attr-defined]
    other = trials.loc[order].assign(cell=[f"c{n}" for n in order], cost_usd=[float(n) for n in order])
    pd.testing.assert_series_equal(effort(other)["E"], points)


@LAW
@given(st.integers(3, 95))
def test_thirds_are_equal_and_the_remainder_is_in_the_middle(tasks: int) -> None:
    points = pd.DataFrame({"E": np.linspace(0, 100, tasks)}, index=[f"t-{n:02d}" for n in range(tasks)])
    labels = thirds(points.sample(frac=1, random_state=0))
    sizes = labels.value_counts()
    assert sizes["easy"] == sizes["hard"] == tasks // 3
    assert sizes.sum() == tasks
    assert labels.sort_index().map(TIERS.index).is_monotonic_increasing  # never harder with less effort


def test_equal_effort_is_cut_by_name() -> None:
    labels = thirds(pd.DataFrame({"E": 1.0}, index=["d", "b", "e", "a", "c", "f", "g"]))
    assert labels.tolist() == ["easy"] * 2 + ["medium"] * 3 + ["hard"] * 2  # a, b / c, d, e / f, g
    assert labels.index.tolist() == list("abcdefg")


def test_the_same_rewards_of_other_cells_are_equal_effort() -> None:
    """Regression: the same terms summed in another order gave 1e-14 more effort, and another tier."""
    rewards = [0.56, 0.8, 0.44, 0.04, 0.19, 0.09, 0.33, 0.68, 0.59, 0.66, 0.45, 0.11]
    others = [rewards[n] for n in (3, 7, 0, 10, 11, 8, 4, 5, 1, 2, 6, 9)]
    tasks = {"t-1": others, "t-2": rewards, "t-3": [0.0] * 12}
    trials = table(*(seen(task, r, 1, cell=f"c{n}") for task, of in tasks.items() for n, r in enumerate(of)))
    assert thirds(effort(trials)).to_dict() == {"t-1": "easy", "t-2": "medium", "t-3": "hard"}


def test_two_tasks_cannot_fill_three_tiers() -> None:
    with pytest.raises(TableError, match="2 tasks cannot fill three tiers"):
        calibrate(graded(2))


def test_a_grid_by_hand() -> None:
    costs = pd.Series([0.101, 0.2, 0.3, 0.4, 0.502, np.nan])
    assert budget_grid(costs, (0.0, 0.25, 0.5, 0.875, 1.0)) == (0.10, 0.20, 0.30, 0.45, 0.50)


def test_cents_that_would_say_nothing_keep_two_digits() -> None:
    assert budget_grid(pd.Series([0.000123, 0.00456, 0.006]), (0.0, 0.5, 1.0)) == (0.00012, 0.0046, 0.01)
    assert budget_grid(pd.Series([0.0, 0.0]), (0.5,)) == (0.0,)


@LAW
@given(st.lists(st.floats(0.01, 9), min_size=1, max_size=20))
def test_a_grid_rises_within_the_costs(costs: list[float]) -> None:
    grid = budget_grid(pd.Series(costs), (0.1, 0.3, 0.5, 0.7, 0.9))
    assert list(grid) == sorted(grid)
    half_a_cent = 0.005 + 1e-9  # 1.645 - 0.005 is more than 1.64 in binary
    assert min(costs) - half_a_cent <= grid[0] <= grid[-1] <= max(costs) + half_a_cent


def test_calibration_by_hand() -> None:
    trials = graded(9)
    made = calibrate(trials, quantiles=(0.0, 1.0), tau_quantile=0.5)
    assert [made.labels[f"t-{n:02d}"] for n in (0, 2, 3, 5, 6, 8)] == ["easy"] * 2 + ["medium"] * 2 + [
        "hard"
    ] * 2
    assert made.budgets == {"easy": (0.10, 0.22), "medium": (0.13, 0.25), "hard": (0.16, 0.28)}
    assert made.tau == pytest.approx({"easy": 0.21, "medium": 0.24, "hard": 0.27})  # failures alone
    assert (made.quantiles, made.tau_quantile, made.unpriced) == ((0.0, 1.0), 0.5, 0)


def test_what_was_calibrated_scores() -> None:
    trials = graded(9)
    made = calibrate(trials)
    scoring = Scoring(
        name="calibrated",
        tiers={name: TierScoring(budgets=made.budgets[name], tau=made.tau[name]) for name in TIERS},
    )
    scores = ams(tier_scores(relabel(trials, made.labels), scoring), scoring)
    assert line(scores, "a")["AMS"] > line(scores, "b")["AMS"] == 0


def test_unknown_costs_are_counted_and_take_no_part_in_budgets() -> None:
    trials = graded(9)
    unknown = trials["task"].isin(["t-00", "t-08"]) & trials["cell"].eq("a")
    trials.loc[unknown, "cost_usd"] = np.nan
    made = calibrate(trials, quantiles=(0.0,))
    assert (made.unpriced, made.budgets["easy"]) == (2, (0.11,))


def test_a_tier_in_which_nothing_failed_has_no_tau_and_is_named() -> None:
    trials = graded(9)
    trials.loc[trials["cell"].eq("b") & trials["task"].isin(["t-06", "t-07", "t-08"]), "cost_usd"] = np.nan
    with pytest.raises(TableError, match="Tier hard has no failed trial with a known cost") as caught:
        calibrate(trials)
    assert caught.value.rows == (6, 7, 8, 15, 16, 17)


def test_a_task_that_nobody_was_judged_on_is_named() -> None:
    trials = table(seen("t-1", 1.0, 1), seen("t-2", None, 1), seen("t-3", 1.0, 1))
    with pytest.raises(TableError, match="of task t-2") as caught:
        effort(trials)
    assert caught.value.rows == (1,)


def test_a_task_whose_turns_nobody_counted_is_named() -> None:
    trials = table(seen("t-1", 1.0, 1), {**seen("t-2", 1.0, 1), "turns": math.nan})
    with pytest.raises(TableError, match="of task t-2"):
        effort(trials)


def test_two_datasets_are_not_calibrated_together() -> None:
    other = graded(3).assign(dataset="other")
    with pytest.raises(TableError, match=r"several datasets \(d, other\)"):
        calibrate(pd.concat([graded(3), other], ignore_index=True))


def test_calibration_needs_interactions() -> None:
    with pytest.raises(
        TableError, match=r"^No trial has interactions; measures=\[tokens,turns\] leaves that out$"
    ):
        effort(graded(3).drop(columns="interactions"))
