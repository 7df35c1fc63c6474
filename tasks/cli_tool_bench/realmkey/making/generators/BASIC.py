from _kit import dash, failing, join, raw, realm, secret
from fuzz import Case


def common(draw):
    flag, files = secret(draw)
    if draw.chance(0.3):
        more, show = raw(draw)
        return Case(f"{join(draw, flag, dash(draw, 'r', realm(draw)), *more)} | {show}", files)
    return Case(
        join(draw, flag, dash(draw, "r", realm(draw)), draw.choice(("", "", f"-l {draw.integer(8, 40)}"))),
        files,
    )


def boundary(draw):
    files = {"pw.txt": draw.choice(("  a b \n", "\n", "", "x\ny\n", "日本\n", " \t "))}
    flag = draw.choice(
        (
            "-P pw.txt",
            "-P pw.txt",
            "-p '' -P pw.txt",
            f"-p {draw.word()} -P gone.txt",
            "-p a extra words",
            "-p ' '",
        )
    )
    return Case(f"{join(draw, f'-r {draw.word()}')} {flag} < /dev/null", files)


def error(draw):
    return failing(draw)
