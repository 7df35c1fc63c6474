from _prose import EDGES, broken, document, source
from fuzz import Case


def option(draw, flavor):
    return draw.choice((f"-p {flavor}", f"--flavor {flavor}", f"--flavor={flavor}", f"-p{flavor}"))


def common(draw):
    flavor = draw.choice(("github", "github", "ghost", "original", "vanilla"))
    more = draw.choice(("", "", "", " -c noHeaderId", " -c headerLevelStart=2", " -c openLinksInNewWindow"))
    return source(draw, document(draw, draw.integer(1, 2), draw.integer(1, 4)), option(draw, flavor) + more)


def boundary(draw):
    flavor = draw.choice(("github", "ghost", "original", "vanilla"))
    text = draw.choice((*EDGES, "# Don't -- stop!\n\n# A & B\n", "a_b_c *d*e\n", "| a |\n|---|\n| 1 |\n", "```\nx\n```", "# a\n#b\n"))
    if draw.chance(0.3):
        out = draw.choice(("-o out.html", "--output out.html"))
        return source(draw, text, f"{option(draw, flavor)} {out}")
    if draw.chance(0.2):
        return source(draw, text, f"-p github {option(draw, flavor)}")
    return source(draw, text, option(draw, flavor))


def error(draw):
    name = draw.file("md")
    kind = draw.integer(0, 2)
    if kind == 0:
        bad = draw.choice(("GitHub", "gfm", "markdown", "commonmark", "Vanilla", "none", "github,ghost", "' github'", draw.word()))
        return Case(f"{draw.tool} {draw.choice(('', '-q ', '-m '))}makehtml -i {name} {option(draw, bad)}", {name: document(draw, 1)})
    if kind == 1:
        return Case(f"{draw.tool} makehtml -i {name} {draw.choice(('-p', '--flavor'))}", {name: document(draw, 1)})
    return broken(draw, option(draw, draw.choice(("github", "ghost", "original"))))
