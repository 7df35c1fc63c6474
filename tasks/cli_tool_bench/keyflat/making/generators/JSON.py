import json

from _kit import BAD_JSON, EDGES, broken_call, document, pairs, shuffled, text
from fuzz import Case


def common(draw):
    flag = draw.choice(("-j", "--json", "-json"))
    data = document(draw)
    shape = draw.integer(0, 4)
    if shape == 0:
        return Case(
            f"{draw.tool} {flag} -u < pairs.txt", {"pairs.txt": "\n".join(shuffled(draw, pairs(data))) + "\n"}
        )
    if shape == 1:
        return Case(
            f"{draw.tool} -s {flag} in.ndjson",
            {"in.ndjson": "".join(json.dumps(document(draw, 2)) + "\n" for _ in range(draw.integer(1, 4)))},
        )
    if shape == 2:
        return Case(
            f"{draw.tool} {flag} in.json | {draw.tool} {flag} --ungron", {"in.json": text(draw, data)}
        )
    name = draw.file("json")
    return Case(f"{draw.tool} {flag} {name}", {name: text(draw, data)})


def boundary(draw):
    a, b = draw.words(2)
    if draw.chance(0.4):
        return Case(f"{draw.tool} --json edge.json", {"edge.json": draw.choice(EDGES)})
    line = draw.choice(
        (
            f'[["{a}",2],"{b}"]',
            f"[[],{draw.integer()}]",
            f'[["{a}"],{{}}]',
            f' [ ["{a} {b}"] , null ] ',
            f'[["{a}"],[1]]',
            f'[["{a}"],1.50]',
            f'[[1.5],"{b}"]',
            f'[["{a}"],12345678901234567890]',
            f'[["{a}",0,"{b}"],[]]',
            f'[["\\u00e9{a}"],"<{b}>"]',
            f'[[-1],"{a}"]',
            f'[["{a}"]]',
        )
    )
    return Case(f"{draw.tool} -u -j edge.txt", {"edge.txt": line + "\n"})


def error(draw):
    shape = draw.integer(0, 2)
    if shape == 0:
        return Case(*broken_call(draw, draw.choice(("-j", "--json"))))
    if shape == 1:
        return Case(
            f"{draw.tool} -j {draw.choice(('', '-s '))}bad.json", {"bad.json": draw.choice(BAD_JSON) + "\n"}
        )
    bad = draw.choice(
        (
            f"json.{draw.word()} = 1;",
            '{"a":1}',
            f'["{draw.word()}",1]',
            "[[true],1]",
            f'[["{draw.word()}"],[2]]',
            f'[["{draw.word()}"],{{"a":1}}]',
            "3",
            "",
        )
    )
    return Case(
        f"{draw.tool} --json --ungron bad.txt", {"bad.txt": f'[["{draw.word()}"],"{draw.word()}"]\n{bad}\n'}
    )
