"""`job=make_cli_task` and `job=curate_cli_tools` over tables with bad tools, from stand-ins for the registries."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.sources.references import fetch_context
from runner.benchmarks.sources.task_toml import read_toml
from runner.resources import ROOT
from tests.support.module_proxy import publish, served
from tests.support.package_index import publish_wheel, tool_files
from tests.support.sweeps import Cli
from tests.support.tool_task_factory import furnished

BUSY_SECONDS = 1800
"""Limit on a busy machine that must first build the image with a toolchain."""
HELP = "usage: {} [--keep]\\n\\noptions:\\n  --keep  keep it\\n"
CODE = f"""\
import sys

def fine():
    print({HELP!r}.format("fine"))

def floods():
    print({HELP!r}.format("floods") + "x" * (10 << 20))

def broken():
    raise RuntimeError("no help")
"""


@pytest.fixture
def words(tmp_path: Path, common: Path) -> Callable[[str], tuple[str, ...]]:
    """Return a function from a job to the words of its command. Contents of images are there before any stand-in is."""
    cache = furnished(tmp_path / "cache", common)
    for language in ("python", "go"):
        fetch_context(ROOT / "tasks" / "cli_tool_bench" / "images", language, cache, print)

    def words(job: str) -> tuple[str, ...]:
        return (
            f"job={job}",
            "dataset=cli_tool_bench",
            f"dataset.verifier.cache={cache}",
            "dataset.verifier.limits.seconds=60",
            f"job.path={tmp_path / 'tasks'}",
        )

    return words


def _recipe(tasks: Path, tool: str, **fields: object) -> None:
    content = {"tool": tool, "source": "pypi", "version": "1.0", "category": "Testing", **fields}
    (tasks / tool / "making").mkdir(parents=True)
    (tasks / tool / "making" / "tool.yaml").write_text(yaml.safe_dump(content))


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_each_bad_tool_of_a_table_is_rejected_with_its_reason_and_the_others_go_on(
    cli: Cli, tmp_path: Path, words: Callable[[str], tuple[str, ...]], index: Path
) -> None:
    """The last tool is a good one for which nobody has written a schema."""
    published = {name: name for name in ("fine", "floods", "broken")}
    publish_wheel(index, "odd", "1.0", tool_files("odd", "1.0", CODE, published))
    reasons = {
        "a-absent": ({"package": "absent"}, "`uv lock .* failed"),
        "b-other": ({"package": "odd", "command": "none"}, "entry: odd has no command 'none'"),
        "c-entry": ({"package": "odd", "command": "x", "entry": "../../x"}, "is not a MODULE:FUNCTION"),
        "d-broken": (
            {"package": "odd", "command": "broken"},
            "entry: help: d-broken has no page: .*exit code 1",
        ),
        "e-floods": (
            {"package": "odd", "command": "floods"},
            "entry: help: `e-floods --help` prints more than 64 KiB",
        ),
        "f-fine": ({"package": "odd", "command": "fine"}, "schema: schema.json is missing"),
    }
    for tool, (fields, _) in reasons.items():
        _recipe(tmp_path / "tasks", tool, **fields)
    made = cli(*words("make_cli_task"))
    assert made.code == 2
    assert "0 of 6 tools are tasks" in made.out
    for tool, (_, reason) in reasons.items():
        assert re.search(rf"^{tool}: .*{reason}", made.err, re.MULTILINE), made.err
    assert not list((tmp_path / "tasks").glob("*/task.toml"))


def test_each_bad_candidate_of_a_table_is_counted_where_it_falls(
    cli: Cli, tmp_path: Path, words: Callable[[str], tuple[str, ...]], index: Path
) -> None:
    """None of these comes as far as a sandbox. A package that the registry lacks once ended the whole table."""
    publish_wheel(index, "odd", "1.0", tool_files("odd", "1.0", CODE, {"odd": "fine"}))
    table = tmp_path / "candidates.csv"
    table.write_text(
        "source,package,version,stars,license,description,build_files,category\n"
        "pypi,absent,1.0,99,,,,\n"
        "pypi,odd,,99,,,,\n"
        "pypi,../odd,1.0,99,,,,\n"
        "pypi,ODD,1.0,,,,,\n"
        "pypi,OdD,1.0,99,,,setup.py,\n"
    )
    found = cli(*words("curate_cli_tools"), f"job.candidates={table}")
    assert found.code == 0, found.err
    (rejections,) = tmp_path.rglob("rejections.csv")
    text = rejections.read_text()
    reasons = (
        'pypi:absent,candidates,candidate,"?package: `uv lock',
        "pypi:odd,candidates,candidate,version: none is given",
        'pypi:../odd,candidates,candidate,"?package: .*is not the name of a Python package',
        'pypi:ODD,candidates,candidate,"stars: unknown',
        "pypi:OdD,candidates,candidate,category: none is given",
    )
    for reason in reasons:
        assert re.search(f"^{reason}", text, re.MULTILINE), text
    assert not (tmp_path / "tasks").exists()


MODULE = "tools.example/rows"
SPLIT = {
    "go.mod": "module words.example/split\n\ngo 1.21\n",
    "split.go": 'package split\n\nimport "strings"\n\nfunc Words(s string) []string { return strings.Fields(s) }\n',
}
MAIN = """\
package main

