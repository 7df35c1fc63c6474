"""Use other words that refer to issues."""

from __future__ import annotations

from _messages import Words, failing, odd, ordinary
from fuzz import Case, Draw, quote

LISTS = (
    *(
        "closes",
        "implements,solves",
        "Refs",
        "see also,see",
        "part of",
        "ends, kills ,stops",
        "close,closes",
        "closes,close",
    ),
    *("re", "fix(?:es)?", "erledigt,behebt", "löst", "addresses,fixes,completes"),
)
BROKEN = ("(", "a,[", "*", "x,(?:", ")", "a)b,c", "+", "\\")


def option(draw: Draw, actions: str) -> str:
    """Return the option in one of its forms."""
    form = draw.choice(("-r {}", "--reference-actions {}", "--reference-actions={}"))
    return form.format(quote(actions))


def words(draw: Draw, actions: str) -> Words:
    """Return words for messages with these actions and with some usual ones."""
    known = [one.strip() for one in actions.replace("(?:es)?", "es").split(",") if one.strip()]
    return Words(
        actions=(*known, *known, *(one.upper() for one in known), draw.choice(("closes", "fixes")), "refs")
    )


def common(draw: Draw) -> Case:
    """Refer to issues with them."""
    actions = draw.choice(LISTS) if draw.chance(0.6) else ",".join(draw.words(draw.integer(1, 3)))
    return ordinary(draw, option(draw, actions), words(draw, actions))


def boundary(draw: Draw) -> Case:
    """Use rare lists."""
    actions = draw.choice((*LISTS, "a", "#", "closes,,", " closes ", "\\w+", "o", "🙂"))
    return odd(draw, option(draw, actions), words(draw, actions.replace("\\w+", "any")))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, draw.choice(LISTS)), [option(draw, one) for one in BROKEN])
