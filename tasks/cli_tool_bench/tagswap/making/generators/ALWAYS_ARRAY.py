from _documents import broken, call, document, some, xml, tree

MORE = ("--spaces 2", "--trim", "--native-type", "--no-attr", "--no-text", "--no-comment", "--text-key t", "--instruction-attr", "--no-decl")


def common(draw):
    compact = ["--compact"] if draw.chance(0.9) else []
    return call(draw, draw.file("xml"), document(draw), ["--always-array", *compact, *some(draw, MORE)])


def boundary(draw):
    word = draw.word()
    content = draw.choice(("", "<a/>", f"<a>{word}</a>", f"<a><b/><b/><c>{word}</c></a>", f"<a x='{word}'/>", f"<a>{word}<b/>{word}</a>", f"<!--{word}--><a><!--{word}--></a>", f"<?{word} x?><a/>", "<!DOCTYPE a><a/>", f"<a><![CDATA[{word}]]></a>", xml(tree(draw, 1))))
    return call(draw, draw.file("xml"), content, ["--always-array", "--compact", *some(draw, MORE)])


def error(draw):
    return broken(draw, " ".join(["--always-array", "--compact", *some(draw, MORE)]))
