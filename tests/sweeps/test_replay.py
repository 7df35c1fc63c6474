"""A run is recorded and replayed by the command, with a real agent in a real sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runner.records import TrialRecord
from tests.support.sweeps import Cli

pytestmark = [pytest.mark.docker, pytest.mark.bundle, pytest.mark.usefixtures("no_page")]

COMMON = ("agent=codex", "dataset.include=[logs-to-csv]", "executor.retries=0")


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


def test_a_recorded_run_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tapes = tmp_path / "tapes"
    out, again, loose = (Cli(tmp_path / name, monkeypatch, capsys) for name in ("out", "again", "loose"))
    for record in ((), (f"record={tapes}",)):  # what was not recorded is run once more
        recorded = out(*COMMON, "model=scripted_careful", *record)
        assert recorded.code == 0, recorded
    (tape,) = tapes.rglob("*.jsonl")
    assert tape.relative_to(tapes).parts == (
        "codex·scripted_careful·quickstart·default",
        "logs-to-csv",
        "1.jsonl",
    )

    blocked = out(*COMMON, "model=scripted_careful", f"record={tape}")
    assert (blocked.code, "Not a directory" in blocked.err, "Records: " in blocked.out) == (2, True, True)

    replay = (*COMMON, "model=cassette", f"model.path={tapes}")
    replayed = again(*replay)
    assert replayed.code == 0, replayed
    assert "(replayed)" in replayed.out
    (first,), (second,) = _records(out.outputs), _records(again.outputs)
    same = ("status", "reward", "passed", "usage", "turns", "tool_calls", "workspace_lines")
    assert {name: getattr(second, name) for name in same} == {name: getattr(first, name) for name in same}
    assert (first.replayed, second.replayed, second.scripted) == (False, True, False)

    tape.write_text(_changed(tape))
    assert again(*replay).code == 4, "another recording is another trial, and this one does not fit"
    (failed,) = (record for record in _records(again.outputs) if record.key != second.key)
    assert failed.error is not None
    assert (failed.error.type, failed.flags[0]) == ("CassetteMismatch", "cassette_mismatch")
    assert '- "instructions": "Do something else."' in failed.error.message.replace("-  ", "- ")

    nearest = loose(*replay, "model.mismatch=nearest")
    assert nearest.code == 0, nearest
    (third,) = _records(loose.outputs)
    assert (third.reward, third.flags) == (first.reward, ("cassette_mismatch",))
