"""pass@k: its closed form, the choices that scores are computed from, and the agreement of both."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from metrics.ams import tier_scores
from metrics.attempts import best_of, pass_at_k, refusal, tries
from metrics.errors import TableError
from metrics.profiles import pass_curve
from metrics.table import select, summary
from runner.records import Scoring
from tests.metrics.tables import SCORING, line, table, trial

OUTCOMES = st.lists(
    st.lists(st.one_of(st.none(), st.booleans()), min_size=1, max_size=6), min_size=1, max_size=5
)
"""Attempts of each task: passed, failed, or invalid."""
LAW = settings(max_examples=15)


def trials_of(outcomes: list[list[bool | None]]) -> pd.DataFrame:
    return table(
        *(
            trial(f"easy-{task}", None if passed is None else float(passed), attempt=number)
            for task, attempts in enumerate(outcomes)
            for number, passed in enumerate(attempts)
        )
    )


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9))
def test_the_closed_form_counts_the_choices_that_hold_a_pass(n: int, passes: int, k: int) -> None:
    passes = min(passes, n)
    drawn = list(combinations([True] * passes + [False] * (n - passes), min(k, n)))
    assert pass_at_k(np.array(n), np.array(passes), k) == pytest.approx(np.mean([any(d) for d in drawn]))


@LAW
@example([[True, True], [False, False]], 2)
@given(OUTCOMES, st.integers(1, 7))
def test_the_choices_of_k_give_the_estimator(outcomes: list[list[bool | None]], k: int) -> None:
    trials = trials_of(outcomes).sort_values("attempt", kind="stable")  # of all tasks mixed
    rate = float(line(summary(trials, f"pass@{k}"), "a")["pass_rate"])
    assert rate == pytest.approx(float(line(pass_curve(trials, k), "a")[k]))


@LAW
@given(OUTCOMES)
def test_pass_at_k_rises_with_k_and_starts_at_the_mean(outcomes: list[list[bool | None]]) -> None:
    curve = line(pass_curve(trials_of(outcomes), 6), "a")
    assert curve.is_monotonic_increasing or np.allclose(np.diff(curve).clip(max=0), 0)
    assert curve[1] == pytest.approx(line(summary(trials_of(outcomes), "mean"), "a")["pass_rate"])
    ever = [any(passed is True for passed in attempts) for attempts in outcomes]
    assert curve[6] == pytest.approx(np.mean(ever))


@LAW
@given(OUTCOMES)
def test_weights_of_a_task_sum_to_one_under_every_rule(outcomes: list[list[bool | None]]) -> None:
    for rule in ("latest_completed", "mean", "pass@1", "pass@3"):
        weights = select(trials_of(outcomes), rule).groupby("task")["weight"].sum()
        assert np.allclose(weights, 1)
        assert len(weights) == sum(any(passed is not None for passed in of) for of in outcomes)


def test_k_attempts_are_paid_for_k_times() -> None:
    trials = table(
        trial("easy-1", 0.0, 0.06, attempt=1, tokens=10, turns=1),
        trial("easy-1", 0.5, 0.07, attempt=2, tokens=20, turns=2),
        trial("easy-1", 1.0, 0.08, attempt=3, tokens=30, turns=3),
    )
    chosen = best_of(select(trials, "mean"), 2).sort_values("cost_usd")
    assert chosen["reward"].tolist() == [0.5, 1.0, 1.0]
    assert chosen["passed"].tolist() == [False, True, True]
    assert chosen["cost_usd"].tolist() == pytest.approx([0.13, 0.14, 0.15])
    assert chosen["tokens"].tolist() == [30, 40, 50]
    assert chosen["turns"].tolist() == [3, 4, 5]
    # All three cost more than the smaller budget 0.10 and fit the greater one; none is an expensive failure (0.15).
    scores = line(tier_scores(trials, SCORING.model_copy(update={"attempts": "pass@2"})), ("a", "easy"))
    assert scores["SR"] == pytest.approx(2.5 / 3)
    assert scores["CostAUBQC"] == pytest.approx(2.5 / 3 / 2)
    assert scores["EFR"] == 0


def test_pass_at_1_scores_as_mean_does_in_every_part() -> None:
    trials = table(
        trial("easy-1", 1.0, 0.05, attempt=1), trial("easy-1", 0.0, 9.0, attempt=2), trial("hard-1", 0.3, 2.6)
    )
    one, mean = (
        tier_scores(trials, SCORING.model_copy(update={"attempts": rule})) for rule in ("pass@1", "mean")
    )
    pd.testing.assert_frame_equal(one, mean)


def test_an_unknown_cost_among_k_makes_the_sum_unknown() -> None:
    trials = table(trial("easy-1", 1.0, 0.05, attempt=1), trial("easy-1", 1.0, None, attempt=2))
    assert math.isnan(best_of(select(trials, "mean"), 2)["cost_usd"].item())


def test_rows_that_share_an_index_label_stay_apart() -> None:
    """Tables joined with `pd.concat` have duplicate index labels."""
    trials = pd.concat([trials_of([[True, False]]), trials_of([[False, False]]).assign(cell="b")])
    assert line(summary(trials, "pass@2"), "a")["passes"] == 1
    assert line(summary(trials, "pass@2"), "b")["passes"] == 0


def test_no_valid_trial_at_all_passes_nothing() -> None:
    assert line(summary(trials_of([[None, None]]), "pass@2"), "a")["passes"] == 0


def test_choices_beyond_counting_are_refused() -> None:
    """Regression: the error was of a kind that the command line does not know, and named no row."""
    with pytest.raises(TableError, match="pass@9 of 18 attempts") as caught:
        summary(trials_of([[True] * 18]), "pass@9")
    assert len(caught.value.rows) == 18


@pytest.mark.parametrize("rule", ["pass@0", "pass@", "pass@1.5", "best", "pass@-1", "latest"])
def test_another_rule_is_refused_at_the_door_and_by_the_library(rule: str) -> None:
    with pytest.raises(ValidationError):
        Scoring(**{**SCORING.model_dump(), "attempts": rule})
    with pytest.raises(ValueError, match="not a rule for attempts"):
        select(trials_of([[True]]), rule)


def test_the_k_of_a_rule() -> None:
    assert tries("pass@12") == 12


@pytest.mark.parametrize(
    ("k", "planned", "said"),
    [(1, 1, ""), (3, 3, ""), (3, 2, "needs attempts=3 or more, and 2 are planned"), (9, 18, "5000 choices")],
)
def test_what_cannot_be_asked_of_so_many_attempts_is_known_before_they_are_made(
    k: int, planned: int, said: str
) -> None:
    found = refusal(f"pass@{k}", planned)
    assert said in found
    assert bool(said) is bool(found)
