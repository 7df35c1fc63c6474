"""Intervals: compared with known values and with the point estimates, and fast enough to be always computed."""

from __future__ import annotations

import math
import time
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.ams import ams, tier_scores
from metrics.table import summary
from metrics.uncertainty import (
    BETTER,
    Draws,
    bootstrap,
    holm,
    interval_1645_sd,
    intervals,
    lead,
    pairwise,
    percentiles,
    wilson,
)
from tests.metrics.tables import SCORING, line, table, trial


def some_trials(cell: str = "a", tasks: int = 12, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return table(
        *(
            trial(f"{tier}-{n}", float(rng.random() < 0.6), float(rng.random()) * 3, cell=cell)
            for tier in ("easy", "hard")
            for n in range(tasks)
        )
    )


def test_wilson_of_a_published_example() -> None:
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)  # Newcombe 1998, table I


def test_wilson_at_the_ends() -> None:
    z2 = NormalDist().inv_cdf(0.975) ** 2
    assert wilson(0, 9) == pytest.approx((0, z2 / (9 + z2)))
    assert wilson(9, 9) == pytest.approx((9 / (9 + z2), 1))
    assert all(math.isnan(end) for end in wilson(0, 0))


@given(st.integers(1, 200), st.data(), st.floats(0.5, 0.99))
def test_wilson_holds_the_rate(n: int, data: st.DataObject, confidence: float) -> None:
    passes = data.draw(st.integers(0, n))
    low, high = wilson(passes, n, confidence)
    assert 0 <= low <= passes / n + 1e-12
    assert passes / n - 1e-12 <= high <= 1


def test_without_variation_the_draws_are_the_point_estimates() -> None:
    trials = table(trial("easy-1", 0.5, 0.16), trial("hard-1", 1.0, 3.5))
    drawn = bootstrap(trials, SCORING)
    assert drawn.drawn["AMS"] == pytest.approx(
        np.full((200, 1), ams(tier_scores(trials, SCORING), SCORING)["AMS"]["a"])
    )
    cell = line(summary(trials, "latest_completed"), "a")
    assert drawn.drawn["pass_rate"] == pytest.approx(np.full((200, 1), cell["pass_rate"]))
    assert drawn.drawn["usd_per_pass"] == pytest.approx(np.full((200, 1), cell["usd_per_pass"]))


def test_the_spread_is_that_of_a_mean_over_tasks() -> None:
    trials = some_trials(tasks=100)
    drawn = bootstrap(trials, SCORING.model_copy(update={"resamples": 4000}))
    passed = trials["passed"].astype(float).groupby(trials["tier"])
    expected = math.sqrt(sum(p.var(ddof=0) / len(p) for _, p in passed)) / 2
    assert drawn.drawn["pass_rate"].std() == pytest.approx(expected, rel=0.05)
    assert drawn.drawn["pass_rate"].mean() == pytest.approx(trials["passed"].mean(), abs=0.005)


def test_intervals_hold_the_point_estimates_and_widen_with_confidence() -> None:
    trials = some_trials()
    drawn = bootstrap(trials, SCORING)
    ends, wider = line(intervals(drawn), "a"), line(intervals(drawn, 0.99), "a")
    cell = line(summary(trials, "latest_completed"), "a")
    for name, value in (
        ("AMS", ams(tier_scores(trials, SCORING), SCORING)["AMS"]["a"]),
        ("pass_rate", cell["pass_rate"]),
        ("usd_per_pass", cell["usd_per_pass"]),
    ):
        assert (
            wider[f"{name}_low"]
            <= ends[f"{name}_low"]
            <= value
            <= ends[f"{name}_high"]
            <= wider[f"{name}_high"]
        )


def test_cells_of_a_dataset_are_paired_and_other_cells_change_nothing() -> None:
    alone = bootstrap(some_trials("a"), SCORING)
    other = some_trials("z", seed=1).assign(dataset="other")
    both = bootstrap(pd.concat([some_trials("a"), some_trials("b"), other]), SCORING)
    assert both.cells == ("a", "b", "z")
    assert np.array_equal(both.drawn["AMS"][:, 0], both.drawn["AMS"][:, 1])  # equal trials, equal resamples
    assert np.array_equal(both.drawn["AMS"][:, 0], alone.drawn["AMS"][:, 0])
    assert not np.array_equal(both.drawn["AMS"][:, 0], both.drawn["AMS"][:, 2])


def test_the_seed_decides() -> None:
    again, other = (bootstrap(some_trials(), SCORING.model_copy(update={"seed": s})) for s in (0, 1))
    assert np.array_equal(bootstrap(some_trials(), SCORING).drawn["AMS"], again.drawn["AMS"])
    assert not np.array_equal(again.drawn["AMS"], other.drawn["AMS"])


