"""`job=trajectory`, as a user reads it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.gateway.trajectory import atif
from runner.records import PlannedRow, Verdict
from runner.sweeps.store import Store
from tests.report.plans import write_sweep
from tests.support.records_factory import model_call, trial_record

Command = Callable[..., subprocess.CompletedProcess[str]]


def _answer(text: str, reasoning: str = "", **arguments: Any) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": text, "reasoning_content": reasoning}
    return {"choices": [{"message": message | ({"tool_calls": [call]} if arguments else {})}]}


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Two trials, the second of which called no model."""
    store = Store(tmp_path / "outputs")
    verdict = Verdict(reward=1.0, exit_code=1, output="one test failed\nbecause \x1b[2J")
    record = trial_record(
        "ab" * 16, agent="codex", task="greet", cost_usd=0.02, turns=2, verdict=verdict, flags=("calls_cut",)
    )
    output = "\n".join(["\x1b[31mfirst\x1b]0;title\x07", *map(str, range(30)), "last"])
    results = {"messages": [{"role": "tool", "tool_call_id": "c", "content": output}]}
    calls = (
        model_call(0, response=_answer("I look.", "What is there?", command="ls -l\npwd")),
        model_call(1, response=_answer("Done."), request=results, cost_usd=None),
    )
    store.write(record)
    document = atif(calls, agent="codex", version="1.2", session_id="s", instruction="Greet\nme.")
    (store.folder(record.key) / "trajectory.json").write_text(json.dumps(document))
    store.write(trial_record("ac" * 16, agent="nop", model="none", task="greet"))
    return store.outputs


def test_it_is_plain_text_where_it_is_piped(command: Command, outputs: Path) -> None:
    ended = command("job=trajectory", f"outputs={outputs}", "job.key=abab", "job.lines=6")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "codex 1.2 · glm · greet #1",
        "Greet",
        "me.",
        "",
        "step 2 · 10 in (0 cached), 5 out, 0.0100 USD",
        "What is there?",
        "I look.",
        "> sh ls -l",
        "pwd",
        "\N{REPLACEMENT CHARACTER}[31mfirst\N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}",
        "0",
        "1",
        "2",
        "[... 26 lines]",
        "29",
        "last",
        "",
        "step 3 · 10 in (0 cached), 5 out, - USD",
        "Done.",
        "",
        "completed, reward 1",
        "2 turns · 20 in (0 cached), 10 out, 0.0200 USD; key " + "ab" * 16,
        "",
        "verifier (shared), exit code 1",
        "one test failed",
        "because \N{REPLACEMENT CHARACTER}[2J",
        "flags: calls_cut",
        f"files: {Store(outputs).folder('ab' * 16)}",
        "",
    ]


def test_selectors_choose_and_zero_lines_are_all(command: Command, outputs: Path) -> None:
    ended = command(
        "job=trajectory", f"outputs={outputs}", "job.agent=codex", "job.task=greet", "job.lines=0"
    )
    assert [str(number) for number in range(30)] == [
        line for line in ended.stdout.splitlines() if line.isdigit()
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "2 trials in "),
        (("job.key=ff",), "0 trials in "),
        (("job.model=none",), "nop · none · greet #1 has no trajectory: it called no model"),
        (("job.lines=-1",), "job.lines: "),
    ],
)
def test_what_cannot_be_shown_is_said(
    command: Command, outputs: Path, words: tuple[str, ...], message: str
) -> None:
    ended = command("job=trajectory", f"outputs={outputs}", *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert message in ended.stderr
    if not words:
        assert f"{'ab' * 6}  codex · glm · greet #1  completed, reward 1" in ended.stderr


def test_a_sweeps_name_narrows_to_its_trials(command: Command, outputs: Path) -> None:
    records = {record.agent: record for key in ("ab", "ac") if (record := Store(outputs).read(key * 16))}
    for name, agent in (("mine", "codex"), ("other", "nop")):
        fields = records[agent].model_dump(include=set(PlannedRow.model_fields))
        write_sweep(outputs, [PlannedRow(**fields)], {}, name)
    assert command("job=trajectory", f"outputs={outputs}", "name=mine").returncode == 0
    ended = command("job=trajectory", f"outputs={outputs}", "name=other")
    assert "nop · none · greet #1 has no trajectory" in ended.stderr
    ended = command("job=trajectory", f"outputs={outputs}", "name=neither")
    assert (ended.returncode, "neither" in ended.stderr) == (2, True)


def test_a_record_of_another_version_is_in_nobodys_way(command: Command, outputs: Path) -> None:
    path = Store(outputs).folder("ac" * 16) / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"news": 1}))
    assert command("job=trajectory", f"outputs={outputs}", "job.agent=codex").returncode == 0
    ended = command("job=trajectory", f"outputs={outputs}", "key=acac")
    assert (ended.returncode, "another version of Assay" in ended.stderr) == (2, True)
