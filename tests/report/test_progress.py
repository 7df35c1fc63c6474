"""The display of a sweep, read as text."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from runner.records import Activity, SpendLimits, Status
from runner.report import progress as module
from runner.report.progress import Progress, fitted
from runner.terminal.escaping import clock
from tests.support.records_factory import trial_record
from tests.support.waiting import until

KEY = "ab" * 16


def quiet(total: int) -> tuple[Progress, io.StringIO]:
    written = io.StringIO()
    return Progress(total, Console(file=written, width=200, force_terminal=False)), written


def test_a_quiet_display_says_a_line_every_tenth_and_the_last_one() -> None:
    progress, written = quiet(25)
    with progress:
        for _ in range(25):
            progress.started(KEY, "codex · a")
            progress.ended(trial_record(KEY, cost_usd=0.1))
    lines = written.getvalue().splitlines()
    assert [int(line.split("/")[0]) for line in lines] == [3, 6, 9, 12, 15, 18, 21, 24, 25]
    assert lines[-1] == "25/25 done, 2.50 USD, 0 running, 25 passed"


def test_a_line_counts_kinds_phases_spend_and_time_left() -> None:
    progress, _ = quiet(9)
    for key in "abcdef":
        progress.started(key, "x")
    for key, phase in {"e": "environment", "f": "verify"}.items():
        progress.entered(key, phase)
    progress.ended(trial_record("a", cost_usd=0.25))
    progress.ended(trial_record("b", reward=0.0, passed=False, cost_usd=0.5, status=Status.TIMEOUT))
    progress.ended(trial_record("c", reward=None, passed=None, status=Status.INFRA_INVALID, cost_usd=None))
    progress.ended(trial_record("d", reward=None, passed=None, cost_usd=0.0))  # its judge said nothing
    assert progress.summary() == (
        "4/9 done, >=0.75 USD, 2 running (1 starting, 1 tests), 2 invalid, 1 passed, 1 failed"
    )
    progress._at_once = 2
    progress._seconds = [100.0, 150.0, 200.0, 250.0]
    assert re.search(r"USD, \d+-\d+ min left, 2 running", progress.summary())


def test_a_line_says_how_many_wait_for_the_limits_on_calls() -> None:
    progress = Progress(2, Console(file=io.StringIO()), waiting=lambda: 1)
    progress.started(KEY, "x")
    assert (
        progress.summary() == "0/2 done, 0.00 USD, 1 running (1 starting), 1 waiting for the limits on calls"
    )


def test_silence_is_broken_though_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.02)
    progress, written = quiet(5)
    with progress:
        progress.started(KEY, "x")
        until(lambda: "0/5 done, 0.00 USD, 1 running (1 starting)" in written.getvalue())


def test_a_terminal_gets_a_live_line_and_notes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    written = io.StringIO()
    with Progress(2, Console(file=written, width=120, force_terminal=True)) as progress:
        progress.note("building [image] 'a'")
        progress.started(KEY, "codex · a")
        progress.ended(trial_record(KEY, cost_usd=0.1))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue())
    assert "building [image] 'a'\n" in text
    assert "1/2 done, 0.10 USD, 0 running, 1 passed" in text


def test_ci_is_quiet_even_with_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    written = io.StringIO()
    with Progress(1, Console(file=written, width=120, force_terminal=True, no_color=True)) as progress:
        progress.started(KEY, "x")
        progress.ended(trial_record(KEY, cost_usd=0.0))
    assert written.getvalue() == "1/1 done, 0.00 USD, 0 running, 1 passed\n"


def test_threads_lose_no_count() -> None:
    progress, _ = quiet(400)

    def one(number: int) -> None:
        progress.started(str(number), "x")
        progress.ended(trial_record(str(number), cost_usd=0.01))

    with progress, ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(400)))
    assert progress.summary() == "400/400 done, 4.00 USD, 0 running, 400 passed"


@pytest.mark.parametrize(("seconds", "text"), [(9, "0:09"), (75.4, "1:15"), (7300, "2:01:40")])
def test_the_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_minutes_passed_without_a_word_of_an_image_being_built() -> None:
    progress, written = quiet(2)
    with progress:
        progress.started(KEY, "codex · a")
        with progress.making(KEY, "building", "the image of a"):
            assert written.getvalue() == "Building the image of a\n"
            assert "1 running (1 building)" in progress.summary()
            assert progress._fitting().endswith("building the image of a")
        with pytest.raises(OSError, match="full"), progress.making(KEY, "building", "the image of b"):
            raise OSError("full")
    assert written.getvalue().splitlines() == [
        "Building the image of a",
        "Building the image of a took 0:00",
        "Building the image of b",
        "Building the image of b failed after 0:00",
    ]
    assert "1 running (1 starting)" in progress.summary()


def test_removing_what_dead_runs_left_looked_like_a_sweep_that_did_nothing() -> None:
    progress, written = quiet(1)
    with progress:
        progress.doing("removing 12 containers that a dead run left")
    assert written.getvalue() == "Removing 12 containers that a dead run left\n"
    assert progress.summary() == "0/1 done, 0.00 USD, removing 12 containers that a dead run left, 0 running"
    progress.started(KEY, "x")
    assert progress.summary() == "0/1 done, 0.00 USD, 1 running (1 starting)"


def test_what_running_trials_do_can_be_read_from_elsewhere() -> None:
    progress, _ = quiet(2)
    progress.started(KEY, "codex · a")
    progress.entered(KEY, "agent")
    progress.acting(KEY, Activity(doing="tool", text="bash: ls", turns=2, cost_usd=0.5))
    progress.acting("gone", Activity())
    limits = SpendLimits(usd=1)
    (trial,) = progress.running({KEY: limits})
    assert (trial.key, trial.phase, trial.activity.text, trial.limits) == (KEY, "agent", "bash: ls", limits)
    assert trial.started_at <= trial.phase_since <= trial.activity_since
    progress.entered(KEY, "verify")
    (trial,) = progress.running({})
    assert (trial.phase, trial.activity) == (
        "tests",
        Activity(turns=2, cost_usd=0.5),
    )  # it is spent all the same


FIGURES = ("12/400 done", ">=12.75 USD", "30-45 min left")
MANY = "12/400 done, >=12.75 USD, 30-45 min left, 4 running"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (20, "12/400 done, >=12.75 USD, 30-45 min left"),
        (52, MANY),
        (74, f"{MANY}, 2 invalid, 8 passed"),
        (96, f"{MANY} (1 building, 3 agent), 2 invalid, 8 passed"),
        (110, f"{MANY} (1 building, 3 agent), 2 invalid, 8 passed  mini_swe_agen…"),
    ],
)
def test_a_narrow_terminal_lost_the_cost_and_the_time_left_first(width: int, line: str) -> None:
    details = ("4 running (1 building, 3 agent)", "2 invalid", "8 passed")
    assert fitted(FIGURES, details, "mini_swe_agent · some-model · some-task", width) == line