def test_row_order_is_irrelevant() -> None:
    trials = some_trials()
    assert np.allclose(bootstrap(trials, SCORING).drawn["AMS"], bootstrap(trials[::-1], SCORING).drawn["AMS"])


def test_all_attempts_of_a_task_go_together() -> None:
    """Three times the same attempts cost three times as much per task, but no more per pass."""
    trials = some_trials()
    thrice = pd.concat([trials.assign(attempt=n) for n in (1, 2, 3)])
    once, more = bootstrap(trials, SCORING), bootstrap(thrice, SCORING)
    assert np.allclose(once.drawn["usd_per_pass"], more.drawn["usd_per_pass"])
    assert np.allclose(once.drawn["AMS"], more.drawn["AMS"])


def test_no_pass_stays_infinite_and_an_unknown_cost_unknown() -> None:
    trials = table(
        trial("easy-1", 0.0, 0.0),
        trial("hard-1", 0.0, 0.0),
        trial("easy-1", cell="b"),
        trial("hard-1", cost=None, cell="b"),
    )
    ends = intervals(bootstrap(trials, SCORING))
    assert line(ends, "a")[["usd_per_pass_low", "usd_per_pass_high"]].tolist() == [math.inf, math.inf]
    assert line(ends, "b")[["usd_per_pass_low", "usd_per_pass_high"]].isna().all()


def test_a_missing_tier_gives_no_interval_of_ams_and_one_of_the_rest() -> None:
    ends = line(intervals(bootstrap(table(trial("easy-1"), trial("unknown-1")), SCORING)), "a")
    assert math.isnan(ends["AMS_low"])
    assert ends["pass_rate_low"] == 1.0


def test_2000_resamples_of_24_cells_and_90_tasks_take_well_under_two_seconds() -> None:
    trials = pd.concat([some_trials(f"c{n}", tasks=45, seed=n) for n in range(24)])
    started = time.process_time()
    bootstrap(trials, SCORING.model_copy(update={"resamples": 2000}))
    assert time.process_time() - started < 2


def test_every_statistic_as_observed_is_that_of_the_summary() -> None:
    trials = pd.concat([some_trials("a"), some_trials("b", seed=1)], ignore_index=True)
    drawn = bootstrap(trials, SCORING)
    cells = summary(trials, "latest_completed").join(ams(tier_scores(trials, SCORING), SCORING))
    assert drawn.cells == ("a", "b")
    other_ends = {"AMS_most", "usd_per_pass_least", "tokens_per_pass_least"}
    assert set(drawn.observed) == set(drawn.drawn) == {*BETTER, *other_ends}
    for name, values in drawn.observed.items():
        assert values == pytest.approx(cells[name].to_numpy(float))


def test_resamples_of_tokens_and_passes_go_with_those_of_their_ratios() -> None:
    drawn = bootstrap(some_trials(), SCORING).drawn
    assert drawn["passes"] == pytest.approx(drawn["pass_rate"] * 24)
    assert drawn["tokens_per_pass"] == pytest.approx(100 * 24 / drawn["passes"])


def test_the_interval_by_the_name_1645_sd_sqrt_n() -> None:
    assert interval_1645_sd([1.0, 2.0, 3.0, 4.0]) == pytest.approx(
        (2.5 - 1.645 * math.sqrt(5 / 3) / 2, 2.5 + 1.645 * math.sqrt(5 / 3) / 2)
    )
    assert interval_1645_sd([7.0, 7.0]) == (7.0, 7.0)
    for unknown in ([], [1.0], [1.0, math.nan]):
        assert all(math.isnan(end) for end in interval_1645_sd(unknown))


def draws_of(datasets: str = "ddd", **statistics: list[list[float]]) -> Draws:
    """Return draws with the given values of cells a, b, c; the first row is the observed one."""
    values = {name: np.array(rows, float) for name, rows in statistics.items()}
    return Draws(
        tuple("abc"[: len(datasets)]),
        tuple(datasets),
        {name: rows[0] for name, rows in values.items()},
        {name: rows[1:] for name, rows in values.items()},
    )


def test_a_lead_is_in_the_statistic_s_own_unit_and_of_the_one_that_is_better() -> None:
    assert {name: float(lead(3.0, 1.0, name)) for name in (*BETTER, "a benchmark's own")} == {
        "AMS": 2, "pass_rate": 2, "passes": 2, "mean_reward": 2, "usd_per_pass": -2, "tokens_per_pass": -2,
        "a benchmark's own": 2,
    }  # fmt: skip


