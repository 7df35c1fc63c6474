"""Checks without thresholds: all lines must be covered."""

from _reports import call, odd, report, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a check of a report that passes, or whose failure the shell shows."""
    good = draw.chance(0.35)
    found = report(draw, good=good, branches=draw.chance(0.7))
    if good and draw.chance(0.4):
        for numbers in found["files"].values():
            numbers["summary"]["covered_lines"] //= 2
    tail = draw.choice(('; echo "status $?"', " || echo refused", " > out.txt; echo $? > status", "; true"))
    return call(draw, found, "", named=0, tail="" if good else tail)


def boundary(draw: Draw) -> Case:
    """Return a check of an odd report."""
    return odd(draw, "")


def error(draw: Draw) -> Case:
    """Return a check that must fail."""
    return wrong(draw, "")
