"""Use other words that begin a note."""

from __future__ import annotations

from _messages import Words, failing, odd, ordinary
from fuzz import Case, Draw, quote

LISTS = (
    "NOTE",
    "note,IMPORTANT",
    "BREAKING CHANGE,DEPRECATED",
    "Hinweis",
    "security fix , NB",
    "WARN(?:ING)?",
    "a b c",
    "TODO,FIXME",
    "N\\.B\\.",
)
BROKEN = ("(", "NOTE,[", "*", "(?:", ")", "x,+", "\\")


def option(draw: Draw, keywords: str) -> str:
    """Return the option in one of its forms."""
    return draw.choice(("-n {}", "--note-keywords {}", "--note-keywords={}")).format(quote(keywords))


def words(keywords: str) -> Words:
    """Return words for messages with these keywords and with the usual one."""
    known = [
        one.strip().replace("(?:ING)?", "ING").replace("\\", "") for one in keywords.split(",") if one.strip()
    ]
    return Words(notes=(*known, *known, *(one.lower() for one in known), "BREAKING CHANGE"))


def common(draw: Draw) -> Case:
    """Write notes with them."""
    keywords = draw.choice(LISTS) if draw.chance(0.6) else ",".join(draw.words(draw.integer(1, 3)))
    found = ordinary(draw, option(draw, keywords), words(keywords))
    name, text = next(iter(found.files.items()))
    note = f"{draw.choice(words(keywords).notes)}: {draw.sentence()}\n"
    return (
        found
        if draw.chance(0.4)
        else Case(found.command, {name: f"{draw.word()}: {draw.word()}\n\n{note}{text}"})
    )


def boundary(draw: Draw) -> Case:
    """Use rare lists."""
    keywords = draw.choice((*LISTS, "x", "NOTE,,", " NOTE ", "größe", "\\w+", "🙂", "-", "fix"))
    return odd(draw, option(draw, keywords), words(keywords.replace("\\w+", "any")))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, draw.choice(LISTS)), [option(draw, one) for one in BROKEN])
