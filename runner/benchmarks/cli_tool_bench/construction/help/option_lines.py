"""Read single lines of help pages that define options, whatever library printed them.

All scanning is linear in the length of the text, which a hostile tool may choose.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_LINE = 2_000
"""Longest line that is read, in characters."""
NAME = re.compile(r"--\[no-\][^\W_][\w-]*|--?[^\W_][\w?@#%$!.:+-]*|-[?@#%$!+](?![\w-])")
_SEPARATOR = re.compile(r", {0,40}(?=-)| ?[/|] ?(?=-)| or (?=-)| (?=-)")
_WIDE_SEPARATOR = re.compile(r",? {1,80}(?=-)")
_WORD = re.compile(r"[^\s,\[\]{}()<>]+(?:,[^\s,\[\]{}()<>]+)*(?:,\.\.\.)?")
_CLOSING = {"[": "]", "{": "}", "<": ">", "(": ")"}
_NOT_AFTER = tuple(".,;)'\"`!?*")
"""Characters that follow an option in prose, and never in a table."""
_STANDARD = frozenset({"--help", "--version", "-help", "-version"})
SHORT_STANDARD = frozenset({"-h", "-H", "-?", "-V", "-v"})
_STANDARD_ABOUT = re.compile(r"(?:\W|^)(?:help|usage|version)(?:\W|$)", re.IGNORECASE)


class OptionLine(NamedTuple):
    """One definition of a flag or option."""

    names: tuple[str, ...]
    opposite: tuple[str, ...]
    """Names that switch it off: `--no-color` of `--color / --no-color`."""
    value: str
    """Placeholder of the value as printed, without `=`; empty for a flag, `...` for a flag that may be repeated."""
    about: str
    indent: int
    column: int
    """Position of `about` in the line; 0 if there is no description."""
    sure: bool
    """True if the line certainly defines an option. False if only one space separates the description, as in prose."""


def read_option_line(line: str, *, columns: bool = False) -> OptionLine | None:
    """Return the definition in a line, or None. `columns`: names and values are in columns of their own (Typer)."""
    if len(line) > LONGEST_LINE:
        return None
    position = indent = len(line) - len(line.lstrip(" "))
    names: list[str] = []
    opposite: list[str] = []
    value, target = "", names
    while name := NAME.match(line, position):
        position = _add_name(name[0], target, opposite, name.end())
        if line.startswith("...", position):  # it may be repeated
            found, position = "...", position + 3
        else:
            found, position = _read_value(line, position, columns=columns)
        value = value or found
        separator = (_WIDE_SEPARATOR if columns else _SEPARATOR).match(line, position)
        if not separator:
            break
        position = separator.end()
        switches = separator[0] == " / " or line.startswith("--no-", position)
        target = opposite if "/" in separator[0] and switches else target
    if not names or names[-1].endswith("-") or not (about := _read_about(line, position)):
        return None
    text, sure = about
    opposite += [name for name in names if name.startswith("--no-") and f"--{name[5:]}" in names]
    names = [name for name in names if name not in opposite]
    column = len(line.rstrip()) - len(text) if text else 0
    return OptionLine(
        tuple(dict.fromkeys(names)), tuple(dict.fromkeys(opposite)), value, text, indent, column, sure
    )


def is_standard(names: tuple[str, ...], about: str) -> bool:
    """Return whether a flag shows the help or the version. No task is about these."""
    shorts = _STANDARD.isdisjoint(names) and SHORT_STANDARD.issuperset(names)
    return not _STANDARD.isdisjoint(names) or (shorts and bool(_STANDARD_ABOUT.search(about)))


def shows(page: str, word: str) -> bool:
    """Return whether a page contains a flag or a command literally, as a word of its own."""
    words = (
        re.sub(r"--\[no-\](?=\w)", "--no-", page)
        if word.startswith("--no-")
        else page.replace("--[no-]", "--")
    )
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", words) is not None


def split_value(value: str) -> list[str]:
    """Return the words of a placeholder: `N [N ...]` has two."""
    words, position = [], 0
    while position < len(value):
        end = max(_bracket_end(value, position) or _word_end(value, position), position + 1)
        words.append(value[position:end])
        position = end + 1 if value[end : end + 1] == " " else end
    return [word for word in words if word.strip()]


def _add_name(name: str, target: list[str], opposite: list[str], end: int) -> int:
    """Add a name to its list, and return where it ends in the line."""
    if name.startswith("--[no-]"):
        target.append(f"--{name[7:]}")
        opposite.append(f"--no-{name[7:]}")
        return end
    plain = name.rstrip(".:")
    target.append(plain)
    return end - len(name) + len(plain)


def _read_about(line: str, position: int) -> tuple[str, bool] | None:
    """Return the description after names and values, and whether it certainly is one; None if the line is prose."""
    rest = line[position:]
    text = rest.strip()
    if text in {"", ","} or rest.startswith("  "):
        return text.removeprefix(","), True
    if rest.startswith((":", " :", " - ", " – ", " = ")):
        return text.lstrip(":-–= "), True
    if rest.startswith(_NOT_AFTER) or not rest.startswith(" "):
        return None
    return text, False


def _read_value(line: str, position: int, *, columns: bool) -> tuple[str, int]:
    """Return the placeholder that follows a name, and the position after it."""
    if line.startswith("[=", position) and (end := _bracket_end(line, position)):
        return line[position + 2 : end - 1], end
    attached = line.startswith("=", position)
    start = position + 1 if attached else position
    if not attached and line.startswith(" ", start):
        spaces = len(line) - position - len(line[position:].lstrip(" "))
        if spaces > 1 and not columns:
            return "", position
        start += spaces
    elif not attached and line[start : start + 1] not in {"<", "[", "{"}:
        return "", position
    end = _value_end(line, start, attached=attached, columns=columns)
    return (line[start:end], end) if end > start else ("", position)


def _value_end(line: str, start: int, *, attached: bool, columns: bool) -> int:
    """Return the position after all words of a placeholder that begins at `start`."""
    end = _placeholder_end(line, start, attached=attached, columns=columns)
    while end > start and end < len(line):
        more = 0
        if line.startswith("...", end):
            more = end + 3
        elif line[end] in "[<{":
            more = _bracket_end(line, end)
        elif line[end] in ":/= ":
            more = _placeholder_end(line, end + 1, attached=line[end] != " ", later=True)
        elif line[end - 1] == "]":  # `=[host:]port`
            end, more = _word_end(line, end), 0
        if more <= end + 1:
            break
        end = more
    return end


def _placeholder_end(
    line: str, start: int, *, attached: bool = False, columns: bool = False, later: bool = False
) -> int:
    """Return the position after one word of a placeholder, or `start` if there is none."""
    if line.startswith("...", start):
        return start + 3
    if end := _bracket_end(line, start):
        plain = line[start] != "(" or "|" in line[start:end]
        return end if plain and not (columns and line[start] == "[" and "|" not in line[start:end]) else start
    end = _word_end(line, start)
    word = line[start:end]
    if not word or word.startswith("-"):
        return start
    head = word.partition("=")[0]
    if attached or (head.upper() == head and any(map(str.isalpha, head))):
        return end
    alone = end == len(line.rstrip()) or line.startswith(("  ", ", -"), end)
    return end if alone and not later and not columns else start


def _word_end(line: str, start: int) -> int:
    word = _WORD.match(line, start)
    return word.end() if word else start


def _bracket_end(line: str, start: int) -> int:
    """Return the position after the bracket that opens at `start` and its content; 0 if there is no such bracket."""
    opening = line[start : start + 1]
    if opening not in _CLOSING or not opening:
        return 0
    depth = 0
    for place in range(start, min(len(line), start + LONGEST_LINE)):
        depth += (line[place] == opening) - (line[place] == _CLOSING[opening])
        if not depth:
            return place + 1
    return 0
