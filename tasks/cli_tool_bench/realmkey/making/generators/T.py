from _kit import SHOWN, dash, failing, join, realm, secret, seeded
from fuzz import Case


def common(draw):
    flag, files = secret(draw)
    kind = draw.choice(("pass", "raw", "raw", "x25519", "x25519", "ed25519", "ed25519"))
    unsafe, prep = "-u", ""
    if draw.chance(0.3):
        word, prep = seeded(draw)
        flag, unsafe = dash(draw, "p", word), "-s seed"
    show = {"pass": "", "raw": f" | {draw.choice(SHOWN[:4])}"}.get(kind, " | grep -v PRIVATE")
    return Case(
        join(
            draw,
            flag,
            dash(draw, "r", realm(draw)),
            dash(draw, "t", kind),
            unsafe if kind != "pass" or prep else "",
        )
        + show,
        files,
        prep,
    )


def boundary(draw):
    call = draw.choice(
        (
            "-t pass -t raw -u | od -An -tx1",
            "-t raw -u -t pass",
            "-t seed | wc -c",
            "-t pass -u",
            "-t x25519 -u | wc -l",
            "-t ed25519 -u | head -n 1 | cut -c 1-10",
            "-t raw -u -l 0",
            "-t ''",
            "-t ed25519 -u -l 32",
        )
    )
    return Case(f"{draw.tool} -p {draw.word()} -r {draw.word()} {call}", {})


def error(draw):
    word = draw.word()
    good = (f"-p {word}", f"-r {draw.word()}")
    own = (
        (
            *good,
            f"-t {draw.choice(('x25519', 'ed25519', 'raw', 'ec256', 'ec384', 'ec521', 'rsa2048', 'rsa4096'))}",
        ),
        (*good, f"-t {draw.choice(('X25519', 'Pass', 'rsa1024', 'ec', 'text'))}"),
        (*good, f"-t {word}", "-u"),
        (*good, "-t ''"),
        (f"-p {word}", "-t raw", "-u"),
        (*good, f"-t x25519 -l {draw.integer(1, 64)}", "-u"),
        (*good, f"-type {word}"),
    )
    return failing(draw, own=own)
