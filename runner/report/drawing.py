"""The drawing of a report's pictures: of a large report in a process of its own, beside the sections that follow."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, Self

from runner.report import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 100_000
"""Trials of a report whose pictures have a process of their own. It takes a second or two to start, which is longer
than the sections of fewer trials take."""


class Drawing(NamedTuple):
    """A picture that has been drawn."""

    svg: str
    files: dict[str, bytes]
    """Content by name: PNG, then SVG."""


class Artist:
    """A context in which pictures are drawn. What its process does not draw, for whatever reason, is drawn here."""

    def __init__(self, folder: Path, trials: int) -> None:
        """`folder` has the pictures of the last report; `trials` is the number of trials of this one."""
        self._folder = folder
        self._begun: dict[str, Future[Drawing]] = {}
        # A fork would copy the locks of threads that do not exist in it.
        self._process = (
            ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare) if trials >= MANY else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.shutdown(cancel_futures=True)

    def begin(self, name: str, draw: Callable[[], Figure]) -> None:
        """Begin to draw a picture, if there is a process for it."""
        if self._process:
            self._begun[name] = self._process.submit(_draw, name, draw, self._folder)

    def drawing(self, name: str, draw: Callable[[], Figure]) -> Drawing:
        """Return the drawing of a picture."""
        begun = self._begun.get(name)
        # It fails if the picture cannot be sent, or if the process ended.
        return _draw(name, draw, self._folder) if begun is None or begun.exception() else begun.result()


def _prepare() -> None:
    """Leave Ctrl-C to the process that waits for the pictures, and end when that process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_report, daemon=True).start()


def _end_with_the_report() -> None:
    """End this process when the one that started it is gone. A pool's process would wait for work for ever."""
    if parent := parent_process():
        parent.join()
        os._exit(1)


def _draw(name: str, draw: Callable[[], Figure], folder: Path) -> Drawing:
    """Draw a picture. Its PNG file is drawn again only if the lines differ from those of the last report."""
    with figures.style():
        figure = draw()
        figures.settle(figure)
        text = figures.svg(figure)
        vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
        same = pixels.exists() and vector.exists() and vector.read_bytes() == text.encode()
        # The PNG comes first: a report that is cut off in between leaves the old SVG, and so is drawn again.
        files = {
            pixels.name: pixels.read_bytes() if same else figures.png(figure),
            vector.name: text.encode(),
        }
        return Drawing(text, files)
