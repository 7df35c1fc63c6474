"""Use another expression for messages that take others back."""

from __future__ import annotations

from _messages import failing, log, message, odd, reverting
from fuzz import Case, Draw, quote

REVERTS = {
    r"^revert:\s([\s\S]*?)\s*This reverts commit (\w*)\.": "revert: {text}\n\nThis reverts commit {commit}.",
    r"^Undo (\w+): (.*)": "Undo {commit}: {text}",
    r"^Back out \"(.*)\" \((\w+)\)": 'Back out "{text}" ({commit})',
    r"reverts? (\w{{7,40}})": "fix: {text}\n\nThis reverts {commit}",
    r"^(.*)\n\n.*backs out ([0-9a-f]+)": "{text}\n\nIt backs out {commit}",
    r"([0-9a-f]{{12}})": "drop: {text}\n\nBad: {commit}",
}
BROKEN = ("(", "[", "*a", "a**", "(?<x", "[z-a]", "x{2,1}", "(?:", ")", "\\")


def option(draw: Draw, pattern: str) -> str:
    """Return the option in one of its forms."""
    return draw.choice(("--revert-pattern {}", "--revert-pattern={}")).format(quote(pattern))


def undoing(draw: Draw, form: str) -> str:
    """Return a message of this form."""
    commit = draw.letters(draw.choice((7, 12, 40)), "0123456789abcdef")
    text = f"{draw.choice(('feat', 'fix'))}: {' '.join(draw.words(2))}"
    return form.format(text=text, commit=commit) + draw.choice(
        ("", "", "\n\ncloses #3", f"\n{draw.sentence()}")
    )


def common(draw: Draw) -> Case:
    """Read such messages, and others."""
    pattern, form = draw.choice(tuple(REVERTS.items()))
    pattern = pattern.replace("{{", "{").replace("}}", "}")
    names = draw.choice(("", "", " --revert-correspondence 'what, commit'", " --revert-correspondence hash"))
    others = [message(draw, lines=1), reverting(draw), undoing(draw, form)]
    messages = [undoing(draw, form), *draw.sample(others, draw.integer(0, 2))]
    return log(draw, messages, option(draw, pattern) + names)


def boundary(draw: Draw) -> Case:
    """Use an expression that matches everything or has no groups."""
    pattern = draw.choice(
        (".", "^", "(.)(.)(.)", "([\\s\\S]*)", "(\\w+)$", "x", "()", "(?<a>\\w)", "(é)|(.)")
    )
    return odd(draw, option(draw, pattern))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, "^Undo (\\w+)"), [option(draw, one) for one in BROKEN])
