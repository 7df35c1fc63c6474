"""Schemas in DBML, whole and broken ones, and the calls that convert them."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuzz import EVIL, Case, Draw, quote

TYPES = (
    *(
        "int",
        "integer",
        "INT",
        "bigint",
        "smallint",
        "tinyint",
        "mediumint",
        "longint",
        "bool",
        "Boolean",
        "year",
    ),
    *("real", "float", "double", "decimal", "Numeric"),
    *(
        "text",
        "str",
        "varchar",
        "varchar(20)",
        "VARCHAR(255)",
        "nvarchar(30)",
        "date",
        "datetime",
        "timestamp",
        "time",
    ),
    *("tinytext", "longtext", "blob", "bytes", "byte", "uuid", "longblob", "tinyblob", "null", "none", "nil"),
)
UNKNOWN = (
    "char",
    "char(3)",
    "json",
    "decimal(10,2)",
    "money",
    "varchar(max)",
    "int(11)",
    "serial",
    '"double precision"',
)
STEPS = ("cascade", "restrict", "set null", "set default", "no action", "CASCADE", "Set Null")
COLUMNS = (
    "id",
    "name",
    "code",
    "state",
    "created_at",
    "total",
    "email",
    "note",
    "kind",
    "size_2",
    "URL",
    "x",
)
LABELS = (
    "open",
    "done",
    "in_review",
    "OPEN",
    "x1",
    "42",
    "_none",
    '"in progress"',
    '"été"',
    '"n/a"',
    '"日本"',
)


@dataclass
class Table:
    """A table: its columns (name to the rest of the line) and indexes."""

    name: str
    columns: dict[str, str]
    indexes: list[str] = field(default_factory=list)


@dataclass
class Schema:
    """A schema; `text` is the file."""

    tables: list[Table]
    enums: dict[str, list[str]]
    text: str = ""


def default(draw: Draw, *, sound: bool) -> str:
    """Return a default of a column; with `sound`, SQLite accepts what becomes of it."""
    values = [
        str(draw.integer(0, 999)),
        f"{draw.number(0, 50)}",
        f"{draw.integer(1, 9)}.{draw.choice(('0', '50', '250'))}",
        draw.choice(("true", "false", "TRUE", "False")),
        draw.choice(("null", "NULL")),
        f"'{draw.word()}'",
        f'"{draw.word()} {draw.word()}"',
        f"`{draw.choice(('now()', 'random() + 1', draw.word()))}`",
        "''",
        "'ünï 日本'",
    ]
    if not sound:
        values += ["'it\\'s'", '"it\'s"', "`date('now')`", "'''triple'''"]
    return draw.choice(values)


def settings(draw: Draw, names: list[str], column: str, *, sound: bool) -> str:
    """Return the settings of a column, in brackets, or nothing."""
    found = []
    if draw.chance(0.3):
        found.append(draw.choice(("not null", "NOT NULL", "null")))
    if draw.chance(0.2):
        found.append(draw.choice(("unique", "Unique")))
    if draw.chance(0.3):
        found.append(f"default: {default(draw, sound=sound)}")
    if draw.chance(0.2):
        found.append(f"ref: {draw.choice('><-')} {draw.choice(names)}.{column}")
    if draw.chance(0.15):
        found.append(f"note: '{draw.sentence(2)}'")
    if draw.chance(0.1):
        found.append("increment")
    draw.random.shuffle(found)
    return f" [{draw.choice((', ', ', ', ',')).join(found)}]" if found else ""


def table(draw: Draw, name: str, names: list[str], enums: dict[str, list[str]], *, sound: bool) -> Table:
    """Return a table. Its first column is one that all tables have, `id`."""
    key = draw.choice((" [pk]", " [primary key, increment]", " pk", " [pk, not null]", " [PK, unique]", ""))
    columns = {"id": draw.choice(("int", "integer", "bigint", "INT")) + key}
    for column in draw.sample(COLUMNS[1:], draw.integer(1, 5)):
        if enums and draw.chance(0.35):
            line = draw.choice(list(enums)) + draw.choice(
                ("", "", " [not null]", " [default: 'open']", " [unique]")
            )
        else:
            suffix = draw.choice((" unique", "")) if draw.chance(0.1) else ""
            line = draw.choice(TYPES) + suffix + settings(draw, names, "id", sound=sound)
        columns[column] = line
    if not sound and draw.chance(0.3):
        columns[draw.choice(('"full name"', '"ключ"', '"a-b"', '"order"'))] = draw.choice(TYPES)
    return Table(name, columns)


def indexes(draw: Draw, found: Table, count: int, label: str) -> None:
    """Give a table named indexes, since one without a name would get a random one."""
    for number in range(count):
        chosen = draw.sample(list(found.columns), draw.choice((1, 1, 2, 3)))
        subject = chosen[0] if len(chosen) == 1 and draw.chance(0.7) else f"({', '.join(chosen)})"
        options = [f"name: {draw.choice((chr(39), chr(34)))}{label}_{number}"]
        options[0] += options[0][6]
        if draw.chance(0.4):
            options.append("unique")
        if draw.chance(0.25):
            options.append(f"type: {draw.choice(('btree', 'hash'))}")
        if draw.chance(0.2):
            options.append(f"note: '{draw.word()}'")
        draw.random.shuffle(options)
        found.indexes.append(f"{subject} [{', '.join(options)}]")


def reference(draw: Draw, tables: list[Table]) -> str:
    """Return a reference between two columns, outside of the tables."""
    one, two = draw.choice(tables), draw.choice(tables)
    ends = [f"{each.name}.{draw.choice(list(each.columns))}" for each in (one, two)]
    line = f"{ends[0]} {draw.choice('><-')} {ends[1]}"
    if draw.chance(0.6):
        steps = draw.sample(
            (f"delete: {draw.choice(STEPS)}", f"update: {draw.choice(STEPS)}"), draw.integer(1, 2)
        )
        line += f" [{', '.join(steps)}]"
    name = draw.choice(("", "", f" fk_{draw.word()}"))
    if draw.chance(0.3):
        return f"{draw.choice(('Ref', 'ref'))}{name} {{\n  {line}\n}}"
    return f"{draw.choice(('Ref', 'ref', 'REF'))}{name}: {line}"


def schema(
    draw: Draw, *, sound: bool = True, enums: int = -1, index: bool = False, tables: int = 0
) -> Schema:
    """Return a schema of 1 to 3 tables. With `sound`, SQLite can execute what becomes of it."""
    names = draw.words(9)
    count = draw.integer(0, 2) if enums < 0 else enums
    kinds = {
        f"{name}_{draw.choice(('kind', 'state'))}": draw.sample(LABELS, draw.integer(1, 4))
        for name in names[6 : 6 + count]
    }
    chosen = names[: tables or draw.integer(1, 3)]
    found = [table(draw, name, chosen, kinds, sound=sound) for name in chosen]
    if kinds and not any(line.split(" ")[0] in kinds for each in found for line in each.columns.values()):
        found[-1].columns["status"] = next(iter(kinds))
    for number, each in enumerate(found):
        if draw.chance(0.35) or (index and not number):
            indexes(draw, each, draw.integer(1, 3), f"ix_{each.name}")
    result = Schema(found, kinds)
    parts = [_enum(draw, name, values) for name, values in kinds.items()]
    parts += [_table(draw, each) for each in found]
    parts += [reference(draw, found) for _ in range(draw.choice((0, 0, 1, 1, 2)))]
    if draw.chance(0.2):
        parts.append(f"TableGroup {draw.word()} {{\n  {chosen[0]}\n}}")
    if draw.chance(0.3):
        draw.random.shuffle(parts)
    if draw.chance(0.2):
        parts.insert(
            0, f"Project {draw.word()} {{\n  database_type: 'SQLite'\n  Note: '{draw.sentence(3)}'\n}}"
        )
    if draw.chance(0.3):
        parts.insert(draw.integer(0, len(parts)), f"// {draw.sentence(4)}")
    result.text = draw.choice(("\n\n", "\n")).join(parts) + draw.choice(("\n", "\n", ""))
    return result


def _enum(draw: Draw, name: str, values: list[str]) -> str:
    lines = "".join(
        f"  {value}{draw.choice(('', '', ' // why', ' [note: ' + chr(39) + 'x' + chr(39) + ']'))}\n"
        for value in values
    )
    return f"{draw.choice(('Enum', 'enum'))} {name} {{\n{lines}}}"


def _table(draw: Draw, found: Table) -> str:
    lines = [
        f"  {name} {line}{draw.choice(('', '', '', ' // ' + draw.word()))}"
        for name, line in found.columns.items()
    ]
    if draw.chance(0.2):
        lines.append(draw.choice((f"  Note: '{draw.word()}'", f"  note {{\n    '{draw.sentence(2)}'\n  }}")))
    if found.indexes:
        lines += ["", "  indexes {", *(f"    {index}" for index in found.indexes), "  }"]
    head = draw.choice(("Table", "Table", "table"))
    alias = draw.choice(
        ("", "", "", f" as {found.name[0].upper()}", " [headercolor: #3498db]", " [note: 'n']")
    )
    name = f'"{found.name}"' if draw.chance(0.2) else found.name
    return f"{head} {name}{alias} {{\n" + "\n".join(lines) + "\n}"


def source(draw: Draw) -> tuple[str, str]:
    """Return what the command names, and the path of the schema: a file, or a folder that holds only one schema."""
    name = draw.choice((draw.word(), "schema", "my schema", "a.b", "été"))
    folder = draw.choice(("db", "models", "deep/down"))
    if draw.chance(0.2):
        return folder + draw.choice(("", "/")), f"{folder}/{name}.dbml"
    return (
        path := draw.choice((f"{name}.dbml", f"{name}.dbml", f"./{name}.dbml", f"{folder}/{name}.dbml"))
    ), path


def call(draw: Draw, text: str, options: str, then: str = "") -> Case:
    """Return a conversion, the options before or behind the source."""
    named, path = source(draw)
    files = {path.removeprefix("./"): text}
    if not named.endswith(".dbml") and draw.chance(0.5):
        files[
            f"{named.rstrip('/')}/{draw.choice(('README.md', 'old.DBML', 'sub/more.dbml', 'x.dbml.bak'))}"
        ] = text
    words = [options, quote(named)] if draw.chance(0.5) else [quote(named), options]
    return Case(" ".join([draw.tool, *filter(None, words)]) + then, files)


def others(draw: Draw, *without: str) -> str:
    """Return further flags, some of them."""
    names = [
        ("-t", "--if-table-exists"),
        ("-i", "--if-index-exists"),
        ("-h", "--half"),
        ("-f", "--full"),
        ("-p", "--print"),
    ]
    usable = [name for pair in names if not set(pair) & set(without) for name in [draw.choice(pair)]]
    return " ".join(draw.sample(usable, draw.choice((0, 0, 1, 1, 2))))


def broken(draw: Draw) -> str:
    """Return a text that is no schema, or hardly one."""
    found = schema(draw)
    name = found.tables[0].name
    extra = (
        f"\nTable more {{\n  a {draw.choice(UNKNOWN)}\n}}\n",
        f"\nRef: {name}.id > {draw.word()}s.id\n",
        f"\nRef: {name}.missing > {name}.id\n",
        "\nTable more {\n}\n",
        "\nTable more {\n  id int [default: -1]\n}\n",
        "\nTable more {\n  id int [default: ]\n}\n",
        "\nTable more {\n  id int\n",
        "\nTable more { id int }\n",
        "\nTable more {\n  id int [primary]\n}\n",
        "\nTable more as M {\n  id int\n}\nRef: M.id > M.id\n",
        "\nTable more {\n  id int\n  indexes {\n    nope [name: 'x']\n  }\n}\n",
        "\nTableGroup g {\n  nobody\n}\n",
        "\nEnum more {\n}\n",
        "\nTable more {\n  日 int\n}\n",
        "\nProject a {\n}\nProject b {\n}\n",
        "\nCREATE TABLE more (id INTEGER);\n",
        "\nRef: a.id > \n",
    )
    whole = ("", draw.evil(), draw.text(2), draw.json_text(), "SELECT 1;\n", "Table\n")
    return found.text + draw.choice(extra) if draw.chance(0.75) else draw.choice(whole)


def edge(draw: Draw) -> str:
    """Return a schema at the edge of the language, which can be converted."""
    found = schema(draw, sound=False)
    name = found.tables[0].name
    strange = draw.choice(("日本 表", "a b", "select", "t%s", "x-y"))
    value = draw.choice(("it is", "a,b", "🙂", "--", "{x}"))
    texts = (
        "\n",
        "// nothing\n",
        "\ufeff" + found.text,
        found.text.replace("\n", "\n\n"),
        found.text + f"\nTable {draw.word()}_{draw.integer()} {{ only {draw.choice(TYPES)}\n}}",
        f'Table "{strange}" {{\n  "é {draw.word()}" text [default: "ü"]\n}}\n',
        f"TABLE {name} {{\n  id INT [PK, NOT NULL, UNIQUE, DEFAULT: 'a']\n}}\n"
        f"REF: {name}.id - {name}.id [DELETE: CASCADE]\n",
        f"Table {name} {{\n"
        + "".join(f"  c{number} {kind}\n" for number, kind in enumerate(draw.sample(TYPES, 20)))
        + "}\n",
        f"Table {name} {{\n  id int [pk,\n    not null,\n    unique]\n  b text [default: '{draw.word() * 40}']\n}}\n",
        f"Table {name} {{\n  a int pk\n  b int pk unique\n"
        f"  c {draw.choice(TYPES)} [ref: > {name}.a, ref: < {name}.b]\n}}\n",
        f'Enum e {{\n  "{value}"\n  {draw.word()}\n}}\nTable {name} {{\n  v e [pk, unique]\n}}\n',
        "".join(
            f"Table t{number} {{\n  id int [pk]\n  up int [ref: > t{max(number - 1, 0)}.id]\n}}\n"
            for number in range(draw.integer(5, 12))
        ),
        f"Enum {draw.word()} {{\n  alone\n}}\n",
    )
    return draw.choice(texts) if draw.chance(0.8) else found.text


def odd_call(draw: Draw, option: str, then: str = "") -> Case:
    """Return a conversion of an odd source: mostly one at the edge, at times one that is no schema."""
    shape = draw.integer(0, 9)
    if shape == 0:
        name = draw.choice(("schema.txt", "schema.DBML", "schema", "schema.dbml.bak", "schema.dbm"))
        return Case(f"{draw.tool} {name} {option}{then}", {name: schema(draw).text})
    if shape == 1:
        folder = draw.choice(("empty", "notes"))
        return Case(f"{draw.tool} {option} {folder}{then}", {f"{folder}/{draw.file('md')}": draw.text(2)})
    text = broken(draw) if shape < 5 else edge(draw)
    return call(draw, text, f"{option} {others(draw, *option.split())}".strip(), then)


def wrong(draw: Draw, option: str) -> Case:
    """Return a call that must fail, besides a sound option."""
    text = schema(draw, sound=True).text
    name = draw.choice(("schema.dbml", f"{draw.word()}.dbml"))
    files = {name: text}
    evil = quote(draw.choice([word for word in EVIL if word.strip() and not word.startswith("-")]) + ".dbml")
    calls = (
        f"{draw.word()}s.dbml {option}",
        f"{option} {evil}",
        f"{option}",
        f"{name} {option} {draw.word()}.dbml",
        f"{name} {option} --{draw.choice(('mode', 'dialect', 'output', 'quiet', draw.word()))}",
        f"{option} {name} -{draw.choice('azvqd')}",
        f"{name} {option} --half={draw.word()}",
        f"{name} {option} --write",
        f"{name} {option} -x",
        f"{name} {option} -w no/such/folder/{draw.file('sql')}",
        f"{option} -x no/such/folder/{draw.file('db')} {name}",
        f"{name} {option} -w .",
        f"{name} {option} -x {name}",
        f"{option} {draw.word()}/",
    )
    return Case(
        " ".join(f"{draw.tool} {draw.choice(calls)}".split())
        if "'" not in option
        else f"{draw.tool} {calls[0]}",
        files,
    )


def looked_at(draw: Draw, found: Schema, base: str) -> str:
    """Return a command that prints something that a database holds."""
    query = draw.choice(
        (
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name",
            "SELECT type, name, tbl_name FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name",
            f"PRAGMA table_info({found.tables[0].name})",
            f"PRAGMA foreign_key_list({found.tables[-1].name})",
            *(f"SELECT id, type, seq FROM {name} ORDER BY seq" for name in found.enums),
        )
    )
    code = (
        f"import sqlite3\nfor row in sqlite3.connect({base!r}).execute({query!r}):\n    print(*row, sep='|')"
    )
    return f"python3 -c {quote(code)}"
