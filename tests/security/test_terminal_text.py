"""Untrusted names and texts control no terminal, and are not formulas in a spreadsheet."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from runner.agents.bounds import Nop
from runner.executors.threads import ThreadExecutor
from runner.records import Budget, SpendLimits, Task
from runner.report.csv_cells import cell, read_cell, to_csv
from runner.report.progress import Progress
from runner.report.trial_sources import read_table
from runner.sandbox.local import LocalSandboxes
from runner.sweeps.cells import NO_MODEL, Cell, Settings
from runner.sweeps.plan import Plan, PlannedTrial
from runner.sweeps.plan_text import plan_text
from runner.terminal.escaping import one_line, printable, safe_streams
from tests.report.plans import SCORING
from tests.support.tasks_factory import dataset, make_task

HOSTILE = {
    "a title": "\x1b]0;owned\x07",
    "a title by the string terminator": "\x1b]2;owned\x1b\\",
    "a cleared screen": "\x1b[2J\x1b[H",
    "colours": "\x1b[31mred",
    "a hyperlink": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "an answer by the terminal": "\x1b[6n\x1b[c\x1bZ",
    "a device's string": "\x1bP$qm\x1b\\",
    "an 8-bit introducer": "\x9b31mred",
    "an 8-bit command": "\x9d0;owned\x9c",
    "another character set": "\x0e\x0f",
    "a carriage return": "good\rbad",
    "backspaces": "bad\x08\x08\x08good",
    "a bell": "\x07",
    "a NUL": "a\x00b",
    "a delete": "a\x7fb",
    "a direction": "abc\u202efed",
    "an isolate": "a\u2066b\u2069",
    "a mark": "a\u200fb",
    "a line separator": "a\u2028b",
    "a next line": "a\x85b",
    "nothing that is seen": "a\u200bb\ufeff",
    "tags": "a\U000e0041b",
    "a lone surrogate": "a\udc9bb",
    "private use": "a\ue000b",
}
"""Texts that would make a terminal move, hide, colour or answer something."""
STEERING = {chr(code) for code in (*range(32), *range(127, 160))} | set(
    "\u200b\u200f\u2028\u202e\u2066\u2069\ufeff"
)


def harmless(text: str) -> bool:
    return not STEERING & set(text) and text.isprintable()


@pytest.mark.parametrize("name", HOSTILE)
def test_text_is_made_visible(name: str) -> None:
    text = HOSTILE[name]
    assert harmless(one_line(text))
    assert harmless(printable(text).replace("\n", ""))
    assert one_line(f"{text}\n\t").endswith("\\n\\t")
    assert printable(f"{text}\n\t").endswith("\n\t")


@pytest.mark.parametrize("text", ["", "plain", "a · b × c ≥ 1 – é 漢字 🎉", "back\\slash"])
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == one_line(text) == text


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_is_printed_steers_the_terminal(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    with safe_streams():
        print(HOSTILE[name])
        print(HOSTILE[name], file=sys.stderr, flush=True)
        sys.stdout.writelines([HOSTILE[name]])
    out, error = capfd.readouterr()
    assert harmless(out.replace("\n", ""))
    assert harmless(error.replace("\n", ""))


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("name", [*HOSTILE, "markup"])
def test_progress_shows_names_and_draws_nothing_of_theirs(name: str, *, terminal: bool) -> None:
    """A name in brackets was once read as rich's markup, and escapes went through."""
    text = HOSTILE.get(name, "[red]x[/red][link=http://evil.example]y[/link][/]")
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=300, color_system=None, legacy_windows=False)
    with Progress(1, console) as progress:
        progress.quiet = False
        progress.started("key", f"<{text}>")
        progress.note(f"<{text}>")
    parts = file.getvalue().split("<")[1:]
    assert parts
    for part in parts:
        assert part.startswith((f"{one_line(text)}>", f"{printable(text)}>"))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_plan_has_a_line_for_each_trial_whatever_it_is_called(name: str) -> None:
    text = f"{HOSTILE[name]}\nrefused: nothing"
    task = Task(name=text, dataset="d", directory=Path(), refused=text, flags=("f",))
    trial = PlannedTrial.model_construct(key="k" * 32, cell=cell_of(), task=task, attempt=1)
    parts: dict[str, Any] = {
        "dry_run": "full",
        "sweep_budget": SpendLimits(),
        "scoring": SCORING,
        "executor": ThreadExecutor(workers=1),
        "sandbox": LocalSandboxes(),
    }
    settings = Settings.model_construct(**parts)
    plan = plan_text(Plan.model_construct(trials=(trial,), todo=(trial,)), settings)
    assert all(harmless(line) for line in plan.split("\n"))
    assert not [line for line in plan.split("\n") if line.startswith("refused: nothing")]


