"""Pages, selectors and calls that fail."""

from html import escape

from fuzz import Case, quote

CLASSES = ("item", "note", "lead", "big", "x-1")
TEXTS = (
    "Fish &amp; chips",
    "1 &lt; 2",
    "caf\u00e9",
    "日本語",
    'say "hi"',
    "it's",
    "&copy; 2020",
    "a\n  b",
    "&#8364; 5",
    "<!-- hush -->quiet",
    "&quot;q&quot;",
)


def words(draw):
    return draw.choice(TEXTS) if draw.chance(0.3) else draw.sentence()[: draw.integer(5, 30)]


def attributes(draw):
    parts = []
    if draw.chance(0.5):
        parts.append(f'class="{" ".join(draw.sample(CLASSES, draw.integer(1, 2)))}"')
    if draw.chance(0.3):
        parts.append(f'id="{draw.word()}"')
    if draw.chance(0.2):
        parts.append(f'data-k="{draw.choice(("1", "a b", "R&amp;D", "x&quot;y", draw.word()))}"')
    return "".join(f" {part}" for part in draw.sample(parts, len(parts)))


def link(draw):
    return f'<a href="{escape(draw.url())}"{draw.choice(("", " rel=nofollow", " title=" + repr(draw.sentence(2))))}>{words(draw)}</a>'


def block(draw, depth=2):
    kind = draw.integer(0, 8)
    if kind == 0:
        rows = "".join(
            "<tr>" + "".join(f"<td{attributes(draw)}>{draw.integer()}</td>" for _ in range(2)) + "</tr>"
            for _ in range(draw.integer(1, 3))
        )
        return f"<table{attributes(draw)}><tbody>{rows}</tbody></table>"
    if kind == 1:
        return (
            f"<ul{attributes(draw)}>"
            + "".join(
                f"\n<li{attributes(draw)}>{link(draw) if draw.chance(0.4) else words(draw)}</li>"
                for _ in range(draw.integer(1, 5))
            )
            + "\n</ul>"
        )
    if kind == 2:
        return f"<pre{attributes(draw)}>{draw.word()}\n  {draw.word()} &lt;b&gt;\n<i>{draw.word()}</i></pre>"
    if kind == 3:
        return f'<img src="{draw.word()}.png" alt="{draw.sentence(2)}"><br><hr>'
    if kind == 4:
        return f"<!-- {draw.word()} & {draw.word()} -->"
    if kind == 5 and depth:
        return (
            f"<div{attributes(draw)}>"
            + "".join(block(draw, depth - 1) for _ in range(draw.integer(0, 3)))
            + "</div>"
        )
    if kind == 6:
        return (
            f"<h{draw.integer(1, 3)}>{words(draw)}</h1>".replace("</h1>", "</h2>")
            if draw.chance(0.1)
            else f"<h2{attributes(draw)}>{words(draw)}</h2>"
        )
    return f"<p{attributes(draw)}>{words(draw)} <b>{draw.word()}</b> {link(draw)}</p>"


def page(draw, more=""):
    body = "\n".join(block(draw) for _ in range(draw.integer(3, 7)))
    head = f"<title>{words(draw)}</title>" + draw.choice(
        ("", "<script>if (1 < 2 && true) { go('x'); }</script>", '<meta name="k" content="a &amp; b">')
    )
    body += f'<div id="main" class="lead big"><p>{draw.word()} &amp; co</p>\n<p class="note">{words(draw)}</p><ul><li>1<li>2 {link(draw)}<li class="item">3</ul></div>{more}'
    body += f"<h2 class='item'>{words(draw)}</h2><p id='last' data-k='R&amp;D'>{words(draw)} <b>{draw.sentence(2)}</b></p><table class='x-1'><tr><td>{draw.word()}<td class='item'></table>"
    return f'<!DOCTYPE html>\n<html lang="{draw.choice(("en", "de"))}"><head>{head}</head>\n<body>{body}</body></html>\n'


SIMPLE = (
    "p",
    "a",
    "li",
    "div",
    "#main",
    ".note",
    ".item",
    ".lead.big",
    "b",
    "ul",
    "title",
    "td",
    "h2",
    "img",
    "[href]",
    "[data-k]",
    "a[rel=nofollow]",
    'a[href^="https"]',
    'a[href*="example"]',
    "[class~=big]",
    "[alt$='.']",
    "p.note",
    "div#main",
    "body",
    "pre",
    "script",
    "#main p",
    "ul li",
    "div p",
    "body > p",
    "body > div",
    "p + p",
    "#main > ul > li",
    "li a",
    "h2 + p",
    "ul > li + li",
    "p, li",
    "title, h2",
    "td, th",
    "b , a",
    "table tr td",
    "p *",
    "* li",
)
PSEUDO = (
    "li:first-child",
    "li:last-child",
    "p:only-child",
    "p:first-of-type",
    "li:nth-child(2)",
    "li:nth-child(odd)",
    "li:nth-child(even)",
    "li:nth-child(n+2)",
    "li:nth-child(2n+1)",
    "li:nth-last-child(1)",
    "p:nth-of-type(1)",
    "p:nth-last-of-type(2)",
    ":empty",
    "p:not(.note)",
    "li:not([class])",
    ":parent-of(a)",
    "p:parent-of(b)",
    "td:last-of-type",
    'b:contains("e")',
    ':contains("co")',
    "a:only-of-type",
    "#main li:nth-child(3n+1)",
    "body :only-of-type",
    "ul:not(.item) li",
    "div:parent-of(ul) li",
)
SHOW = ("", "", "", " text{}", " json{}", " attr{href}", " attr{class}", " attr{data-k}", " attr{id}")


