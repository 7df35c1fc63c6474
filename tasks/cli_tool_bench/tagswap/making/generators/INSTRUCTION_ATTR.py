from _documents import broken, call, instruction, some, tree, xml
from fuzz import Case

MORE = ("--compact", "--compact", "--spaces 2", "--trim", "--attributes-key at", "--no-attr", "--no-decl", "--instruction-key pi", "--always-array")


def common(draw):
    parts = ['<?xml version="1.0" encoding="utf-8"?>'] if draw.chance(0.4) else []
    parts += [f"<?{instruction(draw)}?>" for _ in range(draw.integer(1, 3))]
    root = tree(draw, 1)
    if draw.chance(0.5):
        root[2].insert(0, ("instruction", f'{draw.word()} a="{draw.integer()}" b=\'{draw.word()}\' c={draw.word()}'))
    return call(draw, draw.file("xml"), "\n".join([*parts, xml(root)]) + "\n", ["--instruction-attr", *some(draw, MORE)])


def boundary(draw):
    word = draw.word()
    content = draw.choice(
        (
            f"<?{word}?><a/>",
            f"<?{word} a = \"1\"?><a/>",
            f"<?{word} a='1'b=\"2\"?><a/>",
            f"<?{word} x:y=\"é\" z-w='日'?><a/>",
            f"<?{word} a=\"1\" a=\"2\"?><a/>",
            f"<?{word} 'quoted' words?><a/>",
            f"<?{word} before a=\"1\" after?><a/>",
            f"<?{word} a='it\"s'?><a/>",
            f"<a><?{word} p=\"  s  \"?></a>",
            "<a/>",
        )
    )
    return call(draw, draw.file("xml"), content, ["--instruction-attr", *some(draw, MORE[:7])])


def error(draw):
    if draw.chance(0.2):
        name = draw.file("xml")
        return Case(f"{draw.tool} {name} --instruction-attr", {name: f"<?{draw.word()} a=\"{draw.integer()}\"?>{draw.choice(('<a>', '<a></b>', 'x'))}"})
    return broken(draw, " ".join(["--instruction-attr", *some(draw, MORE)]))
