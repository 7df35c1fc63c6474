"""A table of the stock."""

from pantry.stock import calc_total


def table(items):
    """The lines of the table, with the sum (calc_total) below."""
    rows = [f"{name:<20}{calc_total([(name, pieces, cents)]):>8}" for name, pieces, cents in sorted(items)]
    return [*rows, f"{'sum':<20}{calc_total(items):>8}"]
