from _kit import BAD_LINES, assignments, broken_call, document, shuffled
from fuzz import Case


def common(draw):
    lines = assignments(draw, document(draw))
    shape = draw.integer(0, 3)
    if shape == 1:
        lines = shuffled(draw, lines)
    elif shape == 2:
        lines = [line for line in lines if not line.endswith(("{};", "[];")) or len(lines) < 3] or lines
    elif shape == 3:
        lines = [lines[-1], *draw.sample(lines, len(lines) // 2 + 1)]
    flag = draw.choice(("-u", "--ungron", "-ungron"))
    if draw.chance(0.2):
        lines.insert(draw.integer(0, len(lines)), draw.choice(("--", "-- cut", "")))
    unique = list(dict.fromkeys(lines))
    name = draw.file("txt")
    return Case(
        draw.choice((f"{draw.tool} {flag} {name}", f"{draw.tool} {flag} < {name}")),
        {name: "\n".join(unique) + "\n"},
    )


def boundary(draw):
    a, b = draw.words(2)
    lines = draw.choice(
        (
            [f"json[{draw.integer(2, 9)}] = {draw.integer()};"],
            [f'json.{a} = "{b}";', f'json.{a} = "{a}";'],
            [f"json.{a} = {draw.integer()};", f"json.{a} = {draw.integer()};"],
            [f"json.{a} = {{}};", f"json.{a} = {draw.choice(('true', '1', '[]'))};"],
            [f"{a}.{b} = {draw.integer()};", f"{b}.{a} = null;"],
            [f"{a} = {{}};", f"{a}.{b} = true;"],
            [f"json.{a} = {draw.integer()}"],
            [f"json.{a}={draw.integer()};"],
            [f"  json.{a} = {draw.integer()};"],
            [f'json["{a}"] ="<{b}> & \\u00e9\\n";'],
            [f"json.{a} = {draw.choice(('true', 'false', 'null'))}; // {b}"],
            [f"json[0][{draw.integer(0, 3)}].{a} = null;", f"json[1].{b} = [];"],
        )
    )
    return Case(f"{draw.tool} --ungron in.txt", {"in.txt": "\n".join(lines) + draw.choice(("", "\n"))})


def error(draw):
    if draw.chance(0.35):
        return Case(*broken_call(draw, draw.choice(("-u", "--ungron"))))
    lines = draw.sample(assignments(draw, {draw.word(): draw.integer()}), 1) + [draw.choice(BAD_LINES)]
    return Case(
        f"{draw.tool} -u bad.txt",
        {"bad.txt": "\n".join(lines) + "\n" if draw.chance(0.9) else draw.choice(("", "-\n", "\n\n"))},
    )
