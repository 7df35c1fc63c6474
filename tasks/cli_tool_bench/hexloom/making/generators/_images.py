"""What the generators of this tool share: memory images in the formats that the tool reads."""

from fuzz import Case, quote

EXTENSION = {"srec": "s19", "ihex": "hex", "ti_txt": "txt", "vmem": "vmem"}
TEXTS = (
    b"Hello, world!",
    b"firmware",
    b"\x00\x00\x00\x00",
    b"\xff\xff\xff\xff\xff",
    b"0123456789abcdef",
    b"~|{}[] \t\n\x7f\x80",
)


def data(draw, size=0):
    """Return bytes: random ones, text, or a counter."""
    size = size or draw.choice((1, 2, 3, 4, 7, 8, 15, 16, 17, 20, 31, 32, 33, 40, 64, 70))
    kind = draw.integer(0, 3)
    if kind == 0:
        return (draw.choice(TEXTS) * size)[:size]
    if kind == 1:
        start = draw.integer(0, 255)
        return bytes((start + n) & 255 for n in range(size))
    return bytes(draw.integer(0, 255) for _ in range(size))


def segments(draw, count=0, limit=0xFFFF, even=False):
    """Return chunks of data with their addresses, apart from each other, in ascending order."""
    count = count or draw.choice((1, 1, 2, 2, 3, 4))
    address = draw.choice((0, 0, 1, 8, 0x10, 0x100, 0x7F0, 0x1000, 0xC000, draw.integer(0, 0x8000)))
    if limit > 0xFFFF and draw.chance(0.4):
        address += (
            draw.choice((0x10000, 0x20000, 0x8000000, 0x00FF0000))
            if limit > 0xFFFFFF
            else draw.choice((0x10000, 0x2FFE0))
        )
    made = []
    for _ in range(count):
        chunk = data(draw)
        if even:
            address += address % 2
            chunk += b"\x00" * (len(chunk) % 2)
        if address + len(chunk) > limit:
            break
        made.append((address, chunk))
        address += len(chunk) + draw.choice((1, 2, 4, 8, 16, 30, 100, 0x400, draw.integer(1, 60)))
    return made or [(0, b"\x01\x02")]


def _s_record(kind, width, address, chunk=b""):
    body = bytes([width + len(chunk) + 1]) + address.to_bytes(width, "big") + chunk
    return f"S{kind}{body.hex().upper()}{(sum(body) & 255) ^ 255:02X}"


def srec(draw, parts, header=None, start=None, width=0, step=0):
    """Return S-records."""
    width = max(
        width or draw.choice((2, 3, 4)), 4 if parts[-1][0] > 0xFFFF00 else 3 if parts[-1][0] > 0xFF00 else 2
    )
    step = step or draw.choice((8, 16, 32))
    lines = [] if header is None else [_s_record("0", 2, 0, header)]
    for address, chunk in parts:
        for at in range(0, len(chunk), step):
            lines.append(_s_record(str(width - 1), width, address + at, chunk[at : at + step]))
    if draw.chance(0.6):
        lines.append(_s_record("5", 2, len(lines) - (header is not None)))
    if start is not None:
        lines.append(_s_record(str(11 - width), width, start & (256**width - 1)))
    return "\n".join(lines) + "\n"


def _i_record(kind, address, chunk=b""):
    body = bytes([len(chunk)]) + address.to_bytes(2, "big") + bytes([kind]) + chunk
    return f":{body.hex().upper()}{-sum(body) & 255:02X}"


def ihex(draw, parts, start=None, segmented=None, step=0):
    """Return Intel HEX records."""
    step = step or draw.choice((8, 16, 32))
    lines, upper = [], 0
    segmented = draw.chance(0.3) if segmented is None else segmented
    segmented = segmented and parts[-1][0] < 0xF0000
    for address, chunk in parts:
        for at in range(0, len(chunk), step):
            where = address + at
            if where >> 16 != upper:
                upper = where >> 16
                if segmented:
                    lines.append(_i_record(2, 0, (upper << 12).to_bytes(2, "big")))
                else:
                    lines.append(_i_record(4, 0, upper.to_bytes(2, "big")))
            lines.append(_i_record(0, where & 0xFFFF, chunk[at : at + step]))
    if start is not None:
        lines.append(_i_record(draw.choice((3, 5)), 0, start.to_bytes(4, "big")))
    lines.append(_i_record(1, 0))
    return "\n".join(lines) + "\n"