def test_pairs_by_hand() -> None:
    drawn = draws_of("dd", AMS=[[0.4, 0.5], [0.3, 0.6], [0.5, 0.6], [0.6, 0.5], [0.5, 0.5]])
    pairs = pairwise(drawn, confidence=0.5)
    assert len(pairs) == 1
    row = pairs.iloc[0]
    assert row[["dataset", "left", "right", "lead", "wins"]].tolist() == [
        "d",
        "b",
        "a",
        pytest.approx(0.1),
        0.5,
    ]
    assert row[["low", "high"]].tolist() == pytest.approx([-0.1, 0.1])  # leads drawn: -0.1, 0, 0.1, 0.3
    assert row["p"] == row["p_holm"] == 1  # two of four at or below 0: 2 * (2 + 1) / (4 + 1), at most 1


def test_a_lead_in_every_resample_has_the_smallest_p_that_so_few_can_give() -> None:
    drawn = draws_of("dd", usd_per_pass=[[1.0, 2.0]] * 20)
    row = pairwise(drawn, "usd_per_pass").iloc[0]
    assert row[["left", "right", "lead", "wins"]].tolist() == ["a", "b", 1.0, 1.0]  # cheaper is better
    assert row["p"] == pytest.approx(2 / 20)


def test_pairs_stay_within_a_dataset_and_are_corrected_within_it() -> None:
    drawn = draws_of("dde", AMS=[[0.5, 0.4, 0.1]] * 20)
    assert pairwise(drawn)[["dataset", "left", "right"]].to_numpy().tolist() == [["d", "a", "b"]]
    assert pairwise(draws_of("d", AMS=[[0.5]] * 3)).empty


def test_a_cell_without_a_score_has_pairs_without_a_verdict() -> None:
    pairs = pairwise(draws_of(AMS=[[0.5, math.nan, 0.1]] * 20)).set_index(["left", "right"])
    assert line(pairs, ("a", "b"))[["lead", "low", "high", "wins", "p", "p_holm"]].isna().all()
    assert line(pairs, ("a", "c"))["p_holm"] == line(pairs, ("a", "c"))["p"]  # the others are no hypotheses


def test_no_pass_on_either_side_is_no_lead() -> None:
    row = pairwise(draws_of("dd", usd_per_pass=[[math.inf, math.inf]] * 20), "usd_per_pass").iloc[0]
    assert row[["lead", "low", "high", "wins", "p"]].tolist() == [0, 0, 0, 0, 1]
    assert row[["left", "right"]].tolist() == ["a", "b"], "of equals the first by name"


def test_a_lead_that_may_be_infinite_has_no_joint_p() -> None:
    drawn = draws_of("dd", usd_per_pass=[[1.0, 2.0]] * 10 + [[1.0, math.inf]])
    row = pairwise(drawn, "usd_per_pass").iloc[0]
    assert row[["lead", "high"]].tolist() == [1, math.inf]
    assert math.isnan(row["p_joint"])


def test_ends_of_an_interval_cut_off_as_much_on_either_side() -> None:
    assert percentiles(np.arange(1, 201), 0.5).tolist() == [50, 150]
    assert percentiles(np.arange(1, 201), 0.75).tolist() == [25, 175]


def test_of_24_cells_one_that_alone_passes_everything_is_decided_where_holm_cannot_say_so() -> None:
    rows = [trial(f"{tier}-{n}", cost=0.05) for tier in ("easy", "hard") for n in range(45)]
    cells = [table(*rows).assign(cell=f"c{n:02}", reward=float(n == 7), passed=n == 7) for n in range(24)]
    trials = pd.concat(cells, ignore_index=True)
    pairs = pairwise(bootstrap(trials, SCORING.model_copy(update={"resamples": 2000})))
    ahead = pairs["left"] == "c07"
    assert (ahead.sum(), len(pairs)) == (23, 276)
    assert pairs.loc[ahead, "p_holm"].min() == pytest.approx(2 * 276 / 2001)
    assert pairs.loc[ahead, "p_joint"].tolist() == pytest.approx([1 / 2001] * 23)
    assert (pairs.loc[~ahead, "p_joint"] == 1).all()


