"""Turn a program's output into the plain lines that a terminal would show (ExecutionAgent, section 2.4.4).

A terminal emulator does not fit: it has a screen of fixed size. The page here grows, so nothing wraps or scrolls away.
"""

from __future__ import annotations

import re

WIDTH = 200
"""Farthest column that the cursor can reach beyond the end of a line; programs are told the same width."""
_TOKEN = re.compile(
    r"(?:\x1b\[|\x9b)(?P<figures>[0-?]*)[ -/]*(?P<motion>[@-~]?)"  # cursor, colours, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, links and others
    r"|\x1b(?P<mark>[78])"  # saves and restores the cursor's place
    r"|\x1b[ -/]*[0-~]?"  # character sets, keypad and others
    r"|(?P<control>[\r\n\b\v\f])"
    r"|(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
)
_FIRST = re.compile(r"\d{1,4}")


def clean(raw: bytes) -> str:
    """Return the lines that remain when all is printed: without colours, titles and overwritten progress bars.

    Invalid UTF-8 is replaced; line ends and tabs are the only control characters. A screen that a program clears or
    addresses by row continues below earlier lines. A status line, drawn on a numbered row between saving and restoring
    the cursor's place, is left out.
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
    """Lines, and the place of the cursor in them."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = self._column = 0
        self._saved: tuple[int, int] | None = None
        self._is_away = False
        """The cursor is on a status line, from which it will return."""

    def put(self, text: str) -> None:
        if self._is_away:
            return
        line = self.lines[self._row]
        end = self._column + len(text)
        self.lines[self._row] = line[: self._column].ljust(self._column) + text + line[end:]
        self._column = end

    def control(self, character: str) -> None:
        """Carry out a control character: carriage return, backspace, or any other as a line feed."""
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
        """Carry out a sequence of ECMA-48; many, such as colours, do nothing."""
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
            self._saved = self._row, self._column
        elif kind == "u" and self._saved:
            row, column = self._saved
            self._go(min(row, len(self.lines) - 1), column)
            self._saved, self._is_away = None, False
        elif kind in "Hf" and self._saved:
            self._is_away = True
        elif kind in "Hf":
            self._below()

    def _go(self, row: int, column: int = 0) -> None:
        """Move the cursor, but not above the page, and not beyond `WIDTH` unless it is there already."""
        self._row = max(0, row)
        self._column = max(0, min(column, max(WIDTH, self._column)))

    def _erase_line(self, part: int) -> None:
        """Erase from the cursor on (0), up to the cursor (1), or all (2)."""
        line = self.lines[self._row]
        before = line[: self._column] if part == 0 else " " * self._column
        self.lines[self._row] = before + (line[self._column :] if part == 1 else "")

    def _below(self) -> None:
        if self.lines[-1]:
            self.lines.append("")
        self._go(len(self.lines) - 1)
