from _kit import EDGES, as_json, failing, log, shown
from fuzz import Case


def common(draw):
    if draw.chance(0.3):
        return shown(draw, draw.choice(("-parser gotest", "-parser=gotest", "--parser gotest")), log(draw))
    return shown(
        draw,
        draw.choice(("-parser gojson", "-parser=gojson", "--parser gojson", "-no-xml-header -parser gojson")),
        as_json(draw, log(draw)),
    )


def boundary(draw):
    text = draw.choice(EDGES)
    odd = (
        "{}\n",
        '{"Output": "=== RUN   TestO\\n"}\n{"Output": "--- PASS: TestO (0.20s)\\n"}\n',
        "not json\n[1]\n",
        '{"Action":"pass","Package":"p"}\n',
        '{"Package":"p","Output":"no end"}\n',
        ' {"x":1}\n',
    )
    return shown(
        draw,
        f"-parser {draw.choice(('gojson', 'gojson', 'gotest', 'gotest -parser gojson'))}",
        draw.choice((as_json(draw, text), *odd, as_json(draw, log(draw, 1)) + draw.choice(odd))),
    )


def error(draw):
    if draw.chance(0.4):
        bad = draw.choice(
            (
                "{",
                '{"a":',
                '{"Output": 1}',
                '{"Package": []}',
                "{x}",
                '{"Output":"a"} trailing',
                '{"Time":"never","Output":"x"}',
            )
        )
        return Case(
            f"{draw.tool} -parser gojson < test.log", {"test.log": as_json(draw, log(draw, 1)) + bad + "\n"}
        )
    return failing(draw, "-parser gojson", (f"-parser {draw.word()}", "-parser GOJSON", "-parser json"))
