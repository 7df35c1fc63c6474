"""Write to a file."""

from __future__ import annotations

from _sql import failing, laid, rare, script
from fuzz import Case, Draw, quote


def option(draw: Draw, file: str) -> str:
    """Return the option in one of its forms, with others at times."""
    form = draw.choice(("-o {}", "--output {}", "--output={}", "-o{}", "-u -o {}", "-o {} -t", "-l sql -o {}"))
    return form.format(quote(file))


def written(draw: Draw, text: str, file: str) -> Case:
    """Return a case that writes this file and shows it at times; it exists at times."""
    case = laid(draw, option(draw, file), text)
    if file in case.files:
        return case
    command = f"{case.command} && cat {quote(file)}" if draw.chance(0.3) else case.command
    return Case(command, case.files | ({file: draw.text()} if draw.chance(0.3) else {}))


def common(draw: Draw) -> Case:
    """Write ordinary statements."""
    return written(
        draw, script(draw), draw.choice((f"{draw.word()}.out", "out.sql", f"{draw.word()}.txt", "a b.sql"))
    )


def boundary(draw: Draw) -> Case:
    """Write odd texts, or to odd places."""
    if draw.chance(0.5):
        return written(draw, rare(draw), "out.sql")
    places = (
        "ünï.sql",
        "./x.sql",
        "sub/../y.sql",
        "日本",
        "-.sql",
        "x" * 80,
        "query.sql",
        "in.txt",
        "/dev/stdout",
    )
    place = draw.choice(places)
    case = laid(draw, option(draw, place), script(draw))
    return Case(case.command, case.files | {"sub/keep.txt": ""})


def error(draw: Draw) -> Case:
    """Fail."""
    wrong = (
        f"-o {draw.word()}/out.sql",
        "-o",
        "--output",
        "-o folder",
        "-o folder/",
        "-o ''/x",
        "-o out.sql -i x",
        "-o a.sql b.sql c.sql",
    )
    case = failing(draw, option(draw, "out.sql"), wrong)
    return Case(case.command, case.files | {"folder/keep.txt": "1"})
