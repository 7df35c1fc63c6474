"""Record what a scripted stand-in for a model answers on the seven hand-written tools.

`python -m tests.support.stand_in OUT [TOOL ...]` makes each tool in a folder below OUT, and writes the cassettes and
the digests of the tasks to `tasks/cli_tool_bench/cassettes`. It has to be done again when a question, the library of
the generators or the rendering of a task changes. The stand-in's answers are the files in `fixtures/seven`, which
people wrote.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

import yaml

from runner.__main__ import main
from runner.benchmarks.cli_tool_bench.construction.classes import CommandClass
from runner.benchmarks.cli_tool_bench.construction.questions import (
    context_question,
    generator_question,
    schema_question,
)
from runner.benchmarks.sources.task_files import tree_digest
from runner.files import write_atomically
from runner.resources import ROOT

SEVEN = ROOT / "tests" / "benchmarks" / "cli_tool_bench" / "construction" / "fixtures" / "seven"
CASSETTES = ROOT / "tasks" / "cli_tool_bench" / "cassettes"
DIGESTS = CASSETTES / "digests.json"
"""Tool -> digest of the task that was made when it was recorded."""
QUESTIONS = CASSETTES / "questions.sha256"
"""Digest of the words of the questions when they were recorded."""
NAME = "stand_in"
FENCE = "```"
LABELS = {".json": "json", ".md": "markdown", ".py": "python"}
"""Suffix of an answer's file -> label of the block in which a model gives it."""
ANSWERS = ("schema.json", "context.md")


def write_policy(file: Path) -> Path:
    """Write a scripted model's policy whose turns are the stand-in's answers, by `TOOL/FILE`."""
    turns = {}
    for making in sorted(SEVEN.glob("*/making")):
        answers = [making / name for name in ANSWERS] + sorted(making.glob("generators/*.py"))
        for answer in answers:
            name = f"{making.parent.name}/{answer.relative_to(making).as_posix()}"
            turns[name] = [{"say": f"\n{FENCE}{LABELS[answer.suffix]}\n{answer.read_text('utf-8')}{FENCE}\n"}]
    policy = {"name": NAME, "description": "no language model: answers that people wrote", "tasks": turns}
    file.write_text(yaml.safe_dump(policy, allow_unicode=True, width=10**6), "utf-8")
    return file


def lay_out(path: Path, tools: list[str]) -> None:
    """Copy the recipes of these tools, and nothing that is to be answered, into a folder of tasks."""
    for tool in tools:
        (path / tool / "making").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SEVEN / tool / "making" / "tool.yaml", path / tool / "making" / "tool.yaml")


def record(out: Path, tools: list[str]) -> int:
    """Make these tools by the stand-in's answers and record them. Return the command's exit code."""
    lay_out(out / "tasks", tools)
    policy = write_policy(out / "policy.yaml")
    model = [
        "model=scripted_careful",
        f"model.name={NAME}",
        f"model.policy={policy}",
        "model.id=scripted/stand_in",
        f"record={CASSETTES}",
    ]
    code = main([*words(out), *model])
    kept = json.loads(DIGESTS.read_bytes()) if DIGESTS.is_file() else {}
    kept |= {tool: tree_digest(out / "tasks" / tool) for tool in tools if code == 0}
    write_atomically(DIGESTS, (json.dumps(dict(sorted(kept.items())), indent=1) + "\n").encode())
    if code == 0 and len(tools) == len(kept):
        write_atomically(QUESTIONS, f"{questions_digest()}\n".encode())
    return code


def questions_digest() -> str:
    """Return the digest of what every question says, whatever the tool, the generators' library included."""
    one = CommandClass(name="ANY", words=("any",), description="-")
    asked = (schema_question("", {}), context_question("any", "", {}), generator_question("any", one, "", {}))
    return hashlib.sha256("\0".join(question.instruction for question in asked).encode()).hexdigest()


def words(out: Path) -> list[str]:
    """Return the words of the command that makes the tools below `out`, without a model."""
    return [
        "job=make_cli_task",
        "dataset=cli_tool_bench",
        f"job.path={out / 'tasks'}",
        "job.written_by=model",
        f"job.covers={ROOT / 'tasks/cli_tool_bench'}",
        f"outputs={out / 'outputs'}",
        f"name={NAME}",
    ]


if __name__ == "__main__":
    folder, *chosen = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    sys.exit(record(Path(folder), chosen or sorted(one.name for one in SEVEN.iterdir())))
