"""IF NOT EXISTS for tables."""

from _schemas import call, odd_call, others, schema, wrong
from fuzz import Case, Draw

FORMS = ("-t", "--if-table-exists", "-ti", "-it", "-th", "-t -f")


def common(draw: Draw) -> Case:
    """Return a conversion; most schemas have enums and indexes."""
    found = schema(draw, sound=draw.chance(0.6), index=draw.chance(0.5))
    form = draw.choice(FORMS)
    return call(draw, found.text, f"{form} {others(draw, '-t', '-i', '-f')}".strip())


def boundary(draw: Draw) -> Case:
    """Return the conversion of an odd source."""
    return odd_call(draw, draw.choice(FORMS[:4]))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(FORMS[:4]))
