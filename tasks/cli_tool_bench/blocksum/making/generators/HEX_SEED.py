"""Start from a hexadecimal value."""

from __future__ import annotations

from _input import failing, odd
from _seeded import chained, forms, seeded
from fuzz import Case, Draw

ODD = (
    "0",
    "1",
    "-1",
    "ffffffff",
    "FFFFFFFF",
    "100000000",
    "0x",
    "xyz",
    "",
    "12g4",
    "fff1",
    "fff0",
    "ffff",
    "10000",
    "fff1fff1",
)


def option(draw: Draw, value: str) -> str:
    """Return the option with this value."""
    return forms(draw, "-H", "--hex-seed", value)


def number(draw: Draw) -> str:
    """Return a hexadecimal number of up to eight digits."""
    digits = draw.letters(draw.integer(1, 8), "0123456789abcdef").lstrip("0") or "1f"
    return draw.choice((digits, digits.upper(), f"0x{digits}"))


def common(draw: Draw) -> Case:
    """Start from a number, or from another checksum."""
    if draw.chance(0.25):
        return chained(
            draw, draw.choice(("-x", "-X", "--hex", "-F '%#x'")), draw.choice(("-H", "--hex-seed"))
        )
    return seeded(draw, option(draw, number(draw)))


def boundary(draw: Draw) -> Case:
    """Start from an extreme number or from none."""
    value = draw.choice(ODD)
    return odd(draw, option(draw, value)) if draw.chance(0.5) else seeded(draw, option(draw, value))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, number(draw)))
