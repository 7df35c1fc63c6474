"""The output executed in a database, which is looked at and then removed: its bytes depend on SQLite's version."""

from _schemas import Schema, broken, call, edge, looked_at, others, schema, wrong
from fuzz import Case, Draw

CLEAN = "; code=$?; rm -f app.db; exit $code"


def option(draw: Draw) -> str:
    """Return the option with a database."""
    return draw.choice(("-x app.db", "--execute app.db", "--execute=app.db", "-xapp.db"))


def twice(draw: Draw, found: Schema, first: str, second: str) -> Case:
    """Return two conversions into one database."""
    command = (
        f"{draw.tool} s.dbml -n {first} {option(draw)} && {draw.tool} s.dbml {second} {option(draw)}{CLEAN}"
    )
    return Case(command, {"s.dbml": found.text})


def common(draw: Draw) -> Case:
    """Return an execution whose database is looked at, or one on top of another."""
    found = schema(draw, index=draw.chance(0.5))
    if draw.chance(0.2):
        return twice(
            draw,
            found,
            draw.choice(("-h", "--half -t")),
            draw.choice(("-h -t -i", "-hti", "--half -i -t -n")),
        )
    look = f" && {looked_at(draw, found, 'app.db')}"
    silent = draw.choice(("-n", "-n", "--no-print", ""))
    options = " ".join(filter(None, [option(draw), silent, others(draw, "-p", "--print", "-h", "--half")]))
    if draw.chance(0.15):
        options += " -w out.sql"
    return call(draw, found.text, options, f"{look}{CLEAN}")


def boundary(draw: Draw) -> Case:
    """Return statements that SQLite may refuse, and executions on top of another."""
    shape = draw.integer(0, 5)
    if shape < 2:
        text = edge(draw) if shape else broken(draw)
        return call(draw, text, f"{option(draw)} {others(draw)}".strip(), CLEAN)
    if shape == 2:
        return twice(draw, schema(draw, index=True), "-h", draw.choice(("-h", "-h -t", "-h -i", "-ti -h")))
    if shape == 3:
        return twice(
            draw, schema(draw, enums=1), draw.choice(("", "-h")), draw.choice(("-t -i", "-ti -w out.sql"))
        )
    found = schema(draw, sound=False)
    look = (
        looked_at(draw, schema(draw), "app.db").replace("SELECT", "SELECT DISTINCT")
        if shape == 4
        else "echo done"
    )
    return call(draw, found.text, f"-n {option(draw)}", f" && {look}{CLEAN}")


def error(draw: Draw) -> Case:
    """Return a call that must fail: wrong usage, no database, or statements that SQLite refuses."""
    name = draw.word()
    bad = (
        f"Table {name} {{\n  id int [pk]\n  no int [pk]\n}}\n",
        f'Table "{name} {draw.word()}s" {{\n  id int\n}}\n',
        f"Table {name} {{\n  id int\n  id text\n}}\n",
        f"Table {name} {{\n  id int\n}}\nTable {name} {{\n  no int\n}}\n",
        f"Table {draw.choice(('order', 'select', 'group', 'table'))} {{\n  id int\n}}\n",
        f"Table {name} {{\n  id text [default: 'it\\'s']\n}}\n",
        f"Enum {name} {{\n  a\n  a\n}}\nTable t {{\n  v {name}\n}}\n",
        f"Table {name} {{\n  id int\n  indexes {{\n    id [name: '{name}']\n  }}\n}}\n",
        f"Table {draw.integer()}{name} {{\n  id int\n}}\n",
    )
    if draw.chance(0.6):
        text = draw.choice(bad)
        if draw.chance(0.5):
            text = f"Table first_{draw.word()} {{\n  id int\n}}\n{text}"
        return Case(
            f"{draw.tool} s.dbml {option(draw)} {draw.choice(('', '-n', '-i', '-w out.sql'))}{CLEAN}",
            {"s.dbml": text},
        )
    found = wrong(draw, "-x app.db")
    return Case(found.command + CLEAN, found.files)