import (
	"flag"
	"fmt"
	"os"

	"words.example/split"
)

func main() {
	from := flag.Int("from", 0, "first number")
	flag.Parse()
	if flag.NArg() == 0 {
		os.Exit(1)
	}
	for _, text := range flag.Args() {
		for at, word := range split.Words(text) {
			fmt.Println(*from+at, word)
		}
	}
}
"""
SCHEMA = """\
{"written_by": "by hand", "command": {"name": "pearlheron", "parameters": [
  {"names": ["-from"], "kind": "option", "type": "integer", "about": "first number"}]}}
"""
GENERATOR = """\
from fuzz import Case, quote

def common(draw):
    words = " ".join(draw.words(draw.integer(1, 9)))
    return Case(f"{draw.tool} -from {draw.integer(0, 99)} {quote(words)}")

def boundary(draw):
    return Case(f"{draw.tool} -from {draw.integer(0, 99)} -- {quote(draw.evil())} {quote(draw.word())}")

def error(draw):
    return Case(f"{draw.tool} -from {draw.word()} {quote(draw.word())}")
"""


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.usefixtures("_small_classes")
def test_a_module_of_a_proxy_with_a_dependency_becomes_a_task_by_answers_of_people(
    cli: Cli, tmp_path: Path, words: Callable[[str], tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No public module proxy need be in reach: this one serves what the test publishes, over real HTTP."""
    root = tmp_path / "proxy"
    root.mkdir()
    sums = publish(root, "words.example/split", "v0.1.0", SPLIT)
    needs = f"module {MODULE}\n\ngo 1.21\n\nrequire words.example/split v0.1.0\n"
    publish(
        root, MODULE, "v1.2.3", {"go.mod": needs, "go.sum": sums, "main.go": MAIN, "README.md": "# rows\n"}
    )
    tasks = tmp_path / "tasks"
    _recipe(tasks, "pearlheron", source="go", package=MODULE, version="v1.2.3", cap=2, license="MIT")
    making = tasks / "pearlheron" / "making"
    (making / "generators").mkdir()
    (making / "schema.json").write_text(SCHEMA)
    (making / "context.md").write_text("It numbers the words of its arguments, from a first number on. " * 8)
    for name in ("BASIC", "FROM"):
        (making / "generators" / f"{name}.py").write_text(GENERATOR)
    with served(root) as (address, asked):
        monkeypatch.setenv("GOPROXY", address)
        made = cli(*words("make_cli_task"))
    assert made.code == 0, made.out + made.err
    assert "2 classes, 20 cases; oracle 1, nop 0" in made.out
    assert any("words.example/split/@v/v0.1.0.zip" in path for path in asked)
    tool = read_toml(tasks / "pearlheron" / "task.toml", ToolTask)
    assert (tool.language, tool.reference.source, tool.reference.version) == ("go", "go", "v1.2.3")
    prompt = (tasks / "pearlheron" / "instruction.md").read_text()
    assert "tools.example" not in prompt
    assert "rows" not in prompt
