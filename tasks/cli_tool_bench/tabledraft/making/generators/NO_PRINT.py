"""Nothing on standard output: only files and databases show the conversion."""

from _schemas import call, looked_at, odd_call, others, schema, wrong
from fuzz import Case, Draw

FORMS = ("-n", "--no-print", "-n", "--print --no-print", "-p -n")


def common(draw: Draw) -> Case:
    """Return a silent conversion with an effect, or one that a later flag makes audible."""
    found = schema(draw)
    form = draw.choice((*FORMS, "-n -p"))
    more = others(draw, "-p", "-h")
    if draw.chance(0.3):
        look = looked_at(draw, found, "app.db")
        return call(
            draw, found.text, f"{form} {more} -x app.db".replace("  ", " "), f" && {look} && rm app.db"
        )
    name = draw.choice(("out.sql", draw.file("sql")))
    then = draw.choice((f" && wc -l < {name}", f" && cat {name}", "", ""))
    return call(draw, found.text, f"{form} {more} -w {name}".replace("  ", " "), then)


def boundary(draw: Draw) -> Case:
    """Return odd sources: the message about one that is no schema appears all the same."""
    return odd_call(draw, f"{draw.choice(FORMS)} -w out.sql")


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(("-n", "--no-print", "-n -w out.sql")))
