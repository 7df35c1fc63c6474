"""Entries as file paths."""

from _lists import given, paths, wrong
from fuzz import Case, quote

FLAG = ("-p", "--paths")


def common(draw):
    """Return a case that sorts paths."""
    options = draw.choice(FLAG) + draw.choice(("", "", "", " -r", " -t float", " -t r"))
    return given(draw, options, paths(draw))


def boundary(draw):
    """Return a case with paths of unusual form."""
    word = draw.word()
    odd = [
        *(
            f"{word}/",
            f"{word} (1)/",
            f"{word} (10)/",
            f"{word} (2)/x",
            f"{word}.txt",
            f"{word} (1).txt",
            f"{word}.a.b.c",
        ),
        *(
            f"{word}.tar.gz",
            f"{word}.1.5",
            f"{word}.1.15",
            f".{word}",
            f"..{word}",
            f"/{word}",
            f"//{word}",
            f"///{word}",
        ),
        *(
            f"./{word}",
            f"a/./{word}",
            f"a//{word}",
            f"a/../{word}",
            ".",
            "..",
            "/",
            "",
            f"{word}.",
            f"{word}.x.x",
            "日本/3.ü",
            "日本/20.ü",
        ),
    ]
    return given(
        draw,
        draw.choice(FLAG),
        draw.sample(odd, draw.integer(4, 14)),
        draw.choice(("input", "pipe", "arguments")),
    )


def error(draw):
    """Return a case of wrong usage beside the flag."""
    if draw.chance(0.3):
        return Case(f"{draw.tool} --paths={draw.word()} {quote(paths(draw)[0])}")
    return wrong(draw, draw.choice(FLAG))
