"""Writes `cases.jsonl` of every task here: 50 distinct cases a class, always the same ones for the same seed.

    python tasks/cli_tool_bench/generate.py [SEED]

One generator a class. Each yields (command, files) for ever, or (command, files, True) for a case that the tool must
refuse; most are common usage, some are at its borders, about one in eight is an error.
"""

import difflib
import json
import random
import sys
from itertools import islice
from pathlib import Path

SEED, CASES = 7, 50
WORDS = "amber basin cedar delta ember fjord grove heron inlet jetty knoll lagoon maple north otter pearl".split()


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


# --- verkit: version numbers -----------------------------------------------------------------------------------------


def version(rng, plain=False):
    core = ".".join(str(rng.choice([0, 1, 2, 3, 9, 10, 19, 99, 100])) for _ in range(3))
    if plain or rng.random() < 0.4:
        return core
    pre = rng.choice(["", "-rc.1", "-alpha", "-alpha.1", "-beta.9", "-rc.10", "-0.3.7", "-x.7.z.92", "-pre"])
    build = rng.choice(["", "", "+build.1", "+build.9", "+exp.sha.5114f85", "+001", "+21"])
    return core + pre + build


def no_version(rng):
    return rng.choice(["1", "1.2", "1.2.3.4", "01.2.3", "1.02.3", "v1.2.3", "a.b.c", "1.2.3-", "1.2.3+", "1.2.-3", "''"])


def verkit_bump(rng):
    while True:
        part = rng.choice(["major", "minor", "patch", "prerelease", "build"])
        if rng.random() < 0.12:
            yield f"verkit bump {part} {no_version(rng)}", {}, True
        else:
            yield f"verkit bump {part} {version(rng)}", {}


def verkit_check(rng):
    while True:
        if rng.random() < 0.25:
            yield f"verkit check {no_version(rng)}", {}, True
        else:
            yield f"verkit check {version(rng)} && echo valid", {}


def verkit_compare(rng):
    while True:
        one = version(rng)
        other = one if rng.random() < 0.15 else version(rng)
        if rng.random() < 0.1:
            yield f"verkit compare {one} {no_version(rng)}", {}, True
        else:
            yield f"verkit compare {one} {other}", {}


def verkit_next(rng):
    while True:
        if rng.random() < 0.08:
            yield f"verkit nextver {no_version(rng)} minor", {}, True
        elif rng.random() < 0.05:
            yield f"verkit nextver {version(rng)} {rng.choice(['huge', 'first', 'micro'])}", {}, True
        else:
            yield f"verkit nextver {version(rng)} {rng.choice(['major', 'minor', 'patch', 'prerelease'])}", {}


# --- sqltidy: SQL ----------------------------------------------------------------------------------------------------


def sql(rng):
    a, b, c = rng.sample(WORDS, 3)
    number = rng.randint(1, 99)
    return rng.choice(
        [
            f"select {a}, {b} from {c} where {a} = {number} and {b} > 3 order by {a} desc;",
            f"SELECT * FROM {a} INNER JOIN {b} ON {a}.id = {b}.{a}_id LEFT JOIN {c} ON {c}.id={b}.id WHERE {c}.x IN (1,2,{number})",
            f"insert into {a} ({b}, {c}) values ({number}, 'It''s {b}'), (2, NULL);",
            f"update {a} set {b} = {b}+{number}, {c}='x' where id between 1 and {number}; -- {b} done",
            f"select count(*) as n, max({a}) from {b} group by {a} having count(*) > {number};",
            f"/* {a} */ select {a} from (select {a}, {b} from {c} where {b} is not null) as t limit {number};",
            f"select case when {a} > {number} then 'high' when {a} = 0 then 'none' else 'low' end as {b} from {c};",
            f"create table {a} (id integer primary key, {b} varchar({number}) not null, {c} date default null);",
            f"delete from {a} where not exists (select 1 from {b} where {b}.id = {a}.id); select {number};",
            f"with {a} as (select * from {b}), {c} as (select 1) select {a}.* from {a}, {c} -- end",
        ]
    )


def script(rng):
    return "\n".join(sql(rng) for _ in range(rng.randint(1, 3))) + "\n"


