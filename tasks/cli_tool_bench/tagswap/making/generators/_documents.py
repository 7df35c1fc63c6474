"""Documents of XML, the same documents as JSON, and the errors that all classes share."""

import json
from html import escape

from fuzz import Case, quote

TEXTS = ("1", "2.50", "true", "FALSE", "007", "-3", "1e3", "0x1F", "a < b & c", "ünïcödé", "日本語", "🙂", "  padded  ", "two\nlines", 'say "hi"', "it's", "]]", "12 34")


def tree(draw, depth=3):
    """A tree of (name, attributes, children); a child is a tree, or a pair of a kind and a text."""
    name = draw.word() if draw.chance(0.8) else draw.choice(("ns:item", "h1", "a-b", "x_y", "Row", "élan"))
    attributes = {key: text(draw) for key in draw.words(draw.choice((0, 0, 1, 2)))}
    children = []
    if depth:
        count = draw.integer(0, 3) if depth < 3 else draw.integer(1, 4)
        for _ in range(count):
            if children and isinstance(children[-1], list) and draw.chance(0.3):
                again = tree(draw, depth - 1)
                again[0] = children[-1][0]
                children.append(again)
            elif draw.chance(0.6):
                children.append(tree(draw, depth - 1))
            elif children and children[-1][0] == "text":
                children.append((draw.choice(("comment", "cdata")), draw.sentence(2)))
            else:
                children.append(leaf(draw))
    elif draw.chance(0.7):
        children.append(("text", text(draw)))
    return [name, attributes, children]


def text(draw):
    return draw.choice((draw.word, lambda: str(draw.integer(-9, 999)), draw.date, lambda: draw.choice(TEXTS), lambda: draw.choice(TEXTS)))()


def leaf(draw):
    kind = draw.choice(("text", "text", "text", "comment", "cdata", "instruction"))
    if kind == "instruction":
        return kind, instruction(draw)
    return kind, {"text": text, "comment": lambda d: f" {d.sentence(2)} ", "cdata": lambda d: d.choice(("<b>x</b>", " a && b ", d.word()))}[kind](draw)


def instruction(draw):
    return f"{draw.word()} " + draw.choice((f'{draw.word()}="{draw.integer()}"', f"href='{draw.file('xsl')}' type=\"a b\"", draw.sentence(2), f"{draw.word()}={draw.word()}"))


def xml(node, indent=""):
    """A tree as XML; with indentation if it is given and no text stands among the children."""
    name, attributes, children = node
    given = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())
    if not children:
        return f"<{name}{given}/>"
    kinds = {"text": escape, "comment": "<!--{}-->".format, "cdata": "<![CDATA[{}]]>".format, "instruction": "<?{}?>".format}
    spread = indent and all(isinstance(child, list) or child[0] == "comment" for child in children)
    inner = [xml(child, indent + "  " if spread else "") if isinstance(child, list) else kinds[child[0]](child[1]) for child in children]
    if spread:
        return f"<{name}{given}>" + "".join(f"\n{indent}{part}" for part in inner) + f"\n{indent[:-2]}</{name}>"
    return f"<{name}{given}>{''.join(inner)}</{name}>"


def document(draw, root=None):
    """A whole document as XML text."""
    parts = []
    if draw.chance(0.6):
        parts.append(draw.choice(('<?xml version="1.0"?>', '<?xml version="1.0" encoding="utf-8"?>', "<?xml version='1.0' standalone='yes'?>")))
    if draw.chance(0.2):
        parts.append(draw.choice(("<!DOCTYPE html>", '<!DOCTYPE note SYSTEM "note.dtd">')))
    if draw.chance(0.2):
        parts.append(f"<?{instruction(draw)}?>")
    if draw.chance(0.2):
        parts.append(f"<!-- {draw.sentence(2)} -->")
    parts.append(xml(root or tree(draw), "  " if draw.chance(0.5) else ""))
    return "\n".join(parts) + "\n"


def value(draw):
    return draw.choice((draw.integer(-5, 99), draw.number(), True, False, draw.word(), draw.choice(TEXTS), draw.choice(TEXTS)))


def full(draw, node):
    """A tree in the full form of JSON."""
    name, attributes, children = node
    made = {"type": "element", "name": name}
    if attributes:
        made["attributes"] = {key: value(draw) for key in attributes}
    if children:
        made["elements"] = [full(draw, child) if isinstance(child, list) else plain(*child) for child in children]
    return made


