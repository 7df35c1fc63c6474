"""Texts in Markdown, and the errors that all classes share."""

from fuzz import Case, quote


def inline(draw):
    w = draw.words(4)
    return draw.choice(
        (
            f"**{w[0]}**",
            f"*{w[0]}*",
            f"_{w[0]} {w[1]}_",
            f"__{w[0]}__",
            f"***{w[0]}***",
            f"`{w[0]} <b> & {w[1]}`",
            f"``{w[0]} ` {w[1]}``",
            f"[{w[0]} {w[1]}](http://{w[2]}.example/{w[3]})",
            f'[{w[0]}](/{w[1]} "{w[2]}")',
            f"![{w[0]}]({w[1]}.png)",
            f'![{w[0]}]({w[1]}.png "{w[2]}")',
            f"<http://{w[0]}.example>",
            f"AT&T {w[0]} &copy;",
            f"{w[0]}...",
            f"\\*{w[0]}\\* \\_{w[1]}\\_",
            f"**{w[0]} *{w[1]}* {w[2]}**",
            f"<em>{w[0]}</em>",
            "ünïcödé 日本語 🙂",
        )
    )


def line(draw):
    parts = [*draw.words(draw.integer(2, 5))]
    for _ in range(draw.integer(0, 2)):
        parts.insert(draw.integer(0, len(parts)), inline(draw))
    return " ".join(parts)


def special(draw):
    """A piece that only some options of the converter notice."""
    w = draw.words(4)
    return draw.choice(
        (
            f"~~{w[0]}~~ {w[1]}",
            f"see http://{w[0]}.example/{w[1]} {w[2]}",
            f"{w[0]}_{w[1]}_{w[2]}",
            f"| {w[0]} | {w[1]} |\n|{draw.choice(('---|---', ':--|--:', ':-:|---'))}|\n| 1 | `{w[2]}` |\n| **{w[3]}** | 2 |",
            f"- [ ] {w[0]}\n- [x] {w[1]}",
            f"{w[0]}\n{w[1]}\n{w[2]}",
            f"#{w[0]} {w[1]}",
            f"__{w[0]}__ {w[1]} ___{w[2]}___",
            f"{w[0]}*{w[1]}*{w[2]}",
            f"![{w[0]}]({w[1]}.png ={draw.integer(1, 99)}x{draw.integer(1, 99)})",
            f"```{draw.choice(('', 'js', 'python'))}\n{w[0]} < {w[1]}\n```",
            f"> {w[0]}\n\n> {w[1]}",
            f"## {w[0].capitalize()} {w[1]}!",
            f"[{w[0]}](http://{w[1]}.example)",
            f"thanks @{w[0]} and {w[1]}",
        )
    )


def block(draw):
    w = draw.words(4)
    which = draw.integer(0, 11)
    if which < 3:
        return "\n".join(line(draw) + draw.choice(("", "", "  ")) for _ in range(draw.integer(1, 3)))
    if which == 3:
        mark = "#" * draw.integer(1, 6)
        return f"{mark} {draw.choice((draw.sentence(2), w[0].capitalize(), f'{w[0]} & {w[1]}', f'{w[0]} *{w[1]}*', f'{w[0]} `{w[1]}`'))}{draw.choice(('', '', ' ' + mark))}"
    if which == 4:
        title = draw.sentence(2)
        return f"{title}\n{draw.choice('=-') * draw.integer(3, 12)}"
    if which == 5:
        mark = draw.choice("-*+")
        return "\n".join(f"{mark} {line(draw)}" for _ in range(draw.integer(2, 4)))
    if which == 6:
        return "\n".join(f"{i}. {line(draw)}" for i in range(1, draw.integer(3, 5)))
    if which == 7:
        return f"- {w[0]}\n- {w[1]}\n    - {w[2]}\n    - {line(draw)}\n- {w[3]}"
    if which == 8:
        return "\n".join(f"> {line(draw)}" for _ in range(draw.integer(1, 3)))
    if which == 9:
        return draw.choice((f"```{draw.choice(('', 'js', 'sh'))}\n{w[0]} <{w[1]}>\n  {w[2]} && x\n```", f"    {w[0]} < {w[1]}\n    **{w[2]}**", f"~~~\n{w[0]}\n~~~"))
    if which == 10:
        return draw.choice(("---", "***", "* * *", f"<div>\n**{w[0]}**\n</div>", f"<!-- {w[0]} -->"))
    return f"[{w[0]}][{w[1]}] and [{w[2]}][]\n\n[{w[1]}]: http://{w[1]}.example\n[{w[2]}]: /{w[2]} \"{w[3]}\""


def document(draw, count=0, specials=0):
    blocks = [block(draw) for _ in range(count or draw.integer(1, 5))]
    for _ in range(specials):
        blocks.insert(draw.integer(0, len(blocks)), special(draw))
    return "\n\n".join(blocks) + draw.choice(("\n", "\n", ""))


EDGES = (
    "\n",
    "   \n\n  \n",
    "# \n",
    "#",
    "plain",
    "* * *",
    "# Same\n\n# Same\n\n# Same\n",
    "# Ünïcödé 日本語\n\n# !!!\n",
    "a\r\nb\r\n\r\nc\r\n",
    "\ttabbed\n\tcode\n",
    "**open *stars\n",
    "`open code\n",
    "[text](broken\n",
    "[none][missing]\n",
    "< > & \" ' &amp; &lt;\n",
    "1986\\. A year\n",
    "$1 $& ¨D ~D\n",
    "> > nested\n> quote\n",
    "- a\n\n- b\n\n- c\n",
    "x" * 500 + "\n",
    "line one  \nline two\\\nline three\n",
    "<p>html *stays*</p>\n\n<span>*inline*</span>\n",
)


def source(draw, text, options="", quiet=""):
    """A call that reads a text from a file, or from standard input."""
    name = draw.file(draw.choice(("md", "md", "markdown", "txt")))
    words = [word for word in (options,) if word]
    after = ""
    if draw.chance(0.2):
        after = f" < {name}"
    else:
        words.append(draw.choice((f"-i {name}", f"--input {name}", f"--input={name}")))
        if draw.chance(0.5):
            words.reverse()
    return Case(f"{draw.tool} {quiet}makehtml {' '.join(words)}".rstrip() + after, {name: text})


def broken(draw, options=""):
    """One of the errors that every way of calling has."""
    name = draw.file("md")
    files = {name: document(draw, 2), "folder/x": ""}
    kind = draw.integer(0, 6)
    if kind == 0:
        return Case(f"{draw.tool} makehtml {options} -i {draw.choice((f'missing-{name}', 'folder', f'no/{name}'))}", files)
    if kind == 1:
        return Case(f"{draw.tool} makehtml -i {name} {options} --{draw.word()}", files)
    if kind == 2:
        return Case(f"{draw.tool} makehtml -i {name} {options} -p {draw.choice((draw.word(), 'GitHub', 'gfm', 'markdown'))}", files)
    if kind == 3:
        return Case(f"cat {name} | {draw.tool} makehtml {options}", files)
    if kind == 4:
        return Case(f"{draw.tool} {draw.choice((draw.word(), 'makehtm', 'html', '--' + draw.word() + ' makehtml'))} {options} -i {name}", files)
    if kind == 5:
        return Case(f"{draw.tool} makehtml {options} < empty.md", {**files, "empty.md": "", name: draw.sentence()})
    return Case(f"{draw.tool} makehtml -i {name} {options} -u {draw.word()}", files)


__all__ = ["EDGES", "block", "broken", "document", "inline", "line", "quote", "source", "special"]
