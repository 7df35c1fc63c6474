import json

from _records import broken, call, dump, extras, flat, nested
from fuzz import Case

SETTINGS = (
    {"defaultValue": "none"},
    {"quote": "'"},
    {"quote": ""},
    {"escapedQuote": '\\"'},
    {"excelStrings": True},
    {"includeEmptyRows": True},
    {"withBom": True},
    {"delimiter": ";"},
    {"header": False},
    {"eol": "\r\n"},
    {"unknown": 1},
    {"streaming": False},
    {"ndjson": False},
)

MORE = ("-v none", "-d ';'", "-s", "-H", "-f id")


def common(draw):
    settings = {}
    for some in draw.sample(SETTINGS, draw.integer(0, 3)):
        settings.update(some)
    if draw.chance(0.4):
        records = nested(draw)
        settings["fields"] = draw.choice(
            (
                "id,owner.name",
                ["id", "tags"],
                [{"label": draw.word(), "value": "owner.name"}, "id"],
                [{"value": "owner.note", "default": draw.word()}, {"label": "Tag", "value": "tags[0]"}],
            )
        )
        if draw.chance(0.3):
            settings["unwind"] = "tags"
    else:
        records = flat(draw)
        if draw.chance(0.6):
            keys = [*records[0], "absent"]
            settings["fields"] = [{"label": key.upper(), "value": key} if draw.chance(0.5) else key for key in draw.sample(keys, draw.integer(1, 3))]
    case = call(draw, f"CONFIG {extras(draw, MORE)}".strip(), dump(records))
    name = f"{draw.word()}-settings.json"
    option = draw.choice((f"-c {name}", f"--config {name}", f"--config={name}", f"-c ./{name}"))
    return Case(case.command.replace("CONFIG", option), {**case.files, name: json.dumps(settings, indent=draw.choice((None, 2)))})


def boundary(draw):
    settings = draw.choice(({}, {"fields": []}, {"fields": ""}, {"defaultValue": 0}, {"defaultValue": None}, {"fields": [draw.word()]}, {"pretty": True}, {"quote": "🙂"}, {"flattenObjects": True}, {"fields": [{"value": "ünï"}]}))
    data = draw.choice(([{"ünï": draw.word(), "b": {"c": 1}}], flat(draw, plain=True), [{"a": 'x"y'}, {}]))
    return Case(f"{draw.tool} -i in.json -c conf.json {draw.choice(('', '-a', '-s', '-f b'))}".strip(), {"in.json": dump(data), "conf.json": json.dumps(settings)})


def error(draw):
    good = dump(flat(draw))
    kind = draw.integer(0, 3)
    if kind == 0:
        return Case(f"{draw.tool} -i in.json -c {draw.choice(('missing.json', 'no/conf.json', 'folder'))}", {"in.json": good, "folder/x": ""})
    if kind == 1:
        return Case(f"{draw.tool} -i in.json -c conf.json", {"in.json": good, "conf.json": draw.choice(("{", "oops", '{"a":}', "{'fields': 1}", ""))})
    if kind == 2:
        return Case(f"{draw.tool} -i in.json -c conf.json", {"in.json": good, "conf.json": json.dumps({"fields": [draw.choice((1, {"label": "x"}, True))]})})
    case = broken(draw, "CONFIG")
    option = "-s" if "-c missing" in case.command else "-c conf.json"
    return Case(case.command.replace("CONFIG", option), {**case.files, "conf.json": "{}"})
