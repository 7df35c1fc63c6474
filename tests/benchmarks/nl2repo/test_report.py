"""Sections on hidden suites and on the behaviour of agents, and reports without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.benchmarks.nl2repo.report import sections as sections_nl2repo
from runner.records import PlannedRow, TrialRecord, Verdict
from runner.report.blocks import Picture, Section, Table
from runner.report.findings import Findings
from runner.report.page import chapters_of, write_report
from tests.report.conftest import findings
from tests.report.plans import record, row, sweep_of_four

TASKS = {"easy-1": "Testing", "easy-2": "System Tools", "hard-1": "Testing"}
SKILL = {"openhands": 0.75, "claude_code": 0.5, "codex": 0.25}


def sweep_of_suites(**cells: Any) -> tuple[list[PlannedRow], dict[str, TrialRecord]]:
    """Return a sweep of three agents with a model, and the oracle, on three tasks of 20 tests each."""
    planned, records = [], {}
    for agent, skill in {"oracle": 1.0, **SKILL}.items():
        for task, category in TASKS.items():
            trial = row(
                agent,
                task,
                model="none" if agent == "oracle" else "glm",
                **{"dataset": "nl2repo", "category": category} | cells,
            )
            window = {"openhands": 1_000_000, "codex": 200_000}.get(agent)
            trial = trial.model_copy(update={"context_window": window})
            planned.append(trial)
            failed = 20 * (1 - skill)
            components = {
                "tests_published": 20.0,
                "failure_import": failed * 0.8,
                "failure_assertion": failed * 0.2,
            }
            behaviour = {} if agent == "oracle" else {
                "tool_kinds": ("edit", "execute") * round(8 * skill),
                "tool_names": ("editor", "terminal") * round(8 * skill),
                "actions": ("edit", "test") * round(8 * skill),
                "tool_calls": {"editor": round(8 * skill), "terminal": round(8 * skill)},
                "own_finish": agent != "codex",
                "turns": 60,
            }  # fmt: skip
            records[trial.key] = record(
                trial,
                reward=skill,
                passed=skill == 1.0,
                verdict=Verdict(reward=skill, components=components),
                **behaviour,
            )
    return planned, records


def sections(found: Findings) -> dict[str, Section]:
    return {section.name: section for chapter in chapters_of(found) for section in chapter.sections}


def cells(table: object) -> list[list[str]]:
    assert isinstance(table, Table)
    return [[value.text for value in row] for row in table.rows]


def tables(section: Section) -> dict[str, list[list[str]]]:
    """Return caption -> texts of each table of a section."""
    return {block.caption: cells(block) for block in section.blocks if isinstance(block, Table)}


def pictures(section: Section) -> list[str]:
    return [block.name for block in section.blocks if isinstance(block, Picture)]


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Return the findings of a sweep of suites. Tests must not change them."""
    return findings(tmp_path_factory.mktemp("suites"), *sweep_of_suites())


@pytest.fixture(scope="module")
def by_name(suites: Findings) -> dict[str, Section]:
    """Return the sections of that sweep by name."""
    return sections(suites)


def test_both_counts_stand_beside_each_other_where_they_differ(
    by_name: dict[str, Section], tmp_path: Path
) -> None:
    """The first task counts 16 of its 20 published tests; `openhands` passes 12 of 16, and 15 of 20 of the others."""
    assert "suite-counts" not in by_name
    planned, records = sweep_of_suites()
    for key, one in records.items():
        if one.task == "easy-1" and one.verdict and one.verdict.reward is not None:
            passed = one.verdict.reward * 16
            more = {"tests_counted": 16.0, "score_by_published_count": passed / 20}
            components = one.verdict.components | more
            verdict = one.verdict.model_copy(update={"components": components})
            records[key] = one.model_copy(update={"verdict": verdict})
    scores, tasks = sections(findings(tmp_path, planned, records))["suite-counts"].blocks
    assert cells(tasks) == [["easy-1", "16", "20"]]
    assert {row[0]: row[2:] for row in cells(scores)}["openhands"] == ["75.0%", "70.0%"]


