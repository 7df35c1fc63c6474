"""The leaderboard, as text and as figures."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from metrics.uncertainty import bootstrap
from runner.records import PlannedRow, Scoring, TrialRecord
from runner.report import leaderboard
from runner.report.leaderboard import cell_scores
from runner.report.projections import TABLES, write_projections
from runner.report.projections import leaderboard as leaderboard_again
from runner.report.trials_table import trials_table
from runner.report.wording import usd
from runner.terminal.escaping import WIDTH
from tests.report.plans import SCORING, TASKS, record, row, sweep_of_four, write_sweep

pytestmark = pytest.mark.usefixtures("no_page")


def leaderboard_text(trials: pd.DataFrame, scoring: Scoring, width: int = WIDTH) -> str:
    """The text, from the trials alone."""
    draws = bootstrap(trials, scoring)
    return leaderboard.leaderboard_text(trials, cell_scores(trials, scoring, draws), draws, scoring, width)


SNAPSHOTS = Path(__file__).parent
WIDTHS = (60, 80, 100, 120, 200)


@pytest.mark.parametrize(
    ("width", "file"),
    [
        (60, "leaderboard_60.txt"),
        (80, "leaderboard_80.txt"),
        (WIDTH, "leaderboard.txt"),
        (120, "leaderboard_120.txt"),
    ],
)
def test_the_text_is_as_it_was(width: int, file: str) -> None:
    """`UPDATE_SNAPSHOTS=1` writes it anew; read the difference before you commit it."""
    text = leaderboard_text(trials_table(*sweep_of_four()), SCORING, width)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        (SNAPSHOTS / file).write_text(text)
    assert text == (SNAPSHOTS / file).read_text()


@settings(max_examples=4)
@given(names=st.tuples(*[st.text(min_size=1, max_size=50)] * 4), cost=st.floats(0, 1e9))
def test_the_leaderboard_was_wider_than_the_terminal(names: tuple[str, ...], cost: float) -> None:
    """93 columns, whatever the terminal and the names."""
    agent, model, dataset, budget = names
    planned = [
        row(who, task, model=model, dataset=dataset, budget=budget)
        for who in (agent, "codex")
        for task in TASKS
    ]
    records = {p.key: record(p, passed=p.task != "hard-1", cost_usd=cost) for p in planned}
    trials = trials_table(planned, records)
    draws = bootstrap(trials, SCORING)
    cells = cell_scores(trials, SCORING, draws)
    for width in WIDTHS:
        text = leaderboard.leaderboard_text(trials, cells, draws, SCORING, width)
        assert max(map(cell_len, text.split("\n"))) <= width
        assert text.replace("\n", "").isprintable()
        assert usd(float(cells["usd_per_pass"].iloc[0])) in text, "the price, at any width"


def test_columns_without_room_are_named() -> None:
    trials = trials_table(*sweep_of_four())
    assert "No room here for reward, turns: leaderboard.csv has all columns." in leaderboard_text(
        trials, SCORING, 80
    )
    assert "No room" not in leaderboard_text(trials, SCORING, 100)


def test_names_of_others_neither_steer_the_terminal_nor_break_the_table() -> None:
    """An agent called `[/]` ended the leaderboard with an error of markup."""
    planned, records = some(agent="[/red]", model="a\x1b[2Jb", dataset="[bold]d")
    text = leaderboard_text(trials_table(planned, records), SCORING)
    assert {"[/red]", "[bold]d"} <= set(text.split())
    assert "a\N{REPLACEMENT CHARACTER}[2Jb" in text
    assert "\x1b" not in text


def some(count: int = 6, **changed: str) -> tuple[list[PlannedRow], dict[str, TrialRecord]]:
    """One cell, all passed."""
    agent = changed.pop("agent", "codex")
    planned = [row(agent, task, **changed) for task in TASKS[:count]]
    return planned, {p.key: record(p) for p in planned}


def test_bounds_come_last_and_have_no_rank() -> None:
    cells = cell_scores(trials_table(*sweep_of_four()), SCORING)
    assert cells["agent"].tolist() == ["codex", "mini_swe_agent", "oracle", "nop"]
    assert cells["rank"].tolist()[:2] == [1, 2]
    assert cells["rank"].isna().tolist() == [False, False, True, True]


def test_denominators_are_the_plans_and_spend_is_everything() -> None:
    codex = cell_scores(trials_table(*sweep_of_four()), SCORING).iloc[0]
    assert (codex["planned"], codex["valid"], codex["invalid"], codex["passes"]) == (7, 5, 2, 4)
    assert codex["spend_usd"] == pytest.approx(4 * 0.015 + 0.16 + 0.5)  # the invalid one's 0.5 too
    assert codex["usd_per_pass"] == pytest.approx((4 * 0.015 + 0.16) / 4)  # and here not
    assert codex["mean_reward"] == pytest.approx(4 / 7)


def test_cells_without_ams_are_ranked_by_passes_and_one_of_other_tasks_comes_last_without_rank() -> None:
    planned, records = some(3, model="easy_only")
    fewer = [row("codex", task, model="fewer") for task in TASKS[:3]]
    records |= {p.key: record(p, passed=p.task == "easy-1") for p in fewer}
    both = [row("codex", task, model="both") for task in TASKS]
    records |= {p.key: record(p, passed=False) for p in both}
    trials = trials_table([*fewer, *planned, *both], records)
    cells = cell_scores(trials, SCORING)
    assert cells["model"].tolist() == ["easy_only", "fewer", "both"]
    assert cells["rank"].fillna(0).tolist() == [1, 2, 0]
    assert cells["AMS"].isna().tolist() == [True, True, False]
    assert "No AMS for 2 cells: no task of tier hard." in leaderboard_text(trials, SCORING)


def test_an_unknown_price_shows_as_unknown() -> None:
    planned, records = some()
    unpriced = records[planned[0].key].model_copy(update={"cost_usd": None})
    trials = trials_table(planned, {**records, planned[0].key: unpriced})
    cell = cell_scores(trials, SCORING).iloc[0]
    assert math.isnan(cell["usd_per_pass"])
    assert ">=0.075" in leaderboard_text(trials, SCORING)
    none = {key: each.model_copy(update={"cost_usd": None}) for key, each in records.items()}
    text = leaderboard_text(trials_table([*planned, row("codex", "hard-4")], none), SCORING)
    assert "retries included: - USD" in " ".join(text.split())


def test_a_cell_whose_trials_never_ran_has_unknown_prices_and_not_infinite_ones() -> None:
    planned, records = some()
    cells = cell_scores(
        trials_table([*planned, *(row("kimi_cli", task) for task in TASKS)], records), SCORING
    )
    never = cells[cells["agent"] == "kimi_cli"].iloc[0]
    for price in ("tokens_per_pass", "usd_per_pass"):
        assert never[[price, f"{price}_low", f"{price}_high"]].isna().all()
    assert "no pass" not in leaderboard_text(
        trials_table([row("codex", task) for task in TASKS], {}), SCORING
    )


def test_passes_that_may_be_fractions_have_no_wilson_interval() -> None:
    planned = [row("codex", task, attempt=k) for task in TASKS for k in (1, 2)]
    trials = trials_table(planned, {p.key: record(p, passed=p.attempt == 1) for p in planned})
    ends = ["wilson_low", "wilson_high"]
    for attempts in ("mean", "pass@2"):
        cells = cell_scores(trials, SCORING.model_copy(update={"attempts": attempts}))
        assert cells[ends].isna().all(axis=None)
        assert "Wilson" not in leaderboard_text(trials, SCORING.model_copy(update={"attempts": attempts}))
    assert cell_scores(trials_table(*some()), SCORING)[ends].notna().all(axis=None)


def test_that_names_decided_on_a_rank_was_not_said() -> None:
    planned = [row(agent, task) for agent in ("codex", "kimi_cli") for task in TASKS]
    equal = {p.key: record(p) for p in planned}
    mentions = [
        "in the order of their names" in leaderboard_text(trials_table(planned, records), SCORING)
        for records in (equal, equal | {planned[0].key: record(planned[0], passed=False)})
    ]
    assert mentions == [True, False]


def test_a_best_of_more_attempts_than_there_are_did_not_say_so() -> None:
    planned = [row("codex", f"easy-{n}", attempt=k) for n in (1, 2) for k in (1, 2)]
    trials = trials_table(planned, {p.key: record(p) for p in planned[:3]})
    texts = {
        attempts: " ".join(
            leaderboard_text(trials, SCORING.model_copy(update={"attempts": attempts})).split()
        )
        for attempts in ("latest_completed", "pass@1", "pass@2")
    }
    assert "pass@2: 1 of 2 tasks of cells have fewer valid attempts" in texts["pass@2"]
    assert not any("lower bound" in texts[attempts] for attempts in ("latest_completed", "pass@1"))


def test_tiers_of_fewer_than_ten_tasks_are_named() -> None:
    text = " ".join(leaderboard_text(trials_table(*some()), SCORING).split())
    assert "Tiers of fewer than 10 tasks (quickstart easy 3, quickstart hard 3)" in text
    planned = [row("codex", f"{tier}-{n}") for tier in ("easy", "hard") for n in range(10)]
    trials = trials_table(planned, {p.key: record(p) for p in planned})
    assert "fewer than 10" not in leaderboard_text(trials, SCORING)


def test_budgets_are_named_only_where_they_differ() -> None:
    one, records = some()
    other, more = some(budget="tight", attempt=2)  # type: ignore[arg-type]
    assert "budget tight" not in leaderboard_text(trials_table(one, records), SCORING)
    assert "budget tight" in leaderboard_text(trials_table([*one, *other], records | more), SCORING)


def test_a_table_per_dataset() -> None:
    one, records = some()
    other, more = some(dataset="core30", attempt=2)  # type: ignore[arg-type]
    trials = trials_table([*one, *other], records | more)
    assert cell_scores(trials, SCORING)["rank"].tolist() == [1, 1]
    assert {"core30", "quickstart"} <= set(leaderboard_text(trials, SCORING).splitlines())


def test_long_lists_are_cut_and_say_so() -> None:
    planned = [row("codex", f"easy-{n}", refused=f"reason {n}") for n in range(8)]
    text = leaderboard_text(trials_table(planned, {}), SCORING)
    assert "Refused tasks (8):" in text
    assert "reason 4" in text
    assert "reason 5" not in text
    assert "and 3 more in trials.csv" in text


def test_a_reason_keeps_its_end_where_it_says_what_to_do() -> None:
    """It was cut at the line's end, mostly in its middle."""
    reason = (
        f"task.toml asks for {'one thing after the other, ' * 5}which is not to be had here: leave them out"
    )
    planned = [row("codex", "easy-1", refused=reason), row("codex", "easy-2", refused="x" * 1000)]
    text = leaderboard_text(trials_table(planned, {}), SCORING)
    assert reason in " ".join(line.strip() for line in text.splitlines())
    assert text.count("x") < 310
    assert "x…" in text


def test_projections_are_written_and_can_be_written_again(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, *sweep_of_four())
    text = write_projections(sweep, tmp_path)
    assert leaderboard_again(sweep, tmp_path) == text
    before = {name: (sweep / name).read_bytes() for name in TABLES}
    assert write_projections(sweep, tmp_path) == text == (sweep / "leaderboard.txt").read_text()
    assert before == {name: (sweep / name).read_bytes() for name in TABLES}
    assert str(tmp_path / "trials") in text
    assert len(pd.read_csv(sweep / "trials.csv")) == len(pd.read_parquet(sweep / "trials.parquet")) == 28
    assert pd.read_csv(sweep / "leaderboard.csv")["cell"].str.startswith("codex").iloc[0]
