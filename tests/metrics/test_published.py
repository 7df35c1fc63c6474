"""Published tables, recomputed with our own definitions as far as their figures and roundings allow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from metrics.ams import mean_over_tiers
from metrics.ranking import agreement, delta_best, four_criteria, gap_to_best, pareto
from metrics.uncertainty import Draws
from runner.records import TierScoring

PUBLISHED = Path(__file__).parent / "published"


def published(name: str) -> pd.DataFrame:
    return pd.read_csv(PUBLISHED / f"{name}.csv")


@pytest.fixture(scope="module")
def core30() -> pd.DataFrame:
    """Return AgentMeter's Table 2 with our column names; index cell."""
    table = published("agentmeter_core30").rename(
        columns={"passed": "passes", "ams": "AMS", "tokens_per_pass_millions": "tokens_per_pass"}
    )
    return table.set_index(table["agent"] + " x " + table["model"])


def test_ams_of_all_24_rows_is_the_mean_of_their_tier_scores(core30: pd.DataFrame) -> None:
    tiers = {name: TierScoring(budgets=(1.0,), tau=1.0) for name in ("easy", "medium", "hard")}
    scores = mean_over_tiers({name: core30[f"score_{name}"].to_numpy() for name in tiers}, tiers)
    assert len(scores) == 24
    np.testing.assert_allclose(scores, core30["AMS"], atol=0.001)


def test_passes_are_those_of_the_tiers(core30: pd.DataFrame) -> None:
    by_tier = core30[["passed_easy", "passed_medium", "passed_hard"]].sum(axis=1)
    assert by_tier.tolist() == core30["passes"].tolist()


def test_best_and_worst_agent_of_each_model_as_in_table_3(core30: pd.DataFrame) -> None:
    found = delta_best(core30)
    expected = {
        "Qwen3.6++": ("kimi-cli", 0.529, "Claude Code", 0.178),
        "DeepSeek-v4-pro": ("kimi-cli", 0.426, "Codex", 0.159),
        "GLM-5.1": ("qwen-coder", 0.388, "Codex", 0.178),
        "MiniMax-M2.5": ("Codex", 0.394, "kimi-cli", 0.086),
        "Claude Sonnet 4.6": ("Codex", 0.459, "kimi-cli", 0.119),
        "GPT-5.3-Codex": ("Codex", 0.385, "Claude Code", 0.053),
    }
    assert set(found.index) == set(expected)
    for model, (best, score, worst, gap) in expected.items():
        assert tuple(found.loc[model, ["best", "worst"]]) == (best, worst)
        assert tuple(found.loc[model, ["best_AMS", "gap"]]) == pytest.approx((score, gap), abs=0.0011)


def test_the_gap_to_the_best_agent_of_all_24_rows(core30: pd.DataFrame) -> None:
    np.testing.assert_allclose(gap_to_best(core30), core30["gap_to_best"], atol=0.0011)


def test_four_criteria_have_the_four_winners_of_section_5_1(core30: pd.DataFrame) -> None:
    names = ("passes", "tokens_per_pass", "usd_per_pass", "AMS")
    ordered = core30.sort_index()
    values = {name: ordered[name].to_numpy(float) for name in names}
    drawn = {name: value[None, :] for name, value in values.items()}  # the table says nothing of its spread
    winners = four_criteria(core30, Draws(tuple(ordered.index), ("Core30",) * 24, values, drawn))
    assert winners["best"].to_dict() == {
        "passes": "qwen-coder x GLM-5.1",
        "tokens_per_pass": "kimi-cli x GPT-5.3-Codex",
        "usd_per_pass": "Codex x Qwen3.6++",
        "AMS": "kimi-cli x Qwen3.6++",
    }
    assert winners["value"].tolist() == [18, 0.42, 0.047, 0.529]


def test_both_ends_of_the_cost_quality_front_are_winners(core30: pd.DataFrame) -> None:
    front = core30[pareto(core30["passes"] / 30, core30["usd_per_pass"])].sort_values("usd_per_pass")
    assert (front.index[0], front.index[-1]) == ("Codex x Qwen3.6++", "qwen-coder x GLM-5.1")
    assert front["passes"].is_monotonic_increasing


def test_the_excerpt_of_the_validation_keeps_its_best_and_its_three_best() -> None:
    """Table 4 prints 5 of the 16 cells: its top-1 and top-3 claims can be checked, its correlations cannot."""
    core = pd.Series([0.529, 0.426, 0.444, 0.417, 0.364], index=list("abcde"))
    full = pd.Series([0.453, 0.448, 0.428, 0.397, 0.391], index=list("abcde"))
    found = agreement(core, full)
    assert (found.top1, found.topk, found.cells) == (True, True, 5)
    np.testing.assert_allclose(full - core, [-0.076, 0.022, -0.016, -0.020, 0.027], atol=0.001)


def test_nl2repo_tier_means_weighted_by_their_tasks_give_the_overall() -> None:
    table = published("nl2repo_main")
    overall = np.average(table[["easy", "medium", "hard"]], weights=[26, 46, 32], axis=1)
    np.testing.assert_allclose(overall, table["pass_rate_percent"], atol=0.6)
