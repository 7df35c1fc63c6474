"""Files printed as TI-TXT."""

from _images import edges, failing, show


def common(draw):
    """Return a case that prints good files."""
    return show(draw, "as_ti_txt", ("srec", "ihex", "vmem", "ti_txt"))


def boundary(draw):
    """Return a case with a file at the edge of what is accepted."""
    return edges(draw, "as_ti_txt")


def error(draw):
    """Return a case with a broken file or wrong usage."""
    return failing(draw, "as_ti_txt")
