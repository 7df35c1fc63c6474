import json

from _kit import BAD_JSON, BAD_LINES, EDGES, assignments, broken_call, document, text
from fuzz import Case


def common(draw):
    flag = draw.choice(("-c", "--colorize", "-c -m", "--colorize=true"))
    shape = draw.integer(0, 5)
    if shape == 0:
        return Case(
            f"{draw.tool} {flag} -u lines.txt",
            {"lines.txt": "\n".join(assignments(draw, document(draw))) + "\n"},
        )
    if shape == 1:
        return Case(
            f"{draw.tool} {flag} -s in.ndjson",
            {"in.ndjson": "".join(json.dumps(document(draw, 2)) + "\n" for _ in range(draw.integer(1, 3)))},
        )
    if shape == 2:
        return Case(f"{draw.tool} {flag} -j in.json", {"in.json": text(draw, document(draw, 2))})
    name = draw.file("json")
    return Case(f"{draw.tool} {flag} {name}", {name: text(draw, document(draw, 2))})


def boundary(draw):
    return Case(
        f"{draw.tool} --colorize{draw.choice(('', ' -m', '=false', ' -j'))} edge.json",
        {"edge.json": draw.choice(EDGES)},
    )


def error(draw):
    shape = draw.integer(0, 2)
    if shape == 0:
        return Case(*broken_call(draw, draw.choice(("-c", "--colorize"))))
    if shape == 1:
        return Case(f"{draw.tool} -c bad.json", {"bad.json": draw.choice(BAD_JSON) + "\n"})
    return Case(
        f"{draw.tool} -c -u bad.txt", {"bad.txt": f"json.{draw.word()} = 1;\n{draw.choice(BAD_LINES)}\n"}
    )
