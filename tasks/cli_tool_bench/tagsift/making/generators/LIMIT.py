from _kit import failing, odd, page, usual
from fuzz import Case


def common(draw):
    return usual(
        draw,
        f"{draw.choice(('-l', '--limit'))} {draw.choice((0, 1, 1, 2, 2, 3, 4, 6))}",
        ("", "", "", "", " json{}"),
        share=0.7,
    )


def boundary(draw):
    return odd(
        draw,
        f"--limit {draw.choice(('-1', '0', '+1', '007', '1000000', '2 -i 4', '1 --pre', '2 -l 0'))}",
        ("",),
    )


def error(draw):
    if draw.chance(0.4):
        level = draw.choice(
            ("", "x", "1.5", "1e3", "0x2", "99999999999999999999", "two", "1,2", "--pre", "-")
        )
        return Case(
            f"{draw.tool} {draw.choice(('p', 'li', 'body'))} {draw.choice(('-l', '--limit'))} {level} < page.html",
            {"page.html": page(draw)},
        )
    return failing(draw, f"-l {draw.integer(0, 4)}")
