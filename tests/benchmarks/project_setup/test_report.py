"""Sections on projects to set up, and reports without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.records import Verdict
from runner.report.blocks import Picture, Section, Table
from runner.report.findings import Findings
from runner.report.page import chapters_of, write_report
from tests.benchmarks.project_setup.project_sweep import sweep_of_projects
from tests.report.conftest import findings
from tests.report.plans import sweep_of_four

NAMES = ["projects", "projects-each", "projects-languages", "projects-strata", "projects-work"]


@pytest.fixture(scope="module")
def by_name(projects: Findings) -> dict[str, Section]:
    """Return the sections by name. Codex ends as in `ENDS`; execution_agent is one project better."""
    return sections(projects)


def sections(found: Findings) -> dict[str, Section]:
    every = [section for chapter in chapters_of(found) for section in chapter.sections]
    return {section.name: section for section in every if section.name.startswith("projects")}


def tables(section: Section) -> list[list[list[str]]]:
    return [
        [[value.text for value in row] for row in block.rows]
        for block in section.blocks
        if isinstance(block, Table)
    ]


def test_sections_in_the_papers_order(by_name: dict[str, Section]) -> None:
    assert list(by_name) == NAMES, "no ablation without variants of the agent"


def test_table_2_counts_what_was_not_run(by_name: dict[str, Section]) -> None:
    reached, away, _, scripts = tables(by_name["projects"])
    assert reached == [
        ["execution_agent", "glm", "5/6", "4/6", "3/6", "3/6", "2/6", "0.088", "0.2"],
        ["codex", "glm", "4/6", "3/6", "2/6", "2/6", "1/6", "0.10", "0.2"],
        ["oracle (bound)", "none", "6/6", "6/6", "6/6", "6/6", "6/6", "0.00", "0.2"],
    ]
    codex = {row[0]: row for row in away}["codex"]
    assert codex[2:] == ["3", "1", "12.6", "30.2", "1"]
    assert {row[0]: row[2:] for row in scripts}["codex"] == ["9", "9", "9", "0.063", "0.16", "0", "1/5"]


def test_agreement_is_told_test_by_test(by_name: dict[str, Section]) -> None:
    _, _, agreement, _ = tables(by_name["projects"])
    codex = {row[0]: row[2:] for row in agreement}["codex"]
    assert codex == ["2", "303", "99.67%"], "of the projects whose tests have names"


def test_table_1_has_every_project_with_its_truth_and_its_marks(by_name: dict[str, Section]) -> None:
    each = tables(by_name["projects-each"])[0]
    assert len(each) == 18
    codex = {row[0]: row for row in each if row[6] == "codex"}
    true = ["100", "95", "0", "5"]
    assert codex["easy-1"] == ["easy-1", "python", *true, "codex", "glm", *true]
    assert codex["easy-3"][8:] == ["24", "20", "4", "0"]
    assert [codex[task][8:] for task in ("hard-1", "hard-2", "hard-3")] == [
        ["+"] * 4,
        ["-"] * 4,
        ["not run"] * 4,
    ]
    table = by_name["projects-each"].blocks[0]
    assert isinstance(table, Table)
    best = [row[0].text for row in table.rows if row[6].text == "codex" and row[8].tone == "best"]
    assert best == ["easy-1"], "identical results are marked"


def test_projects_are_told_apart_by_what_their_trees_have(by_name: dict[str, Section]) -> None:
    tools, modules, ci = tables(by_name["projects-strata"])
    assert [row for row in tools if row[1] == "codex"] == [["make or cmake", "codex", "glm", "6", "4", "3"]]
    assert {row[0] for row in modules} == {"without"}
    assert {row[0] for row in ci} == {"builds and tests"}


def test_figure_9_is_a_picture(by_name: dict[str, Section]) -> None:
    drawn = [block for block in by_name["projects"].blocks if isinstance(block, Picture)]
    assert [picture.name for picture in drawn] == ["projects_costs"]
    drawn[0].draw()


def test_figure_8_adds_up_to_what_was_planned(by_name: dict[str, Section]) -> None:
    by_language = tables(by_name["projects-languages"])[0]
    assert [row for row in by_language if row[1] == "codex"] == [
        ["c", "codex", "glm", "3", "1", "0"],
        ["javascript", "codex", "glm", "1", "1", "1"],
        ["python", "codex", "glm", "2", "2", "2"],
    ]


def test_how_agents_worked(by_name: dict[str, Section]) -> None:
    programs, kinds, phases = tables(by_name["projects-work"])
    assert {row[0] for row in programs} == {"codex", "execution_agent"}, "the oracle has no model"
    assert programs[-1] == ["codex", "glm", "25", *["20.0%"] * 5, "0.0%"]
    assert kinds[-1][:5] == ["codex", "glm", "6.0", "16.7%", "50.0%"]
    assert phases[-1] == ["codex", "glm", "5", "33.3%", "33.3%", "16.7%", "0.10", "0.50", "0.80", "100%"]


def test_variants_of_the_agent_are_table_3(tmp_path: Path) -> None:
    agents = {"execution_agent": 2, "execution_agent_no_feedback": 0, "codex": 4}
    by_name = sections(findings(tmp_path, *sweep_of_projects(agents)))
    assert [row[:5] for row in tables(by_name["projects-ablation"])[0]] == [
        ["execution_agent", "glm", "6/6", "5/6", "4/6"],
        ["execution_agent_no_feedback", "glm", "4/6", "3/6", "2/6"],
    ]


def test_a_sweep_without_deliverables(tmp_path: Path) -> None:
    nothing = Verdict(reward=0.0, components={"built": 0.0, "tests_executed": 0.0})
    by_name = sections(findings(tmp_path, *sweep_of_projects(verdict=nothing, reward=0.0, passed=False)))
    assert {tuple(row[2:6]) for row in tables(by_name["projects"])[0]} == {("0/6",) * 4}
    assert len(tables(by_name["projects"])) == 2, "there is no table of deviations"


def test_agents_without_a_record_of_their_work(tmp_path: Path) -> None:
    by_name = sections(findings(tmp_path, *sweep_of_projects(tool_kinds=(), tool_phases=(), programs=())))
    assert "projects-work" not in by_name


def test_a_sweep_without_projects_has_no_such_section(tmp_path: Path) -> None:
    assert not sections(findings(tmp_path, *sweep_of_four()))


def test_a_page_with_its_pictures_is_written(projects: Findings) -> None:
    page = write_report(projects)
    assert "Projects: one by one" in page.read_text()
    names = {"projects_languages", "projects_programs", "projects_phases"}
    assert all((page.parent / f"{name}.{end}").is_file() for name in names for end in ("svg", "png"))
