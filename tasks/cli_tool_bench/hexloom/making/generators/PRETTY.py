"""Coloured records with remarks."""

from _images import altered, edges, failing, image, vmem, segments
from fuzz import Case, quote

KINDS = ("srec", "srec", "ihex", "ihex", "ti_txt")


def common(draw):
    """Return a case that colours a file, or standard input."""
    _, name, text = image(draw, KINDS)
    way = draw.choice(
        (
            "{tool} pretty {name}",
            "{tool} pretty {name}",
            "{tool} pretty < {name}",
            "cat {name} | {tool} pretty",
            "{tool} pretty {name} | grep -c data",
            "{tool} pretty {name} > seen.txt",
        )
    )
    if "grep" in way and draw.chance(0.7):
        way = "{tool} pretty {name} | tail -n 2"
    return Case(way.format(tool=draw.tool, name=quote(name)), {name: text})


def boundary(draw):
    """Return a case with a file at the edge of what is accepted; records behind the first one are not checked."""
    if draw.chance(0.4):
        _, name, text = image(draw, KINDS)
        extra = draw.choice(
            (
                "S9\n",
                ":00000001FF\n",
                "S1\n",
                "S70500000000FA\n",
                ":020000040001F9\n",
                ":0400000300003800C1\n",
                "q\n",
                "\n",
                "S804000000FB\n",
            )
        )
        return Case(
            f"{draw.tool} pretty {name}", {name: altered(draw, text) if draw.chance(0.3) else text + extra}
        )
    return edges(draw, "pretty")


def error(draw):
    """Return a case with a file that is none of the three formats, or wrong usage."""
    if draw.chance(0.3):
        name = draw.file("vmem")
        return Case(f"{draw.tool} pretty {name}", {name: vmem(draw, segments(draw))})
    if draw.chance(0.2):
        _, name, text = image(draw, ("srec", "ihex"))
        return Case(f"{draw.tool} pretty {name} {name}", {name: text})
    return failing(draw, "pretty")