def ti_txt(draw, parts):
    """Return TI-TXT."""
    lines = []
    for address, chunk in parts:
        lines.append(f"@{address:04X}" if draw.chance(0.8) else f"@{address:x}")
        lines += [" ".join(f"{byte:02X}" for byte in chunk[at : at + 16]) for at in range(0, len(chunk), 16)]
    return "\n".join([*lines, "q"]) + "\n"


def vmem(draw, parts, word=0):
    """Return Verilog VMEM whose addresses count words; data is cut to whole words."""
    word = word or draw.choice((1, 1, 1, 2, 4))
    lines = [draw.choice(("/* image */", "// image", "/* two\n   lines */"))] if draw.chance(0.5) else []
    free = 0
    for address, chunk in parts:
        chunk = chunk + b"\x00" * (-len(chunk) % word)
        words = [chunk[at : at + word].hex().upper() for at in range(0, len(chunk), word)]
        free = max(free, address // word)
        lines.append(f"@{free:08X} {' '.join(words[:8])}")
        free += len(words)
        lines += [" ".join(words[at : at + 8]) for at in range(8, len(words), 8)]
        if draw.chance(0.2):
            lines[-1] += " // end of part"
    return "\n".join(lines) + "\n"


def image(draw, kinds=("srec", "ihex", "ti_txt", "vmem"), parts=None, extra=True):
    """Return the format, the name and the text of a file."""
    kind = draw.choice(kinds)
    parts = parts or segments(draw, limit={"srec": 0xFFFFFFF, "ihex": 0xFFFFFFF}.get(kind, 0xFFFF))
    start = draw.choice((None, None, parts[0][0], draw.integer(0, 0xFFFF))) if extra else None
    if kind == "srec":
        header = (
            draw.choice((None, None, draw.word().encode(), b"my file.s19", draw.sentence().encode()[:30]))
            if extra
            else None
        )
        text = srec(draw, parts, header, start)
    elif kind == "ihex":
        text = ihex(draw, parts, start)
    else:
        text = (ti_txt if kind == "ti_txt" else vmem)(draw, parts)
    return kind, draw.file(EXTENSION[kind]), text


def altered(draw, text):
    """Return a text in another guise that means the same: other line ends, blank lines, letters in lower case."""
    way = draw.integer(0, 3)
    if way == 0:
        return text.replace("\n", "\r\n")
    if way == 1 and text[0] in "S:":
        return text.replace("\n", "\n\n")
    if way == 2:
        return text.removesuffix("\n")
    return text.lower() if text[0] == ":" else text


def broken(draw):
    """Return the name and the text of a file that no reader accepts."""
    kind, name, text = image(draw, ("srec", "ihex"), extra=False)
    lines = text.splitlines()
    at = draw.integer(0, max(0, len(lines) - 2))
    line = lines[at]
    way = draw.integer(0, 9)
    if way == 0:  # checksum
        lines[at] = line[:-2] + f"{int(line[-2:], 16) ^ draw.integer(1, 255):02X}"
    elif way == 1:  # too short for its size
        lines[at] = line[:-4] + line[-2:]
    elif way == 2:  # one digit less
        lines[at] = line[:-1]
    elif way == 3:
        lines[at] = "X" + line[1:]
    elif way == 4:
        lines[at] = line[:9] + "G" + line[10:]
    elif way == 5:
        return "notes.txt", draw.text()
    elif way == 6:
        return "part.txt", ti_txt(draw, segments(draw)).replace(
            "q\n", draw.choice(("Q\n", "0\n", "end\n", "@\n"))
        )
    elif way == 7:
        return "part.txt", draw.choice(
            (
                "01 02 03\nq\n",
                "@zz\n01\nq\n",
                "@10\n1 2 3\nq\n",
                f"@10\n{'01 ' * 17}\nq\n",
                "@10\n01\n\nq\n",
                "@10\n01\nq\n02\n",
            )
        )
    elif way == 8:
        return "mem.vmem", draw.choice(
            ("@0 01 0203\n", "@0 123\n", "@zz 01\n", "@0 GG\n", "@0 01 /* open\n", "hello\n")
        )
    elif kind == "srec":
        lines[at] = "S4" + line[2:]
    else:
        lines[at] = _i_record(draw.integer(6, 255), 0, b"\x00\x01")
    return name, "\n".join(lines) + "\n"


def usage_error(draw, subcommand):
    """Return a case of wrong usage of a subcommand."""
    _, name, text = image(draw)
    line = draw.choice(
        (
            f"{subcommand} --{draw.word()} {name}",
            f"{subcommand} -Z {name}",
            f"{subcommand}",
            f"{subcommand} missing-{draw.word()}.hex",
            f"{subcommand} {name} missing.hex",
            f"{subcommand}s {name}",
            f"{draw.word()} {name}",
            f"--{draw.word()} {subcommand} {name}",
            f"{subcommand} .",
        )
    )
    return Case(f"{draw.tool} {line}", {name: text})


def show(draw, subcommand, kinds=("srec", "ihex", "ti_txt", "vmem")):
    """Return a case that prints one to three files in another format."""
    files = {}
    for _ in range(draw.choice((1, 1, 1, 1, 2, 3))):
        _, name, text = image(draw, kinds)
        files[name] = altered(draw, text) if draw.chance(0.2) else text
    tail = draw.choice(("", "", "", "", " > out.txt && wc -l < out.txt", " | tail -n 2", " | head -n 3"))
    return Case(f"{draw.tool} {subcommand} {' '.join(quote(name) for name in files)}{tail}", files)


def edges(draw, subcommand):
    """Return a case with a file at the edge of what is accepted."""
    start = draw.choice((0, 0xFF, 0xFFF0, 0xFFFF, 0x10000, 0x1FFF0))
    way = draw.integer(0, 8)
    name = f"größe {draw.word()}.hex" if draw.chance(0.2) else draw.file("hex")
    if way == 0:
        text = draw.choice(
            (
                "",
                "\n",
                ":00000001FF\n",
                "q\n",
                "S0030000FC\n",
                "S5030000FC\n",
                "S9030000FC\n",
                "@10\nq\n",
                " \n",
            )
        )
    elif way == 1:
        text = srec(
            draw,
            [(start, data(draw, 40))],
            header="grün".encode() if draw.chance(0.5) else b"\xff\xfe",
            step=draw.choice((1, 5, 250)),
            width=4,
        )
    elif way == 2:
        text = ihex(
            draw,
            [(start, data(draw, draw.choice((16, 33))))],
            start=draw.choice((0, 0xFFFFFFFF)),
            step=draw.choice((1, 16)),
        )
    elif way == 3:  # adjacent and out of order
        parts = [(start, data(draw, 16)), (start + 16, data(draw, 8)), (start + 64, data(draw, 4))]
        draw.random.shuffle(parts)
        text = "".join(srec(draw, [part], step=16, width=4) for part in parts)
    elif way == 4:  # overlapping
        text = "".join(
            srec(draw, [part], step=32, width=4)
            for part in ((start, data(draw, 16)), (start + draw.choice((0, 4, 15)), data(draw, 16)))
        )
    elif way == 5:
        text = ti_txt(draw, [(draw.choice((0, 0xFFFF, 0x12345)), data(draw, draw.choice((1, 16, 48))))])
    elif way == 6:
        text = vmem(draw, [(start, data(draw, draw.choice((1, 8, 40))))], word=draw.choice((1, 2, 4, 8)))
    elif way == 7:
        text = ihex(draw, [(0xFFFFFFF0, data(draw, 16))], segmented=False, step=16)
    else:
        text = altered(draw, image(draw, ("srec", "ihex"))[2])
    return Case(f"{draw.tool} {subcommand} {quote(name)}", {name: text})


def failing(draw, subcommand):
    """Return a case with a broken file, often behind a good one, or wrong usage."""
    if draw.chance(0.45):
        return usage_error(draw, subcommand)
    name, text = broken(draw)
    _, good, fine = image(draw)
    first = f"a-{good} " if draw.chance(0.3) and subcommand != "pretty" else ""
    files = {name: text} | ({first.strip(): fine} if first else {})
    return Case(f"{draw.tool} {subcommand} {first}{name}", files)
