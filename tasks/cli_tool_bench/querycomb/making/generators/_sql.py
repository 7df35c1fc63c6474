"""SQL to lay out, shared by the generators of this tool."""

from __future__ import annotations

import re
from collections.abc import Callable

from fuzz import Case, Draw, quote

JOINS = ("join", "inner join", "left join", "left outer join", "right join", "right outer join", "cross join")
FUNCTIONS = ("count", "sum", "max", "min", "coalesce", "lower", "upper", "round", "length")
KINDS = ("int", "integer", "varchar(20)", "decimal(10, 2)", "boolean", "timestamp", "text", "char(3)")
COMMENTS = ("-- {}\n", "/* {} */ ", "/* {}\n   and more\n*/", "--{}\n")


def name(draw: Draw) -> str:
    """Return a column, at times with its table."""
    word = draw.word()
    return f"{draw.choice('abtu')}.{word}" if draw.chance(0.25) else word


def value(draw: Draw) -> str:
    """Return a constant or a placeholder."""
    simple = (
        str(draw.integer(0, 999)),
        str(draw.number()),
        f"'{draw.word()}'",
        "null",
        "true",
        "?",
        "-5",
        "'it''s'",
        "1e3",
    )
    return draw.choice(simple)


def call(draw: Draw, depth: int) -> str:
    """Return a call of a function."""
    parts = ", ".join(expression(draw, depth - 1) for _ in range(draw.integer(1, 3)))
    return f"{draw.choice(FUNCTIONS)}{draw.choice(('', '', ' '))}({draw.choice((parts, parts, '*', f'distinct {name(draw)}'))})"


def expression(draw: Draw, depth: int = 2) -> str:
    """Return an expression."""
    kind = draw.integer(0, 8) if depth > 0 else draw.integer(0, 2)
    if kind <= 1:
        return name(draw)
    if kind == 2:
        return value(draw)
    if kind <= 4:
        return call(draw, depth)
    if kind == 5:
        sign = draw.choice(("+", "-", "*", "/", " + ", " - ", " * ", " % "))
        return f"{expression(draw, depth - 1)}{sign}{expression(draw, depth - 1)}"
    if kind == 6:
        whens = " ".join(
            f"when {condition(draw, 0)} then {expression(draw, 0)}" for _ in range(draw.integer(1, 2))
        )
        return f"case {draw.choice(('', name(draw) + ' '))}{whens}{draw.choice(('', f' else {value(draw)}'))} end"
    if kind == 7:
        return f"({expression(draw, depth - 1)})"
    return f"cast({expression(draw, depth - 1)} as {draw.choice(KINDS)})"


def condition(draw: Draw, depth: int = 2) -> str:
    """Return a condition."""
    kind = draw.integer(0, 8) if depth > 0 else draw.integer(0, 3)
    left = expression(draw, max(depth - 1, 0))
    if kind <= 2:
        return f"{left}{draw.choice(('=', ' = ', ' <> ', '<=', ' >= ', '<', ' > '))}{expression(draw, max(depth - 1, 0))}"
    if kind == 3:
        return f"{left} {draw.choice(('is null', 'is not null', 'like ?', f'between {value(draw)} and {value(draw)}'))}"
    if kind == 4:
        many = ", ".join(value(draw) for _ in range(draw.integer(1, 12)))
        return f"{left} {draw.choice(('in', 'not in'))} ({many})"
    if kind == 5:
        return f"{draw.choice(('exists', f'{left} in', f'{left} ='))} ({select(draw, depth - 1)})"
    if kind == 6:
        return f"({condition(draw, depth - 1)} or {condition(draw, depth - 1)})"
    return f"{condition(draw, depth - 1)} {draw.choice(('and', 'or'))} {condition(draw, depth - 1)}"


