from _kit import dash, failing, join, realm, secret
from fuzz import Case, quote


def common(draw):
    flag, files = secret(draw)
    name = draw.choice((draw.file("key"), draw.file("txt"), "a b", "out/key", "old.txt", "日本"))
    kind = draw.choice((("",), ("",), (f"-l {draw.integer(8, 40)}",), ("-t raw", "-u", "-l 24")))
    command = join(draw, flag, dash(draw, "r", realm(draw)), dash(draw, "o", name), *kind)
    if "raw" in command:
        return Case(
            f"{command} && od -An -tx1 {quote(name)} && rm {quote(name)}",
            files | {"old.txt": "old " * 50, "out/x": ""},
        )
    return Case(
        f"{command}{draw.choice(('', f' && cat {quote(name)}'))}",
        files | {"old.txt": "old " * 50, "out/x": ""},
    )


def boundary(draw):
    name = draw.choice(("-x", "it's", "", "./out", "old.txt", "/dev/null", "out/../k"))
    return Case(
        f"{draw.tool} -p {draw.word()} -r {draw.word()} -o {quote(name)} {draw.choice(('', '-o second', '-l 8'))}",
        {"old.txt": "old " * 50, "out/x": ""} if "out/" in name else {"old.txt": "old " * 50},
    )


def error(draw):
    word = draw.word()
    good = (f"-p {word}", f"-r {draw.word()}")
    own = (
        (*good, f"-o {word}/out"),
        (*good, "-o ."),
        (f"-p {word}", "-o new.txt"),
        (*good, "-o new.txt", "-l 3"),
        (*good, f"-o {word}.txt", f"-t {word}"),
        (*good, "-o new.txt", "-t raw"),
        (good[1], "-o new.txt"),
        (*good, f"-out {word}"),
        (*good, "-o new.txt", f"-s {word}"),
    )
    return failing(draw, own=own)