def sqltidy_case(rng):
    while True:
        options = f"-k {rng.choice(['upper', 'lower', 'capitalize'])}"
        if rng.random() < 0.5:
            options += f" -i {rng.choice(['upper', 'lower', 'capitalize'])}"
        if rng.random() < 0.1:
            yield f"sqltidy {rng.choice(['-k', '-i'])} {rng.choice(WORDS)} query.sql", {"query.sql": script(rng)}, True
        elif rng.random() < 0.4:
            yield f"sqltidy {options} - < query.sql", {"query.sql": script(rng)}
        else:
            yield f"sqltidy {options} query.sql", {"query.sql": script(rng)}


def sqltidy_indent(rng):
    while True:
        options = rng.choice(["-r", "-r", "-r", "-a"])
        options += rng.choice(["", f" --indent_width {rng.randint(1, 8)}", " -k upper", " -s"])
        if options.startswith("-r"):
            options += rng.choice(["", " --indent_after_first", " --indent_columns", f" --wrap_after {rng.randint(20, 80)}"])
        if rng.random() < 0.08:
            yield f"sqltidy -r --indent_width {rng.choice(['-1', '0', 'wide'])} q.sql", {"q.sql": script(rng)}, True
        else:
            yield f"sqltidy {options} q.sql", {"q.sql": script(rng)}


def sqltidy_strip(rng):
    while True:
        comment = rng.choice(["-- {}\n", "/* {} */ ", "# {}\n", "/* {}\n   more */\n"]).format(rng.choice(WORDS))
        text = comment + script(rng) + rng.choice(["", "-- last\n", "/* last */"])
        if rng.random() < 0.05:
            yield f"sqltidy --strip-comments {rng.choice(WORDS)}.sql", {"a.sql": text}, True
        else:
            yield f"sqltidy --strip-comments{rng.choice(['', ' -r', ' -k upper'])} a.sql", {"a.sql": text}


def sqltidy_write(rng):
    while True:
        name = rng.choice(WORDS)
        options = rng.choice(["-r", "-k upper", "-r -k lower", "--strip-comments", "-i capitalize", "-s"])
        files = {f"{name}.sql": script(rng), "other/b.sql": script(rng)}
        chance = rng.random()
        if chance < 0.1:
            yield f"sqltidy {options} -o missing/{name}.out {name}.sql", files, True
        elif chance < 0.5:
            yield f"sqltidy {options} -o {name}.out {name}.sql", files
        elif chance < 0.7:
            yield f"sqltidy {options} --in-place {name}.sql", files
        else:
            yield f"sqltidy {options} --in-place {name}.sql other/b.sql", files


# --- verstamp: version numbers in files ------------------------------------------------------------------------------


def numbers(rng, count=3):
    return ".".join(str(rng.choice([0, 1, 2, 9, 10, 31, 99])) for _ in range(count))


def stamped(rng, number):
    """A file in which a version stands, once or twice, among others that are not it."""
    lines = [f"{rng.choice(WORDS)} needs {rng.choice(WORDS)} 7.{rng.randint(100, 199)}.3", f'__version__ = "{number}"']
    lines += rng.sample([f"{rng.choice(WORDS)}-{number}.tar.gz", f"# since {number}", rng.choice(WORDS), ""], rng.randint(0, 3))
    rng.shuffle(lines)
    return "\n".join(lines) + rng.choice(["\n", "\n", ""])


def settings(number, names=(), more=""):
    sections = "".join(f"\n[bumpversion:file:{name}]\n" for name in names)
    return f"[bumpversion]\ncurrent_version = {number}\n{more}{sections}"


def verstamp_named(rng):
    while True:
        number, part = numbers(rng), rng.choice(["major", "minor", "patch"])
        one, other = (f"{word}.py" for word in rng.sample(WORDS, 2))
        files = {one: stamped(rng, number), f"src/{other}": stamped(rng, number)}
        options = rng.choice(["", "", " --dry-run", " -n", " --verbose"])
        chance = rng.random()
        if chance < 0.06:
            yield f"verstamp --current-version {number} {rng.choice(WORDS)} {one}", files
        elif chance < 0.12:
            yield f"verstamp --current-version {number} {part} {rng.choice(WORDS)}.absent", files, True
        elif chance < 0.2:
            yield f"verstamp --current-version 7.{rng.randint(0, 99)}.77 {part} {one}", files, True
        elif chance < 0.4:
            yield f"verstamp --current-version {number} --new-version {numbers(rng)}{options} {part} {one}", files
        elif chance < 0.7:
            yield f"verstamp --current-version {number}{options} {part} {one} src/{other}", files
        else:
            yield f"verstamp{options} {part} {one} --current-version {number}", files


