"""What the two generators of conversions share."""

from _images import broken, image, segments
from fuzz import Case

OUTPUTS = ("srec", "ihex", "ti_txt", "verilog_vmem", "hexdump", "binary")
FLAG = ("-o", "--output-format")


def output(draw, top=0xFFFF):
    """Return an output format, at times with numbers, that fits addresses up to `top`."""
    kind = draw.choice(OUTPUTS)
    if kind == "srec" and draw.chance(0.6):
        widths = [32, 24] + ([16] if top <= 0xFFFF else [])
        return f"srec,{draw.choice((1, 4, 7, 8, 16, 20, 32, '0x10', 64))}{draw.choice(('', f',{draw.choice(widths)}'))}"
    if kind == "ihex" and draw.chance(0.6):
        widths = [32, 24] + ([16] if top <= 0xFFFF else [])
        return f"ihex,{draw.choice((1, 4, 7, 8, 16, 20, 32, '0x10', 64))}{draw.choice(('', f',{draw.choice(widths)}'))}"
    if kind == "binary" and draw.chance(0.5):
        low = draw.integer(0, 0x200)
        return f"binary,{low}{draw.choice(('', f',{low + draw.integer(1, 300)}', f',0x{low + 64:x}'))}"
    return kind


def target(draw):
    """Return the output file; binary data on standard output goes through od."""
    return draw.choice(("-", "-", "-", "out.dat", "new.img"))


def finish(draw, command, out, to):
    """Return the whole command line."""
    if out.startswith("binary"):
        return f"{command} {to}" + (" | od -An -tx1" if to == "-" else f" && od -An -tx1 {to}")
    return f"{command} {to}"


def converted(draw, out=None):
    """Return a case that converts one good file."""
    parts = segments(draw)
    _, name, text = image(draw, parts=parts)
    out = out or output(draw)
    return Case(
        finish(draw, f"{draw.tool} convert {draw.choice(FLAG)} {out} {name}", out, target(draw)), {name: text}
    )


def spoilt(draw, options=""):
    """Return a case with a broken or missing file, or wrong usage."""
    name, text = broken(draw)
    good = image(draw)
    way = draw.integer(0, 7)
    files = {good[1]: good[2]}
    command = f"{draw.tool} convert {options}".strip()
    if way <= 1:
        kind = {"s19": "srec", "hex": "ihex", "txt": "ti_txt", "vmem": "verilog_vmem"}.get(
            name.split(".")[-1], "srec"
        )
        return Case(f"{command} -i {kind} {name} {draw.choice(('-', 'out.img'))}", {name: text})
    if way == 2:
        return Case(f"{command} missing-{draw.word()}.hex -", files)
    if way == 3:
        return Case(f"{command} {good[1]}", files)
    if way == 4:
        return Case(f"{command} -i auto -i {draw.choice(('auto', 'srec', 'binary,5'))} {good[1]} -", files)
    if way == 5:
        return Case(f"{command} -s {draw.choice((7, 12, 'x', 20, 1))} {good[1]} -", files)
    if way == 6:
        return Case(f"{command} {good[1]} no-folder/{draw.word()}.out", files)
    return Case(f"{command} --{draw.word()} {good[1]} -", files)
