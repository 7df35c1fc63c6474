"""Differences as JSON."""

from _tables import call, keyed, odd_call, pair, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a comparison whose outcome is JSON."""
    typed = draw.chance(0.4)
    both = pair(draw, typed=typed, odd=draw.chance(0.3))
    options = [
        keyed(draw, both) if draw.chance(0.85) else "",
        "--json",
        draw.choice(("", "", "--show-unchanged")),
    ]
    return call(
        draw, both, " ".join([*options, *(["--format json"] if typed else [])]), "json" if typed else ""
    )


def boundary(draw: Draw) -> Case:
    """Return a comparison of odd tables."""
    return odd_call(
        draw, draw.choice(("--json", "--json", "--json --show-unchanged", "--json --singular a --plural b"))
    )


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, "--json")
