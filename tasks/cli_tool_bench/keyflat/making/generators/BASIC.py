from _kit import BAD_JSON, EDGES, broken_call, document, text
from fuzz import Case


def common(draw):
    name = draw.file("json")
    files = {name: text(draw, document(draw))}
    return Case(
        draw.choice(
            (
                f"{draw.tool} {name}",
                f"{draw.tool} < {name}",
                f"{draw.tool} - < {name}",
                f"{draw.tool} -m {name}",
            )
        ),
        files,
    )


def boundary(draw):
    edge = draw.choice(EDGES)
    if draw.chance(0.4):
        edge = f'{{"{draw.word()}": [{edge.split(" ")[0] or 1}, {draw.integer()}]}}'
    return Case(f"{draw.tool} in.json", {"in.json": edge + draw.choice(("", "\n"))})


def error(draw):
    if draw.chance(0.5):
        command, files = broken_call(draw, draw.choice(("-m", "--monochrome", "--stream")))
        return Case(command, files)
    return Case(
        f"{draw.tool} {draw.file('json')} < /dev/null" if draw.chance(0.2) else f"{draw.tool} bad.json",
        {"bad.json": draw.choice(BAD_JSON)},
    )