def verstamp_configured(rng):
    while True:
        number, part = numbers(rng), rng.choice(["major", "minor", "patch"])
        one, other = (f"{word}.txt" for word in rng.sample(WORDS, 2))
        names = rng.choice([(one,), (one, f"docs/{other}"), ()])
        place = rng.choice([".bumpversion.cfg", ".bumpversion.cfg", "setup.cfg", "conf/stamp.cfg"])
        files = {one: stamped(rng, number), f"docs/{other}": stamped(rng, number), place: settings(number, names)}
        if rng.random() < 0.3:
            files[place] = f"# {rng.choice(WORDS)}\n{files[place]}\n[{rng.choice(WORDS)}]\nname={rng.choice(WORDS)}\n"
        options = " --config-file conf/stamp.cfg" if place.startswith("conf") else ""
        options += rng.choice(["", "", "", " --dry-run", " --no-configured-files", f" --new-version {numbers(rng)}"])
        chance = rng.random()
        if chance < 0.06:
            yield f"verstamp --config-file {rng.choice(WORDS)}.cfg {part}", files, True
        elif chance < 0.12:
            yield f"verstamp{options.replace(' --no-configured-files', '')} {part}", {**files, place: settings(number, ["absent.txt"])}, True
        elif chance < 0.5:
            yield f"verstamp{options} {part} && cat {place}", files
        else:
            yield f"verstamp{options} {part}", files


def verstamp_list(rng):
    while True:
        number, part = numbers(rng), rng.choice(["major", "minor", "patch"])
        name = f"{rng.choice(WORDS)}.txt"
        more = rng.choice(["", "", "commit = False\n", f"message = {rng.choice(WORDS)} {{new_version}}\n", "tag = False\n"])
        files = {name: stamped(rng, number), ".bumpversion.cfg": settings(number, [name], more)}
        chance = rng.random()
        if chance < 0.1:
            yield f"verstamp --list --dry-run {part} {rng.choice(WORDS)}.absent", files, True
        elif chance < 0.15:
            yield f"verstamp --list --dry-run {rng.choice(WORDS)}", files
        elif chance < 0.5:
            yield f"verstamp --dry-run --list {part}", files
        elif chance < 0.75:
            yield f"verstamp --list {part} | grep new_version", files
        else:
            yield f"verstamp --list --new-version {numbers(rng)} {part}", files


STAGES = "\n[bumpversion:part:stage]\noptional_value = final\nvalues =\n\tdev\n\tbeta\n\tfinal\n"


def verstamp_forms(rng):
    while True:
        major, minor, build = rng.randint(0, 20), rng.randint(0, 20), rng.randint(1, 40)
        name = f"{rng.choice(WORDS)}.txt"
        kind = rng.choice(["two", "search", "stage", "stage", "numbered"])
        if kind == "two":
            number, part = f"{major}.{minor}", rng.choice(["major", "minor"])
            options = f"--current-version {number} --parse '(?P<major>\\d+)\\.(?P<minor>\\d+)' --serialize '{{major}}.{{minor}}'"
            files = {name: stamped(rng, number)}
        elif kind == "search":
            number, part = f"{major}.{minor}.{build}", rng.choice(["major", "minor", "patch"])
            options = f"--current-version {number} --search '\"{{current_version}}\"' --replace '\"{{new_version}}\"'"
            files = {name: stamped(rng, number)}
        elif kind == "numbered":
            number, part = f"{major}.{minor}.{build}", rng.choice(["minor", "patch"])
            options = f"--current-version {number} --serialize 'v{{major}}.{{minor}}.{{patch}}'"
            files = {name: f"{rng.choice(WORDS)} v{number}\n"}
        else:
            stage = rng.choice(["-dev", "-beta", ""])
            number, part = f"{major}.{minor}{stage}", rng.choice(["major", "minor", "stage"])
            more = "parse = (?P<major>\\d+)\\.(?P<minor>\\d+)(-(?P<stage>[a-z]+))?\nserialize =\n\t{major}.{minor}-{stage}\n\t{major}.{minor}\n"
            options, files = "", {name: stamped(rng, number), ".bumpversion.cfg": settings(number, (), more) + STAGES}
            if part == "stage" and not stage:
                yield f"verstamp stage {name}", files, True
                continue
        if rng.random() < 0.06:
            yield f"verstamp {options} --parse '(?P<major>' {part} {name}", files, True
        else:
            yield f"verstamp {options} {part} {name}".replace("  ", " "), files


