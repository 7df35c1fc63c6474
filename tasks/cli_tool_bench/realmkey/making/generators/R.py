from _kit import WORDS, dash, failing, join, raw, realm, secret
from fuzz import Case, quote


def common(draw):
    flag, files = secret(draw)
    name = dash(draw, "r", realm(draw))
    if draw.chance(0.25):
        more, show = raw(draw)
        return Case(f"{join(draw, flag, name, *more)} | {show}", files)
    if draw.chance(0.2):
        return Case(f"{join(draw, flag, name, '-t x25519', '-u')} | grep -v PRIVATE", files)
    return Case(join(draw, flag, name), files)


def boundary(draw):
    name = draw.choice((*WORDS, "a-pass", "a", "-pass", "-r", "r" * 5000, "\x01", "0", " a"))
    return Case(
        f"{join(draw, '-p amber', f'-r {quote(name)}')} {draw.choice(('', '-r a', '-r b -t raw -u -l 4 | od -An -tx1'))}",
        {},
    )


def error(draw):
    word = draw.word()
    own = (
        (f"-p {word}",),
        (f"-p {word}", "-r ''"),
        (f"-p {word}", "-r="),
        (f"-p {word}", "-t raw", "-u"),
        (f"-p {word}", "-t ed25519", "-u"),
        (f"-p {word}", f"-realm {word}"),
        (f"-p {word}", f"-l {draw.integer(8, 20)}"),
    )
    return failing(draw, own=own)