def select(draw: Draw, depth: int = 2) -> str:
    """Return a query."""
    columns = [
        expression(draw, depth) + draw.choice(("", "", f" as {draw.word()}"))
        for _ in range(draw.integer(1, 4))
    ]
    text = f"select {draw.choice(('', '', 'distinct '))}{draw.choice((', ', ',', ' , ')).join(columns)} from {draw.word()}"
    text += draw.choice(("", "", f" {draw.choice('abtu')}", f", {draw.word()}"))
    if depth > 0 and draw.chance(0.15):
        text = text.rpartition(" from ")[0] + f" from ({select(draw, depth - 1)}) as {draw.choice('abtu')}"
    for _ in range(draw.integer(0, 2) if depth > 0 else 0):
        text += f" {draw.choice(JOINS)} {draw.word()} on {condition(draw, 0)}"
    if draw.chance(0.6):
        text += f" where {condition(draw, depth)}"
    if draw.chance(0.25):
        text += (
            f" group by {name(draw)}{draw.choice(('', f', {name(draw)}', f' having {condition(draw, 0)}'))}"
        )
    if draw.chance(0.25):
        text += f" order by {name(draw)}{draw.choice(('', ' desc', f', {name(draw)} asc'))}"
    if draw.chance(0.2):
        text += f" limit {draw.integer(1, 99)}{draw.choice(('', f', {draw.integer(1, 9)}'))}"
    return text


def change(draw: Draw) -> str:
    """Return a statement that changes data or tables."""
    table, columns = draw.word(), draw.words(draw.integer(1, 6))
    values = ", ".join(value(draw) for _ in columns)
    sets = ", ".join(f"{column} = {expression(draw, 1)}" for column in columns)
    kinds = ", ".join(
        f"{column} {draw.choice(KINDS)}{draw.choice(('', ' not null', ' primary key'))}" for column in columns
    )
    forms = (
        f"insert into {table} ({', '.join(columns)}) values ({values})",
        f"insert into {table}({','.join(columns)}) values ({values}), ({values})",
        f"insert into {table} {select(draw, 1)}",
        f"update {table} set {sets} where {condition(draw, 1)}",
        f"delete from {table} where {condition(draw, 1)}",
        f"create table {table} ({kinds})",
        f"alter table {table} add {columns[0]} {draw.choice(KINDS)}",
        f"alter table {table} alter column {columns[0]} set default {value(draw)}",
        f"drop table {table}",
    )
    return draw.choice(forms)


def statement(draw: Draw) -> str:
    """Return a statement in lower case."""
    kind = draw.integer(0, 9)
    if kind <= 5:
        return select(draw, draw.integer(0, 2))
    if kind == 6:
        union = draw.choice(("union", "union all", "intersect", "except", "union distinct"))
        return f"{select(draw, 1)} {union} {select(draw, 1)}"
    if kind == 7:
        return f"with {draw.word()} as ({select(draw, 1)}) {select(draw, 1)}"
    return change(draw)


def recase(draw: Draw, text: str) -> str:
    """Return a text whose words outside of strings have another case."""
    style = draw.choice((str.lower, str.lower, str.upper, str.capitalize))
    plain = r"('(?:[^']|'')*')|\b(?:select|from|where|join|left|and|or|case|when|then|else|end|as|on|in|group|by|order|limit|count|set)\b"
    shape: Callable[[re.Match[str]], str] = lambda found: found[0] if found[1] else style(found[0])  # noqa: E731
    return re.sub(plain, shape, text)


def messy(draw: Draw, text: str) -> str:
    """Return a statement with other white space and, at times, comments."""
    text = recase(draw, text)
    parts = re.split(r"('(?:[^']|'')*'| )", text)
    loose = draw.choice((0.0, 0.1, 0.3))
    made = []
    for part in parts:
        blank = part == " "
        made.append(
            draw.choice(("\n", "  ", "\t", "\n    ", " \n ")) if blank and draw.chance(loose) else part
        )
        if blank and draw.chance(0.02):
            made.append(draw.choice(COMMENTS).format(draw.word()))
    return "".join(made)


def script(draw: Draw, least: int = 1, most: int = 2) -> str:
    """Return some statements."""
    found = [messy(draw, statement(draw)) for _ in range(draw.integer(least, most))]
    return draw.choice((";\n", "; ", ";", ";\n\n\n")).join(found) + draw.choice(("", ";", "\n", ";\n"))