def cell_of() -> Cell:
    return Cell(agent=Nop(), model=NO_MODEL, dataset=dataset(Path()), budget=Budget(), attempts=1)


def test_a_dry_run_of_hostile_folders_is_plain_text(
    command: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    root = tmp_path / "tasks"
    make_task(root, "a\x1b]0;owned\x07b\nc")
    make_task(root, os.fsdecode(b"bytes\x9b"))
    (make_task(root, "d\x1b[2Je") / "task.toml").write_text("[environment]\nos = '\\u001b]0;owned\\u0007'\n")
    ended = command("agent=nop", "dataset=harbor", f"dataset.root={root}", "dry_run=full")
    assert ended.returncode == 0, ended.stderr
    assert harmless((ended.stdout + ended.stderr).replace("\n", ""))
    assert "a\\x1b]0;owned\\x07b\\nc" in ended.stdout
    assert "bytes\\udc9b" in ended.stdout
    ended = command("agent=nop", "dataset=harbor", f"dataset.root={tmp_path}/\x1b]0;x\x07", "dry_run=true")
    assert ended.returncode == 2
    assert harmless(ended.stderr.replace("\n", ""))


UNEXPECTED = """
import runpy, sys
from runner.cli import arguments
def fail(words): raise ValueError("\\x1b]0;owned\\x07")
arguments.check, sys.argv = fail, ["runner", "x=1"]
runpy.run_module("runner", run_name="__main__")
"""


def test_the_traceback_of_an_unexpected_error_is_plain_text() -> None:
    """The interpreter once wrote it to the terminal unchanged."""
    ended = subprocess.run([sys.executable, "-c", UNEXPECTED], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert harmless(ended.stderr.replace("\n", ""))
    assert ended.stderr.endswith("ValueError: \\x1b]0;owned\\x07\n")


# --- tables ----------------------------------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    '=HYPERLINK("http://evil.example")',
    " =1+1",
    "|calc",
    "%0A=1",
    "＝1+1",
    "＋1+1",
    "－1+1",
    "＠SUM(1)",
    "'=1+1",
    "''=1+1",
    "-",
    "+",
    "--help",
    "@scope/package",
]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text_in_a_table_and_is_read_back_as_it_was(text: str, tmp_path: Path) -> None:
    written = cell(text)
    assert written == text if text in ("-", "+") else written == f"'{text}"
    assert read_cell(written) == text
    table = pd.DataFrame({"agent": [text], "task": ["x"], text: [text]})
    (tmp_path / "t.csv").write_text(to_csv(table, index=False))
    read = read_table(tmp_path / "t.csv")
    assert read.to_dict("list") == {"agent": [text], "task": ["x"], text: [text]}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a;=1+1;b", "a;'=1+1;b"),
        ("a; @x;;-1", "a;' @x;;'-1"),
        ("=1;=1", "'=1;'=1"),
        ("a;'=1", "a;''=1"),
        ("-1;-2", "'-1;'-2"),
        ("a; b;'c", "a; b;'c"),
    ],
)
def test_a_formula_behind_a_semicolon_is_a_text_where_lines_are_split_there(text: str, written: str) -> None:
    assert cell(text) == written
    assert read_cell(written) == text


@pytest.mark.parametrize("text", ["\t=1", "\r=1", "\n=1", "\x00=1"])
def test_a_formula_behind_a_control_character_is_not_a_formula(text: str) -> None:
    assert cell(text).startswith("\\")


@pytest.mark.parametrize("name", sorted({*HOSTILE} - {"a lone surrogate"}))  # pandas holds none of these
def test_a_table_holds_no_control_characters(name: str) -> None:
    frame = pd.DataFrame({HOSTILE[name]: [HOSTILE[name]]}, index=pd.Index([HOSTILE[name]], name="i"))
    assert harmless(to_csv(frame, index=True).replace("\n", ""))
    pairs = pd.MultiIndex.from_tuples([(HOSTILE[name], "=1")], names=["a", "b"])
    written = to_csv(pd.DataFrame({"x": [1.5]}, index=pairs), index=True)
    assert harmless(written.replace("\n", ""))
    assert ",'=1,1.5" in written


def test_numbers_and_what_is_missing_stay_as_they_are() -> None:
    frame = pd.DataFrame({
        "n": [-1.5, float("nan")],
        "i": [-1, 2],
        "b": [True, False],
        "o": [None, -2],
        "t": ["-1.5e-3", "+7"],
        "s": pd.array(["x", None], dtype="string"),
    })  # fmt: skip
    assert to_csv(frame, index=False) == frame.to_csv(index=False)


def test_a_table_is_not_changed_by_writing_it() -> None:
    frame = pd.DataFrame({"a": ["=1"]})
    to_csv(frame, index=False)
    assert frame["a"].tolist() == ["=1"]
