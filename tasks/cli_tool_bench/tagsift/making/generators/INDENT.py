from _kit import failing, odd, page, selector, usual
from fuzz import Case

DROP = str.maketrans("", "", "\"'()[]<>*$#&:")


def common(draw):
    width = draw.choice(("0", "1", "2", "3", "4", "8", '"  "', '"\t"', "..", "--", '"> "', "ab"))
    return usual(draw, f"{draw.choice(('-i', '--indent'))} {width}", ("", "", "", " json{}"), share=0.7)


def boundary(draw):
    width = draw.choice(("007", "+3", "1.5", '""', "日本", "%s", '"\\\\"', "40", "-x", "2x", '" 2"'))
    return odd(draw, f"--indent {width}", ("", "", " json{}"))


def error(draw):
    if draw.chance(0.3):
        return Case(
            f"{draw.tool} {selector(draw).split()[0].translate(DROP)} {draw.choice(('-i', '--indent', '-i -5', '--indent -1'))} < page.html",
            {"page.html": page(draw)},
        )
    return failing(draw, f"--indent {draw.integer(0, 5)}")