# --- hunkr: patches --------------------------------------------------------------------------------------------------


def prose(rng, least=6):
    return [f"{rng.choice(WORDS)} {rng.choice(WORDS)} {number}" for number in range(rng.randint(least, 24))]


def edited(rng, lines):
    lines = list(lines)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        change = rng.choice(["replace", "insert", "delete"])
        if change == "replace":
            lines[at] = f"changed {rng.choice(WORDS)}"
        elif change == "insert":
            lines.insert(at, f"new {rng.choice(WORDS)}")
        elif len(lines) > 4:
            del lines[at]
    return lines if lines else ["x"]


def text_of(lines):
    return "".join(f"{line}\n" for line in lines)


def diff(name, before, after, prefix=("a/", "b/")):
    old = "/dev/null" if before is None else prefix[0] + name
    new = "/dev/null" if after is None else prefix[1] + name
    return text_of(difflib.unified_diff(before or [], after or [], old, new, lineterm=""))


def changes(rng, count):
    """Files before and after, by name."""
    befores = {f"{rng.choice(['', 'src/', 'docs/'])}{name}.txt": prose(rng) for name in rng.sample(WORDS, count)}
    return {name: (before, edited(rng, before)) for name, before in befores.items()}


def hunkr_apply(rng):
    while True:
        changed = changes(rng, rng.randint(1, 3))
        files = {name: text_of(before) for name, (before, _) in changed.items()}
        patch = "".join(diff(name, before, after) for name, (before, after) in changed.items() if before != after)
        if not patch:
            continue
        chance = rng.random()
        if chance < 0.08:
            yield "hunkr missing.diff", files, True
        elif chance < 0.16:
            name = next(iter(changed))
            wrecked = {**files, name: text_of(f"quite {line}" for line in prose(rng))}
            yield "hunkr change.diff", {**wrecked, "change.diff": patch}, True
        elif chance < 0.4:
            nested = {f"tree/{name}": text for name, text in files.items()}
            yield "hunkr -d tree change.diff", {**nested, "change.diff": patch}
        elif chance < 0.55:
            patch = "".join(
                diff(name, before, after, ("one/old/", "one/new/"))
                for name, (before, after) in changed.items()
                if before != after
            )
            yield "hunkr -p 2 change.diff", {**files, "change.diff": patch}
        else:
            yield f"hunkr{rng.choice(['', ' -q', ' -v'])} change.diff", {**files, "change.diff": patch}


def hunkr_create(rng):
    while True:
        name, other, gone = (f"{rng.choice(['', 'lib/'])}{word}.txt" for word in rng.sample(WORDS, 3))
        lines, old = prose(rng), prose(rng)
        parts, files = [], {other: text_of(old)}
        if rng.random() < 0.7:
            parts.append(diff(name, None, lines))
        if rng.random() < 0.7 or not parts:
            files[gone] = text_of(lines)
            parts.append(diff(gone, lines, None))
        if rng.random() < 0.1:
            yield "hunkr change.diff", {**files, "change.diff": f"no patch at all, {rng.choice(WORDS)}\n"}, True
        else:
            yield "hunkr change.diff", {**files, "change.diff": "".join(parts)}


def hunkr_revert(rng):
    while True:
        changed = {name: pair for name, pair in changes(rng, rng.randint(1, 2)).items() if pair[0] != pair[1]}
        if not changed:
            continue
        patch = "".join(diff(name, before, after) for name, (before, after) in changed.items())
        after = {name: text_of(after) for name, (_, after) in changed.items()}
        if rng.random() < 0.1:
            wrecked = {name: text_of(f"quite {line}" for line in prose(rng)) for name in changed}
            yield "hunkr --revert change.diff", {**wrecked, "change.diff": patch}, True
        else:
            yield "hunkr --revert change.diff", {**after, "change.diff": patch}


