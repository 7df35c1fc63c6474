"""Use another expression for lines that begin a field."""

from __future__ import annotations

from _messages import Words, failing, log, message, odd
from fuzz import Case, Draw, quote

FIELDS = {
    r"^--(.*?)--$": "--{}--",
    r"^\[(\w+)\]$": "[{}]",
    r"^(\w+)::$": "{}::",
    r"^# (.+)$": "# {}",
    r"^-{3} (\w+)": "--- {} more",
    r"^=(\w+)=?$": "={}=",
    r"^<(.+)>$": "<{}>",
    r"^(hash|date|author)$": "author",
    r"^%(\w+)$": "%{}",
}
BROKEN = ("(", "[", "*a", "a**", "(?<x", "[z-a]", "x{2,1}", "(?:", ")", "\\")


def option(draw: Draw, pattern: str) -> str:
    """Return the option in one of its forms."""
    return draw.choice(("-f {}", "--field-pattern {}", "--field-pattern={}")).format(quote(pattern))


def fields(draw: Draw, form: str) -> str:
    """Return fields with values of some lines."""
    lines = []
    for _ in range(draw.integer(1, 3)):
        lines.append(form.format(draw.choice((draw.word(), draw.word(), draw.word().upper(), "größe"))))
        lines += [draw.sentence() if draw.chance(0.8) else "" for _ in range(draw.integer(0, 3))]
    return "\n".join(lines)


def common(draw: Draw) -> Case:
    """Write such fields behind messages."""
    pattern, form = draw.choice(tuple(FIELDS.items()))
    words = Words(fields=(form, "-{}-"))
    messages = [f"{message(draw, words, 3)}\n{fields(draw, form)}" for _ in range(draw.integer(1, 3))]
    return log(draw, messages, option(draw, pattern))


def boundary(draw: Draw) -> Case:
    """Use rare expressions, or fields with the names of other keys."""
    pattern = draw.choice((*FIELDS, "^(.*)$", "^()$", "(x)", "^\\s+(\\w+)", "^([^a-z]+)$"))
    if draw.chance(0.6):
        name = draw.choice(("body", "header", "type", "notes", "a b", "é", "x", "revert", "constructor"))
        return log(
            draw, [f"feat: x\n\nbody\n\n-{name}-\n{draw.sentence()}\n\nlast"], option(draw, "^-(.*?)-$")
        )
    return odd(draw, option(draw, pattern), Words(fields=(FIELDS.get(pattern, "-{}-"),)))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, draw.choice(tuple(FIELDS))), [option(draw, one) for one in BROKEN])
