"""What a terminal would show of a program's bytes, as plain lines (ExecutionAgent, section 2.4.4).

A terminal emulator fits badly: it has a screen of fixed size, and a log has none. This one's page grows, so nothing
wraps and nothing scrolls away.
"""

from __future__ import annotations

import re

WIDTH = 200
"""How far to the right a line can be entered beyond its end; `terminal_inside.py` tells programs the same."""
_TOKEN = re.compile(
    r"(?:\x1b\[|\x9b)(?P<figures>[0-?]*)[ -/]*(?P<motion>[@-~]?)"  # cursor, colours, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, the like
    r"|\x1b(?P<mark>[78])"  # the cursor's place, kept and gone back to
    r"|\x1b[ -/]*[0-~]?"  # character sets, keypad, the like
    r"|(?P<control>[\r\n\b\v\f])"
    r"|(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
)
_FIRST = re.compile(r"\d{1,4}")


def clean(raw: bytes) -> str:
    """The lines that are left when all is printed: without colours, titles and overwritten progress bars.

    UTF-8, what is none replaced; line ends and tabs are the only control characters. A screen that a program clears,
    or addresses by row, goes on below what was there; what it draws on a row by its number between keeping its place
    and going back to it, as a status line, is left out.
    """
    page = _Page()
    for token in _TOKEN.finditer(raw.decode(errors="replace")):
        if text := token["text"]:
            page.put(text)
        elif token["control"]:
            page.control(token["control"])
        elif token["mark"]:
            page.motion("su"[token["mark"] == "8"], None)
        elif token["motion"]:
            first = _FIRST.match(token["figures"])
            page.motion(token["motion"], int(first[0]) if first else None)
    return "\n".join(line.rstrip() for line in page.lines).rstrip("\n")


class _Page:
    """Lines, and where the cursor is in them."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = self._column = 0
        self._kept: tuple[int, int] | None = None
        self._is_away = False
        """On a row by its number, from where the cursor comes back."""

    def put(self, text: str) -> None:
        if self._is_away:
            return
        line = self.lines[self._row]
        end = self._column + len(text)
        self.lines[self._row] = line[: self._column].ljust(self._column) + text + line[end:]
        self._column = end

    def control(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(0, self._column - 1)
        else:
            self._is_away = False
            self._go(self._row + 1)
            if self._row == len(self.lines):
                self.lines.append("")

    def motion(self, kind: str, figure: int | None) -> None:
        """One of ECMA-48's sequences; a colour, for one, moves and changes nothing."""
        steps = figure or 1
        if kind in "suHf":
            self._jump(kind)
        elif self._is_away:
            return
        elif kind in "AF":
            self._go(self._row - steps, 0 if kind == "F" else self._column)
        elif kind in "BE":
            self._go(min(self._row + steps, len(self.lines) - 1), 0 if kind == "E" else self._column)
        elif kind in "CD":
            self._go(self._row, self._column + (steps if kind == "C" else -steps))
        elif kind == "G":
            self._go(self._row, steps - 1)
        elif kind == "K":
            self._erase_line(figure or 0)
        elif kind == "J" and not figure:
            self._erase_line(0)
            del self.lines[self._row + 1 :]
        elif kind == "J":
            self._below()

    def _jump(self, kind: str) -> None:
        if kind == "s":
            self._kept = self._row, self._column
        elif kind == "u" and self._kept:
            row, column = self._kept
            self._go(min(row, len(self.lines) - 1), column)
            self._kept, self._is_away = None, False
        elif kind in "Hf" and self._kept:
            self._is_away = True
        elif kind in "Hf":
            self._below()

    def _go(self, row: int, column: int = 0) -> None:
        """Not above the page, and to the right no further than a terminal is wide, or than the cursor is."""
        self._row = max(0, row)
        self._column = max(0, min(column, max(WIDTH, self._column)))

    def _erase_line(self, part: int) -> None:
        """0: from the cursor on. 1: up to it. 2: all."""
        line = self.lines[self._row]
        before = line[: self._column] if part == 0 else " " * self._column
        self.lines[self._row] = before + (line[self._column :] if part == 1 else "")

    def _below(self) -> None:
        if self.lines[-1]:
            self.lines.append("")
        self._go(len(self.lines) - 1)
