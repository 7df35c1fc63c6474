from _sheets import EDGES, broken, call, rule, sheet


def variables(draw):
    """A block of variables, and rules that use them."""
    names = [name + draw.choice(("", "", "-1", "-Color", "2")) for name in draw.words(draw.integer(1, 4))]
    values = [draw.choice(("#AABBCC", "#FF0000", "0px", f"{draw.integer(1, 30)}px", "0.5em solid #ffffff", '"Open  Sans", serif', "rgb(1, 2, 3)", "red")) for _ in names]
    gap = draw.choice(("\n    ", " ", ""))
    block = "@variables" + draw.choice((" ", "")) + "{" + gap + gap.join(f"{n}{draw.choice((':', ': ', ' : '))}{v};" for n, v in zip(names, values)) + "\n}\n"
    uses = [f".{draw.word()} {{ {draw.choice(('color', 'margin', 'border', 'font'))}: {draw.choice(('var({0})', 'var( {0})', 'var ({0})', 'var({0}) 0px', 'var({0}) var({0})')).format(draw.choice((*names, *names, 'absent')))}; }}\n" for _ in range(draw.integer(1, 4))]
    return block, uses


def common(draw):
    block, uses = variables(draw)
    parts = [*uses, *([rule(draw)] if draw.chance(0.5) else [])]
    parts.insert(0 if draw.chance(0.7) else draw.integer(0, len(parts)), block)
    if draw.chance(0.25):
        parts += variables(draw)[0]
    return call(draw, f"--expand-vars{draw.choice(('', '', ' --max-line-len 40'))}", "".join(parts), several=False)


def boundary(draw):
    block, uses = variables(draw)
    word = draw.word()
    text = draw.choice(
        (
            block,
            "".join(uses),
            f"@variables {{ }}\n.{word}{{a:var(x)}}",
            f"@variables {{ a: {word} }}\n@variables {{ a: 2px }}\n.x {{ b: var(a) }}",
            f":root {{ --a: {word} }} p {{ color: var(--a) }}",
            f"@variables {{ a: \"{word}\" }} p {{ content: var(a) }}",
            f"@variables {{ --a: {word} }} p {{ color: var(--a) }}",
            f"/* @variables {{ a: b }} */ .{word} {{ c: var(a) }}",
            f"@VARIABLES {{ a: b }} .{word} {{ c: VAR(a) var(a) }}",
            sheet(draw, 2),
            draw.choice(EDGES),
        )
    )
    return call(draw, "--expand-vars", text, several=False)


def error(draw):
    return broken(draw, f"--expand-vars{draw.choice(('', ' --ugly-comments', ' --max-line-len 20'))}")