def hunkr_stat(rng):
    while True:
        changed = {name: pair for name, pair in changes(rng, rng.randint(1, 5)).items() if pair[0] != pair[1]}
        patch = "".join(diff(name, before, after) for name, (before, after) in changed.items())
        if rng.random() < 0.08:
            yield f"hunkr --diffstat {rng.choice(WORDS)}.diff", {"change.diff": patch}, True
        elif patch:
            yield "hunkr --diffstat change.diff", {"change.diff": patch}


# --- rowline: tables to JSON -----------------------------------------------------------------------------------------


def cell(rng, separator):
    some = ["plain", "", "7", "3.50", "ünï", " padded ", "true", f'"a{separator}b"', '"say ""hi"""', '"two\nlines"', *WORDS[:5]]
    return rng.choice(some)


def grid(rng, separator=",", headers=True):
    width = rng.randint(1, 4)
    rows = [rng.sample(["name", "value", "note", "shown as", "größe"], width)] if headers else []
    for _ in range(rng.randint(0, 5)):
        rows.append([cell(rng, separator) for _ in range(max(1, width + rng.choice([0, 0, 0, 0, 1, -1])))])
    return rows


def joined(rng, rows, separator=","):
    end = rng.choice(["\n", "\n", "\n", "\r\n"])
    text = "".join(separator.join(row) + end for row in rows)
    return text if rng.random() < 0.7 else text.removesuffix(end)


def rowline_read(rng):
    while True:
        option, separator = rng.choice([("", ","), ("", ","), (" -s ';'", ";"), (" --separator '|'", "|"), (" -s '\t'", "\t")])
        files = {"table.csv": joined(rng, grid(rng, separator), separator)}
        if rng.random() < 0.1:
            yield f"rowline{option} {rng.choice(WORDS)}.csv", files, True
        else:
            yield f"rowline{option} {rng.choice(['table.csv', 'table.csv', '< table.csv', '- < table.csv'])}", files


def rowline_headers(rng):
    while True:
        separator = rng.choice([",", ",", ";"])
        names = separator.join(rng.sample(["id", "first", "last", "city", "ünï"], rng.randint(1, 4)))
        option = f"{rng.choice(['-h', '--headers'])} {quoted(names)} -s {quoted(separator)}"
        files = {"rows.csv": joined(rng, grid(rng, separator, headers=rng.random() < 0.3), separator)}
        if rng.random() < 0.08:
            yield f"rowline {option} {rng.choice(WORDS)}/rows.csv", files, True
        else:
            yield f"rowline rows.csv {option}" if rng.random() < 0.5 else f"rowline {option} < rows.csv", files


def rowline_skip(rng):
    while True:
        mark = rng.choice(["#", "#", ";", "%"])
        rows = [separated.split(",") for separated in joined(rng, grid(rng)).replace("\r\n", "\n").splitlines()]
        lines = [",".join(row) for row in rows]
        skipped = rng.choice([0, 0, 1, 2])
        lines = [f"{rng.choice(WORDS)} {number}" for number in range(skipped)] + lines
        for _ in range(rng.randint(0, 2)):
            lines.insert(rng.randint(0, len(lines)) if '"' not in "".join(lines) else 0, f"{mark} {rng.choice(WORDS)}")
        options = f"{rng.choice(['-c', '--skipComments'])} {quoted(mark)}" + (f" {rng.choice(['-l', '--skipLines'])} {skipped}" if skipped else "")
        if rng.random() < 0.08:
            yield f"rowline {options} --help", {"notes.csv": text_of(lines)}, True
        else:
            yield f"rowline {options} notes.csv", {"notes.csv": text_of(lines)}


def rowline_write(rng):
    while True:
        name = rng.choice(WORDS)
        files = {f"{name}.csv": joined(rng, grid(rng)), "old.ndjson": "old\n"}
        option = rng.choice(["-o", "--output"])
        chance = rng.random()
        if chance < 0.06:
            yield f"rowline {option} absent/{name}.ndjson {name}.csv", files, True
        elif chance < 0.12:
            yield f"rowline {option} new.ndjson {rng.choice(WORDS)}.absent", files, True
        elif chance < 0.25:
            yield f"rowline {name}.csv {option} -", files
        else:
            yield f"rowline {name}.csv {option} {rng.choice([f'{name}.ndjson', 'old.ndjson', 'rows.txt'])}", files


