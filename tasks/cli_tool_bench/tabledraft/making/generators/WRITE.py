"""The output in a file."""

from _schemas import call, odd_call, others, schema, wrong
from fuzz import Case, Draw, quote


def target(draw: Draw) -> str:
    """Return the option with a file."""
    name = quote(draw.choice((draw.file("sql"), "out.sql", "out", "my out.sql", "sortie-é.sql", "./out.txt")))
    return draw.choice((f"-w {name}", f"--write {name}", f"--write={name}", f"-w{name}"))


def common(draw: Draw) -> Case:
    """Return a conversion into a file, new or not."""
    silent = draw.choice(("", "", "-n", "--no-print"))
    options = " ".join(filter(None, [target(draw), silent, others(draw, "-p", "--print")]))
    found = call(draw, schema(draw, sound=draw.chance(0.5)).text, options)
    return Case(found.command, {**found.files, "out.sql": "-- old\n" * 200}) if draw.chance(0.2) else found


def boundary(draw: Draw) -> Case:
    """Return odd sources, of which some write nothing, and odd targets."""
    if draw.chance(0.25):
        text = schema(draw).text
        return draw.choice(
            (
                Case(f"{draw.tool} s.dbml -w s.dbml -n", {"s.dbml": text}),
                Case(f"{draw.tool} s.dbml -w one.sql -w two.sql", {"s.dbml": text}),
                Case(f"{draw.tool} -w -n s.dbml", {"s.dbml": text}),
                Case(f"{draw.tool} -w '' s.dbml", {"s.dbml": text}),
                Case(f"{draw.tool} s.dbml -w deep/out.sql", {"s.dbml": text, "deep/keep.txt": "kept\n"}),
            )
        )
    return odd_call(draw, target(draw))


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(
        draw, draw.choice((f"-w {draw.file('sql')}", f"--write={draw.file('sql')}", "-n -w out.sql"))
    )
