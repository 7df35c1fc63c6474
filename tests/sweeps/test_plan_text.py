"""The text of a dry run: the price first, a line a cell, and not 2,231 lines of trials."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from runner.records import PlannedRow
from runner.sweeps.store import Store
from tests.report.plans import record
from tests.support.sweeps import Cli
from tests.support.tasks_factory import make_task

KEYS = ("ANTHROPIC", "DASHSCOPE", "DEEPSEEK", "MINIMAX", "OPENAI", "ZAI")
TIERS = {"easy": 4, "medium": 55, "hard": 30}


@pytest.fixture
def tasks(cli: Cli) -> Path:
    """Return a folder of as many tasks as Terminal-Bench 2 has, in its tiers."""
    for tier, count in TIERS.items():
        for n in range(count):
            make_task(cli.outputs / "tasks", f"{tier}-{n:02}", toml=f'[metadata]\ndifficulty = "{tier}"\n')
    return cli.outputs / "tasks"


def test_a_plan_of_24_cells_and_89_tasks_printed_2231_lines(
    cli: Cli, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in KEYS:
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    words = ("experiment=agentmeter_core30", f"dataset.root={tasks}")
    ended = cli(*words, "dry_run=true")
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert len(lines) < 50
    assert lines[0] == "24 cells, 2136 trials planned: 0 finished, 2136 to do."
    assert lines[1].startswith("The most it may cost: 8544.00 USD")
    assert "core30: 89 tasks (easy 4, medium 55, hard 30)" in lines
    rows = [line.split() for line in lines if "·core30·" in line]
    assert len(rows) == 24
    assert {tuple(row[1:]) for row in rows} == {("89", "0", "0", "356.00")}
    missing = {provider for provider in KEYS if f"Not set: {provider}_API_KEY, the API key of " in ended.out}
    assert missing == set(KEYS) - {"OPENAI"}
    assert any(line.startswith("Time, ") for line in lines)
    assert any(line.startswith("Disk, at most: ") for line in lines)
    assert lines[-1] == "dry_run=full lists each trial with its key, and each image."


def test_time_is_judged_by_the_trials_that_ended(cli: Cli) -> None:
    make_task(cli.outputs / "tasks", "a")
    make_task(cli.outputs / "tasks", "b")
    words = ("agent=oracle", "dataset=harbor", f"dataset.root={cli.outputs / 'tasks'}", "executor.workers=1")
    full, short = (cli(*words, f"dry_run={how}").out.splitlines() for how in ("full", "true"))
    keys = [line.split()[0] for line in full if " · none · " in line]
    assert len(keys) == 2
    assert full[: len(short) - 1] == short[:-1], "the list of trials comes after what is always said"
    whole = _keys(cli, words)
    Store(cli.outputs).write(record(whole[0], passed=True, wall_seconds=600.0))
    text = cli(*words, "dry_run=true").out
    assert "2 trials planned: 1 finished, 1 to do." in text
    assert "if each takes what the 1 finished ones did: 10 min." in text
    Store(cli.outputs).write(record(whole[1], passed=True, wall_seconds=600.0))
    text = cli(*words, "dry_run=true").out
    assert "2 finished, 0 to do." in text
    assert "Time" not in text


def _keys(cli: Cli, words: tuple[str, ...]) -> list[PlannedRow]:
    """The planned rows of a command."""
    from runner.cli.arguments import check  # noqa: PLC0415
    from runner.cli.compose import compose  # noqa: PLC0415 - as the command does
    from runner.cli.config import load  # noqa: PLC0415
    from runner.sweeps.plan import make_plan  # noqa: PLC0415

    checked = check([f"outputs={cli.outputs}", "tracker=none", *words])
    sweep = load(compose(checked), checked)
    return [trial.row() for trial in make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ()).trials]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_plan_was_wider_than_the_terminal(cli: Cli, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`UPDATE_SNAPSHOTS=1` writes the snapshot anew."""
    monkeypatch.setenv("COLUMNS", str(width))
    snapshot = Path(__file__).with_name(f"plan_{width}.txt")
    text = cli("experiment=quickstart", "executor.workers=2", "dry_run=true").out
    if os.environ.get("UPDATE_SNAPSHOTS"):
        snapshot.write_text(text)
    assert text == snapshot.read_text()
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["agent=execution_agent"], "decode-telemetry is not a project to set up: choose dataset=execution"),
        (["agent=llm_scripts"], "decode-telemetry is not a project to set up: choose dataset=execution"),
        (["model=none"], "agent mini_swe_agent needs a model: add model=NAME"),
        (["model.policy=absent.yaml"], "Cannot read the scripted policy"),
        (["agent=kimi_code", "agent.version=0.0.1"], "not for 0.0.1. Make a lock of that version"),
        (["agent=codex", "sandbox=local"], "sandbox=local cannot run agents that come as bundles (codex)"),
    ],
)
def test_a_dry_run_accepted_what_the_run_refuses(cli: Cli, words: list[str], message: str) -> None:
    planned, run = cli(*words, "dry_run=true"), cli(*words)
    assert message in planned.err
    assert (planned.code, planned.err) == (run.code, run.err) == (2, run.err)
    assert not (cli.outputs / "trials").exists(), "nothing was started"


