"""Print untrusted texts safely: control characters become visible and have no effect.

Everything that a command prints passes `safe_streams`. Lists with one entry per line also pass names through
`one_line`. A library that draws (rich) gets the real stream from `console`, and its texts through `printable`.
"""

from __future__ import annotations

import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

Say = Callable[[str], None]
"""Function that takes a sentence for the user, for example that a long step begins."""
WIDTH = 100
"""Width of a line outside a terminal, in characters."""
NARROWEST = 40
"""Smallest width that a terminal is assumed to have, in characters."""
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
"""Escape sequence of a terminal: colours, movements of the cursor, titles."""
_LAYOUT = frozenset("\n\t")
_SPACE = "\N{NO-BREAK SPACE}"


def printable(text: str) -> str:
    r"""Return the text with control characters, marks of direction and the like as escapes such as `\x1b`.

    Newlines and tabs stay.
    """
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in _LAYOUT else _escape(sign) for sign in text)


def uncoloured(text: str) -> str:
    """Return a program's terminal output as `printable` text without escape sequences."""
    return printable(_SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    r"""Return the text as `printable` does, and newlines and tabs as `\n` and `\t`."""
    return text if text.isprintable() else "".join(s if s.isprintable() else _escape(s) for s in text)


def width(stream: TextIO | None = None) -> int:
    """Return the width of a stream, by default of standard output, in characters.

    The variable `COLUMNS` comes first, then the terminal's own width; `WIDTH` without a terminal.
    """
    typed = os.environ.get("COLUMNS", "")
    if typed.isdecimal() and int(typed):
        return max(int(typed), NARROWEST)
    try:
        columns = os.get_terminal_size((stream or sys.stdout).fileno()).columns
    except (OSError, ValueError):  # a file, a pipe, or an object in place of a stream
        columns = 0
    return max(columns, NARROWEST) if columns else WIDTH


def wrapped(text: str, columns: int) -> str:
    """Break the lines of a text at blanks; continuations are indented by two more blanks."""
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
    """Return a console of rich on the real standard output; its texts must be `printable`."""
    from rich.console import Console  # noqa: PLC0415 - not for help

    stream = sys.stdout
    return Console(file=cast("IO[str]", getattr(stream, "raw_stream", stream)), **options)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Make standard output and error print `printable` text only."""
    out, error = cast("TextIO", _Safe(sys.stdout)), cast("TextIO", _Safe(sys.stderr))
    with redirect_stdout(out), redirect_stderr(error):
        yield


@contextmanager
def step(say: Say, doing: str, what: str, *, announce: bool = True) -> Iterator[None]:
    """Say that a long step, such as `building` `the image of x`, begins if `announce`, and how long it took."""
    words, began, outcome = f"{doing[:1].upper()}{doing[1:]} {what}", time.monotonic(), "failed after"
    if announce:
        say(words)
    try:
        yield
        outcome = "took"
    finally:
        say(f"{words} {outcome} {clock(time.monotonic() - began)}")


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if there are any."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def show_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write the traceback of an unexpected exception. `sys.excepthook` is called after `safe_streams` has ended."""
    import traceback  # noqa: PLC0415 - not for a command that ends well

    sys.stderr.write(printable("".join(traceback.format_exception(kind, error, trace))))


class _Safe:
    """Stream that writes `printable` text to another."""

    def __init__(self, stream: TextIO) -> None:
        self.raw_stream = stream

    def write(self, text: str) -> int:
        """See `TextIO`."""
        self.raw_stream.write(printable(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """See `TextIO`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw_stream, name)


def _escape(sign: str) -> str:
    return " " if sign == _SPACE else repr(sign)[1:-1]
