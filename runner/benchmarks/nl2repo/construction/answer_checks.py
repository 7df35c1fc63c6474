"""Check a model's answers for a document. Whatever the model was talked into, only plain Markdown passes."""

from __future__ import annotations

import ast
import re

from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.sources.answers import fenced

SHORTEST, LONGEST = 20, 8_000
"""Bounds on the length of an answer, in characters."""
MOST_QUOTED = 3
"""Most lines of code, blank ones aside, that an answer may repeat in a row, since a document describes the code."""
_HEADING = re.compile(r"^ {0,3}#{1,6}(\s|$)|^\s{0,3}(=+|-{3,})\s*$", re.MULTILINE)
_HTML = re.compile(r"<[!/?A-Za-z][^>\n]*>")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def checked_prose(answer: str) -> str:
    """Return an answer of plain Markdown, without a fence around all of it. Raises `ValueError` with its fault."""
    label, inner = fenced(answer)
    whole = answer.strip().startswith("```") and answer.strip().endswith("```")
    text = (inner if whole and label in ("", "markdown", "md", "text") else answer).strip()
    if not SHORTEST <= len(text) <= LONGEST:
        raise ValueError(f"it has {len(text)} characters; {SHORTEST} to {LONGEST} are allowed")
    if not all(character.isprintable() or character in "\n\t" for character in text):
        raise ValueError("it holds control characters")
    if text.count("```") % 2:
        raise ValueError("a block of code in it never ends")
    prose = _CODE.sub("", text)
    if _HEADING.search(prose):
        raise ValueError("it has a heading; write paragraphs and lists only")
    if _HTML.search(prose):
        raise ValueError("it has HTML outside of code; write plain Markdown, with code in backticks")
    return f"{text}\n"


def checked_entry(answer: str, entry: Entry, source: str) -> str:
    """Return the description of an entry. Raises `ValueError` if it leaves a parameter out, or quotes `source`.

    `source` is the file that defines the entry; empty for a constant, whose values may be given as they stand.
    """
    text = checked_prose(answer)
    for name in entry.parameters or ():
        if not re.search(rf"(?<!\w){re.escape(name.lstrip('*'))}(?!\w)", text):
            raise ValueError(f"it says nothing about the parameter {name.lstrip('*')}")
    if (longest := _quoted(text, source)) > MOST_QUOTED:
        raise ValueError(f"it repeats {longest} lines of the code in a row; describe them in your own words")
    return text


def checked_examples(answer: str) -> str:
    """Return the code of examples. Raises `ValueError` if it is not Python."""
    label, inner = fenced(answer)
    text = inner if label in ("", "python", "py") and inner else answer
    if not text.strip() or len(text) > LONGEST or not all(c.isprintable() or c in "\n\t" for c in text):
        raise ValueError(f"a block of Python of at most {LONGEST} printable characters is needed")
    if "```" in text:
        raise ValueError("there must be one block of Python, and nothing else")
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"it is not Python: {error}") from error
    return f"{text.strip()}\n"


def _quoted(text: str, source: str) -> int:
    """Return the largest number of lines in a row that a text repeats from a source. Blank lines do not count."""
    lines, code = _lines(text), _lines(source)
    starts: dict[str, list[int]] = {}
    for at, line in enumerate(code):
        starts.setdefault(line, []).append(at)
    longest = 0
    for at, line in enumerate(lines):
        for start in starts.get(line, ()):
            length = 0
            while lines[at + length : at + length + 1] == code[start + length : start + length + 1] != []:
                length += 1
            longest = max(longest, length)
    return longest


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