# --- stencil: templates ----------------------------------------------------------------------------------------------


def view(rng):
    people = [{"name": rng.choice(WORDS), "age": rng.randint(1, 90)} for _ in range(rng.randint(0, 4))]
    return {
        "title": rng.choice(["Report", "<b>Bold</b>", 'A "quote" & more', "it's / `x` = y", "", "ünï"]),
        "count": rng.choice([0, 1, 2.5, -3, 1000]),
        "shown": rng.choice([True, False, None, "yes", []]),
        "people": people,
        "owner": {"name": rng.choice(WORDS), "address": {"city": rng.choice(WORDS)}},
        "tags": rng.sample(WORDS, rng.randint(0, 3)),
    }


BLOCKS = [
    "# {{title}}\n",
    "{{{title}}} / {{&title}}\n",
    "{{! a comment }}count: {{count}}\n",
    "{{#shown}}\nshown\n{{/shown}}\n{{^shown}}\nhidden\n{{/shown}}\n",
    "{{#people}}\n* {{name}}, {{age}}\n{{/people}}\n{{^people}}nobody{{/people}}\n",
    "{{#owner}}{{name}} lives in {{address.city}}, {{title}}{{/owner}}\n",
    "{{#tags}}[{{.}}]{{/tags}}\n",
    "{{missing}}{{#missing}}never{{/missing}}{{^missing}}nothing{{/missing}}\n",
    "{{=<% %>=}}<% count %><%={{ }}=%> {{count}}\n",
    "  {{#people}}\n    {{#owner}}{{name}}{{/owner}}\n  {{/people}}\nend\n",
    "{{people.length}} and {{ owner.name }}{{owner.absent.deep}}\n",
]
BROKEN = ["{{#open}}", "{{/close}}", "{{#a}}{{/b}}", "{{name", "{{=|=}}", "{{#a}}{{#b}}{{/a}}{{/b}}"]


def template(rng):
    return "".join(rng.sample(BLOCKS, rng.randint(1, 4)))


def stencil_render(rng):
    while True:
        files = {"data.json": json.dumps(view(rng)), "page.mustache": template(rng)}
        chance = rng.random()
        if chance < 0.06:
            yield "stencil data.json page.mustache", {**files, "data.json": rng.choice(["{", "{a: 1}", "nope", "{'a': 1}"])}, True
        elif chance < 0.14:
            yield "stencil data.json page.mustache", {**files, "page.mustache": template(rng) + rng.choice(BROKEN)}, True
        elif chance < 0.4:
            yield "stencil - page.mustache < data.json", files
        else:
            yield "stencil data.json page.mustache", files


def stencil_partials(rng):
    while True:
        one, other = rng.sample(WORDS, 2)
        page = f"{rng.choice(BLOCKS)}{{{{> {one}}}}}\n" + rng.choice(["", f"  {{{{> {other}}}}}\n", "{{#people}}{{> %s}}{{/people}}" % one])
        files = {
            "data.json": json.dumps(view(rng)),
            "page.mustache": page,
            f"{one}.mustache": template(rng),
            f"parts/{other}.mustache": rng.choice(BLOCKS),
        }
        options = rng.choice([f"-p {one}.mustache", f"-p {one}.mustache -p parts/{other}.mustache", f"-p parts/{other}.mustache"])
        if rng.random() < 0.08:
            yield f"stencil -p {rng.choice(WORDS)}.absent data.json page.mustache", files, True
        else:
            yield f"stencil {options} data.json page.mustache", files


def stencil_write(rng):
    while True:
        name = rng.choice(WORDS)
        files = {"data.json": json.dumps(view(rng)), "page.mustache": template(rng), "old.html": "old\n"}
        target = rng.choice([f"{name}.html", "old.html", f"{name}.txt"])
        if rng.random() < 0.1:
            yield f"stencil {rng.choice(WORDS)}.json page.mustache {target}", files, True
        else:
            yield f"stencil data.json page.mustache {target}", files


# --- colwise: records and fields ------------------------------------------------------------------------------------


