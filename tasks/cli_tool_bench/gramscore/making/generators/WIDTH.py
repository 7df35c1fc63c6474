"""Numbers of decimals."""

from _segments import call, corpus, odd, wrong
from fuzz import Case, Draw


def option(draw: Draw) -> str:
    """Return the option with a number of decimals, at times with a metric."""
    width = draw.choice((0, 1, 2, 3, 4, 6))
    name = draw.choice((f"-w {width}", f"--width {width}", f"--width={width}", f"-w{width}"))
    return name + draw.choice(("", "", "", " -m chrf", " -m ter", " -m bleu chrf ter", " -sl"))


def common(draw: Draw) -> Case:
    """Return a usual score with the option."""
    return call(draw, option(draw), corpus(draw, low=2))


def boundary(draw: Draw) -> Case:
    """Return a score of odd segments with the option."""
    return odd(draw, draw.choice((option(draw), "-w 12", "-w 0 -m chrf ter", "-w -1", "-w 1 -m ter")))


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, draw.choice(("-w 2", "-w 3", "--width 0")))
