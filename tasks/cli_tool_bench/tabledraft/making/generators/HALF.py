"""Enums as check clauses."""

from _schemas import call, odd_call, others, schema, wrong
from fuzz import Case, Draw

FORMS = ("-h", "--half", "-f -h", "--full --half", "-ht", "-h -i")


def common(draw: Draw) -> Case:
    """Return a conversion of a schema with enums; the last of opposite flags wins."""
    form = draw.choice((*FORMS, "-h -f", "-hf"))
    more = others(draw, "-f", "-h", "-t", "-i")
    found = schema(draw, sound=draw.chance(0.6), enums=draw.integer(1, 2))
    return call(draw, found.text, f"{form} {more}".strip())


def boundary(draw: Draw) -> Case:
    """Return the conversion of an odd source."""
    return odd_call(draw, draw.choice(("-h", "--half", "-h -f -h")))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(("-h", "--half")))
