"""AgentMeter's own sweeps, planned over a folder of the user's."""

from __future__ import annotations

import re

import pytest
import yaml

from runner.resources import CONF
from tests.support.suite_factory import make_folder
from tests.support.sweeps import Cli
from tests.support.tasks_factory import make_task

KEYS = ("ANTHROPIC", "DASHSCOPE", "DEEPSEEK", "MINIMAX", "OPENAI", "ZAI")


def test_agentmeters_preset_is_six_models_by_four_agents(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in KEYS:
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
    for tier in ("easy", "medium", "hard"):
        make_task(cli.outputs / "tasks", tier)
    ended = cli("experiment=agentmeter_core30", "dataset.root=tasks", "dry_run=full")
    assert ended.code == 0, ended.err
    assert "24 cells, 72 trials planned: 0 finished, 72 to do." in ended.out
    cells = re.findall(r"^  [0-9a-f]{12}  (\w+) · (\w+) · hard$", ended.out, re.MULTILINE)
    assert set(cells) == {
        (agent, model)
        for agent in ("claude_code", "codex", "kimi_cli", "qwen_code")
        for model in ("claude", "deepseek", "glm", "gpt_codex", "minimax", "qwen")
    }
    assert "The most it may cost: 288.00 USD" in ended.out, (
        "above the greatest budget of Table 1, 3.47 USD a trial"
    )


def test_all_missing_keys_are_named_at_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in KEYS:
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
    ended = cli("experiment=agentmeter_core30", "dataset.root=tasks", "agent=codex")
    assert ended.code == 2
    assert [provider for provider in KEYS if f"export {provider}_API_KEY=" in ended.err] == list(KEYS)


def test_a_preset_over_ones_own_tasks_asks_where_they_are(cli: Cli) -> None:
    ended = cli("experiment=agentmeter_benchmark90", "agent=codex", "model=gpt_codex", "dry_run=true")
    assert ended.code == 2
    assert "dataset.root: it has no default. Add dataset.root=..." in ended.err


def test_both_presets_differ_in_name_alone() -> None:
    core, full = (
        (CONF / f"experiment/agentmeter_{name}.yaml").read_text() for name in ("core30", "benchmark90")
    )
    assert yaml.safe_load(core.replace("core30", "benchmark90")) == yaml.safe_load(full)


def test_a_cap_below_what_table_1_spends_is_not_called_enough() -> None:
    tiers = yaml.safe_load((CONF / "scoring/agentmeter.yaml").read_text())["tiers"]
    dearest = max(max(tier["budgets"]) for tier in tiers.values())
    header = (CONF / "budget/default.yaml").read_text().partition("name:")
    assert yaml.safe_load("name:" + header[2])["usd"] < dearest
    assert "Enough for any" not in header[0]
    assert f"{dearest:g} USD" in header[0]


@pytest.mark.parametrize(
    ("preset", "cells"),
    [
        ("nl2repo", 24),
        ("nl2repo_reveal", 2),
        ("nl2repo_rounds", 6),
    ],
)
def test_the_settings_of_nl2repo_bench(cli: Cli, preset: str, cells: int) -> None:
    make_folder(cli.outputs / "tasks")
    ended = cli(f"experiment={preset}", f"dataset.root={cli.outputs / 'tasks'}", "dry_run=true")
    assert ended.code == 0, ended.err
    assert f"{cells} cells, {cells} trials planned" in ended.out
    assert "It is not known where its hidden tests are" in ended.out


@pytest.mark.parametrize(("option", "factor"), [("agentmeter_half", 0.5), ("agentmeter_double", 2)])
def test_the_other_grids_are_multiples_of_table_1(option: str, factor: float) -> None:
    published = yaml.safe_load((CONF / "scoring/agentmeter.yaml").read_text())["tiers"]
    tiers = yaml.safe_load((CONF / f"scoring/{option}.yaml").read_text())["tiers"]
    for name, tier in published.items():
        assert tiers[name]["budgets"] == pytest.approx([factor * budget for budget in tier["budgets"]])
        assert tiers[name]["tau"] == pytest.approx(factor * tier["tau"])
