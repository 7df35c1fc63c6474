from _documents import DROPS, TEXTS, broken, call, compact_json, document, some
from html import escape

MORE = (*DROPS[:6], "--full-tag", "--spaces 2", "--spaces 3", "--trim", "--native-type", "--always-array", "--text-key=x", "--text-key value", "--attributes-key @")


def common(draw):
    if draw.chance(0.4):
        return call(draw, draw.file("json"), compact_json(draw), ["--compact", *some(draw, MORE[:9])])
    return call(draw, draw.file("xml"), document(draw), ["--compact", *some(draw, MORE)])


def boundary(draw):
    if draw.chance(0.4):
        content = draw.choice(("{}", '{"a": null}', '{"a": ""}', '{"a": {}}', '{"a": [1, 2, {"b": true}]}', '{"a": {"_text": ["x", "y"]}}', '{"a": {"_attributes": {"b": null}}}', '{"a": {"_cdata": "x]]>y"}}', '{"a": {"_comment": ["1", "2"], "b": 0}}', '{"_instruction": [{"go": "x"}, {"stop": ""}], "a": false}', '{"a": {"b": [{}, "", null, 0]}}'))
        return call(draw, draw.file("json"), content, ["--compact", *some(draw, MORE[:8])])
    word = draw.word()
    content = draw.choice(
        (
            "",
            "<a/>",
            f"<a>{word}<b/>{word}</a>",
            f"<a><b/>{word}<b/></a>",
            f"<a>1<!--x-->2<!--y--></a>",
            f"<a b='{escape(draw.choice(TEXTS))}'>{escape(draw.choice(TEXTS))}</a>",
            "<a><a><a/></a><a/></a>",
            f"<a><{word}/><{word}/><{word}>1</{word}></a>",
            "<?one 1?><?two 2?><a><?one x='1'?></a>",
            "<a><![CDATA[1]]><![CDATA[2]]></a>",
        )
    )
    return call(draw, draw.file("xml"), content, ["--compact", *some(draw, MORE)])


def error(draw):
    return broken(draw, " ".join(["--compact", *some(draw, MORE)]))
