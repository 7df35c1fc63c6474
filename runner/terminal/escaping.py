"""What a stranger named or wrote, shown on a terminal: control characters are seen there, and do nothing.

Everything that a command prints passes `safe_streams`; nothing has to remember to be careful. Lists that have an entry
a line take names through `one_line` besides. A library that draws (rich) gets the real stream from `console`, and texts
through `printable`.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 100
"""Characters a line outside a terminal, in files for instance."""
NARROWEST = 40
"""A narrower terminal is written to as if it were this wide."""
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
"""What terminals are told in the middle of a text: colours, places of the cursor, titles."""
_KEPT = frozenset("\n\t")
_SPACE = "\N{NO-BREAK SPACE}"


def printable(text: str) -> str:
    r"""The text with control characters, marks of direction and the like as escapes, such as `\x1b` and `\u202e`.

    Newlines and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in _KEPT else _escape(sign) for sign in text)


def uncoloured(text: str) -> str:
    """The text that a program printed for a terminal, `printable`, without what it told the terminal."""
    return printable(_SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    r"""The same with newlines and tabs as `\n` and `\t`."""
    return text if text.isprintable() else "".join(s if s.isprintable() else _escape(s) for s in text)


def width(stream: TextIO | None = None) -> int:
    """Characters a line of a stream, standard output unless one is given: `COLUMNS` if it is set, else its terminal's;
    `WIDTH` where it is not a terminal.
    """
    typed = os.environ.get("COLUMNS", "")
    if typed.isdecimal() and int(typed):
        return max(int(typed), NARROWEST)
    try:
        columns = os.get_terminal_size((stream or sys.stdout).fileno()).columns
    except (OSError, ValueError):  # a file, a pipe, or a stream that is none of the system's
        columns = 0
    return max(columns, NARROWEST) if columns else WIDTH


def wrapped(text: str, columns: int) -> str:
    """A text of ours whose lines are broken at blanks; what a line is continued with hangs by two blanks more."""
    lines = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        lines += textwrap.wrap(
            line,
            columns,
            subsequent_indent=f"{indent}  ",
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        ) or [""]
    return "\n".join(lines)


def console(**options: Any) -> Console:
    """A console of rich's on the real standard output; its texts must be `printable`."""
    from rich.console import Console  # noqa: PLC0415 - not for help

    stream = sys.stdout
    return Console(file=cast("IO[str]", getattr(stream, "raw_stream", stream)), **options)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Standard output and error take printable text alone."""
    out, error = cast("TextIO", _Safe(sys.stdout)), cast("TextIO", _Safe(sys.stderr))
    with redirect_stdout(out), redirect_stderr(error):
        yield


@contextmanager
def step(say: Callable[[str], None], doing: str, what: str, *, is_begin_said: bool = True) -> Iterator[None]:
    """A long step of this context, such as `building` `the image of x`: say that it begins, and how long it took."""
    words, began, outcome = f"{doing[:1].upper()}{doing[1:]} {what}", time.monotonic(), "failed after"
    if is_begin_said:
        say(words)
    try:
        yield
        outcome = "took"
    finally:
        say(f"{words} {outcome} {clock(time.monotonic() - began)}")


def clock(seconds: float) -> str:
    """A duration as minutes and seconds, with hours where there are any."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def show_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of what nobody expected. As `sys.excepthook` it is called when `safe_streams` has ended."""
    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))


class _Safe:
    """A stream that writes `printable` text to another."""

    def __init__(self, stream: TextIO) -> None:
        self.raw_stream = stream

    def write(self, text: str) -> int:
        """As a stream's."""
        self.raw_stream.write(printable(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """As a stream's."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw_stream, name)


def _escape(sign: str) -> str:
    return " " if sign == _SPACE else repr(sign)[1:-1]
