"""Comparisons with a column that identifies rows."""

from _tables import call, keyed, odd_call, pair, wrong
from fuzz import Case, Draw, quote


def common(draw: Draw) -> Case:
    """Return a comparison by a key, at times by a column that is not unique."""
    both = pair(draw)
    if draw.chance(0.15):
        both.key = draw.choice(both.columns())
    return call(draw, both, keyed(draw, both))


def boundary(draw: Draw) -> Case:
    """Return a comparison of odd tables, or with an odd key."""
    if draw.chance(0.5):
        return odd_call(draw, "")
    both = pair(draw, odd=True)
    name = draw.choice(("a b", "naïve", "x.y", "1", "the key", "日本", '"q"', "KEY"))
    for rows in (both.old, both.new):
        rows[:] = [
            {name if column == both.key else column: cell for column, cell in row.items()} for row in rows
        ]
    return call(draw, both, f"--key {quote(name)}")


def error(draw: Draw) -> Case:
    """Return a call with a key that must fail."""
    return wrong(draw, draw.choice(("--key id", "--key code", "--key=id")))
