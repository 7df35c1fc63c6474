"""Thresholds of lines that are not covered."""

from _reports import call, odd, report, write, wrong
from fuzz import Case, Draw

OPTION = "--number-missing-lines-max"


def common(draw: Draw) -> Case:
    """Return a check with a threshold near the number of missing lines."""
    found = report(draw, branches=draw.chance(0.7))
    totals = found["totals"]
    missing = totals["num_statements"] - totals["covered_lines"]
    limit = missing + draw.choice((0, 0, 1, 10, -1, -1, -5))
    words = [
        write(draw, OPTION, str(limit)),
        *([write(draw, "--line-coverage-min", draw.choice(("0", "1", "0.0")))] if draw.chance(0.8) else []),
    ]
    draw.random.shuffle(words)
    sure = limit >= missing and len(words) == 2
    tail = draw.choice(('; echo "status $?"', " || echo refused", " > out.txt; echo $? > status"))
    return call(
        draw,
        found,
        " ".join(words),
        tail="" if sure and totals["covered_lines"] > totals["num_statements"] / 50 else tail,
    )


def boundary(draw: Draw) -> Case:
    """Return a check of an odd report or with an odd threshold."""
    return odd(draw, OPTION)


def error(draw: Draw) -> Case:
    """Return a check that must fail."""
    if draw.chance(0.3):
        found = report(draw)
        found["totals"]["num_statements"] += 3
        return call(draw, found, f"{OPTION} {draw.choice(('2', '1', '0', '-1'))}")
    return wrong(draw, OPTION)
