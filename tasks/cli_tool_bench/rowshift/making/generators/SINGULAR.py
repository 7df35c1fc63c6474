"""The singular word for rows."""

from _tables import call, keyed, odd_call, pair, wrong
from fuzz import Case, Draw, quote


def common(draw: Draw) -> Case:
    """Return a comparison with a word of its own, at times with both words."""
    both = pair(draw)
    word = draw.choice(
        (draw.word(), draw.word().upper(), "tree", "people", "fresh fish", "Bäume", "%s", "entrée")
    )
    other = draw.choice(("", "", f"--plural {draw.word()}"))
    key = keyed(draw, both) if draw.chance(0.8) else ""
    return call(draw, both, f"{key} --singular {quote(word)} {other}".strip())


def boundary(draw: Draw) -> Case:
    """Return odd tables and odd words."""
    return odd_call(
        draw,
        draw.choice(
            (f"--singular={quote(draw.evil())}", f"--singular {draw.word()} --json", "--singular ''")
        ),
    )


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice((f"--singular {draw.word()}", f"--singular={draw.word()}")))
