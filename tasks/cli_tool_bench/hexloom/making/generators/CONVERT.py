"""Conversions of several files, with input formats, word sizes and overlapping data."""

from _convert import FLAG, converted, finish, output, spoilt, target
from _images import altered, data, ihex, image, segments, srec, ti_txt
from fuzz import Case, quote


def common(draw):
    """Return a case that converts good files."""
    way = draw.integer(0, 5)
    out = output(draw)
    option = "" if out == "hexdump" and draw.chance(0.5) else f"{draw.choice(FLAG)} {out} "
    to = target(draw)
    if way == 0:  # plain data at an address
        name = draw.file("bin")
        address = draw.choice((0, 16, "0x100", "0x7ff8", "0b1000", draw.integer(0, 4000)))
        given = draw.choice((f"binary,{address}", f"binary,{address}", "binary"))
        octal = "".join(f"\\{byte:03o}" for byte in data(draw, draw.integer(1, 50)))
        prep = f"printf '{octal}' > {name}"
        return Case(
            finish(
                draw,
                f"{draw.tool} convert {draw.choice(('-i', '--input-format'))} {given} {option}{name}",
                out,
                to,
            ),
            prep=prep,
        )
    if way == 1:  # files side by side
        parts = segments(draw, 3)
        makers = [draw.choice((srec, ihex, ti_txt)) for _ in parts]
        files = {
            f"{word}.img": make(draw, [part])
            for word, make, part in zip(draw.words(3), makers, parts, strict=False)
        }
        return Case(finish(draw, f"{draw.tool} convert {option}{' '.join(files)}", out, to), files)
    if way == 2:  # data over data
        base = draw.integer(0, 300)
        first, second = (
            (base, data(draw, draw.integer(8, 40))),
            (base + draw.integer(-8 if base > 8 else 0, 12), data(draw, draw.integer(1, 50))),
        )
        files = {"old.hex": ihex(draw, [first]), "new.s19": srec(draw, [second])}
        order = draw.choice(("old.hex new.s19", "new.s19 old.hex"))
        return Case(
            finish(
                draw, f"{draw.tool} convert {draw.choice(('-w', '--overwrite'))} {option}{order}", out, to
            ),
            files,
        )
    if way == 3:  # words
        parts = [
            (address - address % 4, chunk + b"\x00" * (-len(chunk) % 4))
            for address, chunk in segments(draw, 1)
        ]
        out = draw.choice(("hexdump", "ihex,16", "srec,16", "verilog_vmem", "ti_txt", "srec,8,24", "ihex"))
        name = draw.file("s19")
        bits = draw.choice((16, 16, 32, 8))
        return Case(
            f"{draw.tool} convert {draw.choice(('-s', '--word-size-bits'))} {bits} -o {out} {name} {to}",
            {name: srec(draw, parts, step=32)},
        )
    if way == 4:  # formats named
        kinds = draw.sample(("srec", "ihex", "ti_txt"), draw.integer(1, 2))
        files, given, at = {}, "", 0
        for kind in kinds:
            parts = [(at + address % 50, chunk) for address, chunk in segments(draw, 1)]
            at += 200
            _, name, text = image(draw, (kind,), parts=parts)
            files[name] = text
            given += f"-i {kind} "
        return Case(finish(draw, f"{draw.tool} convert {given}{option}{' '.join(files)}", out, to), files)
    return converted(draw)


def boundary(draw):
    """Return a case with text as plain data, unusual addresses, empty files or overlapping data."""
    way = draw.integer(0, 4)
    if way == 0:
        name = draw.file("txt")
        text = draw.choice((draw.text(2), "größe\n", "日本語", "", "x", draw.sentence() * 3))
        return Case(
            f"{draw.tool} convert {draw.choice(('', '-i auto ', '-i binary,0x20 '))}{name} -", {name: text}
        )
    if way == 1:
        name = draw.file("hex")
        return Case(
            f"{draw.tool} convert -o {draw.choice(('srec', 'ihex', 'ti_txt', 'verilog_vmem', 'hexdump', 'binary'))} {name} -",
            {
                name: draw.choice(
                    (":00000001FF\n", "q\n", "S5030000FC\n", "S9030100FB\n", "S0050000686984A8\n")
                )
            },
        )
    if way == 2:
        name = f"größe {draw.word()}.txt"
        return Case(
            f"{draw.tool} convert -i binary,{draw.choice(('0xfff8', '0xfffffff0', '0x1fff8', '65535', '0x100000000'))} -o {draw.choice(('ihex', 'srec', 'ihex,16,24', 'ihex,16,16', 'srec,16,24', 'ti_txt'))} {quote(name)} -",
            {name: draw.sentence(4)},
        )
    if way == 3:
        base = draw.integer(0, 100)
        files = {
            "one.s19": srec(draw, [(base, data(draw, 16))]),
            "two.s19": srec(draw, [(base + draw.choice((-16, -15, 0, 1, 15, 16, 17)) % 200, data(draw, 16))]),
        }
        return Case(f"{draw.tool} convert {draw.choice(('', '', '-w '))}one.s19 two.s19 -", files)
    _, name, text = image(draw)
    return Case(
        f"{draw.tool} convert -s {draw.choice((16, 32, 64, 8))} {name} -", {name: altered(draw, text)}
    )


def error(draw):
    """Return a case with overlapping or broken data, or wrong usage."""
    if draw.chance(0.25):
        base = draw.integer(0, 100)
        files = {
            "one.s19": srec(draw, [(base, data(draw, 16))]),
            "two.hex": ihex(draw, [(base + draw.integer(0, 15), data(draw, 8))]),
        }
        return Case(
            f"{draw.tool} convert {draw.choice(('one.s19 two.hex', 'two.hex one.s19'))} {draw.choice(('-', 'out.img'))}",
            files,
        )
    return spoilt(draw)
