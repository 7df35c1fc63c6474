"""Winners by each criterion, and how sure their leads are, in words."""

from __future__ import annotations

import pandas as pd
import pytest

from metrics.uncertainty import bootstrap
from runner.records import PlannedRow, TrialRecord
from runner.report.four_criteria import Winner, not_in_the_running, verdict, winners
from runner.report.leaderboard import cell_scores
from runner.report.trials_table import trials_table
from runner.report.wording import number, short, span, usd
from tests.report.plans import SCORING, TASKS, record, row


def won(*passes: tuple[str, int, float | None]) -> list[Winner]:
    """Winners among agents, each with the first so many tasks passed and a price of every trial."""
    planned: list[PlannedRow] = []
    records: dict[str, TrialRecord] = {}
    for agent, count, cost in passes:
        rows = [row(agent, task) for task in TASKS]
        planned += rows
        records |= {p.key: record(p, passed=TASKS.index(p.task) < count, cost_usd=cost) for p in rows}
    trials = trials_table(planned, records)
    draws = bootstrap(trials, SCORING)
    return winners(cell_scores(trials, SCORING, draws), draws, SCORING.confidence)


def by(found: list[Winner]) -> dict[str, Winner]:
    return {winner.criterion: winner for winner in found}


def test_criteria_can_have_different_winners_and_a_large_lead_is_clear() -> None:
    found = won(("codex", 6, 0.12), ("kimi_cli", 3, 0.001))
    assert verdict(found) == "Four criteria, two winners"
    best = by(found)
    assert best["passes"].best[0].startswith("codex")
    assert (best["passes"].value, best["passes"].lead, best["passes"].clear) == ("6/6", "3", "yes")
    assert best["USD/pass"].best[0].startswith("kimi_cli")
    assert best["USD/pass"].runner_up
    assert best["USD/pass"].runner_up.startswith("codex")
    assert by(won(("codex", 4, 0.12), ("kimi_cli", 3, 0.12)))["passes"].clear == "no"


def test_a_tie_names_all_and_makes_no_winner_of_its_own() -> None:
    found = won(("codex", 4, 0.12), ("kimi_cli", 4, 0.001))
    passes = by(found)["passes"]
    assert (len(passes.best), passes.lead, passes.clear, passes.runner_up) == (2, "none", "tie", None)
    assert by(found)["AMS"].best[0].startswith("kimi_cli")
    assert (
        verdict([winner for winner in found if winner.criterion != "tokens/pass"])
        == "Three criteria, one winner"
    ), "as many as are shown"


@pytest.mark.parametrize(
    ("best", "message"),
    [
        ([("a", "b"), ("b", "c")], "Two criteria, one winner"),
        ([("a", "b"), ("c",), ("b", "d")], "Three criteria, two winners"),
        ([("a", "b", "c", "d"), ("b",), ("c", "d"), ("d", "e")], "Four criteria, two winners"),
        ([("a",), ("b",), ("c",), ("d",)], "Four criteria, four winners"),
        ([], "No winner"),
    ],
)
def test_ties_are_won_by_as_few_cells_as_can_be(best: list[tuple[str, ...]], message: str) -> None:
    """The first by name was taken of each tie, though another had tied in the next one too."""
    found = [Winner("passes", cells, "", None, "none", "", "tie", 0) for cells in best]
    assert verdict(found) == message


def test_a_lead_over_who_has_no_pass_and_a_winner_without_rival() -> None:
    best = by(won(("codex", 4, 0.12), ("kimi_cli", 0, 0.001)))
    assert best["USD/pass"].lead == "it has no pass"
    alone = by(won(("codex", 4, 0.12)))
    assert {(winner.runner_up, winner.clear) for winner in alone.values()} == {(None, "-")}


def test_nobody_wins_where_nobody_passed() -> None:
    """A cell of whose trials none was valid was the winner by passes, 0 of 6."""
    assert (won(("codex", 0, 0.12)), verdict([])) == ([], "No winner")
    assert won(("codex", 0, 0.12), ("kimi_cli", 0, 0.001)) == []
    assert winners(pd.DataFrame(), bootstrap(trials_table([row("codex", "easy-1")], {}), SCORING), 0.95) == []


def test_whose_price_is_unknown_is_said_not_to_compete() -> None:
    """It was left out without a word, so that the dearest could be the cheapest."""
    found = won(("codex", 4, 0.12), ("kimi_cli", 4, None), ("qwen_code", 2, None))
    assert by(found)["USD/pass"].best[0].startswith("codex")
    assert not_in_the_running(found, 3) == (
        "By USD/pass, 2 of 3 cells are not in the running, as theirs is unknown. "
        "By AMS, 2 of 3 cells are not in the running, as theirs is unknown."
    )
    assert not_in_the_running(won(("codex", 4, 0.12), ("kimi_cli", 0, 0.1)), 2) == ""


@pytest.mark.parametrize(
    ("message", "meant"),
    [
        (number(float("nan"), ".2f"), "-"),
        (number(float("inf"), usd), "no pass"),
        (number(-0.0, ".2f"), "0.00"),
        (short(-12_345), "-12.3k"),
        (usd(-0.0123), "-0.012"),
        (span(float("inf"), float("inf")), ""),
        (span(0.1, float("inf"), usd, " to "), "0.10 to no pass"),
    ],
)
def test_figures_for_people(message: str, meant: str) -> None:
    assert message == meant
