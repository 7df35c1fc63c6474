"""A run is recorded and replayed by the command, with a real agent in a real sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from runner.records import TrialRecord

pytestmark = [pytest.mark.docker, pytest.mark.bundle]

Command = Callable[..., CompletedProcess[str]]
COMMON = ("agent=codex", "dataset.include=[logs-to-csv]", "tracker=none", "executor.retries=0")


def _records(outputs: Path) -> list[TrialRecord]:
    return [
        TrialRecord.model_validate_json(path.read_bytes()) for path in outputs.glob("trials/*/*/record.json")
    ]


def _changed(tape: Path) -> str:
    """The recording, with another question in each of its requests."""
    calls: list[dict[str, Any]] = [json.loads(line) for line in tape.read_text().splitlines()]
    for call in calls:
        call["request"]["instructions"] = "Do something else."
    return "".join(json.dumps(call) + "\n" for call in calls)


def test_a_recorded_run_is_replayed(command: Command, tmp_path: Path) -> None:
    tapes, out, again = tmp_path / "tapes", tmp_path / "out", tmp_path / "again"
    recorded = command(*COMMON, "model=scripted_careful", f"outputs={out}")
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    assert command(*COMMON, "model=scripted_careful", f"outputs={out}", f"record={tapes}").returncode == 0
    (tape,) = tapes.rglob("*.jsonl")
    assert tape.relative_to(tapes).parts == (
        "codex·scripted_careful·quickstart·default",
        "logs-to-csv",
        "1.jsonl",
    )

    replay = (*COMMON, "model=cassette", f"model.path={tapes}")
    replayed = command(*replay, f"outputs={again}")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "(replayed)" in replayed.stdout
    (first,), (second,) = _records(out), _records(again)
    same = ("status", "reward", "passed", "usage", "turns", "tool_calls", "workspace_lines")
    assert {name: getattr(second, name) for name in same} == {name: getattr(first, name) for name in same}
    assert (first.replayed, second.replayed, second.scripted) == (False, True, False)

    tape.write_text(_changed(tape))
    other = command(*replay, f"outputs={again}")
    assert other.returncode == 4, "another recording is another trial, and this one does not fit"
    (failed,) = (record for record in _records(again) if record.key != second.key)
    assert failed.error is not None
    assert (failed.error.type, failed.flags[0]) == ("CassetteMismatch", "cassette_mismatch")
    assert '- "instructions": "Do something else."' in failed.error.message.replace("-  ", "- ")

    nearest = command(*replay, f"outputs={tmp_path}/nearest", "model.mismatch=nearest")
    assert nearest.returncode == 0, nearest.stdout + nearest.stderr
    (third,) = _records(tmp_path / "nearest")
    assert (third.reward, third.flags) == (first.reward, ("cassette_mismatch",))
