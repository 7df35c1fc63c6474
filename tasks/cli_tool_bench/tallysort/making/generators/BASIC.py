"""Sorting without any option."""

from _lists import evil, given, mixed, paths, plain, wrong
from fuzz import Case


def common(draw):
    """Return a case that sorts words with numbers."""
    kind = draw.choice((plain, plain, plain, plain, paths))
    return given(draw, "", kind(draw))


def boundary(draw):
    """Return a case with other scripts, empty input, huge numbers or awkward texts."""
    kind = draw.choice(("mixed", "mixed", "evil", "empty", "huge", "same"))
    if kind == "mixed":
        return given(draw, "", mixed(draw))
    if kind == "evil":
        return given(draw, "", evil(draw), "input")
    if kind == "empty":
        text = draw.choice(("", "\n", "\n\n", " \n", "\t\n 3\n\n", "3"))
        return Case(f"{draw.tool} < empty.txt", {"empty.txt": text})
    if kind == "huge":
        made = [
            f"{draw.word()}{draw.letters(draw.integer(1, 40), '0123456789')}"
            for _ in range(draw.integer(2, 8))
        ]
        return given(draw, "", made + ["9" * 40, "1" + "0" * 40])
    word = draw.word()
    made = [word + "0" * draw.integer(0, 4) + str(draw.integer(1, 3)) for _ in range(draw.integer(4, 10))]
    return given(draw, "", made)


def error(draw):
    """Return a case of wrong usage."""
    return wrong(draw)
