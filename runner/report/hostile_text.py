"""Make text of agents, models and tasks harmless where a page renders Markdown, and keep it small."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from runner.records.base import SECRET, SHORTEST_SECRET
from runner.report.wording import CONTROL
from runner.terminal.escaping import printable

TAIL = 3
"""Divisor of a shortened text: one part in `TAIL` comes from one end of it, and the rest from the other."""
_NAME = re.compile(r"[^\w .:;/@+#·()=,'-]")
_TICKS = re.compile(r"`+")
_SECRETS = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    re.compile(  # one expression, as each costs a pass over the text
        r"\b(?:"
        r"(?:sk|pk|rk|xai|gsk|hf|glpat|github_pat|gh[pousr]|xox[abprs])[-_][\w-]{16,}"
        r"|AKIA[0-9A-Z]{16}\b"
        r"|AIza[\w-]{35}"
        r"|eyJ[\w-]{20,}(?:\.[\w-]+)*"
        r"|(?i:bearer|basic) [\w.~+/-]{16,}=*"
        r")"
    ),
)
"""Forms of keys and tokens that are secrets anywhere. Matching takes linear time, whatever the text is."""
ROOM = 30_000
"""Characters of a text that are searched: far more than a page shows, so that a page never shows half a secret."""
GAP = "\n[... left out ...]\n"


def fenced(text: str) -> str:
    """Return the text as a block of code, which Markdown shows as it is; empty text stays empty."""
    if not text:
        return ""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def harmless_name(name: str, longest: int = 120) -> str:
    """Return a name without the signs that mean something in Markdown and HTML, and not too long."""
    words = _NAME.sub("_", " ".join(name.split()))
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def shortened(text: str, longest: int, *, from_end: bool = False) -> str:
    """Return the beginning and the end of a long text, with `GAP` between them.

    `from_end` keeps more of the end, where test programs say what failed.
    """
    if len(text) <= longest:
        return text
    part = longest // TAIL
    head, tail = (part, longest - part) if from_end else (longest - part, part)
    return f"{text[:head].rstrip()}{GAP}{text[len(text) - tail :].lstrip()}"


def harmless_line(text: str) -> str:
    """Return the text as one line of at most 300 characters, without the signs of Markdown and HTML."""
    return harmless_name(text, 300)


def even_limit(lengths: Iterable[int], total: int) -> int:
    """Return the limit on each text so that all together have at most `total` characters.

    Texts that are shorter leave their share to the others.
    """
    waiting = sorted(lengths)
    for at, length in enumerate(waiting):
        share = total // (len(waiting) - at)
        if length > share:
            return share
        total -= length
    return waiting[-1] if waiting else total


class Redaction:
    """Removal of secrets from texts: values of secret variables of this process, and texts in the form of a key."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """`names` are variables that a task could read; their values are secrets whatever they are called."""
        values = {
            value: name
            for name, value in os.environ.items()
            if (SECRET.search(name) or name in names) and len(value) >= SHORTEST_SECRET
        }
        self._named = sorted(values.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str) -> str:
        """Return the text without secrets and control characters, and without its middle if it is above `ROOM`."""
        if len(text) > ROOM:
            text = shortened(text, ROOM, from_end=True)
        for value, name in self._named:
            text = text.replace(value, f"[{name}]")
        for form in _SECRETS:
            text = form.sub("[secret]", text)
        return printable(text.translate(CONTROL))
