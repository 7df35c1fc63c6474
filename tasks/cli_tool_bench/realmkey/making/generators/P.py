from _kit import WORDS, dash, failing, join, master, raw, realm, seeded
from fuzz import Case, quote


def common(draw):
    flag, name = dash(draw, "p", master(draw)), dash(draw, "r", realm(draw))
    if draw.chance(0.25):
        more, show = raw(draw)
        return Case(f"{join(draw, flag, name, *more)} | {show}", {})
    if draw.chance(0.25):
        word, prep = seeded(draw)
        return Case(join(draw, dash(draw, "p", word), name, "-s seed"), {}, prep)
    return Case(join(draw, flag, name, draw.choice(("", "", "-P other.txt"))), {"other.txt": "other\n"})


def boundary(draw):
    word = draw.choice((*WORDS, "p" * 5000, "\x01", "0", " ", "-p", "amber "))
    return Case(
        f"{join(draw, f'-p {quote(word)}', '-r site')} {draw.choice(('', '-p amber', '-l 100'))} < /dev/null",
        {},
    )


def error(draw):
    word = draw.word()
    own = (
        (f"-r {word}",),
        ("-p ''", f"-r {word}"),
        (f"-r {word}", "-p="),
        (f"-r {word}", f"-P {word}"),
        (f"-r {word}", f"-password {word}"),
        (f"-r {word}", "-P ."),
        (f"-r {word}", "-t raw", "-u"),
        (f"-r {word}", f"-l {draw.integer(8, 20)}"),
    )
    return failing(draw, f"-r {draw.word()}", own=own)
