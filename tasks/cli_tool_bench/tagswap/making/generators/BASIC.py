from _documents import DROPS, TEXTS, broken, call, document, full_json, some
from html import escape


def common(draw):
    if draw.chance(0.4):
        return call(draw, draw.file("json"), full_json(draw), some(draw, DROPS))
    return call(draw, draw.path("xml", 1), document(draw), some(draw, DROPS))


def boundary(draw):
    if draw.chance(0.3):
        content = draw.choice(("{}", "[]", '{"elements": []}', '{"declaration": {}}', '{"declaration": {"attributes": {"version": 1}}}', '{"elements": [{"type": "text", "text": 5}]}', '{"elements": [{"type": "element", "name": "a", "attributes": {"x": null, "y": ""}}]}', '{"elements": [{"type": "element", "name": "a", "elements": [{"type": "text", "text": "&amp;&lt;"}]}]}'))
        return call(draw, draw.file("json"), content, some(draw, DROPS))
    content = draw.choice(
        (
            "",
            "<a/>",
            "<a></a>",
            "<a> </a>",
            "<a>\n</a>\n",
            f"<a>{escape(draw.choice(TEXTS))}</a>",
            f"<a b='{escape(draw.choice(TEXTS))}'/>",
            "<a>&#65;&#x42;&quot;&apos;</a>",
            "<a>" * 30 + draw.word() + "</a>" * 30,
            "<a>" + f"<b>{draw.word()}</b>" * 40 + "</a>",
            "<!-- only -->\n<a/>\n<!-- after -->\n",
            "<a><![CDATA[<x>]]>y<![CDATA[ ]]></a>",
            "<?go?>\n<a/>",
            '<ns:a xmlns:ns="urn:x" ns:b="1"><ns:c/></ns:a>',
        )
    )
    if draw.chance(0.15):
        return call(draw, draw.file(draw.choice(("txt", "html", ""))), content, [])
    return call(draw, draw.file("xml"), content, some(draw, (*DROPS, f"--{draw.word()}", "--spaces")))


def error(draw):
    return broken(draw, " ".join(some(draw, DROPS)))