def test_every_section_of_a_sweep_of_suites(by_name: dict[str, Section]) -> None:
    found = by_name
    assert {
        "suites",
        "suite-failures",
        "behaviour-turns",
        "behaviour-tools",
        "behaviour-workflow",
    } <= found.keys()
    picture, tiers, categories = found["suites"].blocks
    assert isinstance(picture, Picture)
    assert ["openhands", "glm", "ours", "75.0%", "0/3", "75.0%", "75.0%"] in cells(tiers)
    assert [column.title for column in categories.columns][5:] == ["System Tools", "Testing"]  # type: ignore[union-attr]
    failed = ["codex", "glm", "45", "60", "80.0%", "0.0%", "20.0%", "0.0%", "0.0%"]
    assert failed in cells(found["suite-failures"].blocks[0])
    turns = {line[0]: line for line in cells(found["behaviour-turns"].blocks[0])}
    assert turns.keys() == SKILL.keys(), "the oracle has no model"
    assert (turns["openhands"][-2:], turns["codex"][-2:]) == (["100.0%", "0.0%"], ["0.0%", "100.0%"])
    tools = tables(found["behaviour-tools"])
    kinds = {line[0]: line[1] for line in tools["Tool calls and score"]}
    assert (kinds["edit"], kinds["total"], kinds["read"]) == ("1.000", "1.000", "-")
    named = {line[0]: line[1] for line in tools["Tool calls by name and score (Table 5)"]}
    assert named == {"editor": "1.000", "terminal": "1.000"}
    patterns = {line[0]: line[4] for line in cells(found["behaviour-workflow"].blocks[1])}
    assert patterns["openhands"] == "100.0%"


def test_the_analyses_of_section_4_3_have_pictures_and_tables(by_name: dict[str, Section]) -> None:
    """Figures 4 to 8; 3 and 9 have tests of their own."""
    found = by_name
    assert pictures(found["behaviour-turns"]) == ["behaviour_endings"]
    ends = {line[0]: line[1:7] for line in tables(found["behaviour-turns"])["Endings by agent"]}
    assert ends["openhands"] == ["3", "100.0%", "0.0%", "0.0%", "0.0%", "0.0%"]
    assert ends["codex"] == ["3", "0.0%", "100.0%", "0.0%", "0.0%", "100.0%"]
    assert pictures(found["behaviour-tools"]) == ["behaviour_tools", "behaviour_shares"]
    tools = tables(found["behaviour-tools"])
    assert ["openhands", "glm", "6.0", "6.0"] in tools["Tool calls by name, mean of a valid trial (Figure 4)"]
    shares = {line[0]: line[2:] for line in tools["Shares of tool calls (Figure 6)"]}
    assert (shares["openhands"][:3], shares["openhands"][-1]) == (["36", "50.0%", "50.0%"], "1.00")
    assert pictures(found["behaviour-effort"]) == ["behaviour_calls", "behaviour_windows"]
    effort = tables(found["behaviour-effort"])
    assert ["openhands", "glm", "3", "12.0", "75.0%", "625.0%"] in effort["Tool calls and score (Figure 7)"]
    assert [line[0] for line in effort["Score by context window (Figure 8)"]] == ["codex", "openhands"]


def test_what_an_ending_means_is_read_from_the_agents_of_the_sweep(tmp_path: Path) -> None:
    agents: dict[str, dict[str, Any]] = {
        "openhands": {"argv": ["x"], "tools": {"finish": ["finish"]}},
        "claude_code": {"argv": ["x"], "done_when": "It says so."},
        "codex": {"argv": ["x"], "tools": {"edit": ["apply_patch"]}},
    }
    nodes = [{"agent": {"name": name, **node}} for name, node in agents.items()]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump_all(nodes))
    found = sections(findings(tmp_path, *sweep_of_suites()))
    meanings = {line[0]: line[-1] for line in tables(found["behaviour-turns"])["Endings by agent"]}
    assert meanings["openhands"].startswith("It calls finish.")
    assert meanings["claude_code"] == "It says so."
    assert "Stopping to ask looks the same" in meanings["codex"]


