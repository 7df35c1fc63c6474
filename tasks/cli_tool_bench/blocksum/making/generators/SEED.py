"""Start from a decimal value."""

from __future__ import annotations

from _input import failing, odd
from _seeded import chained, forms, seeded
from fuzz import Case, Draw

ODD = (
    0,
    1,
    -1,
    -5,
    65520,
    65521,
    65535,
    65536,
    2147483647,
    2147483648,
    4294967295,
    4294967296,
    99999999999,
    "abc",
    "",
    "12abc",
)
MORE = (" 42", "0x10", "1e3", "2.9", "-2147483648", "007", "+8", "1_000")


def option(draw: Draw, value: object) -> str:
    """Return the option with this value."""
    return forms(draw, "-S", "--seed", value)


def common(draw: Draw) -> Case:
    """Start from a number, or from another checksum."""
    if draw.chance(0.25):
        return chained(draw, draw.choice(("", "-d", "-u")), draw.choice(("-S", "--seed")))
    return seeded(draw, option(draw, draw.integer(2, 10 ** draw.integer(1, 9))))


def boundary(draw: Draw) -> Case:
    """Start from an extreme number or from none."""
    value = draw.choice((*ODD, *MORE))
    return odd(draw, option(draw, value)) if draw.chance(0.5) else seeded(draw, option(draw, value))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, draw.integer(2, 99999)))