def plain(kind, content):
    if kind == "instruction":
        name, _, rest = content.partition(" ")
        return {"type": kind, "name": name, "instruction": rest}
    return {"type": kind, kind: content}


def compact(draw, node):
    """A tree's value in the compact form of JSON."""
    _, attributes, children = node
    if not attributes and len(children) <= 1 and all(child[0] == "text" for child in children if not isinstance(child, list)) and not any(isinstance(child, list) for child in children):
        return draw.choice((children[0][1] if children else draw.choice(("", None)), {"_text": value(draw)}, {}))
    made = {}
    if attributes:
        made["_attributes"] = {key: value(draw) for key in attributes}
    for child in children:
        if isinstance(child, list):
            add(made, child[0], compact(draw, child))
        elif child[0] == "instruction":
            name, _, rest = child[1].partition(" ")
            add(made, "_instruction", {name: rest})
        else:
            add(made, f"_{child[0]}", child[1])
    return made


def add(made, key, content):
    if key in made and not isinstance(made[key], list):
        made[key] = [made[key]]
    if key in made:
        made[key].append(content)
    else:
        made[key] = content


def full_json(draw):
    made = {}
    if draw.chance(0.5):
        made["declaration"] = {"attributes": {"version": "1.0", "encoding": "utf-8"}}
    before = [plain("doctype", "html")] if draw.chance(0.2) else []
    before += [plain("comment", f" {draw.word()} ")] if draw.chance(0.2) else []
    made["elements"] = [*before, full(draw, tree(draw))]
    return dump(draw, made)


def compact_json(draw):
    made = {}
    if draw.chance(0.5):
        made["_declaration"] = {"_attributes": {"version": "1.0"}}
    if draw.chance(0.2):
        made["_doctype"] = "html"
    root = tree(draw)
    made[root[0]] = compact(draw, root)
    return dump(draw, made)


def dump(draw, made):
    return json.dumps(made, ensure_ascii=False, indent=draw.choice((None, 2))) + "\n"


def call(draw, name, content, options):
    """A call whose options stand in random order. `options` is a list of texts."""
    options = " ".join(draw.sample(options, len(options)))
    return Case(f"{draw.tool} {name} {options}".rstrip(), {name: content})


def some(draw, choices):
    return draw.sample(choices, draw.choice((0, 0, 1, 1, 2)))


MALFORMED = ("<a><b></a>", "<a>", "<a></b>", "text", "<a/>text", "text<a/>", "<a b=c/>", "<a b/>", "<a>&bogus;</a>", "</a>", "<a>x & y</a>", "<a><b>x</a></b>", "<1a/>", "<a>\n<b>\n</a>\n")
INVALID = ("{", "", "{'a': 1}", "[1,]", "oops", '{"elements": [}', '{"a":1}}', "<a/>", "undefined")


def broken(draw, options):
    """One of the errors that every way of calling has."""
    kind = draw.integer(0, 4)
    name = draw.file("xml")
    if kind == 0:
        return Case(f"{draw.tool} missing-{draw.file(draw.choice(('xml', 'json')))} {options}", {name: document(draw)})
    if kind == 1:
        return Case(f"{draw.tool} {name} {options}", {name: draw.choice(MALFORMED)})
    if kind == 2:
        name = draw.file("json")
        return Case(f"{draw.tool} {name} {options}", {name: draw.choice(INVALID)})
    if kind == 3:
        return Case(f"{draw.tool} {options or '--compact'} {name}", {name: document(draw)})
    return Case(f"{draw.tool} {name} {options} --out {draw.word()}/{draw.file('json')}", {name: document(draw)})


LOOKS = ("--spaces 2", "--spaces 1", "--spaces 4", "--trim", "--compact", "--compact")
DROPS = ("--no-decl", "--no-attr", "--no-text", "--no-cdata", "--no-doctype", "--no-comment", "--always-children", "--full-tag")

__all__ = ["DROPS", "LOOKS", "MALFORMED", "TEXTS", "broken", "call", "compact", "compact_json", "document", "dump", "full", "full_json", "instruction", "quote", "some", "text", "tree", "xml"]
