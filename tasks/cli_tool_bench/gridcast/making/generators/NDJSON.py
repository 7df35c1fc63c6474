import json

from _records import LOOKS, broken, call, extras, flat, lines, nested


def flag(draw):
    return draw.choice(("-n", "--ndjson"))


def common(draw):
    text = lines(draw.choice((flat, flat, nested))(draw))
    if draw.chance(0.3):
        text = text.rstrip("\n")
    if draw.chance(0.3):
        text = text.replace("\n", draw.choice(("\n\n", "\r\n", "  \n")))
    looks = extras(draw, [*LOOKS, "-s", "-s", "-f id,owner.name", "--flatten-objects"])
    return call(draw, f"{flag(draw)} {looks}".strip(), text, draw.choice(("ndjson", "jsonl", "json")))


def boundary(draw):
    text = draw.choice(("{}\n", "\n\n", "   \n", "{}\n{}\n", '{"a":1}', '\n{"a":1}\n\n\n{"a":"é"}\n', '{"a":"x\\ny"}\n', json.dumps(flat(draw, 1)[0]) + "\n" + "{}\n"))
    looks = extras(draw, [*LOOKS, "-f a", "-f b,a"])
    return call(draw, f"{flag(draw)} {looks}".strip(), text, "ndjson")


def error(draw):
    if draw.chance(0.6):
        text = draw.choice(("oops\n", "{]\n", '{"a":\n1}\n', "{'a': 1}\n")) + draw.choice(("", lines(flat(draw))))
        if text.startswith('{"a"') and draw.chance(0.5):
            text = lines(flat(draw)).replace("}\n", "\n}\n")
        return call(draw, f"{flag(draw)} -s", text, "ndjson")
    return broken(draw, flag(draw))
