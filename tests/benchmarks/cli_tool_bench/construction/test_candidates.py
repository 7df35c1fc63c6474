"""Candidates, filters, the balanced choice and the funnel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.construction import funnel, selection
from runner.benchmarks.cli_tool_bench.construction.candidates import Candidate, Filters, read_candidates
from runner.benchmarks.cli_tool_bench.construction.funnel import Outcome
from runner.benchmarks.cli_tool_bench.construction.selection import Finished
from runner.benchmarks.sources.rejections import RejectedError, Rejection
from runner.errors import ConfigError

GOOD = Candidate(
    source="pypi",
    package="tool",
    stars=11,
    purity=0.61,
    description="A CLI for tables",
    license="MIT",
    build_files=("pyproject.toml",),
)


def _reason(candidate: Candidate, filters: Filters | None = None) -> str:
    with pytest.raises(RejectedError) as caught:
        (filters or Filters()).check(candidate)
    assert caught.value.rejection.step == "candidate"
    return caught.value.rejection.reason


def test_the_papers_defaults_pass_what_they_should() -> None:
    Filters().check(GOOD)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"stars": 10}, "stars: 10, and more than 10 is needed."),
        ({"stars": None}, "stars: unknown, and more than 10 is needed."),
        ({"purity": 0.6}, "purity: 0.6, and more than 0.6 is needed."),
        ({"purity": None}, "purity: unknown, and more than 0.6 is needed."),
        ({"description": "A client for tables"}, "keywords: the description has no CLI keyword."),
        ({"description": ""}, "keywords: the description is missing."),
        ({"license": ""}, "license: none is given."),
        (
            {"build_files": ("package.json",)},
            "build_files: none of setup.py, setup.cfg, pyproject.toml is known to exist.",
        ),
    ],
)
def test_each_criterion_rejects_and_what_is_missing_does_not_pass(
    change: dict[str, object], reason: str
) -> None:
    assert _reason(GOOD.model_copy(update=change)) == reason


def test_a_criterion_can_be_switched_off() -> None:
    nothing = Candidate(source="npm", package="tool")
    Filters(stars=None, purity=None, keywords=(), license=False, build_files={}).check(nothing)


def test_tables_are_read_from_csv_and_json(tmp_path: Path) -> None:
    table = tmp_path / "c.csv"
    table.write_text("source,package,stars,purity,build_files\npypi,a,12,,setup.py tox.ini\nnpm,@s/b,,0.7,\n")
    one, other = read_candidates(table)
    assert (one.stars, one.purity, one.build_files) == (12, None, ("setup.py", "tox.ini"))
    assert (other.name, other.stars, other.purity) == ("npm:@s/b", None, 0.7)
    same = tmp_path / "c.json"
    same.write_text(json.dumps([row.model_dump(mode="json") for row in (one, other)]))
    assert read_candidates(same) == [one, other]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,package,stars\npypi,a,many\n", "row 1"),
        ("source,package\nsvn,a\n", "row 1"),
        ("source,package,colour\npypi,a,red\n", "row 1"),
        ("source,package\npypi,a\npypi,a\n", "pypi:a is listed twice in"),
        ("source,package,tool\npypi,a,../../out\n", "row 1"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "c.csv"
    table.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_candidates(table)


def _task(name: str, tier: str, language: str, category: str, lines: int = 100) -> Finished:
    return Finished(name=name, tier=tier, language=language, category=category, lines=lines)


def test_the_choice_is_balanced_and_repeatable() -> None:
    tasks = [_task(f"p{n}", "easy", "python", "Testing") for n in range(20)]
    tasks += [_task(f"g{n}", "hard", "go", "System Tools") for n in range(3)]
    chosen = selection.choose(tasks, 6, seed=1)
    assert [one.language for one in chosen].count("go") == 3
    assert chosen == selection.choose(list(reversed(tasks)), 6, seed=1)
    assert chosen != selection.choose(tasks, 6, seed=2)
    assert len(selection.choose(tasks, 100, seed=1)) == 23


def test_table_1_counts_and_averages() -> None:
    tasks = [_task("a", "hard", "go", "Testing", 5000), _task("b", "easy", "go", "Testing", 100)]
    rows = [(row.value, row.count, row.lines) for row in selection.table_1(tasks)]
    assert rows == [("easy", 1, 100), ("hard", 1, 5000), ("go", 2, 2550), ("Testing", 2, 2550)]


def test_the_funnel_counts_who_fell_where() -> None:
    fell = Rejection(step="candidate", reason="stars: 3, and more than 10 is needed.")
    other = Rejection(step="candidate", reason="stars: 4, and more than 10 is needed.")
    outcomes = [
        Outcome(name="a", reached="candidates", rejection=fell),
        Outcome(name="b", reached="candidates", rejection=other),
        Outcome(name="c", reached="entry"),
        Outcome(name="d", reached="chosen"),
    ]
    assert list(funnel.counts(outcomes).values()) == [4, 2, 2, 1, 1, 1]
    text = funnel.text(outcomes)
    assert "     4  candidates\n        - 2 fell: candidate, stars\n     2  pass the metadata filters" in text
    assert "- 1 wait for the next step" in text
    assert (
        funnel.rejections_csv(outcomes).splitlines()[1]
        == 'a,candidates,candidate,"stars: 3, and more than 10 is needed."'
    )


def test_a_task_that_was_chosen_unreviewed_is_not_counted_as_confirmed() -> None:
    outcomes = [
        Outcome(name="a", reached="task", task="one"),
        Outcome(name="b", reached="reviewed", task="two"),
        Outcome(name="c", reached="reviewed", task="three"),
    ]
    outcomes = funnel.chosen(outcomes, {"one", "two"})
    counted = funnel.counts(outcomes)
    assert (counted["task"], counted["reviewed"], counted["chosen"]) == (3, 2, 2)
    assert funnel.text(outcomes).endswith("2  are chosen, 1 of them unreviewed")
