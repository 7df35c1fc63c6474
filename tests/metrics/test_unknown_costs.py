"""An unknown cost never helps a cell: bounds of AMS and of prices per pass, and comparisons with such bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.ams import ams, tier_scores
from metrics.core_set import choose
from metrics.ranking import four_criteria
from metrics.table import summary
from metrics.uncertainty import bootstrap, intervals, pairwise
from tests.metrics.tables import SCORING, line, table, trial

MEAN = SCORING.model_copy(update={"attempts": "mean"})


def found(trials: pd.DataFrame, rule: str = "mean") -> Any:
    """Return the summary of each cell, whose precise types pandas cannot tell."""
    scoring = SCORING.model_copy(update={"attempts": rule})
    return summary(trials, rule).join(ams(tier_scores(trials, scoring), scoring))


def cell(name: str, costs: list[float | None], *, passes: int = 5, tasks: int = 10) -> list[dict[str, Any]]:
    """Return trials of both tiers; in each the first `passes` pass, and `costs` are taken in turn."""
    return [
        trial(f"{tier}-{n}", float(n < passes), costs[n % len(costs)], cell=name)
        for tier in ("easy", "hard")
        for n in range(tasks)
    ]


def test_of_two_cells_with_equal_outcomes_the_one_that_hides_its_costs_had_twice_the_ams() -> None:
    """Regression: its failures were expensive, but their costs were unknown."""
    trials = table(*cell("shown", [9.0]), *cell("hidden", [None]))
    cells = found(trials)
    assert cells.loc["shown", "AMS"] == pytest.approx(0.6 * 0.5 * 0.5)
    assert math.isnan(cells.loc["hidden", "AMS"])
    assert cells.loc["hidden", "why"] == "no trial has a known cost"
    assert (
        line(four_criteria(cells, bootstrap(trials, MEAN)), "AMS")[["best", "runner_up"]].tolist()[0]
        == "shown"
    )
    assert intervals(bootstrap(trials, MEAN)).loc["hidden", ["AMS_low", "AMS_high"]].isna().all()


def test_one_cost_that_is_shown_is_not_enough_to_lead() -> None:
    """One known cost is enough for an AMS, but only as a lower bound, at most the other cell's AMS."""
    trials = table(*cell("shown", [0.01]), *cell("hidden", [0.01, *[None] * 9]))
    cells = found(trials)
    assert cells.loc["hidden", "AMS"] < cells.loc["shown", "AMS"] == cells.loc["shown", "AMS_most"]
    assert cells.loc["hidden", "AMS_most"] == pytest.approx(cells.loc["shown", "AMS"])
    criterion = line(four_criteria(cells, bootstrap(trials, MEAN)), "AMS")
    assert (criterion["best"], criterion["alike"], criterion["clear"]) == ("shown", ("hidden",), False)
    assert criterion["low"] == 0, "if nothing of what is hidden cost anything, they are equal"
    pair = pairwise(bootstrap(trials, MEAN)).iloc[0]
    assert (pair["left"], pair["low"], pair["p"], pair["p_joint"]) == ("shown", 0, 1, 1)


def test_a_lead_larger_than_all_that_is_hidden_is_clear() -> None:
    trials = table(*cell("good", [0.01], passes=9), *cell("bad", [0.01, None], passes=1))
    criterion = line(four_criteria(found(trials), bootstrap(trials, MEAN)), "AMS")
    assert (criterion["best"], criterion["alike"], criterion["clear"]) == ("good", (), True)
    assert criterion["low"] > 0


def test_who_hides_costs_may_be_ahead_and_is_then_no_less_so() -> None:
    trials = table(*cell("good", [0.01, 0.01, None], passes=9), *cell("bad", [9.0], passes=1))
    criterion = line(four_criteria(found(trials), bootstrap(trials, MEAN)), "AMS")
    assert (criterion["best"], criterion["clear"]) == ("good", True)
    pair = pairwise(bootstrap(trials, MEAN)).iloc[0]
    assert pair["low"] <= pair["lead"] < pair["high"]


def test_parts_of_a_tier_at_both_ends() -> None:
    trials = table(trial("easy-1", 1.0, None), trial("easy-2", 0.0, None), trial("hard-1", 1.0, 0.5))
    easy = line(tier_scores(trials, SCORING), ("a", "easy"))
    assert easy[["SR", "CostAUBQC", "EFR", "unpriced"]].tolist() == [0.5, 0, 0.5, 2]
    assert easy[["CostAUBQC_most", "EFR_least"]].tolist() == [0.5, 0]
    assert easy["TierScore"] == pytest.approx(0.3 * 0.5)
    assert easy["TierScore_most"] == 0.5


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["easy-1", "easy-2", "hard-1", "hard-2"]),
        st.floats(0, 1) | st.just(1.0),
        st.none() | st.floats(0, 6),
        st.floats(0, 6),
    ),
    min_size=1,
    max_size=9,
)


