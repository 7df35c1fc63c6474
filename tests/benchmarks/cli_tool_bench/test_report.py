"""The report's sections on sweeps of CLI-Tool-Bench, which other sweeps do not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.report import scores as sections
from runner.benchmarks.cli_tool_bench.report import tokens
from runner.benchmarks.cli_tool_bench.report import tools as tool_sections
from runner.records import Verdict
from runner.report.blocks import Picture, Section, Table, Text
from runner.report.figures import style
from runner.report.findings import Findings
from runner.report.page import chapters_of, write_report
from tests.benchmarks.cli_tool_bench.tool_sweep import components, sweep_of_tools
from tests.report.conftest import findings
from tests.report.plans import sweep_of_four
from tests.report.test_page import HOSTILE

NAMES = {
    "tool-scores",
    "tool-domains",
    "tool-languages",
    "tool-lines",
    "tool-quadrants",
    "tool-overhead",
    "tool-runtime",
    "tool-files",
    "tool-robustness",
    "tool-funnel",
}
PICTURES = {f"tool_{name}" for name in ("languages", "lines", "quadrants", "files", "funnel")}


def names(found: Findings) -> set[str]:
    chapters = list(chapters_of(found))
    return {
        section.name
        for chapter in chapters
        for section in chapter.sections
        if section.name.startswith("tool-")
    }


def cells(section: Section | None, at: int = 0) -> dict[tuple[str, str], dict[str, str]]:
    """Return (first entry, second entry) -> head -> text of one of the section's tables."""
    assert section
    table = [block for block in section.blocks if isinstance(block, Table)][at]
    heads = [column.title for column in table.columns]
    return {
        (line[0].text, line[1].text): dict(zip(heads, [value.text for value in line], strict=True))
        for line in table.rows
    }


def test_sections_and_pictures_are_there_for_tools_and_for_nothing_else(
    tools: Findings, tmp_path: Path
) -> None:
    page = write_report(tools)
    assert names(tools) == NAMES
    assert {path.stem for path in page.parent.glob("tool_*.svg")} == PICTURES
    assert names(findings(tmp_path, *sweep_of_four())) == set()


def test_a_sweep_of_two_datasets_has_them_under_one(tmp_path: Path) -> None:
    (planned, records), (more, other) = sweep_of_tools(), sweep_of_four()
    chapters = {each.title: each for each in chapters_of(findings(tmp_path, planned + more, records | other))}
    assert {section.name for section in chapters["tools"].sections} >= NAMES
    assert not {section.name for section in chapters["quickstart"].sections} & NAMES


def test_the_overall_table_counts_trials_that_never_ran_and_tools_that_were_not_installed(
    tools: Findings,
) -> None:
    section = sections.overall(tools)
    scores = cells(section)
    assert scores["oracle (bound)", "none"]["exact match"] == "100.0%"
    assert scores["codex", "kimi"]["build"] == "83.3%"  # hard-3 is not installed
    assert scores["codex", "glm"]["build"] == "66.7%"  # and easy-1 never ran
    assert "semantic match" not in scores["codex", "glm"], "no judge"
    assert cells(section, 1)["oracle (bound)", "none"]["exec"] == "0.0%"
    means = cells(section, 2)
    assert means["all of them", "codex"]["build"] == "75.0%"


def test_languages_tiers_and_quadrants(tools: Findings) -> None:
    languages = cells(sections.languages(tools))["codex", "kimi"]
    assert (languages["javascript (of 2)"], languages["go (of 1)"]) == ("55.0%", "0.0%")
    assert cells(sections.against_lines(tools))["codex", "kimi"]["easy (of 3)"] == "67.0%"
    assert cells(sections.composition(tools))["domain", "repair"]["tasks"] == "6"
    python = cells(sections.composition(tools))["language", "python"]
    assert (python["tasks"], python["lines"], python["references"]) == ("3", "2,166.67", "3")
    domains = cells(sections.composition(tools), 1)
    assert domains["oracle (bound)", "none"]["repair (of 6)"] == "100.0%"
    by_agent, every = (cells(tokens.quadrants(tools), at) for at in (0, 1))
    assert by_agent.keys() == every.keys()
    section = tokens.quadrants(tools)
    assert section
    (picture,) = [block for block in section.blocks if isinstance(block, Picture)]
    with style():
        titles = [axes.get_title(loc="left") for axes in picture.draw().axes]
    assert titles == ["codex", "mini_swe_agent"]


def test_cost_and_speed(tools: Findings) -> None:
    cost = cells(tool_sections.overhead(tools))
    assert cost["codex", "glm"]["trials"] == "5"
    assert cost["codex", "kimi"]["steps"] == "5"
    assert not {"judge's USD", "unpriced"} & set(cost["codex", "kimi"]), "no judge, and all have prices"
    built = cells(tool_sections.overhead(tools), 1)
    assert (cost["codex", "kimi"]["trials"], built["codex", "kimi"]["trials"]) == ("6", "5")
    speed = cells(tool_sections.runtimes(tools))
    assert {line["tasks"] for line in speed.values()} == {
        "4"
    }  # without those that never ran or were not installed
    assert {line["CPU"] for line in speed.values()} == {"0.50"}
    by_agent = cells(tool_sections.runtimes(tools), 1)
    assert {(agent, line["tasks"]) for (agent, _), line in by_agent.items()} == {
        ("codex", "4"),
        ("mini_swe_agent", "5"),
    }
    assert float(speed["mini_swe_agent", "glm"]["relative"]) < float(speed["codex", "glm"]["relative"]) < 1


