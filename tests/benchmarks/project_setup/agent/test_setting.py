"""A record says which setting of ExecutionAgent ran, as the shipped files and the command line choose it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from runner.benchmarks.project_setup.agent.agent import ExecutionAgent
from runner.benchmarks.project_setup.report.scores import ablation, effectiveness
from runner.cli.config import build
from runner.report.blocks import Table
from runner.resources import CONF
from tests.benchmarks.project_setup.project_sweep import sweep_of_projects
from tests.report.conftest import findings


def shipped(name: str, chosen: dict[str, object]) -> ExecutionAgent:
    """Return the agent of a shipped file, as `agent.KEY=VALUE` changes it."""
    files = ("execution_agent", name)
    loaded: list[Any] = [OmegaConf.load(CONF / "agent" / f"{one}.yaml") for one in dict.fromkeys(files)]
    node: Any = OmegaConf.merge(*loaded, chosen)
    node.pop("defaults", None)
    agent = build(OmegaConf.to_container(node, resolve=True), "agent")
    assert isinstance(agent, ExecutionAgent)
    return agent


@pytest.mark.parametrize(
    ("name", "chosen", "setting"),
    [
        ("execution_agent", {}, "ours"),
        ("execution_agent_paper", {}, "paper (no search)"),
        ("execution_agent_paper", {"search": "brave"}, "paper"),
        ("execution_agent", {"search": "brave"}, "ours (search)"),
        (
            "execution_agent",
            {"protocol": "json", "last_result_tokens": 0},
            "ours (protocol=json, last_result_tokens=0)",
        ),
        ("execution_agent_paper", {"tell_left": True, "search": "brave"}, "paper (tell_left=true)"),
        ("execution_agent", {"pass_share": 0.8}, "ours (pass_share=0.8)"),
        ("execution_agent_no_feedback", {}, "ours (feedback=false)"),
    ],
)
def test_the_setting_is_the_nearer_one_and_what_differs(
    name: str, chosen: dict[str, object], setting: str
) -> None:
    assert shipped(name, chosen).setting == setting


def test_tables_of_projects_say_which_setting_ran(tmp_path: Path) -> None:
    agents = {"execution_agent": 2, "execution_agent_paper": 0, "codex": 4}
    planned, records = sweep_of_projects(agents)
    settings = {"execution_agent": "ours", "execution_agent_paper": "paper (no search)"}
    said = {
        key: one.model_copy(update={"agent_setting": settings.get(one.agent, "")})
        for key, one in records.items()
    }
    found = findings(tmp_path, planned, said)
    table_3 = ablation(found)
    for section in (effectiveness(found), table_3):
        assert section
        table = section.blocks[0]
        assert isinstance(table, Table)
        at = [column.title for column in table.columns].index("setting")
        shown = {row[0].text: row[at].text for row in table.rows}
        assert {name: text for name, text in shown.items() if text != "-"} == settings
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_the_estimate_of_the_budget_is_that_of_the_plan_for_three_classes_of_prices() -> None:
    text = (CONF / "budget" / "execution.yaml").read_text()
    rows = re.findall(r"^#   (\w+) +([\d.]+) / ([\d.]+) +/ +([\d.]+) .*= ([\d.]+) USD$", text, re.MULTILINE)
    assert [row[0] for row in rows] == ["flagship", "middle", "small"]
    usage = ExecutionAgent(name="execution_agent", version="2").expected_usage
    for name, *numbers in rows:
        fresh, cached, output, usd = map(float, numbers)
        cost = (
            usage.cache_creation_tokens * fresh
            + usage.cache_hit_tokens * cached
            + usage.output_tokens * output
        )
        assert cost / 1e6 == pytest.approx(usd, abs=0.05), name
    assert max(float(row[-1]) for row in rows) < 6.0, "what a trial may spend"
