"""Files printed as Intel HEX."""

from _images import edges, failing, show


def common(draw):
    """Return a case that prints good files."""
    return show(draw, "as_ihex", ("srec", "srec", "ti_txt", "vmem", "ihex"))


def boundary(draw):
    """Return a case with a file at the edge of what is accepted."""
    return edges(draw, "as_ihex")


def error(draw):
    """Return a case with a broken file or wrong usage."""
    return failing(draw, "as_ihex")