def selector(draw):
    return draw.choice(PSEUDO if draw.chance(0.4) else SIMPLE)


BROKEN = (
    "p[",
    "p[class",
    "li:nope",
    "a:hover",
    "li:nth-child(",
    "li:nth-child(0)",
    "li:nth-child(x)",
    "p:contains(a)",
    'p:contains("a"',
    "p:empty:first-child",
    "a[href^x]",
    "p]x[",
    "'open",
    'a[title="x]',
    'a[rel="x"y]',
    "li:nth-child(2)x",
    "a[href]b",
    "p:not(x",
    "p:not",
    "td:first",
    "::before",
    "p:parent-of(",
    'b:Contains("x")',
    "li:nth-child(-1)",
)


def failing(draw, flags):
    """Calls that end with an error."""
    kind = draw.integer(0, 3)
    if kind < 2:
        words = [quote(draw.choice(BROKEN) + draw.choice(("", "", " text{}")))]
    elif kind == 2:
        words = [
            draw.choice(("--" + draw.word(), "-x", "-v", "-", "--Number", "-1")),
            draw.choice(("p", "li")),
        ]
    else:
        words = [
            draw.choice(
                (
                    "-f missing.html",
                    "--file gone/x.html",
                    "--limit two",
                    "-l 1.5",
                    "--charset klingon",
                    "''",
                    "-l ''",
                    "--charset utf-9",
                )
            )
        ]
    parts = draw.sample((flags, " ".join(words)), 2)
    return Case(
        " ".join((draw.tool, *(part for part in parts if part), "< in.html")), {"in.html": page(draw)}
    )


FRAGMENTS = (
    "",
    "just text",
    "<p>one<p>two",
    "<li>a<li>b",
    "<table><tr><td>1<td>2",
    "<b><i>x</b>y</i>",
    "<br></br>",
    "<x-tag a=1 b>odd</x-tag>",
    "<svg><path d='M0'/></svg>",
    "<div",
    "<!-- open",
    "<p class>bare</p>",
    "<P ID=Up>Case</P>",
    "<title>t</title><p>&nbsp;x&unknown;</p>",
    "<textarea>\n<b></textarea>",
    "<script>a<b&&c</script>",
    "<style>p > a { }</style>",
    "\ufeff<p>bom</p>",
    "<p>🙂 \u202e e\u0301</p>",
    "<pre>\n  keep\n</pre>",
    "<a href='x'><a href='y'>",
    "<select><option>1<option selected>2</select>",
    "<p tag=t text=u>clash</p>",
    "<img/src='a'alt=b>",
    "<html><html lang=x><body id=1>",
)


def odd(draw, flags, shows=SHOW):
    """Pages that a simple parser gets wrong."""
    text = draw.choice(FRAGMENTS) + (draw.choice(FRAGMENTS[1:]) if draw.chance(0.3) else "")
    words = draw.choice(
        ("", "p", "body", "*", "b, i", ":empty", "nothing", "td", "#Up", "[class]", ",", "> html", "p,,p")
    ) + draw.choice(shows)
    return Case(
        " ".join(
            part
            for part in (draw.tool, flags, quote(words.strip()) if words.strip() else "", "< in.html")
            if part
        ),
        {"in.html": text + draw.choice(("", "\n"))},
    )


def usual(draw, flags, shows=SHOW, more="", source="< page.html", share=0.85):
    show = draw.choice(shows)
    words = (selector(draw) if draw.chance(share) else "") + show
    if "attr" in show:
        name = show[6:-1]
        words = (
            draw.choice(
                (
                    f"[{name}]",
                    f"body [{name}]",
                    f"p[{name}], li[{name}], div[{name}], a[{name}]",
                    f"#main, a, [{name}]",
                )
            )
            + show
        )
    arguments = quote(words.strip()) if words.strip() else ""
    if draw.chance(0.2):
        arguments = " ".join(map(quote, words.split()))
    parts = draw.sample((flags, arguments), 2) if draw.chance(0.3) else (flags, arguments)
    return Case(
        " ".join((draw.tool, *(part for part in parts if part), source)), {"page.html": page(draw, more)}
    )
