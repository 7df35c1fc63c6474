import json

from _documents import broken, call, compact, compact_json, document, dump, full, full_json, some, text
from fuzz import Case

MORE = ("--spaces 2", "--spaces 1", "--no-attr", "--no-text", "--no-comment", "--no-cdata", "--no-decl")


def hollow(draw, depth=2):
    """A tree many of whose elements are empty."""
    attributes = {word: text(draw) for word in draw.words(draw.choice((0, 0, 1)))}
    children = [hollow(draw, depth - 1) for _ in range(draw.integer(1, 3))] if depth else []
    if draw.chance(0.2):
        children.append(("text", text(draw)))
    return [draw.word(), attributes, children]


def common(draw):
    kind = draw.integer(0, 9)
    if kind == 0:
        return call(draw, draw.file("xml"), document(draw), ["--full-tag", *some(draw, MORE)])
    if kind < 3:
        return call(draw, draw.file("json"), full_json(draw), ["--full-tag", *some(draw, MORE)])
    if kind == 3:
        return call(draw, draw.file("json"), compact_json(draw), ["--compact", "--full-tag", *some(draw, MORE)])
    root = hollow(draw)
    if kind < 7:
        return call(draw, draw.file("json"), dump(draw, {"elements": [full(draw, root)]}), ["--full-tag", *some(draw, MORE)])
    return call(draw, draw.file("json"), dump(draw, {root[0]: compact(draw, root)}), ["--compact", "--full-tag", *some(draw, MORE)])


def boundary(draw):
    word = draw.word()
    if draw.chance(0.5):
        made = draw.choice(({word: None}, {word: ""}, {word: {}}, {word: [{}, None, ""]}, {word: {"_attributes": {"x": None}}}, {word: {"_text": ""}}, {word: 0}, {word: {"b": {"_comment": "c"}}}, {word: False}))
        return call(draw, draw.file("json"), json.dumps(made), ["--compact", "--full-tag", *some(draw, MORE)])
    children = draw.choice(([], [{"type": "element", "name": "b"}], [{"type": "comment", "comment": "c"}], [{"type": "text", "text": ""}], [{"type": "element", "name": "b", "elements": []}], [{"type": "cdata", "cdata": ""}]))
    made = {"elements": [{"type": "element", "name": word, "attributes": {"y": draw.choice((None, "", 0))}, "elements": children}]}
    return call(draw, draw.file("json"), json.dumps(made), ["--full-tag", *some(draw, MORE)])


def error(draw):
    if draw.chance(0.3):
        name = draw.file("json")
        return Case(f"{draw.tool} {name} --full-tag --spaces {draw.choice(('x', '-3', '1.5'))}", {name: dump(draw, {"elements": [full(draw, hollow(draw))]})})
    return broken(draw, " ".join(["--full-tag", *some(draw, MORE)]))
