from _kit import failing, odd, page, usual
from fuzz import Case, quote


def common(draw):
    name = draw.path("html", 1)
    case = usual(draw, f"{draw.choice(('-f', '--file'))} {name}", source=draw.choice(("", "< /dev/null")))
    return Case(case.command.strip(), {name: case.files["page.html"]})


def boundary(draw):
    name = draw.choice(("a b.html", "日本.html", "-n", "x.tar", "it's.html", "p", "empty"))
    case = odd(draw, f"--file {quote(name)}")
    return Case(
        case.command.replace("< in.html", draw.choice(("", "-f other.html"))).strip(),
        {name: case.files["in.html"], "other.html": page(draw)},
    )


def error(draw):
    kind = draw.choice(("-f {}", "--file {}"))
    wrong = draw.choice((f"{draw.word()}.htm", "folder", "in.html/x", "", f"no/{draw.word()}"))
    if draw.chance(0.3):
        return failing(draw, "-f in.html")
    return Case(
        f"{draw.tool} {draw.choice(('p', 'li', 'text{}'))} {kind.format(wrong)}",
        {"in.html": page(draw), "folder/x": "x"},
    )
