"""Files printed as hexdumps."""

from _images import edges, failing, show


def common(draw):
    """Return a case that prints good files."""
    return show(draw, "as_hexdump", ("srec", "ihex", "ti_txt", "vmem"))


def boundary(draw):
    """Return a case with a file at the edge of what is accepted."""
    return edges(draw, "as_hexdump")


def error(draw):
    """Return a case with a broken file or wrong usage."""
    return failing(draw, "as_hexdump")
