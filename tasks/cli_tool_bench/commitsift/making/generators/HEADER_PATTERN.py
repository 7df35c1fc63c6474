"""Use another expression for headers."""

from __future__ import annotations

from _messages import failing, log, message, odd
from fuzz import Case, Draw, quote

HEADERS = {
    r"^(\w*)(?:\(([\w$.\-*/ ]*)\))?!?: (.*)$": "{kind}({word})!: {text}",
    r"^\[(\w+)\] (\w+) (.*)$": "[{kind}] {word} {text}",
    r"^(\w+)/(\w+) (.*)$": "{kind}/{word} {text}",
    r"^(:\w+:) (.+)$": ":{word}: {text}",
    r"^(\w*): (.*)$": "{kind}: {text}",
    r"(\d+)": "{text} {number} {word}",
    r"^(?:(\w+)-)?(\d+)\s+(.*)$": "{word}-{number} {text}",
    r"^(.*?) - (.*)$": "{word} - {text}",
    r"^([^:]+):\s*([^(]+)(?:\((.+)\))?$": "{kind}: {text} ({word})",
    r"^(feat|fix)\b(.*)": "{kind} {text}",
    r"\((\w+)\)": "{text} ({word}) ({kind})",
}
BROKEN = ("(", "[", "*a", "a**", "(?<x", "[z-a]", "x{2,1}", "(?:", ")", "\\")


def option(draw: Draw, pattern: str) -> str:
    """Return the option in one of its forms."""
    return draw.choice(("-p {}", "--header-pattern {}", "--header-pattern={}")).format(quote(pattern))


def header(draw: Draw, form: str) -> str:
    """Return a header of this form, or of another one."""
    form = form if draw.chance(0.75) else draw.choice(tuple(HEADERS.values()))
    text = " ".join(draw.words(draw.integer(1, 4)))
    return form.format(
        kind=draw.choice(("feat", "fix", "docs")), word=draw.word(), text=text, number=draw.integer(1, 999)
    )


def common(draw: Draw) -> Case:
    """Split headers of that form."""
    pattern, form = draw.choice(tuple(HEADERS.items()))
    names = (
        draw.choice(("", "", " -c 'kind,what'", " -c type,scope,subject,extra")) if draw.chance(0.6) else ""
    )
    messages = [
        header(draw, form) + message(draw, lines=2).partition("\n")[2].join(("\n", ""))
        for _ in range(draw.integer(1, 3))
    ]
    return log(draw, messages, option(draw, pattern) + names)


def boundary(draw: Draw) -> Case:
    """Use an expression that matches everything, nothing, or has no groups."""
    pattern = draw.choice(
        (
            ".",
            "^$",
            "()()",
            "(.)",
            "x^",
            "(.*)",
            "(?<a>.)(?<b>.)",
            "é",
            "^\\S+",
            "(a)|(b)|(c)",
            "([^\\x00-\\x7f])",
        )
    )
    return odd(draw, option(draw, pattern))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, "^(\\w+) (.*)$"), [option(draw, one) for one in BROKEN])