def test_files_robustness_and_ends(tools: Findings) -> None:
    files = tool_sections.files(tools)
    assert cells(files)["human reference", "6"]["max"] == "45"
    assert cells(files)["codex · kimi", "6"]["max"] == "52"
    # code of 700 to 9,000 lines; each workspace has 90, and two folders above its deepest file
    assert cells(files, 1)["human reference", "2.9k"]["depth, median"] == "3"
    assert cells(files, 1)["codex · kimi", "90"] == {
        "whose": "codex · kimi",
        "lines, median": "90",
        "max": "2",
        "depth, median": "2",
    }
    agreed = cells(tool_sections.robustness(tools))
    assert agreed["oracle (bound)", "none"]["positive"] == "100.0%"
    ends = cells(tool_sections.funnel(tools))
    assert ends["codex", "kimi"]["not installed"] == "16.7%"
    assert ends["oracle (bound)", "none"]["passed"] == "100.0%"


def test_a_judged_sweep_shows_semantic_matches(tmp_path: Path) -> None:
    verdict = Verdict(reward=0.5, components=components(0.5, 900, semantic_match=0.6))
    found = findings(tmp_path, *sweep_of_tools(reward=0.5, passed=False, verdict=verdict, judge_usd=0.25))
    assert cells(sections.overall(found))["codex", "kimi"]["semantic match"] == "60.0%"
    assert "Semantic match" in str(sections.languages(found))
    assert cells(tool_sections.overhead(found))["codex", "kimi"]["judge's USD"] == "0.25"


def test_cells_are_paired_by_a_score_that_is_not_the_reward(tools: Findings, tmp_path: Path) -> None:
    """The reward of the shared sweep is the exact match; of this one it is another score."""
    assert sections.pairs_of_tools(tools) is None
    planned, records = sweep_of_tools()
    changed = {key: each.model_copy(update={"reward": 0.5}) for key, each in records.items()}
    section = sections.pairs_of_tools(findings(tmp_path, planned, changed))
    assert section
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert table.caption == "Exact match of 6 pairs, surest first"
    assert {row[-1].text for row in table.rows} == {"too few tasks"}


def test_a_page_needs_only_few_cells_and_figures(tmp_path: Path) -> None:
    """Only a bound; and one cell whose tools all failed, without sizes, counts of files or run times."""
    assert names(findings(tmp_path, *sweep_of_tools({"oracle": 1.0}))) == NAMES - {
        "tool-lines",
        "tool-quadrants",
        "tool-runtime",
    }
    bare = {
        name: 0.0
        for name in components(0.0, 0)
        if not name.startswith(("reference", "ended", "runtime", "cpu"))
    }
    verdict = Verdict(reward=0.0, components=bare)
    found = findings(
        tmp_path, *sweep_of_tools({"codex": 0.0}, verdict=verdict, reward=0.0, workspace_files=None)
    )
    write_report(found)
    assert names(found) == NAMES - {"tool-lines", "tool-runtime", "tool-files", "tool-funnel"}


def test_cells_that_are_not_shown_are_named(tmp_path: Path) -> None:
    planned, records = sweep_of_tools({"codex": 0.75, "mini_swe_agent": 0.0})
    section = tool_sections.runtimes(findings(tmp_path, planned, records))
    assert section
    assert "mini_swe_agent" in str([block for block in section.blocks if isinstance(block, Text)])


def test_varying_cases_are_listed_by_task(tmp_path: Path) -> None:
    verdict = Verdict(reward=0.5, components=components(0.5, 900, unstable_cases=2.0))
    planned, records = sweep_of_tools({"codex": 0.5}, reward=0.5, passed=False, verdict=verdict)
    section = tool_sections.funnel(findings(tmp_path, planned, records))
    assert section
    (text,) = [block.text for block in section.blocks if isinstance(block, Text)]
    assert text.endswith("easy-1 (2), easy-2 (2), easy-3 (2), hard-1 (2), hard-2 (2), hard-3 (2).")


@pytest.mark.parametrize("count", [0.0, 5.0])
def test_undecided_cases_have_a_column_if_there_are_any(tmp_path: Path, count: float) -> None:
    verdict = Verdict(reward=0.5, components=components(0.5, 900, ended_undecided=count))
    planned, records = sweep_of_tools({"codex": 0.5}, reward=0.5, passed=False, verdict=verdict)
    section = tool_sections.funnel(findings(tmp_path, planned, records))
    assert section
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    (picture,) = [block for block in section.blocks if isinstance(block, Picture)]
    picture.draw()
    titles = [column.title for column in table.columns]
    assert ("undecided" in titles) is (count > 0)
    assert {len(row) for row in table.rows} == {len(titles)}


def test_hostile_names_break_no_section(tmp_path: Path) -> None:
    found = findings(tmp_path, *sweep_of_tools(dict.fromkeys([HOSTILE[1], HOSTILE[4], ""], 0.6)))
    page = write_report(found).read_text()
    assert all(f'id="{name}"' in page for name in NAMES)
    assert "<img src=x" not in page
