"""The shipped tasks that were made by `job=make_cli_task`: their files agree with each other. Nothing is run."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.construction import golden
from runner.benchmarks.cli_tool_bench.construction.recipe import FOLDER, read_recipe
from runner.benchmarks.cli_tool_bench.construction.scrubbing import Brand
from tests.support.shipped_tools import MADE, SHIPPED, TOOLS

pytestmark = pytest.mark.parametrize("name", MADE)


def test_each_class_has_enough_cases_of_both_signs_and_none_twice(name: str) -> None:
    tool = TOOLS[name]
    cases = read_cases(SHIPPED / name / "cases.jsonl", tool.classes, tool.tool)
    assert list(dict.fromkeys(case.command_class for case in cases)) == list(tool.classes)
    numbers = Counter(case.command_class for case in cases)
    assert {one: n for one, n in numbers.items() if not golden.FEWEST <= n <= golden.CASES} == {}
    signs = {(case.command_class, case.negative) for case in cases}
    assert {(one, sign) for one in tool.classes for sign in (True, False)} - signs == set()
    twice = Counter(case.model_dump_json() for case in cases)
    assert [text for text, n in twice.items() if n > 1] == []


def test_the_golden_outputs_are_those_of_the_cases(name: str) -> None:
    cases = read_cases(SHIPPED / name / "cases.jsonl")
    text = (SHIPPED / name / "golden.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    found = [(line["class"], line["exit_code"] != 0) for line in lines]
    assert found == [(case.command_class, case.negative) for case in cases]
    made = TOOLS[name].made
    assert made
    assert made.golden == golden.digest(text)


def test_neither_the_prompt_nor_a_case_shows_a_published_name(name: str) -> None:
    recipe = read_recipe(SHIPPED / name)
    brand = Brand.of(recipe.tool, [recipe.package, recipe.command, *recipe.brand], (), ())
    assert brand.words
    assert brand.find((SHIPPED / name / "instruction.md").read_text("utf-8")) == []
    # Texts as the tool gets them: a line end that is written as `\n` would hide the name behind it.
    texts = (
        text
        for line in (SHIPPED / name / "cases.jsonl").read_text("utf-8").removesuffix("\n").split("\n")
        for text in _texts(json.loads(line))
    )
    assert [word for text in texts for word in brand.find(text)] == []


def test_there_is_a_generator_and_an_example_for_each_class_and_no_other(name: str) -> None:
    classes = list(TOOLS[name].classes)
    generators = [path.stem for path in (SHIPPED / name / FOLDER / "generators").glob("[!_]*.py")]
    assert sorted(generators) == sorted(classes)
    prompt = (SHIPPED / name / "instruction.md").read_text("utf-8")
    headings = re.findall(r"^### \d+\. (\S+)$", prompt.partition("\n## Examples\n")[2], re.MULTILINE)
    assert headings == classes


def _texts(node: object) -> Iterator[str]:
    """Yield all texts of a JSON value, keys too."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield key
            yield from _texts(value)
