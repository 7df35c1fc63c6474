"""Style sheets with any white space, and calls that format them."""

from __future__ import annotations

from fuzz import Case, Draw, quote

DECLARATIONS = (
    "color:red",
    "color:#FFF",
    "margin:0 auto",
    "margin:0   1px\t2px",
    "width:calc(100% - 10px)",
    "background:url(img/a;b.png) no-repeat",
    "background:url('x y.png')",
    "font:12px/1.5 Arial,sans-serif",
    "transition:a 1s,b 2s",
    "top:-1px!important",
    "display:none ! important",
    "color:rgba(1,2,3,.5)",
    "-webkit-x:y",
    "*zoom:1",
    'content:"a;b"',
    "content:'\\201C'",
    "--main-color:#06c",
    "filter:alpha(opacity=50)",
    "transform:translate(1px,2px) rotate(3deg)",
)
SELECTORS = (
    "a",
    ".box",
    "#main",
    "ul li",
    "a:hover",
    "p::before",
    "ol>li",
    "h1 + h2",
    "b ~ i",
    "a > b>c",
    "input[type=text]",
    'a[href ^= "x"]',
    "li:nth-child(2n+1)",
    "div:not(.x)",
    "*",
    "ul   li.on",
)
NESTED = ("&:hover", ".inner", "> li", "& + &", "a:hover", "&.on", "+ p", ".x &")
COMMENTS = ("/* note */", "/*c*/", "/* two\n   lines */", "/** doc\n * more\n */")


class Sheet:
    """A style sheet whose white space is of one kind: `tight`, `usual` or `wild`."""

    def __init__(self, draw: Draw, kind: str = "") -> None:
        self.draw = draw
        self.kind = kind or draw.choice(("tight", "usual", "wild", "wild"))

    def gap(self, usual: str) -> str:
        """Return white space where it is optional."""
        if self.kind == "tight":
            return ""
        return (
            usual
            if self.kind == "usual"
            else self.draw.choice(("", usual, usual, "  ", "\n", "\t", "\n\n", "\n\n\n"))
        )

    def small(self, usual: str) -> str:
        """Return white space inside a line."""
        return "" if self.kind == "tight" else self.draw.choice((usual, usual, "", "  "))

    def comment(self) -> str:
        """Return a comment, or most often nothing."""
        return self.draw.choice(COMMENTS) + self.gap("\n") if self.draw.chance(0.12) else ""

    def declarations(self, count: int = 0) -> str:
        """Return declarations, the last one at times without its semicolon."""
        made = []
        for text in self.draw.sample(DECLARATIONS, count or self.draw.integer(1, 4)):
            name, value = text.split(":", 1)
            made.append(f"{self.comment()}{name}{self.small('')}:{self.small(' ')}{value}")
        return f";{self.gap(chr(10))}".join(made) + self.draw.choice((";", ";", "")) + self.gap("\n")

    def selectors(self) -> str:
        """Return one selector or several."""
        found = self.draw.sample(SELECTORS, self.draw.choice((1, 1, 2, 3)))
        return f"{self.small('')},{self.gap(' ')}".join(found) + self.small(" ")

    def rule(self) -> str:
        """Return a rule, at times an empty one."""
        if self.draw.chance(0.08):
            return f"{self.selectors()}{{{self.gap('')}}}"
        return f"{self.selectors()}{{{self.gap(chr(10))}{self.declarations()}}}"

    def at_rule(self) -> str:
        """Return a rule with an at sign."""
        shapes = (
            f"@media screen and (max-width:{self.draw.integer(100, 900)}px){self.small(' ')}{{{self.gap(chr(10))}{self.rule()}{self.gap(chr(10))}{self.rule()}{self.gap(chr(10))}}}",
            f"@media print,(min-width : 10em){{{self.gap(' ')}{self.rule()}}}",
            f"@supports (display:grid) and (not (display:inline-grid)){self.small(' ')}{{{self.rule()}}}",
            f"@font-face{self.small(' ')}{{{self.gap(chr(10))}font-family:'X Y';{self.gap(chr(10))}src:url(x.woff),url(x.ttf)}}",
            f"@keyframes {self.draw.word()}{{from{{{self.declarations(1)}}}{self.gap(chr(10))}50%,60%{{{self.declarations(1)}}}to{{{self.declarations(1)}}}}}",
            f"@page :first{self.small(' ')}{{margin:1in}}",
            f'@import url("{self.draw.word()}.css");',
            f"@import '{self.draw.word()}' screen,  projection;",
            '@charset "utf-8";',
        )
        return self.draw.choice(shapes)

    def nested(self) -> str:
        """Return nested rules and variables, as SCSS and LESS have them."""
        inner = f"{self.draw.choice(NESTED)}{self.small(' ')}{{{self.gap(chr(10))}{self.declarations(1)}}}"
        deep = f"{self.draw.choice(NESTED)}{{{inner}{self.gap(chr(10))}}}"
        shapes = (
            f"{self.selectors()}{{{self.gap(chr(10))}{self.declarations(2).rstrip().rstrip(';')};{self.gap(chr(10))}{inner}{self.gap(chr(10))}}}",
            f"{self.selectors()}{{{self.gap(chr(10))}{inner}{self.gap(chr(10))}{deep}}}",
            f"${self.draw.word()}{self.small('')}:{self.small(' ')}{self.draw.integer(1, 20)}px;",
            f"@{self.draw.word()}:{self.small(' ')}#{self.draw.integer(100, 999)};",
            f".m{{@include {self.draw.word()}(1px,2px);@extend .{self.draw.word()};.mixin();}}",
            f"${self.draw.word()}:(a:1,{self.gap(' ')}b:2);",
            f".b-#{{$i}}{{width:#{{$w}}px}}",
            f"// {self.draw.sentence()}\n{self.rule()}",
            f".c{{color:red; // {self.draw.word()}\ntop:0;}}",
        )
        return self.draw.choice(shapes)

    def text(self, low: int = 2, high: int = 6) -> str:
        """Return a style sheet."""
        parts = []
        for _ in range(self.draw.integer(low, high)):
            make = self.draw.choice((self.rule, self.rule, self.rule, self.at_rule, self.nested))
            parts.append(self.comment() + make())
        end = {"tight": "", "usual": "\n", "wild": self.draw.choice(("", "\n", "\n\n"))}[self.kind]
        between = {"tight": lambda: "", "usual": lambda: "\n", "wild": lambda: self.gap("\n")}[self.kind]
        text = parts[0]
        for part in parts[1:]:
            joint = between()
            text += (joint or ("\n" if "//" in text.splitlines()[-1] else "")) + part
        return text + end


