"""The tools whose tasks people wrote, from package to task, with the recorded answers of a scripted stand-in.

`make every-case` replays all seven, `make test` the quickest one: Node starts faster than Python, and its tool has the
fewest classes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.benchmarks.sources.task_files import tree_digest
from runner.gateway import cassette
from tests.support import stand_in
from tests.support.shipped_tools import BY_HAND, EVERY
from tests.support.sweeps import Cli

UNCOVERED = {"stencil": {"PARTIALS": ["-p"]}}
"""Tool -> hand-written class -> what no class of the made task exercises, because no help page shows it."""


def test_each_hand_written_tool_is_recorded_by_a_model_that_says_it_is_none() -> None:
    recorded = {path.name for path in stand_in.CASSETTES.iterdir() if path.is_dir()}
    assert recorded == {*BY_HAND} == {*json.loads(stand_in.DIGESTS.read_bytes())}
    for tape in stand_in.CASSETTES.glob("*/*.jsonl"):
        assert cassette.recorded_model(tape) == f"scripted/{stand_in.NAME}"
        assert b"not a language model" in tape.read_bytes()


def test_the_questions_are_those_that_were_recorded() -> None:
    """A change of the library's docstrings once was noticed by the replay alone, late and in a container."""
    again = "record the tools again: python -m tests.support.stand_in OUT"
    assert stand_in.questions_digest() == stand_in.QUESTIONS.read_text().strip(), again


@pytest.mark.docker
@pytest.mark.timeout(1800)  # of some thousand starts of a tool, on a machine however busy
@pytest.mark.parametrize("tool", sorted(BY_HAND) if EVERY else ["stencil"])
def test_a_replay_makes_the_same_bytes_and_covers_the_hand_written_classes(
    tool: str, tmp_path: Path, cli: Cli
) -> None:
    stand_in.lay_out(tmp_path / "tasks", [tool])
    made = cli(*stand_in.words(tmp_path), "model=cassette", f"model.path={stand_in.CASSETTES}")
    assert made.code == 0, made.out + made.err
    folder = tmp_path / "tasks" / tool
    report = json.loads((folder / "making" / "report.json").read_bytes())
    assert report["not covered of the hand-written task"] == UNCOVERED.get(tool, {})
    assert tree_digest(folder) == json.loads(stand_in.DIGESTS.read_bytes())[tool]
