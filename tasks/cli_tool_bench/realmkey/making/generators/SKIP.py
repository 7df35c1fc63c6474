from _kit import SHOWN, dash, failing, join, realm, seeded
from fuzz import Case, quote


def common(draw):
    skipped = draw.choice((1, 2, 11, 12, 16, 100, 255, 256, 1000, draw.integer(1, 500)))
    word, prep = seeded(draw, skipped)
    kind = draw.choice(("", "", "", "-t raw", "-t x25519"))
    show = {"": "", "-t raw": f" | {draw.choice(SHOWN[:4])}"}.get(kind, " | grep -v PRIVATE")
    return Case(
        join(
            draw,
            dash(draw, "p", word),
            dash(draw, "r", realm(draw)),
            kind,
            "-s seed",
            dash(draw, "skip", skipped),
        )
        + show,
        {},
        prep,
    )


def boundary(draw):
    word, prep = seeded(draw, 4)
    skip = draw.choice(
        ("4", "0x4", "04", "+4", "0", "3", "5", "248", "247", "259", "260", "232", "4 -skip 4", "1 -skip 4")
    )
    return Case(f"{draw.tool} -p {quote(word)} -r {draw.word()} -s seed -skip {skip}", {}, prep)


def error(draw):
    skipped = draw.integer(1, 300)
    word, prep = seeded(draw, skipped)
    wrong = draw.choice(
        (
            skipped - 1,
            skipped + 1,
            -1,
            -skipped,
            256 + skipped,
            9999,
            "few",
            "1.5",
            "",
            240 + skipped,
            250 + skipped,
        )
    )
    if draw.chance(0.8):
        return Case(
            join(draw, dash(draw, "p", word), f"-r {draw.word()}", "-s seed", dash(draw, "skip", wrong)),
            {},
            prep,
        )
    return failing(draw, f"-skip {skipped}")