def test_a_project_need_not_be_fetched_for_a_dry_run(cli: Cli) -> None:
    ended = cli("agent=execution_agent", "dataset=execution", "dry_run=true")
    assert (ended.code, "0 finished" in ended.out) == (0, True), ended.err


def test_the_plan_prices_a_trial_that_uses_all_that_its_agent_allows_itself(cli: Cli) -> None:
    words = ("agent=execution_agent", "dataset=execution", "budget=execution", "dry_run=true")
    told = " ".join(cli(*words, "model=claude").out.split())
    name = "execution_agent·claude·execution·execution"
    assert f"A trial of {name} that uses all its attempts is expected to cost 4.2" in told
    assert (
        "expected to cost" not in cli("agent=codex", "model=claude", "dataset=execution", "dry_run=true").out
    )


def test_a_key_of_blanks_was_no_key_to_the_gateway_and_one_to_the_plan(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every trial ended as invalid."""
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    words = ("agent=codex", "model=gpt")
    assert "model gpt needs its API key: export OPENAI_API_KEY=..." in cli(*words).err
    assert "Not set: OPENAI_API_KEY, the API key of gpt." in cli(*words, "dry_run=true").out


def test_a_budget_without_a_limit_is_said_to_be_one(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    text = cli("agent=codex", "model=gpt", "budget.usd=null", "dry_run=true").out
    assert "The most it may cost: without limit (budget.usd is null)" in text
    assert "without limit" in next(line for line in text.splitlines() if "codex·gpt" in line)


def test_tiers_are_those_of_the_scoring(cli: Cli) -> None:
    make_task(cli.outputs / "tasks", "a")
    tiers = {
        "dataset": "x", "inputs": {}, "cells": 1, "trials": 1, "unpriced": 0, "quantiles": [0.5], "tau_quantile": 0.5,
        "tiers": {"hard": {"budgets": [1.0], "tau": 1.0}}, "labels": {"a": "hard"}, "effort": {},
    }  # fmt: skip
    Path("tiers.yaml").write_text(json.dumps(tiers))
    words = ("agent=oracle", "dataset=harbor", f"dataset.root={cli.outputs / 'tasks'}", "dry_run=true")
    assert "1 tasks (hard 1)" in cli(*words, "scoring.tiers=tiers.yaml").out


def test_tasks_whose_time_a_budget_cuts_are_counted_before_the_run(cli: Cli) -> None:
    for name, seconds in (("long", 3600), ("longer", 12000), ("short", 60)):
        make_task(cli.outputs / "tasks", name, toml=f"[agent]\ntimeout_sec = {seconds}\n")
    words = (
        "model=scripted_hasty",
        "dataset=harbor",
        f"dataset.root={cli.outputs / 'tasks'}",
        "dry_run=true",
    )
    text = " ".join(cli("agent=mini_swe_agent", *words).out.split())  # lines break at the terminal's width
    assert "2 tasks' time limits are cut from up to 12000 s to 1800 s by budget=default; budget.wall" in text
    assert "cut" not in cli("agent=mini_swe_agent", *words, "budget.wall_seconds=null").out
    assert "cut" not in cli("agent=oracle", *words[1:]).out


def test_an_agent_that_reads_no_skills_is_named_where_tasks_may_bring_some(cli: Cli) -> None:
    make_task(cli.outputs / "tasks", "plain")
    make_task(
        cli.outputs / "tasks",
        "skilled",
        dockerfile="ARG BASE\nFROM ${BASE}\nCOPY skills /root/.claude/skills\n",
    )
    words = (
        "model=scripted_hasty",
        "dataset=harbor",
        f"dataset.root={cli.outputs / 'tasks'}",
        "dry_run=true",
    )
    said = "Skills: mini_swe_agent reads none."
    text = " ".join(cli("agent=mini_swe_agent", *words).out.split())
    assert said in text
    assert "flagged skills_unsupported: at most 1 trials of harbor." in text
    assert said not in cli("agent=mini_swe_agent", *words, "dataset.skills=absent").out
    assert "Skills:" not in cli("agent=qwen_code", *words).out
