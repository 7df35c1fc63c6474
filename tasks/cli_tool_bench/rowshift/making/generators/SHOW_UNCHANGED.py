"""Fields that did not change."""

from _tables import call, keyed, odd_call, pair, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a comparison that shows unchanged fields."""
    both = pair(draw, least=2, odd=draw.chance(0.2))
    more = draw.choice(
        ("", "", "", "--json", f"--extra note '<{{{both.key}}}>'", "--singular item --plural items")
    )
    return call(draw, both, f"{keyed(draw, both)} --show-unchanged {more}")


def boundary(draw: Draw) -> Case:
    """Return a comparison of odd tables, at times without a key."""
    return odd_call(draw, "--show-unchanged", key=draw.chance(0.8))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(("--show-unchanged", "--show-unchanged", "--show-unchanged=yes")))
