from _kit import EDGES, failing, log, package_name, shown, tests
from fuzz import quote


def common(draw):
    lines, failed = tests(draw)
    rest = draw.choice(
        ("FAIL\n" if failed else "PASS\n", "", f"coverage: {draw.integer(1, 99)}.0% of statements\n")
    )
    first = log(draw, 1, broken_share=0) if draw.chance(0.4) else ""
    name = draw.choice((package_name(draw), draw.word(), "a b", "日本/x", "<pkg>"))
    return shown(
        draw,
        f"{draw.choice(('-package-name ', '-package-name=', '--package-name '))}{quote(name)}",
        first + "\n".join(lines) + "\n" + rest,
    )


def boundary(draw):
    name = draw.choice(("", " ", "-x", "a/b/c", "x" * 200, "&", "%d"))
    return shown(draw, f"-package-name {quote(name)}", draw.choice(EDGES))


def error(draw):
    return failing(draw, f"-package-name {draw.word()}")
