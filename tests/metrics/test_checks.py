"""Checks of a table: each rule names the rows at fault and guesses nothing; good input of any dtype passes."""

from __future__ import annotations

import io
import math
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics.ams import ams, tier_scores
from metrics.checks import AMOUNTS, REQUIRED, STATUSES, check, relabel
from metrics.errors import TableError
from metrics.table import summary
from metrics.uncertainty import bootstrap, intervals
from tests.metrics.tables import SCORING, table, trial


def good() -> pd.DataFrame:
    """Return five trials with index 10 to 14."""
    rows = table(
        trial("easy-1"),
        trial("easy-2", 0.5),
        trial("hard-1", 0.0),
        trial("hard-2", None, None),
        trial("hard-3"),
    )
    return rows.set_axis(pd.RangeIndex(10, 15))


def with_value(column: str, value: Any, row: int = 12) -> pd.DataFrame:
    trials = good().astype({column: object}) if column in good() else good().assign(**{column: None})
    trials.loc[row, column] = value
    return trials


def test_good_trials_pass_and_come_back_typed() -> None:
    typed = check(good(), SCORING, one_dataset=True)
    assert typed["passed"].dtype == "boolean"
    assert typed["cost_usd"].dtype == typed["tokens"].dtype == float
    assert str(typed["finished_at"].dtype.tz) == "UTC"  # type: ignore[union-attr]
    pd.testing.assert_frame_equal(check(typed), typed)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("status", "succeeded", r"Unknown status \(succeeded\); there are completed,"),
        ("status", None, "status is missing"),
        ("cell", None, "cell is missing"),
        ("task", None, "task is missing"),
        ("tokens", -1, "tokens is negative"),
        ("input_tokens", -1, "input_tokens is negative"),
        ("cost_usd", -0.01, "cost_usd is negative"),
        ("cost_usd", math.inf, "cost_usd is infinite"),
        ("cost_usd", "twelve", "cost_usd is not a number"),
        ("reward", 1.01, r"reward is outside \[0, 1\]"),
        ("reward", -0.01, r"reward is outside \[0, 1\]"),
        ("passed", 2, "passed is neither true"),
        ("passed", 0.5, "passed is neither true"),
        ("passed", "yes", "passed is neither true"),
        ("attempt", 1.5, "attempt is not a whole number"),
        ("attempt", None, "attempt is missing"),
        ("attempt", -1, "attempt is negative"),
        ("attempt", math.inf, "attempt is not a whole number"),
        ("finished_at", "yesterday", "finished_at is not an ISO 8601 time"),
        ("finished_at", "31/12/2026", "finished_at is not an ISO 8601 time"),
        ("finished_at", 1234, "finished_at is not an ISO 8601 time"),
        ("finished_at", "1234", "finished_at is not an ISO 8601 time"),
    ],
)
def test_a_bad_value_is_named_with_its_row(column: str, value: Any, said: str) -> None:
    with pytest.raises(TableError, match=f"{said}.*: row 12$") as caught:
        check(with_value(column, value))
    assert caught.value.rows == (12,)


def test_times_that_are_bare_numbers_may_be_seconds_or_not_and_are_refused() -> None:
    with pytest.raises(TableError, match="finished_at is not an ISO 8601 time: row 10, 11, 12, 13, 14"):
        check(good().assign(finished_at=1_767_225_600))


def test_two_rows_of_one_trial_are_both_named() -> None:
    trials = pd.concat([good(), good().loc[[11]].set_axis([99])])
    with pytest.raises(TableError, match="Two rows of one cell, task and attempt: row 11, 99") as caught:
        check(trials)
    assert caught.value.rows == (11, 99)


def test_a_task_of_two_tiers_is_named() -> None:
    other = good().loc[[10]].assign(cell="b", tier="hard").set_axis([99])
    with pytest.raises(TableError, match=r"One task in several tiers \(easy-1\): row 10, 99"):
        check(pd.concat([good(), other]))


def test_a_cell_is_of_one_dataset() -> None:
    with pytest.raises(
        TableError, match=r"One cell in several datasets \(a\): row 10, 11, 12, 13, 14 and 1 more"
    ):
        check(pd.concat([good(), table(trial("easy-9", dataset="e")).set_axis([99])]))


def test_tasks_of_one_name_in_two_datasets_are_two_tasks() -> None:
    other = good().assign(cell="b", dataset="e", tier="hard")
    check(pd.concat([good(), other], ignore_index=True))


def test_a_task_of_one_tier_is_not_blamed_for_its_namesake_in_another_dataset() -> None:
    """Regression: both names and both datasets occur in faults, so a row without a fault was named too."""
    rows = [
        trial("easy-1"), trial("easy-1", cell="b", tier="hard"), trial("easy-2"),
        trial("easy-2", cell="c", dataset="e"), trial("easy-2", cell="d", dataset="e", tier="hard"),
    ]  # fmt: skip
    with pytest.raises(TableError, match="One task in several tiers") as caught:
        check(table(*rows))
    assert caught.value.rows == (0, 1, 3, 4)


