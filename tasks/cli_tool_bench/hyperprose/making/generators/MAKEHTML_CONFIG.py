from _prose import EDGES, broken, document, source, special
from fuzz import Case


def settings(draw):
    """Names of options, each with texts that show it."""
    a, b, c, d = draw.words(4)
    return (
        ("noHeaderId", f"# {a} {b}\n"),
        ("prefixHeaderId", f"## {a} {b}\n\n## {a} {b}"),
        (f"prefixHeaderId={c}", f"# {a}!"),
        ("ghCompatibleHeaderId", f"# {a.capitalize()} - {b} & {c}"),
        (f"headerLevelStart={draw.integer(2, 5)}", f"# {a}\n\n## {b}\n\n{c}\n==="),
        ("simplifiedAutoLink", f"{a} http://{b}.example/{c} {d}"),
        ("literalMidWordUnderscores", f"{a}_{b}_{c} _{d}_"),
        ("literalMidWordAsterisks", f"{a}*{b}*{c} *{d}*"),
        ("strikethrough", f"~~{a} {b}~~ {c}"),
        ("tables", f"| {a} | {b} |\n|:--|---|\n| {c} | *{d}* |\n| 1 | 2 |"),
        ("tables tablesHeaderId", f"| {a} | {b} |\n|--:|:-:|\n| {c} | `{d}` |"),
        ("tasklists", f"- [ ] {a}\n- [x] {b}\n- {c}"),
        ("simpleLineBreaks", f"{a}\n{b}\n{c}"),
        ("requireSpaceBeforeHeadingText", f"#{a}\n\n# {b}"),
        ("openLinksInNewWindow", f"[{a}](http://{b}.example) <http://{c}.example>"),
        ("underline", f"__{a}__ **{b}** ___{c}___"),
        ("omitExtraWLInCodeBlocks", f"```js\n{a}\n```\n\n    {b}"),
        ("parseImgDimensions", f"![{a}]({b}.png ={draw.integer(1, 99)}x{draw.choice(('*', '20', '5em'))})"),
        ("completeHTMLDocument", f"{a}"),
        ("disableForced4SpacesIndentedSublists", f"- {a}\n  - {b}\n  - {c}\n- {d}"),
        ("splitAdjacentBlockquotes", f"> {a}\n\n> {b}"),
        (f"ghMentions ghMentionsLink=http://{c}.example/{{u}}", f"hello @{a}"),
    )


def option(draw, names):
    return f"{draw.choice(('-c', '--config'))} {' '.join(names)}"


def common(draw):
    chosen = draw.sample(settings(draw), draw.integer(1, 3))
    text = "\n\n".join([part for _, part in chosen] + [document(draw, 1)] * draw.integer(0, 1)) + "\n"
    names = [name for name, _ in chosen]
    if draw.chance(0.2):
        return source(draw, text, f"-o out.html {option(draw, names)}", draw.choice(("-q ", "-m ")))
    return source(draw, text, option(draw, names))


def boundary(draw):
    name, text = draw.choice(settings(draw))
    kind = draw.integer(0, 4)
    if kind == 0:  # any text turns an option on
        plain = draw.choice(("noHeaderId", "strikethrough", "tables", "simpleLineBreaks", "tasklists", "openLinksInNewWindow"))
        return source(draw, special(draw) + "\n\n# x\n", option(draw, [f"{plain}={draw.choice(('false', 'true', '0', 'no'))}"]))
    if kind == 1:
        return source(draw, text, option(draw, [draw.choice((draw.word(), "TABLES", "no-header-id", "a=b=c", "''"))]))
    if kind == 2:
        return source(draw, text, f"-c {name} -c noHeaderId")
    if kind == 3:
        return source(draw, draw.choice(EDGES), option(draw, [name]))
    return source(draw, text, f"-p {draw.choice(('github', 'original'))} {option(draw, [name])}")


def error(draw):
    name, text = draw.choice(settings(draw))
    kind = draw.integer(0, 2)
    file = draw.file("md")
    if kind == 0:
        return Case(f"{draw.tool} makehtml -i {file} {draw.choice(('-c', '--config'))}", {file: text})
    if kind == 1:
        return Case(f"{draw.tool} makehtml -i {draw.choice(('missing', 'absent'))}-{file} {option(draw, [name])}", {file: text})
    return broken(draw, f"-c {name.split()[0]}")
