"""Lay out other dialects."""

from __future__ import annotations

from _sql import failing, laid, rare, script
from fuzz import Case, Draw

DIALECTS = ("mysql", "postgresql", "tsql")
SPECIAL = {
    "mysql": (
        "select `{0} x`, {1} from `{2}` where {0} <=> {3} and {1} != 2",
        "select {0} # {1}\nfrom {2} where a = ?",
        "set @{0} := {3}, @{1} = 2",
        "select {0}->'$.{1}', {0}->>'$.{2}' from t where {1} << 2 > 1 && {2} >> 1 || x",
        "insert {0} values (1, '{1}')",
        "select `a``b`, @@{0} from {1} natural left join {2}",
        "select {0} from a except select {1} from b",
        "select {0} from a -- {1}\n  left join b on a.x!=b.y # {2}\nlimit 2, {3}",
    ),
    "postgresql": (
        "select {0}::int, {1} :: text from {2} where {0} ~* '{1}' and {1} !~~ 'x'",
        "select $1, $2, :{0} from {1} where {2} = :{1} and a.b = $3",
        "select $${0}; {1}$$, $tag$it's -- {2}$tag$",
        "select {0}->'{1}'->>'{2}', |/ {3}, ||/ 27, {3} !! from t",
        "insert into {0} values ($1) returning {1}",
        "insert {0}",
        "select {0} from a except select {1} from b intersect all select {2} from c",
        "create function {0}() as $body$ begin return {3}; end $body$",
        "select {0} from {1} full outer join {2} on a.x != b.y where {0} !~* '^x' or {1} << 3 >> 1 = 2",
    ),
    "tsql": (
        "select [{0} x], [{1}]]y] from [{2}].[{0}]",
        "select @{0}, N'{1} ü' from #{2} where {0} != @{1}",
        "set @{0} += {3}",
        "select {0} from a minus select {1} from b",
        "update #t set {0} *= 2, {1} ^= 3, {2} %= {3} where {0} !< {3} and {1} !> 2",
        "insert {0} values (@{1}, @{2})",
        "select {0}::{1} from a cross join b except select 1",
        "declare @{0} int; select a&=1, b|=2, c/=3, d-=4 from {1}",
    ),
}
NAMES = ("db", "DB2", "MySQL", "oracle", "sqlite", "postgres", "''", "mysql,tsql", "ansi", "SQL")


def option(draw: Draw, dialect: str) -> str:
    """Return the option in one of its forms, with others at times."""
    return draw.choice(("-l {}", "--language {}", "--language={}", "-l{}", "-l {} -i 4", "-t -l {}")).format(
        dialect
    )


def special(draw: Draw, dialect: str) -> str:
    """Return a statement that other dialects lay out differently."""
    return draw.choice(SPECIAL[dialect]).format(*draw.words(3), draw.integer(1, 99))


def common(draw: Draw) -> Case:
    """Lay out statements of a dialect, in that dialect or in another one."""
    dialect = draw.choice(DIALECTS)
    own = dialect if draw.chance(0.75) else draw.choice((*DIALECTS, "sql"))
    parts = [special(draw, dialect) for _ in range(draw.integer(1, 2))]
    if draw.chance(0.3):
        parts.append(script(draw, 1, 1).strip(";\n"))
    return laid(draw, option(draw, own), draw.choice((";\n", "; ")).join(parts) + draw.choice(("", ";\n")))


def boundary(draw: Draw) -> Case:
    """Lay out odd texts."""
    odd = (
        "$1",
        "$a$x",
        "[x",
        "`x",
        "N'a",
        "@",
        "#",
        "a#b",
        "a@b",
        "$$",
        ":",
        "::",
        "->>",
        "<=>",
        "@`a`",
        ":'x'",
        '@"y z"',
        "$x",
        "x$y",
        "!!!",
    )
    text = draw.choice(
        (
            rare(draw),
            draw.choice(odd),
            f"select {draw.choice(odd)} from {draw.choice(odd)}",
            f"a {draw.choice(odd)} b",
        )
    )
    return laid(draw, option(draw, draw.choice((*DIALECTS, "sql"))), text)


def error(draw: Draw) -> Case:
    """Fail."""
    wrong = tuple(f"-l {name}" for name in NAMES) + (
        f"--language={draw.word()}",
        f"-l{draw.letters(4)}",
        "-l",
        "--language",
    )
    return failing(draw, option(draw, draw.choice(DIALECTS)), wrong)
