"""Output formats with their numbers."""

from _convert import FLAG, converted, finish, output, spoilt, target
from _images import data, image, segments, srec
from fuzz import Case


def common(draw):
    """Return a case that converts a file to a format."""
    if draw.chance(0.3):
        parts = segments(draw, limit=0xFFFFF)
        name = draw.file("s28")
        out = draw.choice(
            (
                "ihex,16,24",
                "ihex,32,24",
                "ihex,8",
                "ihex",
                "srec,16,24",
                "srec",
                "verilog_vmem",
                "hexdump",
                "ti_txt",
            )
        )
        return Case(
            finish(draw, f"{draw.tool} convert {draw.choice(FLAG)} {out} {name}", out, target(draw)),
            {name: srec(draw, parts, draw.choice((None, b"head")), parts[0][0])},
        )
    return converted(draw, output(draw))


def boundary(draw):
    """Return a case with numbers at the edge."""
    _, name, text = image(draw, parts=segments(draw, limit=0xFFFF))
    out = draw.choice(
        (
            *(
                "srec,255",
                "srec,250,32",
                "srec,32,16",
                "ihex,255",
                "ihex,256",
                "srec,0",
                "ihex,0",
                "srec,-1",
                "srec,16,8",
                "srec,16,40",
            ),
            *(
                "ihex,16,8",
                "ihex,16,20",
                "binary,0,0",
                "binary,100,50",
                "binary,-4",
                "binary,0x10,0x20",
                "ti_txt,8",
                "ti_txt,8,16",
                "hexdump,4",
            ),
            *("verilog_vmem,2", "srec,1", "ihex,1,16", "srec,16,32,9", "binary,0,40"),
        )
    )
    return Case(
        finish(draw, f"{draw.tool} convert {draw.choice(FLAG)} {out} {name}", out, "-").replace(
            " | od -An -tx1", " > o.bin"
        ),
        {name: text},
    )


def error(draw):
    """Return a case with a format that is none, or with addresses that do not fit."""
    if draw.chance(0.3):
        return spoilt(draw, f"{draw.choice(FLAG)} {draw.choice(('srec', 'ihex', 'binary', 'hexdump'))}")
    if draw.chance(0.3):
        out = draw.choice(("ihex,16,16", "srec,16,8", "ihex,32,8", "ihex,16,20", "ihex,8,16", "srec,16,40"))
        name = draw.file("s37")
        return Case(
            f"{draw.tool} convert {draw.choice(FLAG)} {out} {name} {draw.choice(('-', 'out.img'))}",
            {name: srec(draw, [(0x10000 + draw.integer(0, 0xFFFF), data(draw, 20))])},
        )
    _, name, text = image(draw)
    bad = draw.choice(
        (
            "elf",
            "srec,x",
            "ihex,8,y",
            "binary,one",
            "binary,0,two",
            "SREC",
            "hex",
            "",
            draw.word(),
            "srec,",
            "ihex,1.5",
            "ti_txt,z",
            "auto",
            "srec 16",
            "binary,0x",
        )
    )
    return Case(
        f"{draw.tool} convert {draw.choice(FLAG)} '{bad}' {name} {draw.choice(('-', 'out.img'))}",
        {name: text},
    )
