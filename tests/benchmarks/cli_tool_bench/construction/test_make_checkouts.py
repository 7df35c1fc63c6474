"""`job=make_cli_task` from a checkout to a task, with the answers of a person. `make every-case` makes one in each
language, `make test` one in Python: tasks in Go and JavaScript are made from registries elsewhere.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.sources.task_toml import read_toml
from tests.support import checkout_tools as tools
from tests.support.shipped_tools import EVERY
from tests.support.sweeps import Cli

BUSY_SECONDS = 1800
"""Limit on a busy machine that must first build the images of three languages."""
pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(BUSY_SECONDS),
    pytest.mark.usefixtures("_small_classes"),
]

OF_LANGUAGES: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "rankline": (tools.PYTHON, {}),
    "rowmint": (tools.JAVASCRIPT, {"renamed": ["*.js"]}),
    "lanecard": (tools.GO, {"renamed": ["cmd/**/*.go"], "license": "0BSD", "version": "0.9"}),
}
CHECKOUTS = OF_LANGUAGES if EVERY else {"rankline": OF_LANGUAGES["rankline"]}
KNOWN = {
    "rankline": ("pypi", "plain-sort", "1.4", "MIT"),
    "rowmint": ("npm", "@ada/plain-sort", "2.0.1", "ISC"),
    "lanecard": ("go", "plain.example/ada/plainsort", "0.9", "0BSD"),
}


def test_a_checkout_becomes_a_task_that_needs_its_folder_no_more(cli: Cli, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    for tool, (files, others) in CHECKOUTS.items():
        tools.write_files(tmp_path / "checkouts" / tool, files)
        tools.write_answers(tasks / tool / "making", tool)
        recipe = {"tool": tool, "source": "checkout", "category": "Utility Libraries", **others}
        recipe["folder"] = f"../../../checkouts/{tool}"
        (tasks / tool / "making" / "tool.yaml").write_text(yaml.safe_dump(recipe))
    words = ("job=make_cli_task", "dataset=cli_tool_bench", f"job.path={tasks}")
    made = cli(*words)
    assert made.code == 0, made.out + made.err
    assert made.out.count("2 classes, 20 cases; oracle 1, nop 0") == len(CHECKOUTS)
    for tool in CHECKOUTS:
        reference = read_toml(tasks / tool / "task.toml", ToolTask).reference
        found = (reference.registry, reference.package, reference.version, reference.license)
        assert found == KNOWN[tool]
        texts = [path.read_bytes() for path in (tasks / tool).rglob("*") if path.is_file()]
        assert not [text for text in texts if str(tmp_path).encode() in text]
        prompt = (tasks / tool / "instruction.md").read_text()
        assert tools.COMMAND not in prompt
        assert f"usage: {tool} [" in prompt
    with tarfile.open(tasks / "rankline" / "reference.tar") as packed:
        assert {path for path in tools.PYTHON if "/" not in path} < {*packed.getnames()}

    # Made again from the files that lie in the task: not a step is carried out, since nothing has changed.
    before = (tasks / "rankline" / "task.toml").read_bytes()
    file = tasks / "rankline" / "making" / "tool.yaml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith("folder")))
    again = cli(*words, "job.tools=[rankline]")
    assert again.code == 0, again.out + again.err
    assert "  package" in made.out
    assert "  package" not in again.out
    assert (tasks / "rankline" / "task.toml").read_bytes() == before


def test_a_typed_recipe_is_written_with_the_way_to_its_folder_and_rejected_by_name(
    cli: Cli, tmp_path: Path
) -> None:
    files = {**tools.PYTHON, "link": ""}
    place = tools.write_files(tmp_path / "checkouts" / "plain", files)
    (place / "link").unlink()
    (place / "link").symlink_to(tmp_path)
    recipe = "{tool: rankline, source: checkout, folder: checkouts/plain, category: Testing}"
    made = cli(
        "job=make_cli_task",
        "dataset=cli_tool_bench",
        f"job.path={tmp_path / 'tasks'}",
        f"job.recipe={recipe}",
    )
    assert made.code == 2
    assert "rankline: candidate: folder: link is a link that leads outside" in made.err
    written = yaml.safe_load((tmp_path / "tasks" / "rankline" / "making" / "tool.yaml").read_text())
    assert written["folder"] == "../../../checkouts/plain"