def records(rng, separator=" "):
    rows = ([rng.choice(WORDS), str(rng.randint(-5, 99)), rng.choice(["3.5", "0", "1e2", "x7", "12.25"])] for _ in range(rng.choice([0, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9])))
    return "".join(separator.join(row) + "\n" for row in rows) + rng.choice(["", "", "\n", f"last{separator}{rng.randint(0, 9)}"])


SELECT = [
    "{{ print $2, $1 }}", "$2 > {n}", "/{word}/ {{ print NR \": \" $0 }}", "!/{word}/", "END {{ print NR, $NF }}", "NF", "NR % 2",
    "{{ total += $2 }} END {{ print total + 0, total / {n} }}", "{{ $2 = $2 * {n}; print }}", "NR == 2, /{word}/", "!seen[$1]++",
    "$1 ~ /^[a-{letter}]/ && $3 != 0", "{{ for (i = NF; i > 0; i--) printf \"%s%s\", $i, i > 1 ? \"-\" : \"\\n\" }}",
    "{{ count[$1]++ }} END {{ print count[\"{word}\"] + 0, length(count) }}", "BEGIN {{ OFS = \":\" }} {{ $1 = $1 }} 1",
    "{{ if ($2 < {n}) next; print; exit }}", "function f(a) {{ return a * a }} {{ print f($2) }}",
]
TEXT = [
    "{{ print toupper($1), length($0) }}", "{{ print substr($1, 2, {n}) }}", "{{ gsub(/[aeiou]/, \"<&>\"); print }}",
    "{{ n = split($1, part, \"{letter}\"); print n, part[1], part[n] }}", "{{ print index($0, \"{letter}\"), match($1, /[m-z]+/), RSTART, RLENGTH }}",
    "{{ printf \"%-8s|%5d|%.2f\\n\", $1, $2, $3 }}", "{{ printf \"%c%c %x %o %e\\n\", $1, 65, $2 + 9, {n}, $3 }}", "{{ sub(/{letter}.*/, \"\"); print $1 \"!\" }}",
    "{{ print ($2 < $3), ($1 < \"{word}\"), -$2 ^ 2, $2 % 7 }}", "{{ print int($3), sqrt({n}), $2 \" \" $3 + 1 }}", "{{ s = s $1 }} END {{ print s, length(s) }}",
    "{{ print sprintf(\"%05.1f\", $2), tolower(\"{word}\" $1) }}", "{{ print $1 ~ \"{letter}\" ? \"yes\" : \"no\" }}",
]
NO_PROGRAM = ["{{ print", "BEGIN {{ return }}", "$2 >", "/{word}", "{{ print }} }}", "function f(a, a) {{ }}", "BEGIN {{ getline = 1 }}", "BEGIN {{ f(1) }}"]


def program(rng, some):
    return rng.choice(some).format(n=rng.randint(1, 60), word=rng.choice(WORDS), letter=rng.choice("aeinrt"))


def colwise_programs(rng, some):
    while True:
        separator, option = rng.choice([(" ", ""), (" ", ""), (",", "-F, "), ("::", "-F '::' "), ("\t", "-F '\\t' "), (" 7", "-F ' [0-9]' ")])
        files = {"data.txt": records(rng, separator), "more.txt": records(rng, separator)}
        chance = rng.random()
        if chance < 0.08:
            yield f"colwise {option}{quoted(program(rng, NO_PROGRAM))} data.txt", files, True
        elif chance < 0.12:
            yield f"colwise {option}{quoted(program(rng, some))} {rng.choice(WORDS)}.absent", files, True
        else:
            where = rng.choice(["data.txt", "data.txt", "< data.txt", "data.txt more.txt", "data.txt - < more.txt"])
            yield f"colwise {option}{quoted(program(rng, some))} {where}", files


def colwise_select(rng):
    return colwise_programs(rng, SELECT)


def colwise_text(rng):
    return colwise_programs(rng, TEXT)


def table(rng, separator):
    cells = ["plain", "", f'"a{separator}b"', '"say ""hi"""', '"two\nlines"', "ünï", "7", " padded ", *WORDS[:4]]
    rows = [["name", "value", "note"], *(rng.choices(cells, k=3) for _ in range(rng.randint(0, 6)))]
    return text_of(separator.join(row) for row in rows)