def test_joint_p_by_hand() -> None:
    drawn = draws_of(
        AMS=[[0.9, 0.5, 0.4], [0.9, 0.5, 0.4], [0.9, 0.4, 0.5], [0.7, 0.7, 0.4], [0.9, 0.5, 0.4]]
    )
    pairs = pairwise(drawn).set_index(["left", "right"])["p_joint"]
    # deviations of a-b: 0, 0.1, 0.4, 0; of a-c: 0, 0.1, 0.2, 0; of b-c: 0, 0.2, 0.2, 0
    assert pairs.to_dict() == pytest.approx({("a", "c"): 1 / 5, ("a", "b"): 2 / 5, ("b", "c"): 3 / 5})
    nearly = draws_of("dd", AMS=[[0.9, 0.4], [0.995, 0.0], [0.9, 0.4]])  # 0.495 away, and 0.5 ahead
    assert pairwise(nearly)["p_joint"].tolist() == pytest.approx([1 / 3])


def test_of_equal_cells_the_joint_p_errs_in_few_families() -> None:
    rng = np.random.default_rng(0)
    families, wrong = 200, 0
    for _ in range(families):
        passed = (rng.random((60, 5)) < 0.5).astype(float)
        times = rng.multinomial(60, np.full(60, 1 / 60), size=300)
        rates = np.vstack([passed.mean(axis=0), times @ passed / 60])
        draws = Draws(tuple("abcde"), tuple("ddddd"), {"AMS": rates[0]}, {"AMS": rates[1:]})
        wrong += bool((pairwise(draws)["p_joint"] <= 0.05).any())
    assert 0 < wrong / families <= 0.08  # 5 % and two standard errors


def test_a_cell_of_other_tasks_changes_no_interval_and_has_its_own() -> None:
    """Regression: all cells were drawn from the tasks of all of them. The score of such a cell was unknown once a
    resample held none of its own tasks, and the others were resampled among tasks that they never planned.
    """
    rows = [trial(f"{tier}-{n}", float(n % 2)) for tier in ("easy", "hard") for n in range(4)]
    one, odd = table(*rows), table(*rows[1:], trial("easy-9")).assign(cell="odd")
    alone, together = bootstrap(one, SCORING), bootstrap(pd.concat([one, odd], ignore_index=True), SCORING)
    fewer = bootstrap(odd, SCORING)
    for name, drawn in together.drawn.items():
        np.testing.assert_allclose(drawn[:, 0], alone.drawn[name][:, 0])
        np.testing.assert_allclose(drawn[:, 1], fewer.drawn[name][:, 0])
    assert np.isfinite(together.drawn["AMS"]).all()


def test_a_cell_whose_trials_never_ran_has_no_price_in_any_resample() -> None:
    ran = [trial("easy-1"), trial("hard-1", 0.0)]
    never = [trial("easy-1", None, None, cell="b"), trial("hard-1", None, None, cell="b")]
    drawn = bootstrap(table(*ran, *never), SCORING)
    for name in ("usd_per_pass", "tokens_per_pass"):
        assert np.isnan(drawn.drawn[name][:, 1]).all()
        assert math.isnan(drawn.observed[name][1])
        assert not np.isnan(drawn.drawn[name][:, 0]).any()


def test_holm_of_a_worked_example() -> None:
    p = pd.Series([0.01, 0.04, 0.03, math.nan, 0.005])
    assert holm(p).tolist() == pytest.approx([0.03, 0.06, 0.06, math.nan, 0.02], nan_ok=True)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_lies_between_no_correction_and_bonferroni_and_keeps_the_order(values: list[float]) -> None:
    p = pd.Series(values)
    corrected = holm(p)
    assert (corrected >= p - 1e-12).all()
    assert (corrected <= (p * len(p)).clip(upper=1) + 1e-12).all()
    assert corrected[p.sort_values().index].is_monotonic_increasing


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_pairs_are_antisymmetric_and_their_wins_share_the_resamples(seed: int) -> None:
    trials = pd.concat([some_trials("a", seed=seed), some_trials("b", seed=seed + 1)], ignore_index=True)
    drawn = bootstrap(trials, SCORING)
    forth, back = (
        lead(drawn.drawn["AMS"].T[0], drawn.drawn["AMS"].T[1], "AMS"),
        lead(drawn.drawn["AMS"].T[1], drawn.drawn["AMS"].T[0], "AMS"),
    )
    assert np.array_equal(forth, -back)
    row = pairwise(drawn).iloc[0]
    assert row["low"] <= row["high"]
    assert 0 <= row["wins"] <= 1
    assert row["lead"] >= 0


def test_of_equal_cells_holm_calls_few_different() -> None:
    """Six cells of equal skill on the same tasks make 15 pairs; after correction none should look different."""
    same = pd.concat(
        [some_trials(name, tasks=30, seed=n) for n, name in enumerate("abcdef")], ignore_index=True
    )
    pairs = pairwise(bootstrap(same, SCORING), "pass_rate")
    assert len(pairs) == 15
    assert (pairs["p_holm"] > 0.05).sum() >= 14
