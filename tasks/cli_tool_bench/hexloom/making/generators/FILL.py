"""Gaps between segments."""

from _images import EXTENSION, broken, edges, ihex, image, segments, srec, ti_txt, usage_error, vmem
from fuzz import Case


def gappy(draw):
    """Return the name and the text of a file with gaps."""
    parts = segments(draw, draw.integer(2, 4))
    kind = draw.choice(("srec", "ihex", "ti_txt"))
    text = {"srec": srec, "ihex": ihex, "ti_txt": ti_txt}[kind](draw, parts)
    return draw.file(EXTENSION[kind]), text


def options(draw):
    """Return options, at times none."""
    made = []
    if draw.chance(0.6):
        made.append(
            f"{draw.choice(('-v', '--value'))} {draw.choice((0, 1, 255, 170, '0x55', '0b11', '0o17', draw.integer(0, 255)))}"
        )
    if draw.chance(0.5):
        made.append(
            f"{draw.choice(('-m', '--max-words'))} {draw.choice((0, 1, 2, 4, 8, 15, 16, 30, 31, 100, '0x20', 1000))}"
        )
    return "".join(f"{one} " for one in made)


def common(draw):
    """Return a case that fills gaps, in place, in another file, or on standard output."""
    name, text = gappy(draw)
    out = draw.choice(("", "", " -", " -", " filled.out", f" {name}"))
    return Case(f"{draw.tool} fill {options(draw)}{name}{out}", {name: text})


def boundary(draw):
    """Return a case without gaps, or with a file at the edge of what is accepted."""
    if draw.chance(0.3):
        _, name, text = image(draw, ("srec", "ihex", "ti_txt"), parts=segments(draw, 1))
        return Case(f"{draw.tool} fill {options(draw)}{name}", {name: text})
    case = edges(draw, f"fill {options(draw)}".strip())
    return Case(case.command + draw.choice((" -", " -", "")), case.files)


def error(draw):
    """Return a case with an invalid value, a broken file, or a format that cannot be filled."""
    way = draw.integer(0, 4)
    name, text = gappy(draw)
    if way == 0:
        return Case(
            f"{draw.tool} fill -v {draw.choice(('256', '-1', 'x', '1.5', '0x100', '1e2', '010'))} {name}",
            {name: text},
        )
    if way == 1:
        return Case(
            f"{draw.tool} fill --max-words {draw.choice(('-1', 'all', '', '2.5', '-16'))} {name}",
            {name: text},
        )
    if way == 2:
        bad, text = broken(draw)
        return Case(
            f"{draw.tool} fill {options(draw)}{bad}{draw.choice(('', ' -', ' out.hex'))}", {bad: text}
        )
    if way == 3:
        return Case(
            f"{draw.tool} fill mem.vmem {draw.choice(('-', 'out.vmem', ''))}".strip(),
            {"mem.vmem": vmem(draw, segments(draw))},
        )
    case = usage_error(draw, "fill")
    return (
        case
        if not case.command.endswith("missing.hex")
        else Case(f"{draw.tool} fill {name} - extra", {name: text})
    )
