"""Additional fields."""

from _tables import Pair, call, keyed, odd_call, pair, wrong
from fuzz import Case, Draw, quote


def field(draw: Draw, both: Pair) -> str:
    """Return the option with a name and a format string."""
    one, two = (draw.choice(both.columns()) for _ in range(2))
    text = draw.choice(
        (
            f"https://example.org/{{{one}}}",
            f"{{{one}}} / {{{two}}}",
            f"[{{{one}:>8}}]",
            f"[{{{one}:<6}}|{{{two}:^9}}]",
            f"{{{one}!r}}",
            f"{{{{literal}}}} {{{one}}}",
            draw.word(),
        )
    )
    return f"--extra {quote(draw.choice((draw.word(), 'Link', 'see also')))} {quote(text)}"


def common(draw: Draw) -> Case:
    """Return a comparison with one additional field or two."""
    both = pair(draw)
    key = keyed(draw, both) if draw.chance(0.85) else ""
    fields = " ".join(field(draw, both) for _ in range(draw.choice((1, 1, 2))))
    return call(
        draw, both, f"{key} {fields}" + draw.choice(("", "", " --show-unchanged", " --plural things"))
    )


def boundary(draw: Draw) -> Case:
    """Return odd tables and odd format strings."""
    extra = draw.choice(
        (
            "'' ''",
            "a '{id:>3}'",
            "x '{{}}'",
            "n '{absent}'",
            "n '{}'",
            "日本 '→ {id}'",
            "z '{id!r:>12}'",
            "q '{'",
        )
    )
    return odd_call(draw, f"--extra {extra}")


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, f"--extra {draw.word()} {draw.choice(('text', draw.word()))}")
