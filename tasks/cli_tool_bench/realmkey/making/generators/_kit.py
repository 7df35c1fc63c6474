"""Passwords, realms, seed files, and calls that fail."""

from fuzz import Case, quote

SEEDS = {  # random seed files of the tool, in base64, for three master passwords
    "amber": (
        "oV7ANPeir5KyfL065rjKdCLiUnzjpze+LQl9ubDBCLyrI0+BKgmyvsN0aeYCI00rwUPoLBDpRIZhFMVXLz7OtQQpGl2vEflFDwcq"
        "Yaaz3vUjJ7xJkbA4C6wcX0loR4/2oA5Lagh+X/eTrBQXK5LcJWBQJo1hevoVT0cEmM/0KGL9X6t+RhRX96wZajqwDTmgfUw9tu2h"
        "vBhcBSj7UQGvMakYYCeBMMVhAN8NZKKv2tL88QN2JzR3K9457cHc1rjQaeLDJnNfzva9Jcb/MYO4F6gtGHsGEvUeO6e0kFGJkCXV"
        "qRgXa6k9McZrIZCw+RQLwiNfVLloM+pyU/cRHV5zlA=="
    ),
    "two words": (
        "Vd+TrHLAWppIYlB9AsfxkyQnFCAelGv1KtEaB/QqRgmUxnsA5h9DoXCinKHP1Q35W+xj8i1msMErcQQtLmke75qhlkftEUT/LRk5"
        "xilWmwjgDwPoPrv0KuHckj3kxtEz61c6bXs+Ua3hdgVd0bFcqzY5NWmJf4lkx2nRsyjBkLLHhMfV8itbMTSGobhML2UP1xFWmQgR"
        "zZedV2j3nS6DYWPVWw3pwbk2lGj1T5Vb0feTV+Z/0/WHgJA/5NGcR3RNQ9+y78E55e/WRHJw83qcIdSoHMvDgLONWam34zSbM6lO"
        "fp1mouMn66ZeB0ZjzWE0fLnAPg0RsCB/5opi5eYRrg=="
    ),
    "pässwörd": (
        "y2Hy9UT4w+lCslPvUCgCvYl4eTRjqROh1Iws8/8EV8h1qxzoJVOMjpmL4aouvvx6ikpT/G+0yNP7dVMMSE+Q2M6pGdj8TkVZd3Rb"
        "zAYjcOKcmMxt+iAhd7E5pv92pbhlcjlRZlLl2Xxz0wBzFcQP61WVx9G31cKKOROKWgZHs8iuRbi2T4n4TW9Rhf72qYnFqnqxeUqU"
        "JSAXim3px+4Up601juIK0GpcvHDB4nDOR1hwaKDO7AISsEryv2XZ0yUaPR/dG5WaBheKMG7EzjhJhSsPMVcc8bccc3kVJc6bb3EU"
        "AkOEtW469P3sSNQvi1xy84Tb5fHhZ0viDC9AXPUl4w=="
    ),
}
WORDS = (
    "",
    "a b",
    "it's",
    'say "hi"',
    "caf\u00e9",
    "日本語",
    "🙂",
    "$HOME",
    "back\\slash",
    "%s",
    "x" * 200,
    "-",
    "--",
    "two\nlines",
    " padded ",
    "e\u0301",
)


def master(draw):
    return draw.choice(
        (
            draw.word(),
            draw.letters(12),
            " ".join(draw.words(4)),
            draw.sentence(2),
            f"{draw.word()}-{draw.integer()}!",
            draw.choice(WORDS[1:]),
        )
    )


def realm(draw):
    return draw.choice(
        (
            draw.word(),
            f"{draw.word()}.example",
            draw.url(),
            draw.email(),
            f"{draw.word()}/{draw.integer()}",
            draw.choice(WORDS[1:]),
        )
    )


def join(draw, *flags):
    parts = [flag for flag in flags if flag]
    return " ".join((draw.tool, *draw.sample(parts, len(parts))))


def dash(draw, name, value):
    """An option in one of its spellings."""
    return draw.choice(
        (
            f"-{name} {quote(value)}",
            f"-{name} {quote(value)}",
            f"-{name}={quote(value)}",
            f"--{name} {quote(value)}",
        )
    )


def secret(draw):
    """The option for a master password, and the files it needs."""
    word = master(draw)
    if draw.chance(0.2):
        return "-P pw.txt", {"pw.txt": draw.choice(("", " ")) + word + draw.choice(("", "\n", " \n\n"))}
    return dash(draw, "p", word), {}


SHOWN = ("od -An -tx1", "base64 -w0", "od -An -tu1 -w8", "cksum", "wc -c")


def raw(draw):
    """Further options for raw bytes, and a way to show them."""
    return ("-t raw", "-u", draw.choice(("", f"-l {draw.choice((1, 16, 31, 33, 64, 100))}"))), draw.choice(
        SHOWN[:4]
    )


def seeded(draw, skipped=0):
    """A master password with its seed file, which the preparation makes behind some bytes."""
    word = draw.choice(tuple(SEEDS))
    junk = f"head -c {skipped} /dev/zero > seed; " if skipped else ""
    return word, f"{junk}echo {SEEDS[word]} | base64 -d >> seed"


def failing(draw, *flags, own=()):
    """Calls that end with an error."""
    word = draw.word()
    good = (f"-p {word}", f"-r {draw.word()}")
    call = draw.choice(
        (
            *own,
            *own,
            good[:1],
            (good[0], "-r ''"),
            (*good, f"-t {draw.choice(('key', 'PASS', 'rsa', 'aes', word))}"),
            (*good, f"-l {draw.choice((0, -1, 1, 5, 7))}"),
            (*good, f"-l {draw.choice(('ten', '1.5', '1e3', word))}"),
            (*good, f"-s {word}.seed"),
            (*good, f"-t {draw.choice(('raw', 'x25519', 'ed25519', 'rsa2048', 'ec256'))}"),
            (*good, f"-t {draw.choice(('x25519', 'ed25519', 'ec384'))}", "-u", f"-l {draw.integer(1, 40)}"),
            (*good, f"-{word}"),
            (good[1], f"-P {word}.txt"),
            (good[1],),
            (*good, f"-o {word}/out"),
            (*good, "-t raw", "-u", "-l 0"),
        )
    )
    keep = [flag for flag in flags if flag and flag.split()[0] not in {part.split()[0] for part in call}]
    return Case(join(draw, *keep, *call) + " < /dev/null", {})