@pytest.mark.parametrize("rule", ["latest_completed", "mean", "pass@2"])
@settings(max_examples=15)
@given(drawn=ROWS)
def test_whatever_the_unknown_costs_are_ams_lies_between_its_bounds(rule: str, drawn: list[Any]) -> None:
    rows = [("easy-0", 0.5, 0.1, 0.0), ("hard-0", 0.0, 0.1, 0.0), *drawn]
    hidden = table(*(trial(task, reward, cost, attempt=n) for n, (task, reward, cost, _) in enumerate(rows)))
    true = hidden["cost_usd"].astype(float).fillna(pd.Series([other for *_, other in rows]))
    bounds, known = found(hidden, rule).iloc[0], found(hidden.assign(cost_usd=true), rule).iloc[0]
    assert bounds["AMS"] - 1e-9 <= known["AMS"] <= bounds["AMS_most"] + 1e-9
    assert known["AMS"] == known["AMS_most"]
    if known["usd_per_pass"] < math.inf:
        assert bounds["usd_per_pass_least"] <= known["usd_per_pass"] + 1e-9


def test_an_interval_reaches_from_one_bound_to_the_other() -> None:
    trials = table(*cell("a", [0.01, None]))
    drawn = bootstrap(trials, MEAN)
    ends, own = line(intervals(drawn), "a"), line(found(trials), "a")
    assert ends["AMS_low"] <= own["AMS"] < own["AMS_most"] <= ends["AMS_high"]
    assert (drawn.drawn["AMS"] <= drawn.drawn["AMS_most"] + 1e-12).all()


def test_one_unknown_cost_emptied_usd_per_pass_for_all() -> None:
    """The known part of a price is its lower bound."""
    trials = table(*cell("a", [0.1]), *cell("b", [0.2, 0.2, 0.2, 0.2, None]))
    cells = found(trials)
    assert math.isnan(cells.loc["b", "usd_per_pass"])
    assert cells["usd_per_pass_least"].tolist() == pytest.approx([0.2, 0.32])
    usd = line(four_criteria(cells, bootstrap(trials, MEAN)), "usd_per_pass")
    assert usd[["best", "runner_up", "bounded", "clear"]].tolist() == ["a", "b", False, True]
    assert usd["lead"] == pytest.approx(0.12)
    assert usd["high"] == math.inf


def test_a_price_that_is_but_a_bound_never_beats_one_that_is_known() -> None:
    trials = table(*cell("dear", [1.0]), *cell("cheap", [0.1, 0.1, 0.1, 0.1, None]))
    usd = line(four_criteria(found(trials), bootstrap(trials, MEAN)), "usd_per_pass")
    assert usd[["best", "runner_up", "clear", "alike"]].tolist() == ["dear", "cheap", False, ("cheap",)]
    assert math.isnan(usd["lead"])
    assert usd["low"] < 0


def test_bounds_alone_are_listed_and_decide_nothing() -> None:
    trials = table(*cell("a", [0.1, None]), *cell("b", [0.3, None]))
    usd = line(four_criteria(found(trials), bootstrap(trials, MEAN)), "usd_per_pass")
    assert usd[["best", "bounded", "clear", "alike"]].tolist() == ["a", True, False, ("b",)]
    assert math.isnan(usd["lead"])
    assert usd["low"] == -math.inf


def test_unknown_tokens_are_bounds_as_unknown_costs_are() -> None:
    rows = [row | {"tokens": None if n == 3 else 100} for n, row in enumerate(cell("a", [0.1]))]
    drawn = bootstrap(table(*rows), MEAN)
    own = line(found(table(*rows)), "a")
    assert math.isnan(own["tokens_per_pass"])
    assert own["tokens_per_pass_least"] == 190 == drawn.observed["tokens_per_pass_least"][0]


def test_a_cell_of_only_invalid_trials_had_an_ams_of_0() -> None:
    trials = table(
        *cell("a", [0.1]), trial("easy-0", None, 1.0, cell="b"), trial("hard-0", None, 1.0, cell="b")
    )
    cells = found(trials)
    assert math.isnan(cells.loc["b", "AMS"])
    assert cells.loc["b", "why"] == "no valid trial"
    assert np.isnan(bootstrap(trials, MEAN).drawn["AMS"][:, 1]).all()


def test_a_core_set_is_chosen_with_the_cells_whose_costs_are_known() -> None:
    rows = [row for n in range(7) for row in cell(f"c{n}", [0.01 * (n + 1)] if n else [None], passes=n + 1)]
    chosen = choose(table(*rows), MEAN, 2)
    assert "c0" not in (*chosen.chosen_with, *chosen.held_out)
    assert len(chosen.chosen_with) + len(chosen.held_out) == 6


def test_every_cell_that_cannot_be_told_apart_from_the_best_is_named() -> None:
    """Regression: the lead over the second was clear, while the third, with a wider spread, might have been best."""
    rows = [
        *cell("best", [0.01], passes=9),
        *cell("second", [0.01], passes=4),
        *(
            trial(f"{tier}-{n}", float(n >= 6), 0.01, cell="third")
            for tier in ("easy", "hard")
            for n in range(10)
        ),
    ]
    passes = line(four_criteria(found(table(*rows)), bootstrap(table(*rows), MEAN)), "passes")
    assert passes[["best", "runner_up", "alike", "clear"]].tolist() == ["best", "second", (), True]
    near = [
        *rows,
        *(
            trial(row["task"], 1.0 - float(int(row["task"][-1]) in (0, 9)), 0.01, cell="near")
            for row in rows[:20]
        ),
    ]
    passes = line(four_criteria(found(table(*near)), bootstrap(table(*near), MEAN)), "passes")
    assert (passes["best"], passes["alike"], passes["clear"]) == ("best", ("near",), False)
