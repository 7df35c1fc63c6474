"""Several references in a line."""

from _segments import SHOWN, call, corpus, lines, odd, worse, wrong
from fuzz import Case, Draw


def case(draw: Draw, count: int, options: str) -> Case:
    """Return a score against a file with several references in each line."""
    references, translations = corpus(draw)
    table = ["\t".join([text, *(worse(draw, text) for _ in range(count - 1))]) for text in references]
    option = draw.choice((f"-nr {count}", f"--num-refs {count}", f"--num-refs={count}"))
    shown, cut = draw.choice(((" -b", ""), ("", SHOWN), (" --short", SHOWN)))
    words = [
        f"refs.tsv {option}{options}{shown} -i mt.txt{cut}",
        f"refs.tsv {option}{options}{shown} < mt.txt{cut}",
    ]
    return Case(
        f"{draw.tool} {draw.choice(words)}", {"refs.tsv": lines(table), "mt.txt": lines(translations)}
    )


def common(draw: Draw) -> Case:
    """Return a score with two to four references in a line."""
    return case(
        draw,
        draw.integer(2, 4),
        draw.choice(("", "", "", " -m ter", " -lc", " -sl", " -m bleu chrf", " -w 2")),
    )


def boundary(draw: Draw) -> Case:
    """Return a score with more fields than references, or one reference a line."""
    kind = draw.integer(0, 3)
    if kind == 0:
        return odd(draw, "-nr 1")
    if kind == 1:
        return call(draw, "--num-refs 1", corpus(draw), more=1)
    made = case(draw, 3, "")
    return Case(made.command.replace("3", draw.choice(("2", "4", "0", "-1")), 1), made.files)


def error(draw: Draw) -> Case:
    """Return a call that must fail, beside the option."""
    return wrong(draw, draw.choice(("-nr 1", "-nr two", "-nr 2", "--num-refs 3")))
