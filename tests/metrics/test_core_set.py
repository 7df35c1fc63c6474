"""Core sets: the choice, its independence of held-out cells, and greedy search compared with all sets."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from metrics.ams import ams, tier_scores
from metrics.core_set import CoreSet, choose
from metrics.errors import TableError
from metrics.ranking import agreement
from tests.metrics.tables import SCORING, table, trial


def sweep(cells: int = 9, tasks: int = 5, seed: int = 0) -> pd.DataFrame:
    """Return cells of rising skill on tasks of both tiers; costs differ by task and are the same for all cells."""
    rng = np.random.default_rng(seed)
    return table(
        *(
            trial(
                f"{tier}-{n}", float(rng.random() < (cell + 1) / (cells + 1)), 0.01 * (n + 1), cell=f"c{cell}"
            )
            for cell in range(cells)
            for tier in ("easy", "hard")
            for n in range(tasks)
        )
    )


def scores(trials: pd.DataFrame) -> pd.Series[float]:
    return ams(tier_scores(trials, SCORING), SCORING)["AMS"]


@pytest.fixture(scope="module")
def chosen() -> CoreSet:
    return choose(sweep(), SCORING, 2)


def test_so_many_tasks_of_each_tier(chosen: CoreSet) -> None:
    assert {tier: len(tasks) for tier, tasks in chosen.tasks.items()} == {"easy": 2, "hard": 2}
    mapped = choose(sweep(), SCORING, {"easy": 1, "hard": 3})
    assert {tier: len(tasks) for tier, tasks in mapped.tasks.items()} == {"easy": 1, "hard": 3}
    assert all(name.startswith(f"{tier}-") for tier, tasks in mapped.tasks.items() for name in tasks)


def test_agreement_is_that_of_scoring_the_chosen_tasks_alone(chosen: CoreSet) -> None:
    trials = sweep()
    core, full = scores(trials[trials["task"].isin(sum(chosen.tasks.values(), ()))]), scores(trials)
    for said, cells in ((chosen.fitted, chosen.chosen_with), (chosen.agreement, chosen.held_out)):
        for one, other in zip(said, agreement(core[list(cells)], full[list(cells)]), strict=True):
            assert one == pytest.approx(other, nan_ok=True)


def test_cost_and_saving_by_hand(chosen: CoreSet) -> None:
    numbers = [int(name.split("-")[1]) for tasks in chosen.tasks.values() for name in tasks]
    assert chosen.cost_usd == pytest.approx(9 * 0.01 * sum(n + 1 for n in numbers))
    assert chosen.full_cost_usd == pytest.approx(9 * 0.01 * 2 * 15)
    assert chosen.saving == pytest.approx(1 - chosen.cost_usd / chosen.full_cost_usd)


def test_held_out_cells_take_no_part_in_the_choice(chosen: CoreSet) -> None:
    """The same tasks are chosen whatever the held-out cells did, so their scores and costs were not used."""
    trials = sweep()
    held = trials["cell"].isin(chosen.held_out)
    assert len(chosen.held_out) == 3
    assert not set(chosen.held_out) & set(chosen.chosen_with)
    contrary = trials.assign(
        reward=np.where(held, 1 - trials["reward"], trials["reward"]),
        cost_usd=np.where(held, 9 - trials["cost_usd"], trials["cost_usd"]),
    )
    contrary = contrary.assign(passed=contrary["reward"] >= 1)
    assert choose(contrary, SCORING, 2).tasks == chosen.tasks


def test_the_seed_holds_other_cells_out_and_repeats_itself(chosen: CoreSet) -> None:
    same = str(
        chosen
    )  # three held-out cells have no overlap of the three best, and NaN is not equal to itself
    assert str(choose(sweep(), SCORING, 2)) == same
    assert str(choose(sweep().sample(frac=1, random_state=1), SCORING, 2)) == same
    assert choose(sweep(), SCORING, 2, seed=1).held_out != chosen.held_out
    assert len(choose(sweep(), SCORING, 2, held_out=0.5).held_out) == 4
    assert len(choose(sweep(), SCORING, 2, held_out=0.0).held_out) == 3


def test_among_sets_that_rank_alike_the_cheapest_wins() -> None:
    """All tasks separate the cells equally well, so cost alone decides: the first tasks are the cheapest."""
    trials = table(
        *(
            trial(f"{tier}-{n}", cell / 9, 0.01 * (n + 1), cell=f"c{cell}")
            for cell in range(9)
            for tier in ("easy", "hard")
            for n in range(5)
        )
    )
    found = choose(trials, SCORING, 2)
    assert found.tasks == {"easy": ("easy-0", "easy-1"), "hard": ("hard-0", "hard-1")}
    assert found.agreement.spearman == pytest.approx(1)
    assert found.random_spearman == pytest.approx(1)
    dear = trials["cell"].isin(found.held_out) & trials["task"].isin(sum(found.tasks.values(), ()))
    assert choose(trials.assign(cost_usd=trials["cost_usd"].mask(dear, 99)), SCORING, 2).tasks == found.tasks


def uneven(seed: int) -> pd.DataFrame:
    """Return random trials: mixed tiers, expensive failures, invalid trials; with seed 0, one task is never valid."""
    rng = np.random.default_rng(seed)
    rewards = [None if drawn < 0.05 else round(drawn, 1) for drawn in rng.random(54)]
    return table(
        *(
            trial(
                f"t{n}",
                None if n == 4 and seed == 0 else rewards[6 * cell + n],
                float(rng.random()) * 0.4,
                tier=("easy", "hard")[n % 2],
                cell=f"c{cell}",
            )
            for cell in range(9)
            for n in range(6)
        )
    )


@pytest.mark.parametrize("seed", range(2))
def test_no_set_of_tasks_ranks_the_cells_better_by_the_scores_of_the_leaderboard(seed: int) -> None:
    """Each set is scored like a sweep of its tasks; of equal sets the cheaper one is chosen, then the first by name.

    Regression: cells that tie on the leaderboard had different ranks here, from sums in another order.
    """
    tiers = {name: of.model_copy(update={"tau": 0.2}) for name, of in SCORING.tiers.items()}
    tiers["easy"] = tiers["easy"].model_copy(update={"weight": 3.0})
    scoring, trials = SCORING.model_copy(update={"tiers": tiers}), uneven(seed)
    found = choose(trials, scoring, {"easy": 1, "hard": 2}, seed=seed)
    rows = trials[trials["cell"].isin(found.chosen_with)]
    cost = rows[rows["reward"].notna()].groupby("task")["cost_usd"].sum()
    cost = cost.reindex(rows["task"].unique(), fill_value=0.0)
    full = ams(tier_scores(rows, scoring), scoring)["AMS"]

    def worth(names: tuple[str, ...]) -> tuple[float, float]:
        core = ams(tier_scores(rows[rows["task"].isin(names)], scoring), scoring)["AMS"]
        return -round(float(core.corr(full, method="spearman")), 9), round(float(cost[list(names)].sum()), 9)

    sets = [(easy, *hard) for easy in ("t0", "t2", "t4") for hard in combinations(("t1", "t3", "t5"), 2)]
    best = min(sets, key=worth)
    assert (*found.tasks["easy"], *found.tasks["hard"]) == best
    assert found.fitted.spearman == pytest.approx(-worth(best)[0])


def test_all_tasks_may_be_chosen() -> None:
    found = choose(sweep(), SCORING, 5)
    assert found.fitted.spearman == pytest.approx(1)
    assert found.saving == pytest.approx(0)


def test_a_task_of_unknown_cost_is_not_chosen_for_being_free() -> None:
    """Regression: an unknown cost counted as 0 in the choice."""
    trials = table(
        *(
            trial(f"{tier}-{n}", cell / 9, None if n == 0 else 0.01 * n, cell=f"c{cell}")
            for cell in range(9)
            for tier in ("easy", "hard")
            for n in range(5)
        )
    )
    found = choose(trials, SCORING, 2)
    assert found.tasks == {"easy": ("easy-1", "easy-2"), "hard": ("hard-1", "hard-2")}


@pytest.mark.parametrize("seed", range(5))
def test_greedy_search_misses_little_of_what_trying_all_sets_finds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = choose(sweep(seed=seed), SCORING, 2)
    assert exact.greedy_shortfall is not None
    assert 0 <= exact.greedy_shortfall < 0.1
    monkeypatch.setattr("metrics.core_set.MOST_SETS", 0)
    greedy = choose(sweep(seed=seed), SCORING, 2)
    assert greedy.greedy_shortfall is None
    assert greedy.fitted.spearman == pytest.approx(exact.fitted.spearman - exact.greedy_shortfall)


def test_exchanging_tasks_finds_what_adding_one_at_a_time_misses() -> None:
    """Without the exchange, the search misses a Spearman of 0.096 here."""
    assert choose(sweep(seed=15), SCORING, 2).greedy_shortfall == pytest.approx(0)


def test_a_choice_of_more_sets_than_can_be_tried_is_greedy_and_beats_chance() -> None:
    found = choose(sweep(cells=15, tasks=14), SCORING, 5)  # C(14, 5) squared is four million
    assert found.greedy_shortfall is None
    assert found.fitted.spearman > 0.95
    assert found.agreement.spearman >= found.random_spearman - 0.2
    assert len(found.chosen_with) == 10


def test_a_tier_of_no_weight_takes_no_part() -> None:
    tiers = {**SCORING.tiers, "hard": SCORING.tiers["hard"].model_copy(update={"weight": 0.0})}
    found = choose(sweep(), SCORING.model_copy(update={"tiers": tiers}), 2)
    assert list(found.tasks) == ["easy"]
    assert found.full_cost_usd == pytest.approx(9 * 0.01 * 15)


def test_unknown_costs_are_counted_and_nothing_known_saves_nothing() -> None:
    trials = sweep()
    trials.loc[[0, 1], "cost_usd"] = np.nan
    assert choose(trials, SCORING, 2).unpriced == 2
    assert math.isnan(choose(trials.assign(cost_usd=0.0), SCORING, 2).saving)
    with pytest.raises(TableError, match="No cost of any cell is known, so there is no AMS to choose by"):
        choose(trials.assign(cost_usd=np.nan), SCORING, 2)


@pytest.mark.parametrize("per_tier", [0, 6, {"easy": 2}, {"easy": 2, "hard": 6}])
def test_more_tasks_than_a_tier_has_are_refused(per_tier: int | dict[str, int]) -> None:
    with pytest.raises(TableError, match=r"\d tasks of tier (easy|hard) wanted, which has 5"):
        choose(sweep(), SCORING, per_tier)


def test_too_few_cells_to_hold_any_out_are_refused() -> None:
    with pytest.raises(TableError, match="5 cells, where 3 are needed to choose with and 3 to hold out"):
        choose(sweep(cells=5), SCORING, 2)


def test_a_task_that_not_every_cell_plans_is_named() -> None:
    trials = sweep()
    torn = trials[~(trials["cell"].eq("c3") & trials["task"].eq("hard-2"))]
    with pytest.raises(TableError, match=r"Tasks that not every cell plans \(hard-2\)") as caught:
        choose(torn, SCORING, 2)
    assert len(caught.value.rows) == 8


def test_two_datasets_are_not_ranked_together() -> None:
    with pytest.raises(TableError, match="several datasets"):
        choose(pd.concat([sweep(), sweep().assign(dataset="e", cell="z")]), SCORING, 2)
