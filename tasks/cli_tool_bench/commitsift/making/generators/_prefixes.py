"""Prefixes of issues, shared by the generators of two options."""

from __future__ import annotations

from _messages import Words
from fuzz import Draw, quote

LISTS = (
    "gh-",
    "GH-",
    "#,gh-",
    "JIRA-",
    "jira-,#",
    "!",
    "ABC-,abc_",
    "issue ,#",
    "no\\.",
    "[A-Z]+-",
    "Nr, #",
    "PROJ-",
    "~,!,#",
    "ü",
)
BROKEN = ("(", "#,(?", "*", "(?:", ")", "x,+", "\\")


def option(draw: Draw, prefixes: str) -> str:
    """Return the option in one of its forms."""
    return draw.choice(("-i {}", "--issue-prefixes {}", "--issue-prefixes={}")).format(quote(prefixes))


def words(prefixes: str) -> Words:
    """Return words for messages with these prefixes, in both cases, and with the usual one."""
    known = [
        one.strip().replace("\\", "").replace("[A-Z]+", "Key") for one in prefixes.split(",") if one.strip()
    ]
    return Words(prefixes=(*known, *known, *(one.swapcase() for one in known), "#"))