@pytest.mark.parametrize("part", ["agent", "model", "budget"])
def test_a_missing_part_of_a_cell_is_named(part: str) -> None:
    """Regression: an import ended in a traceback, and a cell without a name was scored."""
    trials = good().assign(agent="x", model="y", budget="z")
    trials.loc[12, part] = None
    with pytest.raises(TableError, match=f"{part} is missing: row 12$"):
        check(trials)


def test_two_datasets_where_one_is_wanted() -> None:
    trials = pd.concat([good(), good().assign(cell="b", dataset="e").set_axis(pd.RangeIndex(20, 25))])
    check(trials)
    with pytest.raises(TableError, match=r"several datasets \(d, e\)") as caught:
        check(trials, one_dataset=True)
    assert caught.value.rows == (20, 21, 22, 23, 24)


def test_a_tier_without_tasks_is_named_with_the_cells_that_lack_it() -> None:
    easy = table(trial("easy-1", cell="b")).set_axis([99])
    with pytest.raises(TableError, match=r"No task of tier hard in the cell of these \(b\): row 99$"):
        check(pd.concat([good(), easy]), SCORING)
    tiers = {**SCORING.tiers, "hard": SCORING.tiers["hard"].model_copy(update={"weight": 0.0})}
    check(pd.concat([good(), easy]), SCORING.model_copy(update={"tiers": tiers}))


def test_an_empty_sweep() -> None:
    with pytest.raises(TableError, match="No trials") as caught:
        check(good()[:0])
    assert caught.value.rows == ()


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_column_is_named(column: str) -> None:
    with pytest.raises(TableError, match=f"No column {column}"):
        check(good().drop(columns=column))


def test_all_that_is_wrong_is_said_at_once_and_long_lists_are_cut() -> None:
    trials = good().assign(tokens=-1, reward=2.0)
    with pytest.raises(TableError) as caught:
        check(pd.concat([trials, trials.set_axis(pd.RangeIndex(20, 25)).assign(cell="b")]))
    lines = str(caught.value).splitlines()
    assert "tokens is negative: row 10, 11, 12, 13, 14 and 5 more" in lines
    assert "reward is outside [0, 1]: row 10, 11, 12, 13, 14 and 5 more" in lines
    assert caught.value.rows == (*range(10, 15), *range(20, 25))


def test_a_task_missing_in_the_tiers_file_is_named() -> None:
    labels = {"easy-1": "hard", "easy-2": "hard", "hard-1": "easy", "hard-3": "easy"}
    with pytest.raises(TableError, match=r"Tasks without a tier \(hard-2\): row 13"):
        relabel(good(), labels)
    assert relabel(good(), {**labels, "hard-2": "easy"})["tier"].tolist() == ["hard"] * 2 + ["easy"] * 3


def test_a_plain_csv_scores_as_the_table_does() -> None:
    trials = pd.concat([good(), good().assign(cell="b")], ignore_index=True)
    read = pd.read_csv(io.StringIO(trials.to_csv(index=False)))
    text = pd.read_csv(io.StringIO(trials.to_csv(index=False)), dtype=str)
    nullable = pd.read_csv(io.StringIO(trials.to_csv(index=False)), dtype_backend="numpy_nullable")
    arrow = pd.read_csv(io.StringIO(trials.to_csv(index=False)), dtype_backend="pyarrow")
    named = trials.astype(dict.fromkeys(("cell", "dataset", "tier", "task", "status"), "category"))
    assert check(named)["cell"].dtype == "category"  # not ten million strings
    for other in (read, text, nullable, arrow, named, trials.astype(object)):
        typed = check(other, SCORING)
        for rule in ("latest_completed", "pass@2"):
            found = summary(typed, rule)
            found.index = found.index.astype("str")  # names may be categories
            pd.testing.assert_frame_equal(found, summary(check(trials), rule), check_index_type=False)
        scores = ams(tier_scores(typed, SCORING), SCORING)
        expected = ams(tier_scores(trials, SCORING), SCORING)
        assert scores["AMS"].tolist() == expected["AMS"].tolist()
        np.testing.assert_array_equal(
            intervals(bootstrap(typed, SCORING)), intervals(bootstrap(trials, SCORING))
        )


@settings(max_examples=40)
@given(st.data())
def test_whatever_is_in_the_cells_of_a_table_it_is_scored_or_refused_by_name(data: st.DataObject) -> None:
    column = data.draw(st.sampled_from([*REQUIRED, *AMOUNTS]))
    value = data.draw(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(10**20), 10**20),
            st.floats(),
            st.text(max_size=5),
            st.sampled_from(STATUSES),
        )
    )
    trials = with_value(column, value, row=random.Random(0).choice(range(10, 15)))
    try:
        typed = check(trials)
    except TableError as error:
        named = error.rows
    else:
        named = ("scored",)
        assert summary(typed, "latest_completed")["pass_rate"].between(0, 1).all()
    assert named
