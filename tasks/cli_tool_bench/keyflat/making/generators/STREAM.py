import json

from _kit import BAD_JSON, EDGES, broken_call, document
from fuzz import Case


def lines_of(draw, low, high):
    return [json.dumps(document(draw, 2), ensure_ascii=False) for _ in range(draw.integer(low, high))]


def common(draw):
    flag = draw.choice(("-s", "--stream", "-stream", "-s -m", "--stream --monochrome"))
    name = draw.file(draw.choice(("json", "ndjson", "log")))
    files = {name: "\n".join(lines_of(draw, 1, 6)) + "\n"}
    back = draw.choice(("", "", f" | {draw.tool} -u"))
    return Case(draw.choice((f"{draw.tool} {flag} {name}", f"{draw.tool} {flag} < {name}")) + back, files)


def boundary(draw):
    lines = draw.choice(
        (
            [],
            [draw.choice(EDGES).replace("\n", " ")],
            lines_of(draw, 11, 12),
            [*lines_of(draw, 1, 2), draw.choice(EDGES).replace("\n", "")],
        )
    )
    return Case(f"{draw.tool} --stream in.txt", {"in.txt": draw.choice(("\n", "\r\n")).join(lines)})


def error(draw):
    if draw.chance(0.3):
        return Case(*broken_call(draw, draw.choice(("-s", "--stream"))))
    lines = lines_of(draw, 0, 3)
    lines.insert(draw.integer(0, len(lines)), draw.choice(BAD_JSON))
    return Case(f"{draw.tool} -s bad.txt", {"bad.txt": "\n".join(lines) + "\n\n"})