def laid(draw: Draw, options: str, text: str) -> Case:
    """Return a case that lays out this text, from a file or from standard input."""
    file = draw.choice((f"{draw.word()}.sql", "query.sql", "in.txt"))
    kind = draw.integer(0, 4)
    if kind == 0:
        return Case(f"{draw.tool} {options} < {file}", {file: text})
    if kind == 1:
        return Case(f"cat {file} | {draw.tool} {options}", {file: text})
    if kind == 2:
        return Case(f"{draw.tool} {file} {options}", {file: text})
    return Case(f"{draw.tool} {options} {file}", {file: text})


RARE = (
    *(
        "",
        " \n\t",
        ";",
        ";;",
        "select",
        "select 1",
        "(",
        ")",
        "()",
        "case",
        "end",
        ",",
        "a.b.c",
        "--",
        "/*",
        "/* a",
        "'open",
        '"x',
        "''",
    ),
    *(
        'select \'a\\\'b\', "c""d"',
        "select a.from, b.select",
        "1 - 1",
        "1-1",
        "a - -1",
        "0xFF 0b10 1.5e-3",
        "a<>b<=c>=d<e",
        "x != y || z",
    ),
    *(
        "select count(*), f( a ), g (b)",
        "((a))",
        "(select 1)",
        "f((select 1))",
        "a between 1 and 2 and 3",
        "limit 1, 2 offset 3",
    ),
    *(
        "select größe from 日本 where é = '🙂'",
        "-- only\n",
        "select 1 -- end",
        "/* a\n     b */ select 1",
        "a:b",
        "? ?1 ?2a",
        "[x]",
        "`x y`",
    ),
    *(
        "select a, -- one\n b -- two\nfrom t",
        "/* x */ select /* y */ 1 /* z */",
        "union union",
        "set a = 1, b = 2",
        "group\n  by",
        "order   by x",
    ),
    *(
        "(" * 12 + "x" + ")" * 12,
        "f(" + "a, " * 15 + "b)",
        "f(" + "a, " * 16 + "b)",
        "(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)",
    ),
    *(
        "(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)",
        "f(a, g(b, h(c)))",
        "f(a and b)",
        "f(a; b)",
        "f(a /* b */)",
        "f(a -- b\n)",
    ),
    *(
        "fetch first 3 rows only",
        "a\r\nb",
        "select\u00a01",
        "end case",
        "case when a then (case when b then c end) end",
        "selects fromage",
    ),
)


def rare(draw: Draw) -> str:
    """Return a text of odd tokens."""
    if draw.chance(0.2):
        return f"select {draw.evil()} from t"
    first, second = draw.choice(RARE), draw.choice(RARE)
    return draw.choice((first, first, f"{first} {second}", f"select {first}", f"{first};\n{second}"))


def failing(draw: Draw, options: str, wrong: tuple[str, ...] = ()) -> Case:
    """Return a case with a file that cannot be read or written, or with wrong options."""
    text = script(draw, 1, 1)
    file = f"{draw.word()}.sql"
    common = (
        "--bogus",
        "-z",
        "--language",
        "-l oracle",
        "-i two",
        "-i 1.5",
        "-i",
        "--lines-between-queries x",
        "-i 3 -t",
        "b.sql",
    )
    kind = draw.integer(0, 5)
    if kind == 0:
        return Case(f"{draw.tool} {options} {draw.letters(5)}.sql", {file: text})
    if kind == 1:
        folder = draw.word()
        return Case(f"{draw.tool} {options} {folder}", {f"{folder}/{file}": text})
    if kind == 2:
        return Case(f"{draw.tool} {options} -o {draw.word()}/{draw.letters(3)}.sql {file}", {file: text})
    if kind == 3 and not wrong:
        return Case(f"cat {file} | {draw.tool} {options} {quote(draw.word())}", {file: text})
    return Case(f"{draw.tool} {file} {draw.choice(wrong or common)}", {file: text})
