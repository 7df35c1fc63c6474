"""Style sheets, and the errors that all classes share."""

from fuzz import Case, quote

SELECTORS = ("body", "a:hover", "ul > li", "h1 + p", "p ~ p", ".{0}", "#{0}", ".{0} .{1}", "h1 , h2", "div.{0}  >  span", "a[href='{0}']", 'input[type="text"]', "li:nth-child( 2n + 1 )", "*", "p:first-line", "p::before", "TR TD", ".{0}:not( .{1} )")


def selector(draw):
    return draw.choice(SELECTORS).format(*draw.words(2))


def value(draw):
    """A declaration without its semicolon."""
    n = draw.integer(0, 40)
    return draw.choice(
        (
            f"color: {draw.choice(('#aabbcc', '#AABBCC', '#FF0000', '#f00', '#123456', '#ABCDEF', '#ffa500', '#808080', 'Red', '#fff'))}",
            f"background-color: rgb({n}, {n * 2}, {draw.choice((255, 0, 300, 16))})",
            f"background: {draw.choice(('none', 'url( img/x.png ) no-repeat', 'URL(y.gif) 0 0', '#FFFFFF', 'rgba( 0, 0, 0, 0.5 )'))}",
            f"margin: {draw.choice(('0 0 0 0', '0px', '0 auto', '0px 0em 0% 0', f'{n}px 0px', '0 0', f'-{n}px'))}",
            f"padding: {draw.choice(('0.5em', '0.0px', f'{n}.0em', '00.75em', f'{n}px {n}px', '.0em 1px'))}",
            f"border{draw.choice(('', '-top', '-left'))}: {draw.choice(('none', f'{n}px solid #000080', '0 none'))}",
            f"width: calc( 100% - {n}px * ( 2 + 1 ) )",
            f"font: bold {n}px/1.5 {draw.choice(('Arial', chr(34) + 'Open  Sans' + chr(34), chr(39) + 'A, B' + chr(39)))} , serif",
            f"width: {n}px !important",
            f"opacity: 0.{draw.integer(1, 9)}",
            f"transition: all {draw.choice(('0s', '0.5s', '0ms', '.3s'))} ease",
            f"flex: 1 {n} {draw.choice(('0px', '0%', 'auto'))}",
            f"background-position: {draw.choice(('0 0', '0', '0px 0px', f'{n}% 0'))}",
            "content: " + draw.choice(('"a  b"', '"/* x */"', '""', "';}'", '"é → 日"')),
            f"filter: progid:DXImageTransform.Microsoft.Alpha(Opacity={n})",
            f"color: hsl( {n}, 0%, {n}% )",
            f"outline: none",
            f"transform: rotate( 0deg ) translate( {n}px , 0px )",
            f"box-shadow: 0 0 {n}px #112233",
            f"line-height: {draw.choice(('1.0', '1.20', '0.9', '2'))}",
            f"background-image: linear-gradient( to right, #FFFFFF 0%, #00FF00 {n}% )",
        )
    )


def rule(draw, count=-1):
    """A rule in one of several layouts."""
    parts = [value(draw) for _ in range(draw.integer(1, 4) if count < 0 else count)]
    layout = draw.integer(0, 3)
    if layout == 0:
        return selector(draw) + " {\n" + "".join(f"    {part};\n" for part in parts) + "}\n"
    if layout == 1:
        return selector(draw) + "{" + ";".join(parts) + "}\n"
    if layout == 2:
        return f"{selector(draw)},\n{selector(draw)}\n{{\n" + "".join(f"\t{part} ;;\n" for part in parts) + "}\n\n"
    return f"{selector(draw)} {{ " + "; ".join(parts) + " }  \n"


def comment(draw):
    """A comment that is removed, or one that is kept."""
    if draw.chance(0.6):
        return draw.choice((f"/* {draw.sentence()} */\n", f"/*{draw.word()}\n * {draw.word()}\n */\n", "/**/\n", f"/* {draw.word()}: 0px; }} */"))
    return kept(draw)


def kept(draw):
    a, b, c = draw.words(3)
    return draw.choice((f"/*! {a} {b} */\n", f"/*!\n * {a}\n * {b}\n */\n", f"/*!{a}*/", f"/*! {a}\r\n   {b}\r\n {c} */\r\n\r\n", f"  /*! {a}\n\n{b} */  \n\n"))