def test_the_papers_instruction_is_marked_in_the_tables_and_compared_with_ours(tmp_path: Path) -> None:
    planned, records = sweep_of_suites()
    rows, of = sweep_of_suites(dataset="nl2repo_paper")
    paper = {key: one.model_copy(update={"flags": ("paper_instruction",)}) for key, one in of.items()}
    chapters = {
        chapter.title: chapter
        for chapter in chapters_of(findings(tmp_path, [*planned, *rows], records | paper))
    }
    (suites,) = (section for section in chapters["nl2repo_paper"].sections if section.name == "suites")
    assert {line[2] for line in cells(suites.blocks[-1])} == {"paper"}
    assert any("warns of hidden tests" in getattr(block, "text", "") for block in suites.blocks)
    (compared,) = (each for each in chapters["The sweep"].sections if each.name == "suite-instructions")
    assert [line[2] for line in cells(compared.blocks[0])] == ["ours", "paper"] * 3


def test_limits_on_turns_make_a_curve_and_a_single_limit_does_not(tmp_path: Path) -> None:
    planned: list[PlannedRow] = []
    records: dict[str, TrialRecord] = {}
    for budget in (
        "turns_50",
        "turns_unlimited",
        "default_turns_100",
    ):  # as the experiment calls them, and as a swept limit is called
        rows, of = sweep_of_suites(budget=budget)
        planned += rows
        records |= of
    found = sections(findings(tmp_path, planned, records))
    rounds = cells(found["suite-rounds"].blocks[1])
    assert rounds[0][:4] == ["claude_code", "glm", "50", "50.0%"]
    assert [line[2] for line in rounds[:3]] == ["50", "100", "unlimited"]
    picture = found["suite-rounds"].blocks[0]
    assert isinstance(picture, Picture)
    ticks = picture.draw().axes[-1].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["50", "100", "unlimited"]
    assert "suite-rounds" not in sections(findings(tmp_path, *sweep_of_suites(budget="turns_50")))


def test_revealed_tests_stand_beside_the_document_alone(tmp_path: Path, suites: Findings) -> None:
    planned: list[PlannedRow] = []
    records: dict[str, TrialRecord] = {}
    for name in ("nl2repo", "nl2repo_revealed"):
        rows, of = sweep_of_suites(dataset=name)
        planned += rows
        records |= of
    found = findings(tmp_path, planned, records)
    lines = cells(sections(found)["suite-revealed"].blocks[0])
    assert [line[2] for line in lines] == ["document", "document and tests"] * 3
    assert sections_nl2repo.revealed(suites) is None


def test_a_sweep_without_suites_has_none_of_them(tmp_path: Path) -> None:
    found = sections(findings(tmp_path, *sweep_of_four()))
    assert not {name for name in found if name.startswith(("suite", "behaviour"))}


def test_a_page_is_written(suites: Findings) -> None:
    page = write_report(suites)
    assert list(page.parent.glob("behaviour_names*"))
    assert "Hidden suites: why tests fail" in page.read_text()
    assert (page.parent / "behaviour_transitions.svg").exists() or list(
        page.parent.glob("behaviour_transitions*")
    )


def test_records_of_the_version_before_are_read_and_have_no_actions(tmp_path: Path) -> None:
    planned, records = sweep_of_suites()
    before = {
        key: TrialRecord.model_validate_json(one.model_dump_json(exclude={"actions", "tool_names"}))
        for key, one in records.items()
    }
    found = sections(findings(tmp_path, planned, before))["behaviour-workflow"].blocks
    assert [getattr(block, "text", "") for block in found] == [
        "What tool calls did was not recorded when these trials ran."
    ]
