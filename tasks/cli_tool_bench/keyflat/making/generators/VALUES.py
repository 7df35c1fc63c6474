from _kit import assignments, broken_call, document, shuffled, text
from fuzz import Case


def common(draw):
    flag = draw.choice(("-v", "--values", "-values"))
    data = {draw.word(): draw.sentence(), "more": document(draw)}
    name = draw.file("json")
    if draw.chance(0.4):
        lines = assignments(draw, data)
        lines = shuffled(draw, lines) if draw.chance(0.5) else lines
        return Case(f"{draw.tool} {flag} < lines.txt", {"lines.txt": "\n".join(lines) + "\n"})
    only = draw.choice(("", " | grep -v '{}'", f" | grep {draw.choice('aeiort')}", " | grep '\"'"))
    return Case(f"{draw.tool} {name}{only} | {draw.tool} {flag}", {name: text(draw, data)})


def boundary(draw):
    a, b = draw.words(2)
    lines = draw.sample(
        (
            f"json.{a} = [];",
            "json = {};",
            f'{a}.{b} = "two\\nlines";',
            f'"{a}"',
            a,
            f"json.{a} = {draw.integer()}",
            f'json["{a}"]="\\u00e9\\ud83d\\ude42";',
            f"json.{b} = nope;",
            f"- {a} = 1;",
            f'json.{a} = "\\x";',
            f"json[{draw.integer()}] = 1e999;",
            f"json.{a} = true;",
            f"{b} = null;",
            'json = "";',
        ),
        draw.integer(1, 6),
    )
    return Case(f"{draw.tool} --values < in.txt", {"in.txt": "\n".join(lines) + draw.choice(("", "\n"))})


def error(draw):
    if draw.chance(0.5):
        return Case(*broken_call(draw, draw.choice(("-v", "--values"))))
    lines = assignments(draw, {draw.word(): draw.integer(), draw.word(): draw.word()})
    lines.insert(draw.integer(0, len(lines)), "")
    return Case(f"{draw.tool} -v < gaps.txt", {"gaps.txt": "\n".join(lines) + "\n"})
