from _kit import SHOWN, dash, failing, join, realm, secret
from fuzz import Case


def common(draw):
    flag, files = secret(draw)
    kind = draw.choice(("raw", "raw", "raw", "x25519", "ed25519"))
    length = f"-l {draw.integer(1, 80)}" if kind == "raw" and draw.chance(0.5) else ""
    show = f" | {draw.choice(SHOWN[:4])}" if kind == "raw" else " | grep -v PRIVATE"
    return Case(
        join(
            draw,
            flag,
            dash(draw, "r", realm(draw)),
            f"-t {kind}",
            draw.choice(("-u", "-u", "--u", "-u=true")),
            length,
        )
        + show,
        files,
    )


def boundary(draw):
    call = draw.choice(
        (
            "-u",
            "-u=0",
            "-u -t pass -l 9",
            "-u=f -t raw",
            "-t raw -u=false -u | od -An -tx1",
            "-t raw -u -u=0",
            "-u -t raw -l 1 | od -An -tu1",
            "-u=T -t x25519 | wc -c",
            "-t seed -u | wc -c",
        )
    )
    return Case(f"{draw.tool} -p {draw.word()} -r {draw.word()} {call}", {})


def error(draw):
    good = (f"-p {draw.word()}", f"-r {draw.word()}")
    kind = f"-t {draw.choice(('raw', 'x25519', 'ed25519', 'ec256', 'rsa2048'))}"
    own = (
        (*good, kind, f"-u={draw.choice(('maybe', 'no', '2', draw.word()))}"),
        (*good, kind, "-u=false"),
        (*good, kind),
        (good[0], kind, "-u"),
        (good[1], kind, "-u"),
        (*good, kind, "-unsafe"),
        (*good, f"-t {draw.word()}", "-u"),
        (*good, "-t x25519", "-u", f"-l {draw.integer()}"),
    )
    return failing(draw, own=own)