def call(draw: Draw, options: str, text: str) -> Case:
    """Return a call that formats a style sheet from a file or from standard input."""
    name = draw.choice(("style.css", "a b.css", "css/main.scss", "theme.less", "x"))
    word = quote(name)
    commands = (
        f"{draw.tool} {options} {word}",
        f"{draw.tool} {options} {word}",
        f"{draw.tool} {options} < {word}",
        f"cat {word} | {draw.tool} {options} -",
        f"{draw.tool} {options} {word} > out.txt",
    )
    return Case(draw.choice(commands).replace("  ", " "), {name: text})


def odd_text(draw: Draw) -> str:
    """Return a style sheet that trips careless formatters."""
    rule = Sheet(draw).rule()
    return draw.choice(
        (
            " ",
            "\n\n",
            "a{b:c",
            "a{b:c}}",
            "}",
            "{}",
            "a{",
            "/* open",
            "/* only */",
            "a{}b{}c{}",
            "a{;;b:c;;}",
            "a{content:'open\n}b{c:d}",
            "\ta{b:c;d:e}\n\tf{g:h}",
            f"    {rule}\n{rule}",
            f"{rule}\r\n\r\n{rule}\r\n".replace("\n\n", "\n"),
            "a{b:c}\rd{e:f}",
            f"/* beautify ignore:start */\n  a   {{b:c}}\n/* beautify ignore:end */\n{rule}",
            ".日本語,.ünï{content:'🙂';color:red}",
            'a{content:"a{b}";c:d}',
            "a{b:c;}\n\n\n\n\n\nd{e:f;}",
            "@media a{@media b{c{d:e}}}",
            "a{b:url( 'x' );c:url(  y  )}",
            ".g{grid-template-areas:'a b'\n'c d';grid-template:'x y' 1fr\n'z z' 2fr / auto}",
            "a{b{c{d{e{f:g}}}}}",
            "a\\:b:hover{c\\;d:e}",
            "<!-- a{b:c} -->",
            "a , b{c : d}\n,e{f:g}",
            "x" * 200 + "{y:z}",
            f"{rule}{rule}{rule}",
        )
    )


def odd(draw: Draw, options: str) -> Case:
    """Return a call that formats an odd style sheet, or two of them."""
    text = odd_text(draw)
    return call(draw, options, text + odd_text(draw) if draw.chance(0.5) else text)


def wrong(draw: Draw, option: str) -> Case:
    """Return a call that must fail, besides a sound option."""
    text = Sheet(draw, "tight").text(1, 3)
    word = draw.word()
    calls = (
        f"{option} {word}.css",
        f"{option} style.css {word}.css",
        f"{option} style.css -{draw.choice('snt')}",
        f"{option} --{word} style.css",
        f"{option} -{draw.choice('xzqw')} style.css",
        f"{option} --indent 2 style.css",
        f"{option} -s {draw.choice((word, '2px', '1.5', quote(''), 'two'))} style.css",
        f"{option} -b {draw.choice((word, 'Expand', 'allman', 'expand,x'))} style.css",
        f"{option} < none.css",
        f"{option} - < none.css",
        f"style.css {option or '-n'}",
        f"{option} css",
        f"{option} --end-with-newline=yes style.css",
    )
    return Case(
        f"{draw.tool} {draw.choice(calls)}".replace("  ", " "),
        {"style.css": text, "none.css": "", "css/x.css": text},
    )
