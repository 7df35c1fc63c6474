from _kit import dash, failing, join, raw, realm, secret, seeded
from fuzz import Case


def common(draw):
    flag, files = secret(draw)
    name = dash(draw, "r", realm(draw))
    if draw.chance(0.35):
        (kind, unsafe, _), show = raw(draw)
        return Case(
            f"{join(draw, flag, name, kind, unsafe, dash(draw, 'l', draw.choice((1, 2, 15, 16, 17, 48, 200, 1000))))} | {show}",
            files,
        )
    length = dash(
        draw, "l", draw.choice((8, 9, 10, 11, 12, 16, 20, 24, 32, 40, 64, 99, 128, draw.integer(8, 300)))
    )
    if draw.chance(0.15):
        word, prep = seeded(draw)
        return Case(join(draw, dash(draw, "p", word), name, length, "-s seed"), {}, prep)
    return Case(join(draw, flag, name, length), files)


def boundary(draw):
    length = draw.choice(
        ("8", "7", "0x10", "010", "+12", "1_0", "5000", "100000", "0b1000", "0o20", "10 -l 8")
    )
    call = draw.choice((f"-l {length}", f"-l {length} -l 9", f"-t raw -u -l {length}"))
    return Case(
        f"{draw.tool} -p {draw.word()} -r site {call} | cksum"
        if draw.chance(0.6) or "raw" in call
        else f"{draw.tool} -p amber -r {draw.word()} {call}",
        {},
    )


def error(draw):
    word = draw.word()
    good = (f"-p {word}", f"-r {draw.word()}")
    own = (
        (*good, f"-l {draw.integer(-9, 7)}"),
        (*good, f"-l {word}"),
        (*good, "-l ''"),
        (*good, f"-l {draw.integer(1, 9)}.5"),
        (*good, "-l 99999999999999999999"),
        (*good, "-t raw", "-u", f"-l {draw.integer(-99, 0)}"),
        (*good, "-t ed25519", "-u", f"-l {draw.integer(1, 99)}"),
    )
    return failing(draw, own=own)
