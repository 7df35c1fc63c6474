from _documents import DROPS, broken, call, document, full_json, some

MORE = (*DROPS[:6], "--compact", "--compact", "--spaces 2", "--native-type", "--always-children")


def pad(draw, content):
    gap = draw.choice(("  ", "\n", "\n    ", "\t", " \n "))
    return f"{gap}{content}{draw.choice((gap, '', ' '))}"


def padded(draw):
    parts = []
    for _ in range(draw.integer(1, 5)):
        name, word = draw.words(2)
        content = pad(draw, draw.choice((word, f"{draw.integer()}", f"{word}   {name}", "&amp;")))
        kind = draw.integer(0, 5)
        if kind < 3:
            parts.append(f"<{name}>{content}</{name}>")
        else:
            parts.append((f'<{name} x="{content}"/>', f"<!--{content}-->", f"<![CDATA[{content}]]>")[kind - 3])
    return f"<root>{draw.choice(('', pad(draw, draw.word())))}{''.join(parts)}</root>\n"


def common(draw):
    if draw.chance(0.1):
        return call(draw, draw.file("json"), full_json(draw), ["--trim", *some(draw, DROPS[:6])])
    content = padded(draw) if draw.chance(0.8) else document(draw)
    return call(draw, draw.file("xml"), content, ["--trim", *some(draw, MORE)])


def boundary(draw):
    content = draw.choice(
        (
            "<a>   </a>",
            f"<a>  {draw.word()}\n\n  {draw.word()}  </a>",
            "<a b='   '/>",
            "<a><!--   --></a>",
            f"<a><![CDATA[   ]]>{draw.word()}</a>",
            f"<?go   {draw.word()}   ?><a/>",
            "<!DOCTYPE   html   ><a/>",
            f"<a>&#32;{draw.word()}&#32;</a>",
            "<a>&#160;x&#160;</a>",
            f"<a> {draw.word()} <b/> {draw.word()} </a>",
            "<?xml version=' 1.0 ' ?><a/>",
        )
    )
    return call(draw, draw.file("xml"), content, ["--trim", *some(draw, MORE)])


def error(draw):
    return broken(draw, " ".join(["--trim", *some(draw, MORE)]))
