"""A benchmark of a user's own, outside of `runner/`: the tutorial in CONTRIBUTING.md, file by file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runner.resources import ROOT

TUTORIAL = (ROOT / "CONTRIBUTING.md").read_text()
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"test_fifth_benchmark\.py -->\n```bash\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _run(words: str, folder: Path) -> str:
    """Run a command of the tutorial and return its output. The checkout is importable, as an installed Assay is."""
    assert words.startswith("python ")
    ended = subprocess.run(
        [sys.executable, *words.split()[1:]],
        cwd=folder,
        env=os.environ | {"CI": "true", "PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """Run the tutorial's commands; return what they printed, and the folder that they ran in."""
    folder = tmp_path_factory.mktemp("user")
    for name, text in FILE.findall(TUTORIAL):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (commands,) = COMMANDS.findall(TUTORIAL)
    return [_run(words, folder) for words in commands.splitlines()], folder


@pytest.mark.docker
def test_a_benchmark_outside_of_the_package_brings_its_dataset_verifier_section_and_job(
    outputs: tuple[list[str], Path],
) -> None:
    (about, listed, _), folder = outputs
    assert "riddles" in about
    assert listed == "keys: What has keys and opens no door? Write the answer into /workspace/answer.txt.\n"
    records = [json.loads(path.read_text()) for path in folder.glob("outputs/trials/*/*/record.json")]
    assert {record["agent"]: record["verdict"]["reward"] for record in records} == {"oracle": 1.0, "nop": 0.0}
    assert "How long answers are" in (folder / "outputs/riddles/report/index.html").read_text()


@pytest.mark.docker
def test_the_job_of_a_foreign_benchmark_is_in_the_help(outputs: tuple[list[str], Path]) -> None:
    _, folder = outputs
    assert re.search(r"list_riddles.*Print the questions", _run("python -m runner --help job", folder))


def test_no_module_of_ours_knows_the_benchmark() -> None:
    for file in (*ROOT.glob("runner/**/*.py"), *ROOT.glob("conf/**/*.yaml")):
        assert "riddle" not in file.read_text()