def colwise_csv(rng):
    while True:
        mode, separator = rng.choice([("csv", ","), ("csv", ","), ("tsv", "\t"), ("csv separator=;", ";"), ("csv separator=|", "|")])
        option = rng.choice([f"-i {quoted(mode)}", f"-i{quoted(mode)}"])
        out = rng.choice(["", "", " -o csv", " -o tsv", " -o 'csv separator=;'"])
        files = {"table.txt": table(rng, separator)}
        chance = rng.random()
        if chance < 0.1:
            bad = rng.choice(["-i yaml", "-i 'csv separator'", "-i csv -o html", "-i 'csv header=1'"])
            yield f"colwise {bad} '{{ print $1 }}' table.txt", files, True
        elif chance < 0.5:
            named = rng.choice(['{ print @"name" }', '{ print @"note", @"value" }', '@"value" == 7 { n++ } END { print n + 0 }'])
            yield f"colwise {option} -H{out} {quoted(named)} table.txt", files
        else:
            plain = rng.choice(["{ print $2, $1 }", "{ print NF, NR }", '{ $2 = "new" } 1', "$1 ~ /a/ { print $3 }", "{ print $1, $3, $2 }"])
            yield f"colwise {option}{out} {quoted(plain)} table.txt", files


def colwise_files(rng):
    while True:
        name, other = rng.sample(WORDS, 2)
        limit = rng.randint(1, 60)
        files = {"data.txt": records(rng), f"{other}.txt": "old\n"}
        code = rng.choice(
            [
                f'{{ print $2 > ("{name}.txt") }}', f'{{ print > ($2 > limit ? "{name}.high" : "{name}.low") }}', f'{{ print $1 >> "{other}.txt" }}',
                f'{{ print $1 > "{name}.txt"; close("{name}.txt") }}', f'{{ print $1 | "sort > {name}.sorted" }}',
                f'END {{ while ((getline line < "{other}.txt") > 0) print line, NR > "{name}.txt" }}', f'$2 > limit {{ printf "%s;", $1 > "{other}.txt" }}',
            ]
        )  # fmt: skip
        chance = rng.random()
        if chance < 0.1:
            yield f"colwise -f {name}.absent data.txt", files, True
        elif chance < 0.4:
            yield f"colwise -v limit={limit} -f split.prog data.txt", {**files, "split.prog": f"# {name}\n{code}\n"}
        elif chance < 0.6:
            yield f"colwise {quoted(code)} limit={limit} data.txt && echo done", files
        else:
            yield f"colwise -v limit={limit} {quoted(code)} data.txt", files


TASKS = {
    "verkit": {"BUMP": verkit_bump, "CHECK": verkit_check, "COMPARE": verkit_compare, "NEXT": verkit_next},
    "sqltidy": {"CASE": sqltidy_case, "INDENT": sqltidy_indent, "STRIP": sqltidy_strip, "WRITE": sqltidy_write},
    "verstamp": {"NAMED": verstamp_named, "CONFIGURED": verstamp_configured, "LIST": verstamp_list, "FORMS": verstamp_forms},
    "hunkr": {"APPLY": hunkr_apply, "CREATE": hunkr_create, "REVERT": hunkr_revert, "STAT": hunkr_stat},
    "rowline": {"READ": rowline_read, "HEADERS": rowline_headers, "SKIP": rowline_skip, "WRITE": rowline_write},
    "colwise": {"SELECT": colwise_select, "TEXT": colwise_text, "CSV": colwise_csv, "FILES": colwise_files},
    "stencil": {"RENDER": stencil_render, "PARTIALS": stencil_partials, "WRITE": stencil_write},
}


def distinct(cases):
    seen = set()
    for command, files, *negative in cases:
        line = {"command": command, "files": files, "negative": bool(negative)}
        if (key := json.dumps(line)) not in seen:
            seen.add(key)
            yield line


def main(arguments):
    seed = int(arguments[0]) if arguments else SEED
    for tool, classes in TASKS.items():
        lines = [
            {"class": name, **case}
            for name, generator in classes.items()
            for case in islice(distinct(generator(random.Random(f"{seed} {tool} {name}"))), CASES)
        ]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        Path(__file__).with_name(tool).joinpath("cases.jsonl").write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
