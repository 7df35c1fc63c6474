from _kit import SHOWN, dash, failing, join, realm, seeded
from fuzz import Case


def common(draw):
    word, prep = seeded(draw)
    kind = draw.choice(("", "", "", "-t raw", "-t raw", "-t x25519", "-t ed25519"))
    show = {"": "", "-t raw": f" | {draw.choice(SHOWN[:4])}"}.get(kind, " | grep -v PRIVATE")
    length = draw.choice(("", f"-l {draw.integer(8, 60)}")) if kind in ("", "-t raw") else ""
    secret = dash(draw, "p", word) if draw.chance(0.7) else "-P pw.txt"
    name = draw.choice(("seed", "seed", "./seed", "../seed")) if draw.chance(0.5) else "seed"
    return Case(
        join(
            draw,
            secret,
            dash(draw, "r", realm(draw)),
            kind,
            length,
            dash(draw, "s", name.replace("../", "./")),
        )
        + show,
        {"pw.txt": word + "\n"},
        prep,
    )


def boundary(draw):
    word, prep = seeded(draw)
    change = draw.choice(
        (
            ": > seed",
            "head -c 11 /dev/zero > seed",
            "head -c 12 /dev/zero > seed",
            "head -c 28 /dev/zero > seed",
            "printf x >> seed",
            "cp seed both; cat both >> seed",
            ":",
            ":",
            ":",
        )
    )
    return Case(
        f"{join(draw, dash(draw, 'p', word), f'-r {draw.word()}', '-s seed')} {draw.choice(('', '-u', '-s gone -s seed', '-t raw -l 3 | od -An -tx1'))}",
        {},
        f"{prep}; {change}",
    )


def error(draw):
    word, prep = seeded(draw)
    if draw.chance(0.5):
        other = draw.choice((draw.word() + "!", f"{word} ", word.upper(), draw.letters()))
        cut = draw.choice(
            (
                "",
                "",
                "; printf x >> seed",
                "; head -c 100 /dev/zero > seed",
                "; : > seed",
                "; cp seed s2; tail -c +2 s2 > seed",
            )
        )
        return Case(
            join(
                draw,
                dash(draw, "p", other),
                f"-r {draw.word()}",
                "-s seed",
                draw.choice(("", "-t raw", "-t x25519")),
            ),
            {},
            prep + cut,
        )
    good = (f"-p {draw.word()}", f"-r {draw.word()}")
    return failing(
        draw,
        own=(
            (*good, f"-s {draw.word()}"),
            (*good, f"-s {draw.word()}/seed"),
            (*good, "-s ."),
            (*good, f"-seed {draw.word()}"),
            (*good, f"-s {draw.word()}", "-t raw"),
        ),
    )
