"""Pictures that are drawn in a process of their own, and those that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from runner.report import drawing, figures
from runner.report.drawing import Artist

PARTS = pd.DataFrame({"easy": [1.0, 2.0], "hard": [3.0, 1.0]}, index=["$one$", "two"])
BARS = partial(figures.grouped_bars, PARTS, ".1f", 4.0)


def drawn(folder: Path, trials: int) -> list[drawing.Drawing]:
    with figures.style(), Artist(folder, trials) as artist:
        pictures: dict[str, Callable[[], Figure]] = {"bars": BARS, "here": lambda: BARS()}  # noqa: PLW0108 - which cannot be sent
        for name, draw in pictures.items():
            artist.begin(name, draw)
        return [artist.drawing(name, draw) for name, draw in pictures.items()]


def test_a_process_draws_the_same_bytes(tmp_path: Path) -> None:
    here, apart = (drawn(tmp_path, trials) for trials in (1, drawing._MANY))
    assert apart == here
    assert [*apart[0].files] == ["bars.png", "bars.svg"]


def test_the_process_draws_what_can_be_sent_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = []
    monkeypatch.setattr(drawing, "_drawing", lambda name, *_: left.append(name))
    drawn(tmp_path, drawing._MANY)
    assert left == ["here"]


def test_what_an_ended_process_leaves_is_drawn_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_CHILD", "raise SystemExit(3)")
    assert drawn(tmp_path, drawing._MANY) == drawn(tmp_path, 1)


def test_a_picture_that_fails_says_why(tmp_path: Path) -> None:
    fails = partial(figures.grouped_bars, PARTS, "no format", 4.0)
    with Artist(tmp_path, drawing._MANY) as artist:
        artist.begin("fails", fails)
        with pytest.raises(ValueError, match="format"):
            artist.drawing("fails", fails)
