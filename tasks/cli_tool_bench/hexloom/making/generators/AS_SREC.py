"""Files printed as S-records."""

from _images import edges, failing, show


def common(draw):
    """Return a case that prints good files."""
    return show(draw, "as_srec", ("ihex", "ihex", "ti_txt", "vmem", "srec"))


def boundary(draw):
    """Return a case with a file at the edge of what is accepted."""
    return edges(draw, "as_srec")


def error(draw):
    """Return a case with a broken file or wrong usage."""
    return failing(draw, "as_srec")
