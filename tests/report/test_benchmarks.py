"""Sections that benchmarks add to a report: whose are asked for, and where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from runner.benchmarks.cli_tool_bench.report import scores
from runner.benchmarks.nl2repo.report import sections
from runner.cli import former_names
from runner.report import benchmarks
from runner.report.blocks import Section, Sections, Text
from runner.report.findings import Findings
from runner.report.page import chapters_of, write_report
from tests.benchmarks.cli_tool_bench.tool_sweep import sweep_of_tools
from tests.report.conftest import findings
from tests.report.plans import sweep_of_four


def of_puzzles(found: Findings) -> Section:
    return Section("puzzles", "Puzzles", [Text(f"{len(found.cells)} cells on puzzles & riddles")])


def of_all_puzzles(found: Findings) -> Section:
    return Section("all-puzzles", "All puzzles", [Text(f"{len(found.cells)} cells in all")])


class Puzzles:
    """A dataset of somebody's own package, which need not derive from anything of ours."""

    @classmethod
    def report_sections(cls) -> Sections:
        return Sections(dataset=(of_puzzles,), sweep=(of_all_puzzles,))


class MorePuzzles(Puzzles):
    """Another of the same benchmark."""


class Plain:
    """A dataset without sections."""


def write_config(sweep: Path, *classes: str) -> None:
    """A cell for each class, as the sweep job leaves them."""
    cells = [
        {"agent": {"_target_": "a.B"}, "dataset": {"_target_": name, "name": "mine"}} for name in classes
    ]
    (sweep / "config.yaml").write_text(yaml.safe_dump_all(cells))


def order(found: Findings) -> list[list[str]]:
    """Names of the sections, chapter by chapter."""
    return [[section.name for section in chapter.sections] for chapter in chapters_of(found)]


def test_a_dataset_of_another_package_adds_sections_after_the_scores_and_before_those_of_the_sweep(
    tmp_path: Path,
) -> None:
    write_config(tmp_path, f"{__name__}.Puzzles", f"{__name__}.MorePuzzles", f"{__name__}.Puzzles")
    found = findings(tmp_path, *sweep_of_four())
    dataset, whole = order(found)
    assert dataset.count("puzzles") == 1
    assert dataset[dataset.index("puzzles") - 1 :][:3] == ["main-table", "puzzles", "profile"]
    assert whole[:2] == ["all-puzzles", "coverage"]
    page = write_report(found).read_text()
    assert "4 cells on puzzles &amp; riddles" in page
    assert "4 cells in all" in page


def test_only_the_datasets_of_the_sweep_are_asked(tmp_path: Path) -> None:
    """The verdicts of these trials have what sections on tools are made of."""
    write_config(tmp_path, f"{__name__}.Plain")
    assert benchmarks.added_sections(tmp_path) == Sections()
    assert not [name for name in order(findings(tmp_path, *sweep_of_tools()))[0] if name.startswith("tool-")]


def test_a_sweep_that_does_not_say_its_datasets_is_offered_what_there_is(tmp_path: Path) -> None:
    """An import has no configuration; its figures may be those of any benchmark."""
    added = benchmarks.added_sections(tmp_path)
    assert {*scores.SECTIONS.dataset, *sections.SECTIONS.dataset} <= {*added.dataset}
    assert added.sweep == sections.SECTIONS.sweep
    (tmp_path / "config.yaml").write_text("agent: codex\n")
    assert benchmarks.added_sections(tmp_path) == added


def test_a_class_that_has_moved_since_the_sweep_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former_names, "MOVED", {"puzzles.of_old": __name__})
    write_config(tmp_path, "puzzles.of_old.Puzzles")
    assert benchmarks.added_sections(tmp_path) == Puzzles.report_sections()


def test_a_report_says_whose_sections_it_lacks(tmp_path: Path) -> None:
    write_config(tmp_path, "gone.away.Puzzles", f"{__name__}.Puzzles")
    dataset, whole = order(found := findings(tmp_path, *sweep_of_four()))
    assert "puzzles" in dataset
    assert whole[:3] == ["all-puzzles", "missing", "coverage"]
    assert "cannot import &#39;gone.away.Puzzles&#39;" in write_report(found).read_text()
