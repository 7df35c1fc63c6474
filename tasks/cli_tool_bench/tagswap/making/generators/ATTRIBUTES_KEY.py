import json

from _documents import broken, call, document, some, text, tree, xml
from fuzz import Case, quote

MORE = ("--compact", "--compact", "--spaces 2", "--trim", "--no-decl", "--text-key '#'", "--instruction-attr", "--no-attr", "--type-key kind", "--name-key tag", "--elements-key nodes")


def rich(draw):
    root = tree(draw, 2)
    root[1].update({word: text(draw) for word in draw.words(2)})
    return xml(root, draw.choice(("", "  "))) + "\n"


def common(draw):
    key = draw.choice(("$", "@", "attrs", "_a", "props", draw.word()))
    option = f"--attributes-key {quote(key)}"
    if draw.chance(0.3):
        values = {word: draw.choice((draw.integer(), draw.word(), True, 'say "hi"')) for word in draw.words(draw.integer(1, 3))}
        if draw.chance(0.5):
            made = {"_declaration": {key: {"version": "1.0"}}, "root": {key: values, draw.choice(("item", "_attributes")): {"x": draw.integer()}}}
            return call(draw, draw.file("json"), json.dumps(made), [option, "--compact", *some(draw, ("--spaces 2", "--no-decl", "--full-tag"))])
        made = {"elements": [{"type": "element", "name": "root", key: values, "attributes": {"lost": 1}}]}
        return call(draw, draw.file("json"), json.dumps(made), [option, *some(draw, ("--no-attr", "--full-tag"))])
    return call(draw, draw.file("xml"), rich(draw) if draw.chance(0.8) else document(draw), [option, *some(draw, MORE)])


def boundary(draw):
    key = draw.choice(("", " ", "a b", "ünï", "日本", "🙂", 'q"q', "x" * 60, "--compact", "-", "0"))
    return call(draw, draw.file("xml"), f"<a><c x='{draw.word()}'/></a>\n", [f"--attributes-key {quote(key)}", *some(draw, MORE[:4])])


def error(draw):
    return broken(draw, f"--attributes-key {draw.word()}")