def at_rule(draw):
    w = draw.word()
    return draw.choice(
        (
            lambda: f"@media screen and (max-width: {draw.integer(100, 900)}px) {{\n  {rule(draw)}}}\n",
            lambda: f"@font-face {{ font-family: \"{w}\"; src: url( '{w}.woff' ) }}\n",
            lambda: f"@keyframes {w} {{ from {{ top: 0px }} to {{ top: {draw.integer(1, 9)}px }} }}\n",
            lambda: f"@-webkit-keyframes {w} {{ 0% {{ opacity: 0.0 }} 100% {{ opacity: 1 }} }}\n",
            lambda: f".{w} {{ }}\n{rule(draw)}",
            lambda: f"@page {{ margin: 0in; }}\n",
            lambda: f"@MEDIA print {{ {rule(draw)} }}\n",
        )
    )()


def sheet(draw, count=0, comments=True):
    parts = []
    if draw.chance(0.15):
        parts.append('@charset "utf-8";\n')
    if draw.chance(0.15):
        parts.append(f"@import url( \"{draw.word()}.css\" ) screen;\n")
    for _ in range(count or draw.integer(1, 5)):
        parts.append(at_rule(draw) if draw.chance(0.25) else rule(draw))
        if comments and draw.chance(0.35):
            parts.append(comment(draw))
    return "".join(parts)


EDGES = (
    "",
    "\n",
    "   \n\t\n",
    "/* only */",
    "/*! only */",
    "a{}",
    "a{}b{}c{color:red}",
    "a{color:red;;;}",
    "a{;;}",
    "a { content: '}' } b { content: \"{\" }",
    "a{color:red",
    "}",
    "a{b:c}}}",
    "ünïcödé{content:'日本 🙂'}",
    "html >/**/ body { color: #FF0000 }",
    "a{background:url(data:image/png;base64, iVBOR w0KG == )}",
    "a{background:url('data:image/svg+xml;utf8,<svg  x=\"1\">')}",
    "@charset 'x';\n@charset \"utf-8\";\na{b:0px}",
    "a { width : 0.0px ; height : 10.0px ; top : -0.5em }",
    "a\r\n{\r\ncolor\r\n:\r\nred\r\n}\r\n",
    "#AABBCC { color: #AABBCC }",
    "a{color:#aabbccdd}",
    "a:hover::after , b:FOCUS { margin : 0 0 }",
    "@media (min-aspect-ratio: 1/2) { a { b: c } }",
    "x{y:z}" * 60,
)


def call(draw, options, text, several=True):
    """A call with a file, several files, or standard input."""
    name = draw.file("css")
    how = draw.integer(0, 9)
    if how < 2:
        return Case(f"{draw.tool} {options} < {name}".replace("  ", " "), {name: text})
    if how == 2:
        return Case(f"cat {name} | {draw.tool} {options}".rstrip(), {name: text})
    names, files = name, {name: text}
    if several and draw.chance(0.25):
        second = f"z-{draw.file('css')}"
        names, files = f"{name} {second}", {name: text, second: sheet(draw, 1)}
    return Case(" ".join(word for word in draw.choice(((draw.tool, options, names), (draw.tool, names, options))) if word), files)


def broken(draw, options=""):
    """One of the errors that every way of calling has."""
    name = draw.file("css")
    files = {name: sheet(draw, 1), "folder/x": ""}
    kind = draw.integer(0, 4)
    if kind == 0:
        return Case(f"{draw.tool} {options} missing-{name}", files)
    if kind == 1:
        return Case(f"{draw.tool} {name} {options} {draw.choice(('folder', 'no/such.css', 'a*.cssx', draw.word() + '.less'))}", files)
    if kind == 2:
        return Case(f"{draw.tool} {options} --{draw.word()} {name}", files)
    if kind == 3:
        return Case(f"{draw.tool} {options} {name} -{draw.choice('oxhvd')}", files)
    return Case(f"{draw.tool} {name} {options} --output {draw.choice(('no/such.css', 'folder', f'{name}/x.css'))}", files)


__all__ = ["EDGES", "broken", "call", "comment", "kept", "quote", "rule", "selector", "sheet", "value"]
