"""Conversions without an option that matters."""

from _schemas import call, odd_call, schema, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return the conversion of a schema."""
    return call(
        draw,
        schema(draw, sound=draw.chance(0.5)).text,
        draw.choice(("", "", "", "-p", "-f", "--print --full")),
    )


def boundary(draw: Draw) -> Case:
    """Return the conversion of an odd source."""
    return odd_call(draw, "")


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, "")
