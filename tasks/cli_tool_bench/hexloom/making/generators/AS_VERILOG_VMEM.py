"""Files printed as Verilog VMEM."""

from _images import edges, failing, show


def common(draw):
    """Return a case that prints good files."""
    return show(draw, "as_verilog_vmem", ("srec", "srec", "ihex", "ti_txt", "vmem"))


def boundary(draw):
    """Return a case with a file at the edge of what is accepted."""
    return edges(draw, "as_verilog_vmem")


def error(draw):
    """Return a case with a broken file or wrong usage."""
    return failing(draw, "as_verilog_vmem")
