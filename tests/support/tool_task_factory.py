"""Make CLI-Tool-Bench tasks for a small tool that counts words and keeps a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from runner.benchmarks.cli_tool_bench.construction.machine import ReferenceMachine
from runner.benchmarks.cli_tool_bench.construction.recipe import Recipe
from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
from runner.benchmarks.cli_tool_bench.verifier import DifferentialVerifier
from runner.benchmarks.sources.references import Reference
from runner.benchmarks.sources.task_files import copy_tree, tree_digest
from runner.resources import ROOT
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes

SCORES = (
    *("build", "exec", "state", "exact_match", "fuzzy_match"),
    *("positive_agreement", "negative_agreement"),
)
"""Components that are 1 for a tool that is the reference."""
PATIENT = {"seconds": 200}
"""Limits of a case. The tools take an instant, but on a busy machine more than the usual ten seconds."""
TOOL = """\
import sys
from pathlib import Path
from typing import Any


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: tally count|log FILE")
    command, file = sys.argv[1:]
    words = Path(file).read_text().split()
    if command == "count":
        for word in sorted(set(words)):
            print(word, words.count(word))
    elif command == "log":
        Path("log").mkdir()
        Path("log/total.txt").write_text(f"{len(words)}\\n")
        Path(file).unlink()
        print(len(words), "words")
    else:
        sys.exit(f"no such command: {command}")
"""
PROJECT = """\
[project]
name = "tally"
version = "1.0"

[project.scripts]
tally = "tally:main"

[tool.setuptools]
py-modules = ["tally"]
"""
TEXTS = ("one two two three\nfour\n", "", "a b c a b a\n", "ünï ünï\n")


def cases() -> list[dict[str, object]]:
    """Return ten cases: four positive ones and a negative one of each class."""
    good: list[dict[str, object]] = [
        {"class": name.upper(), "command": f"tally {name} words.txt", "files": {"words.txt": text}}
        for name in ("count", "log")
        for text in TEXTS
    ]
    bad: list[dict[str, object]] = [
        {"class": "COUNT", "command": "tally count missing.txt", "negative": True},
        {"class": "LOG", "command": "tally log", "negative": True},
    ]
    return [{"negative": False, **case} for case in (*good, *bad)]


def write_cases(folder: Path, lines: list[dict[str, object]]) -> None:
    """Write `cases.jsonl` of a task."""
    (folder / "cases.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def make_tool_task(root: Path, name: str = "tally", *, tool: str = TOOL) -> Path:
    """Make a task with its reference in its folder."""
    folder = root / name
    (folder / "reference").mkdir(parents=True)
    (folder / "reference" / "tally.py").write_text(tool)
    (folder / "reference" / "pyproject.toml").write_text(PROJECT)
    (folder / "instruction.md").write_text("Write `tally`, which counts words.\n")
    write_cases(folder, cases())
    seal(folder)
    return folder


def seal(folder: Path) -> None:
    """Write `task.toml` for the reference as it is now."""
    digest = tree_digest(folder / "reference")
    (folder / "task.toml").write_text(
        f"""tool = "tally"
language = "python"
category = "Utility Libraries"

[reference]
source = "folder"
package = "reference"
digest = "{digest}"
license = "MIT"
lines = 20

[classes]
COUNT = "how often each word occurs"
LOG = "how many words there are"
"""
    )


def furnished(cache: Path, common: Path, *others: str) -> Path:
    """Make a cache that shares its fetched parts, and `others`, with all workers. Their names depend on content."""
    cache.mkdir()
    for part in ("images", "sources", *others):
        (common / "tools" / part).mkdir(parents=True, exist_ok=True)
        (cache / part).symlink_to(common / "tools" / part)
    return cache


@contextmanager
def reference_machine(folder: Path, common: Path, tool: str, **verifier: Any) -> Iterator[ReferenceMachine]:
    """Yield the machine on which the reference `tally` is run while a task is made of it. `tool` is its source."""
    base_image.ensure(connect(), print)
    task = make_tool_task(folder / "tasks", tool=tool)
    draft = folder / "work" / "draft" / "tally"
    draft.mkdir(parents=True)
    copy_tree(task / "reference", draft / "reference")
    reference = Reference(
        source="folder", package="reference", digest=tree_digest(draft / "reference"), license="none", lines=9
    )
    recipe = Recipe(tool="tally", source="pypi", package="other", version="1", category="Testing")
    dataset = tool_dataset(folder / "tasks", furnished(folder / "cache", common), **verifier)
    with ReferenceMachine(recipe, reference, dataset, DockerSandboxes(), folder / "work") as machine:
        machine.fetch(print)
        yield machine


def tool_dataset(
    root: Path,
    cache: Path,
    *,
    images: Path | None = None,
    profile: Literal["sealed", "online"] = "sealed",
    **verifier: Any,
) -> CliToolBench:
    """Return the dataset of every task below `root`."""
    return CliToolBench(
        name="made",
        root=root,
        images=images or ROOT / "tasks" / "cli_tool_bench" / "images",
        build_args={"BASE": "assay-base"},
        profile=profile,
        verifier=DifferentialVerifier.model_validate({"cache": cache, "limits": PATIENT, **verifier}),
    )
