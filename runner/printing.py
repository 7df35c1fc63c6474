"""What a stranger named or wrote, shown on a terminal: control characters are seen there, and do nothing.

Everything that a command prints passes `safe_streams`; nothing has to remember to be careful. Lists that have an entry
a line take names through `one_line` besides. A library that draws (rich) gets the real stream from `console`, and texts
through `printable`.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

_KEPT = frozenset("\n\t")
_SPACE = "\N{NO-BREAK SPACE}"


def printable(text: str) -> str:
    r"""The text with control characters, marks of direction and the like as escapes, such as `\x1b` and `\u202e`.

    Newlines and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in _KEPT else _escape(sign) for sign in text)


def one_line(text: str) -> str:
    r"""The same with newlines and tabs as `\n` and `\t`."""
    return text if text.isprintable() else "".join(s if s.isprintable() else _escape(s) for s in text)


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
