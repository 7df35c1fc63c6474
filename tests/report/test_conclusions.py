"""Conclusions that a reader may draw: figures that used to mislead, in the terminal and on the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metrics.uncertainty import bootstrap
from runner.records import PlannedRow, Scoring, Status, TrialRecord
from runner.report.conclusions import lead_sentence, small_tiers, what_counts
from runner.report.findings import Findings
from runner.report.four_criteria import winners
from runner.report.leaderboard import cell_scores, leaderboard_text
from runner.report.page import chapters_of, write_report
from runner.report.trials_table import trials_table
from tests.report.conftest import findings
from tests.report.plans import SCORING, record, row

pytestmark = pytest.mark.usefixtures("no_pixels")

Plan = tuple[list[PlannedRow], dict[str, TrialRecord]]


def cells(
    tasks: int = 10,
    tiers: tuple[str, ...] = ("easy", "hard"),
    attempts: int = 1,
    **passed: Callable[[int], bool],
) -> Plan:
    """Agents on so many tasks a tier, each passing those of which its function says so; 0.01 USD a trial."""
    planned = [
        row(agent, f"{tier}-{n:02}", attempt=k)
        for agent in passed
        for tier in tiers
        for n in range(tasks)
        for k in range(1, attempts + 1)
    ]
    ended = {p.key: record(p, passed=passed[p.agent](int(p.task[-2:])), cost_usd=0.01) for p in planned}
    return planned, ended


def priced(plan: Plan, usd: Callable[[PlannedRow], float | None]) -> Plan:
    planned, ended = plan
    return planned, {p.key: ended[p.key].model_copy(update={"cost_usd": usd(p)}) for p in planned}


def text_of(plan: Plan, scoring: Scoring = SCORING) -> str:
    trials = trials_table(*plan)
    draws = bootstrap(trials, scoring)
    text = leaderboard_text(trials, cell_scores(trials, scoring, draws), draws, scoring)
    return " ".join(text.split())


def page_of(folder: Path, plan: Plan, scoring: Scoring = SCORING) -> str:
    return " ".join(write_report(findings(folder, *plan, scoring)).read_text().split())


def rule(attempts: str) -> Scoring:
    return SCORING.model_copy(update={"attempts": attempts})


def test_who_hides_its_costs_led_clearly_by_twice_the_ams(tmp_path: Path) -> None:
    """Equal outcomes; whose costs were known paid for its failures, and whose were not did not."""
    half = cells(codex=lambda n: n < 5, kimi_cli=lambda n: n < 5)
    plan = priced(half, lambda p: None if p.agent == "kimi_cli" else 9.0)
    found = findings(tmp_path, *plan)
    assert found.cells["rank"].tolist() == [1, 2]
    assert found.cells.index[0].startswith("codex")
    text = text_of(plan)
    assert "No AMS for 1 cells: no trial has a known cost." in text
    assert "kimi_cli" not in text.partition("AMS codex")[2].partition("By AMS")[0], (
        "it has no AMS to be second by"
    )


def test_an_ams_that_rests_on_unknown_costs_is_marked(tmp_path: Path) -> None:
    half = cells(codex=lambda n: n < 5, kimi_cli=lambda n: n < 5)
    plan = priced(half, lambda p: None if p.agent == "kimi_cli" and p.task.endswith(("7", "2")) else 0.01)
    text, page = text_of(plan), page_of(tmp_path, plan)
    for output in (text, page):
        assert "in 1 of 2 cells the costs of some trials are unknown" in output
    assert (
        "By AMS, codex · scripted_careful (scripted) is ahead, and these tasks do not tell it apart from"
        in text
    )
    best = page.partition('id="criteria"')[2].partition("</section>")[0]
    assert "tell it apart from 1 of the other: kimi_cli" in best
    board = page.partition('id="leaderboard"')[2].partition("</section>")[0]
    assert "&gt;=0." in board
    tiers = page.partition('id="tiers"')[2].partition("</section>")[0]
    assert "&lt;=0." in tiers


def test_one_unknown_cost_took_a_criterion_and_a_picture_from_all(tmp_path: Path) -> None:
    plan = priced(
        cells(codex=lambda n: n < 8, kimi_cli=lambda n: n < 4),
        lambda p: None if p.task == "easy-03" else 0.01,
    )
    text, page = text_of(plan), page_of(tmp_path, plan)
    assert "USD/pass codex >=0.012" in text.replace("scripted_careful (scripted) ", "")
    assert 'id="cost-quality"' in page
    assert "≥: at the least that its price can be" in page
    assert "There is no Pareto front, because no price is completely known." in page


@pytest.mark.parametrize(("tasks", "clear"), [(1, "few"), (9, "few"), (10, "yes"), (30, "yes")])
def test_a_lead_from_one_task_a_tier_was_clear(tmp_path: Path, tasks: int, clear: str) -> None:
    found = findings(tmp_path, *cells(tasks, codex=lambda _: True, kimi_cli=lambda _: False))
    few = small_tiers(found.trials, SCORING).get(found.dataset, ())
    best = winners(found.contenders, found.draws, 0.95, few)
    assert {winner.clear for winner in best} == {clear}
    pairs = next(section for section in chapters(found) if section.name == "pairs")
    decided = {line[-1].text for line in pairs.blocks[0].rows}
    assert decided == {"yes" if clear == "yes" else "too few tasks"}
    text = lead_sentence(best, found.names, few)
    assert ("is told apart from the other" if clear == "yes" else "but these are too few tasks") in text


def chapters(found: Findings) -> list[Any]:
    return [section for chapter in chapters_of(found) for section in chapter.sections]


def test_the_page_says_who_cannot_be_told_apart_from_the_best(tmp_path: Path) -> None:
    plan = cells(20, codex=lambda n: n < 12, kimi_cli=lambda n: n >= 9, qwen_code=lambda n: n < 1)
    text = "(scripted) is ahead, and these tasks do not tell it apart from 1 of 2 others: kimi_cli"
    assert text in page_of(tmp_path, plan)
    assert text in text_of(plan)


@pytest.mark.parametrize(
    ("attempts", "message"),
    [
        ("mean", "of up to 3 attempts at a task, the mean of the valid ones counts"),
        ("latest_completed", "of up to 3 attempts at a task, only the last valid one counts"),
        ("pass@2", "of up to 3 attempts at a task, the best of any 2 counts, at the price of all 2"),
    ],
)
def test_what_counts_of_several_attempts_stands_beside_the_score(
    tmp_path: Path, attempts: str, message: str
) -> None:
    """Nothing near the scores told that only the last of five attempts counted."""
    plan = cells(attempts=3, codex=lambda n: n < 5)
    assert f"quickstart: {message}" in text_of(plan, rule(attempts))
    board = (
        page_of(tmp_path, plan, rule(attempts)).partition('id="leaderboard"')[2].partition("</section>")[0]
    )
    assert message in board
    assert message not in text_of(cells(codex=lambda n: n < 5), rule(attempts))


def test_without_times_it_is_the_number_of_the_attempt_that_decides() -> None:
    trials = trials_table(*cells(attempts=2, codex=lambda n: n < 5))
    text = what_counts(trials.assign(finished_at=None), "latest_completed")
    assert text.endswith(
        "only the last valid one counts (by its number where times are missing, as they are of 40 trials)"
    )


def test_the_mean_over_attempts_is_the_default() -> None:
    assert Scoring(name="x", tiers=SCORING.tiers).attempts == "mean"


def test_too_few_attempts_for_pass_at_k_were_called_a_lower_bound(tmp_path: Path) -> None:
    """AMS rose in 7 of 13 cells when attempts were taken away, since those cost nothing; the page did not say it."""
    plan = cells(attempts=1, codex=lambda n: n < 5)
    text, page = text_of(plan, rule("pass@3")), page_of(tmp_path, plan, rule("pass@3"))
    output = "fewer valid attempts. There the pass rate is a lower bound, and AMS (~) is not a bound"
    assert output in text
    assert output in page
    assert "~0." in text
    assert "~0." in page


def unscored(tmp_path: Path) -> tuple[Plan, Findings]:
    """Public data: tiers that the scoring does not know, and no cost."""
    plan = cells(20, ("unknown",), codex=lambda n: n < 15, kimi_cli=lambda n: n < 3)
    plan = priced(plan, lambda _: None)
    return plan, findings(tmp_path, *plan)


def test_without_ams_the_page_was_tables_of_dashes(tmp_path: Path) -> None:
    plan, found = unscored(tmp_path)
    sections = {section.name: section for section in chapters(found)}
    assert not {"tiers", "heat-map", "budgets", "profile"} & set(sections)
    pairs = sections["pairs"].blocks[0]
    assert pairs.caption == "Pass rate of 1 pair, surest first"
    assert [value.text for value in pairs.rows[0][2:]][-1] == "yes"
    board = sections["leaderboard"].blocks[0]
    assert "AMS" not in [column.title for column in board.columns]
    assert board.caption == "2 cells, best pass rate first"
    assert all(line[3].strip for line in board.rows)
    text = text_of(plan)
    assert "AMS: AgentMeter Score" not in text
    assert "By passes, codex · scripted_careful (scripted) is told apart from the other." in text


def test_averaged_passes_had_no_interval() -> None:
    plan = cells(attempts=2, codex=lambda n: n < 5)
    text = text_of(plan)
    assert "beneath it the bootstrap interval of the rate" in text
    assert "10/20" in text
    own = cell_scores(trials_table(*plan), SCORING).iloc[0]
    assert own["pass_rate_low"] < 0.5 < own["pass_rate_high"]
    assert f"{own['pass_rate_low']:.2f}-{own['pass_rate_high']:.2f}" in text


def test_passes_of_several_attempts_are_written_to_a_tenth() -> None:
    planned, ended = cells(attempts=3, codex=lambda n: n < 5)
    ended[planned[0].key] = record(planned[0], passed=False)
    assert " 9.7/20 " in text_of((planned, ended))


def test_a_cell_of_only_invalid_trials_had_a_rank(tmp_path: Path) -> None:
    planned, ended = cells(codex=lambda n: n < 5, kimi_cli=lambda n: n < 5)
    spoiled = {
        p.key: record(p, passed=None, status=Status.INFRA_INVALID) for p in planned if p.agent == "kimi_cli"
    }
    found = findings(tmp_path, planned, ended | spoiled)
    kimi = found.cells.iloc[-1]
    assert kimi["agent"] == "kimi_cli"
    assert kimi[["AMS", "rank"]].isna().all()
    assert kimi["why"] == "no valid trial"
    assert "No AMS for 1 cells: no valid trial." in text_of((planned, ended | spoiled))


def test_equal_cells_are_said_to_be_equal() -> None:
    text = text_of(cells(codex=lambda n: n < 5, kimi_cli=lambda n: n < 5))
    assert (
        "By AMS, codex · scripted_careful (scripted), kimi_cli · scripted_careful (scripted) are equally good."
        in text
    )


def test_a_cell_alone_is_told_apart_from_nobody() -> None:
    assert "told apart from" not in text_of(cells(codex=lambda n: n < 5)).replace(
        "clear: told apart from", ""
    )
