"""Write a task of DA-Code as a folder in Harbor's format.

The tests run in *separate* mode: in an image that the agent never touched, on the outputs alone. They compare with gold
results that neither the agent's image nor its machine has. Before the folder is kept, its own judge must give the gold
results 1 and the untouched files less.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.benchmarks.harbor.da_code import inside
from runner.benchmarks.harbor.da_code.checkout import Source
from runner.benchmarks.harbor.da_code.grading import ANSWER, Grading, grading_of
from runner.benchmarks.harbor.da_code.inside import judge
from runner.benchmarks.sources.task_files import check_links, copy_tree
from runner.benchmarks.sources.task_toml import table
from runner.errors import TaskError

WORK, DATA, RECORDER = "/workspace", "data", "record_figure.py"
PROGRAM = Path("program", *inside.__name__.split("."))
"""Folder of the judge's modules below `tests/`."""
DIFFICULTIES = ("easy", "medium", "hard")
POINTER = b"version https://git-lfs.github.com/spec/"
"""Beginning of a file that only names where its content is stored."""
TEST = f"""#!/bin/bash
# Compare the outputs with the gold results. Needs Python and nothing else.
cd /
python3 -I - /tests {WORK} /logs/verifier <<'END'
import sys

sys.path.insert(0, "/tests/program")
from {judge.__name__} import main

main(*sys.argv[1:])
END
"""
SOLVE = f"#!/bin/bash\ncp -r /solution/output/. {WORK}/\n"
FIGURE = f"""
The figure is judged by what it shows. Draw it with matplotlib in a Python script in {WORK} that saves it with \
`savefig`, and then run

    cd {WORK} && python3 /opt/da_code/{RECORDER} SCRIPT

which runs the script and writes the figure's numbers, texts, colours and size into {judge.FIGURE_DATA} and \
{judge.FIGURE_SETTINGS}. Leave these two files there.
"""


@dataclass(frozen=True)
class Image:
    """The parts from which a task's image is built, and its limits."""

    base: str
    packages: Sequence[str]
    agent_seconds: float
    test_seconds: float


def write_task(source: Source, target: Path, image: Image) -> None:
    """Write a task folder at `target`, which must not exist. Raises `TaskError` if it cannot be judged here."""
    grading = grading_of(source)
    _check_source(source.source)
    target.mkdir(parents=True)
    environment, tests, solution = (target / part for part in ("environment", "tests", "solution"))
    copy_tree(source.source, environment / DATA)
    shutil.copyfile(_module(RECORDER), environment / RECORDER)
    (environment / "Dockerfile").write_text(_dockerfile(image), "utf-8")
    _write_files(tests / judge.GOLD, grading.golds)
    _write_files(solution / "output", grading.solution)
    (solution / "solve.sh").write_text(SOLVE, "utf-8")
    (tests / judge.GRADING).write_text(
        json.dumps({"join": grading.join, "parts": grading.parts}, indent=1), "utf-8"
    )
    (tests / "test.sh").write_text(TEST, "utf-8")
    _write_program(tests / PROGRAM)
    (target / "task.toml").write_text(_toml(source, grading, image), "utf-8")
    (target / "instruction.md").write_text(_instruction(source, grading), "utf-8")
    _try(target)


def _check_source(folder: Path) -> None:
    """Raise `TaskError` unless the files that the agent is given are all there."""
    files = [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
    if not files:
        raise TaskError("The checkout has no source files of it: its data must be fetched from elsewhere.")
    check_links(folder, (".",))
    for file in files:
        with file.open("rb") as opened:
            if opened.read(len(POINTER)) == POINTER:
                raise TaskError(f"The source file {file.name} is a pointer of Git LFS: fetch its content.")


def _dockerfile(image: Image) -> str:
    """Return the recipe of the image. The packages come before the data, so that tasks share their layer."""
    install = (
        f"RUN python3 -m pip install --no-cache-dir {' '.join(image.packages)}\n" if image.packages else ""
    )
    return (
        f"ARG BASE={image.base}\nFROM ${{BASE}}\n{install}WORKDIR {WORK}\n"
        f"COPY {RECORDER} /opt/da_code/\nCOPY {DATA}/ {WORK}/\n"
    )


def _toml(source: Source, grading: Grading, image: Image) -> str:
    hardness = source.asked.hardness.lower()
    metadata = {
        "difficulty": hardness if hardness in DIFFICULTIES else "unknown",
        "category": source.asked.type.lower().replace(" ", "-") or "data-science",
        "tags": ["data-science"],
        "source": "DA-Code",
    }
    parts: dict[str, dict[str, Any]] = {
        "metadata": metadata,
        "agent": {"timeout_sec": image.agent_seconds},
        "verifier": {"timeout_sec": image.test_seconds, "environment_mode": "separate"},
        "environment": {"workdir": WORK, "network_mode": "no-network"},
    }
    artifacts = {"artifacts": [f"{WORK}/{name}" for name in grading.outputs]}
    text = "".join(f"\n[{name}]\n{table(values)}" for name, values in parts.items())
    return 'schema_version = "1.4"\n' + table(artifacts) + text


def _instruction(source: Source, grading: Grading) -> str:
    """Return the task's own words, and what DA-Code's agent is told elsewhere: where files are and must be."""
    if not source.asked.instruction.strip():
        raise TaskError("It has no instruction.")
    if ANSWER in grading.outputs:
        where = f"Write the answer as a JSON object into {WORK}/{ANSWER}."
    else:
        named = [name for name in grading.outputs if not name.startswith("dabench/")]
        where = f"Results are read from {WORK}: {', '.join(named)}."
    text = f"{source.asked.instruction.strip()}\n\nThe files that you need are in {WORK}. {where}\n"
    return text + (FIGURE if grading.is_figure else "")


def _write_files(folder: Path, files: Mapping[str, bytes | Path]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.read_bytes() if isinstance(content, Path) else content)


def _write_program(folder: Path) -> None:
    """Copy the judge's modules, in the folders of their package."""
    folder.mkdir(parents=True)
    for file in sorted(Path(inside.__file__).parent.glob("*.py")):
        if file.name != RECORDER:
            shutil.copyfile(file, folder / file.name)


def _module(name: str) -> Path:
    return Path(inside.__file__).parent / name


def _try(target: Path) -> None:
    """Raise `TaskError` unless the judge gives the gold results 1, and the untouched files less."""
    tests = target / "tests"
    grading = json.loads((tests / judge.GRADING).read_text("utf-8"))
    golds = tests / judge.GOLD
    reward, complaints = judge.judge(grading, golds, target / "solution" / "output")
    if reward < 1:
        reason = f" ({complaints[0]})" if complaints else ""
        raise TaskError(f"Its own gold result gets {reward:g} and not 1{reason}.")
    with tempfile.TemporaryDirectory() as place:
        untouched = Path(place, "untouched")
        copy_tree(target / "environment" / DATA, untouched)
        untouched.mkdir(exist_ok=True)
        if judge.judge(grading, golds, untouched)[0] >= 1:
            raise TaskError("The files that the agent is given already hold a result that gets 1.")
