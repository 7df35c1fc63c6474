"""Pictures that are drawn in a process of their own, and those that it leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from runner.report import figures
from runner.report.drawing import MANY, Artist, Drawing
from runner.resources import ROOT
from tests.support.waiting import until

PARTS = pd.DataFrame({"easy": [1.0, 2.0], "hard": [3.0, 1.0]}, index=["$one$", "two"])
BARS = partial(figures.grouped_bars, PARTS, ".1f", 4.0)


def ends() -> Figure:
    os._exit(3)


def is_running(pid: int) -> bool:
    """Return whether a process is there and is no zombie, which the first process of a machine may not collect."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def drawn(folder: Path, trials: int, **pictures: Callable[[], Figure]) -> list[Drawing]:
    """Draw these pictures, and bars in the end."""
    with Artist(folder, trials) as artist:
        for name, draw in pictures.items():
            artist.begin(name, draw)
        artist.begin("bars", BARS)
        return [artist.drawing(name, BARS) for name in (*pictures, "bars")]


def test_a_process_draws_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = drawn(tmp_path, 1)
    assert [*here[0].files] == ["bars.png", "bars.svg"]
    monkeypatch.setattr(figures, "svg", None)  # so that nothing can be drawn here
    assert drawn(tmp_path, MANY) == here


def test_a_picture_that_cannot_be_sent_is_drawn_here(tmp_path: Path) -> None:
    unsent, bars = drawn(tmp_path, MANY, unsent=lambda: BARS())  # noqa: PLW0108 - a lambda cannot be sent
    assert unsent.svg == bars.svg


def test_what_an_ended_process_leaves_is_drawn_here(tmp_path: Path) -> None:
    assert drawn(tmp_path, MANY, ends=ends)[1:] == drawn(tmp_path, 1)


def test_a_picture_that_fails_says_why(tmp_path: Path) -> None:
    fails = partial(figures.grouped_bars, PARTS, "no format", 4.0)
    with Artist(tmp_path, MANY) as artist:
        artist.begin("fails", fails)
        with pytest.raises(ValueError, match="format"):
            artist.drawing("fails", fails)


def test_a_killed_report_leaves_no_process_that_draws(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.report.test_drawing import BARS, MANY, Artist\n"
        "artist = Artist(Path(sys.argv[1]), MANY); artist.begin('bars', BARS); artist.drawing('bars', BARS)\n"
        "print(*artist._process._processes, flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as report:
        assert report.stdout
        draws = int(report.stdout.readline())
        assert is_running(draws)
        report.kill()
    until(lambda: not is_running(draws))
