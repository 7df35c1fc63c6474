"""The display of a sweep, read as text."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from rich.console import Console

from runner.records import Status
from runner.report import progress as module
from runner.report.progress import Progress
from tests.records_factory import trial_record
from tests.waiting import until


def quiet(total: int) -> tuple[Progress, io.StringIO]:
    written = io.StringIO()
    return Progress(total, Console(file=written, width=200, force_terminal=False)), written


def test_a_quiet_display_says_a_line_every_tenth_and_the_last_one() -> None:
    progress, written = quiet(25)
    with progress:
        for _ in range(25):
            progress.started("codex · a")
            progress.ended(trial_record(cost_usd=0.1))
    lines = written.getvalue().splitlines()
    assert [int(line.split("/")[0]) for line in lines] == [3, 6, 9, 12, 15, 18, 21, 24, 25]
    assert lines[-1] == "25/25 done, 0 running, 25 passed, 2.50 USD"


def test_a_line_counts_kinds_spend_and_time_left() -> None:
    progress, _ = quiet(9)
    for _ in range(6):
        progress.started("x")
    progress.ended(trial_record(cost_usd=0.25))
    progress.ended(trial_record(reward=0.0, passed=False, cost_usd=0.5, status=Status.TIMEOUT))
    progress.ended(trial_record(reward=None, passed=None, status=Status.INFRA_INVALID, cost_usd=None))
    progress.ended(trial_record(reward=None, passed=None, cost_usd=0.0))  # its judge said nothing
    assert re.fullmatch(
        r"4/9 done, 2 running, 1 passed, 1 failed, 2 invalid, >=0\.75 USD, \d:\d\d left", progress.summary()
    )


def test_a_line_says_how_many_wait_for_the_limits_on_calls() -> None:
    progress = Progress(2, Console(file=io.StringIO()), waiting=lambda: 1)
    progress.started("x")
    assert progress.summary() == "0/2 done, 1 running, 1 waiting for the limits on calls, 0.00 USD"


def test_silence_is_broken_though_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.02)
    progress, written = quiet(5)
    with progress:
        progress.started("x")
        until(lambda: "0/5 done, 1 running, 0.00 USD" in written.getvalue())


def test_a_terminal_gets_a_live_line_and_notes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    written = io.StringIO()
    with Progress(2, Console(file=written, width=120, force_terminal=True)) as progress:
        progress.note("building [image] 'a'")
        progress.started("codex · a")
        progress.ended(trial_record(cost_usd=0.1))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.getvalue())
    assert "building [image] 'a'\n" in text
    assert "1/2 done, 0 running, 1 passed, 0.10 USD" in text


def test_ci_is_quiet_even_with_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    written = io.StringIO()
    with Progress(1, Console(file=written, width=120, force_terminal=True, no_color=True)) as progress:
        progress.started("x")
        progress.ended(trial_record(cost_usd=0.0))
    assert written.getvalue() == "1/1 done, 0 running, 1 passed, 0.00 USD\n"


def test_threads_lose_no_count() -> None:
    progress, _ = quiet(400)

    def one(_: int) -> None:
        progress.started("x")
        progress.ended(trial_record(cost_usd=0.01))

    with progress, ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(400)))
    assert progress.summary() == "400/400 done, 0 running, 400 passed, 4.00 USD"


@pytest.mark.parametrize(("seconds", "shown"), [(9, "0:09"), (75.4, "1:15"), (7300, "2:01:40")])
def test_the_clock(seconds: float, shown: str) -> None:
    assert module._clock(seconds) == shown
