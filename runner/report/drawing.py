"""The drawing of a report's pictures: of a large report in a process of its own, beside the sections that follow."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from runner.report import figures

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

_MANY = 100_000
"""Trials of a report whose pictures have a process of their own. It takes a second to start, which the sections of
fewer trials do not last."""
_CHILD = """
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from runner.report.drawing import main
main()
"""


class Drawing(NamedTuple):
    """A picture that has been drawn."""

    svg: str
    files: dict[str, bytes]
    """Content by name: PNG, then SVG."""


class Artist:
    """A context in which pictures are drawn. What its process does not draw, for whatever reason, is drawn here."""

    def __init__(self, folder: Path, trials: int) -> None:
        """`folder` has the pictures of the last report; `trials` is the number of trials of this one."""
        self._folder, self._child = folder, None
        self._drawn: dict[str, Drawing] | None = None
        if trials >= _MANY:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-c", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a picture that fails is drawn again here, and fails here
            )
            self._send(sys.path)
            self._send(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child:
            self._child.kill()
            self._child.communicate()

    def begin(self, name: str, draw: Callable[[], Figure]) -> None:
        """Begin to draw a picture, if there is a process for it."""
        with suppress(pickle.PicklingError, AttributeError, TypeError):  # a picture that is no plain call
            self._send((name, draw))

    def drawing(self, name: str, draw: Callable[[], Figure]) -> Drawing:
        """Return the drawing of a picture. No other picture can be begun after the first call."""
        if self._drawn is None:
            self._drawn = self._received()
        return self._drawn.get(name) or _drawing(name, draw, self._folder)

    def _send(self, value: object) -> None:
        packed = pickle.dumps(value)
        if self._child and self._child.stdin:
            with suppress(OSError):  # it has ended
                self._child.stdin.write(packed)
                self._child.stdin.flush()

    def _received(self) -> dict[str, Drawing]:
        if not self._child:
            return {}
        answer, _ = self._child.communicate()
        drawn: dict[str, Drawing] = {} if self._child.returncode else pickle.loads(answer)  # noqa: S301 - our own
        return drawn


def main() -> None:
    """Draw the pictures that come on standard input until it ends, and write all drawings to standard output."""
    folder, drawn = pickle.load(sys.stdin.buffer), {}  # noqa: S301 - written by the process that started this one
    with figures.style(), suppress(EOFError):
        while True:
            name, draw = pickle.load(sys.stdin.buffer)  # noqa: S301 - as above
            drawn[name] = _drawing(name, draw, folder)
    sys.stdout.buffer.write(pickle.dumps(drawn))


def _drawing(name: str, draw: Callable[[], Figure], folder: Path) -> Drawing:
    """Draw a picture. Its PNG file is drawn again only if the lines differ from those of the last report."""
    figure = draw()
    figures.settle(figure)
    text = figures.svg(figure)
    vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    same = pixels.exists() and vector.exists() and vector.read_bytes() == text.encode()
    # The PNG comes first: a report that is cut off in between leaves the old SVG, and so is drawn again.
    files = {pixels.name: pixels.read_bytes() if same else figures.png(figure), vector.name: text.encode()}
    return Drawing(text, files)
