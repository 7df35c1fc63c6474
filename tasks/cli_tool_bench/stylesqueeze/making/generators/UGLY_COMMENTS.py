from _sheets import EDGES, broken, call, comment, kept, rule, sheet


def commented(draw):
    """A style sheet with at least one comment that is kept."""
    parts = [rule(draw) for _ in range(draw.integer(1, 3))]
    for _ in range(draw.integer(1, 3)):
        parts.insert(draw.integer(0, len(parts)), kept(draw))
    if draw.chance(0.4):
        parts.insert(draw.integer(0, len(parts)), comment(draw))
    if draw.chance(0.2):
        parts.append(f".{draw.word()} {{ {kept(draw)} color: #aabbcc; {kept(draw)} }}")
    return "".join(parts)


def common(draw):
    return call(draw, f"--ugly-comments{draw.choice(('', '', '', ' --max-line-len 30', ' --expand-vars'))}", commented(draw))


def boundary(draw):
    a, b = draw.words(2)
    text = draw.choice(
        (
            f"/*!*/{a}{{b:c}}",
            f"/*!{a}\n\n\n{b}*/",
            f"/*! {a} *//*! {b} */",
            f"{a}{{/*!\n{b}\n*/}}",
            f"{a} /*! x */ {b} {{ c: d }}",
            f"/*!\r\n{a}\r{b}\n*/\n{a}{{b:0px}}",
            f"/* ! {a} */ {b}{{c:d}}",
            f"{a}{{b:c}}\n\n/*! end */\n\n",
            f"/*! {a}: 0px; #AABBCC */{b}{{c:0px}}",
            sheet(draw, 1),
            draw.choice(EDGES),
        )
    )
    return call(draw, draw.choice(("--ugly-comments", "--ugly-comments", "--ugly-comments --cute-comments")), text)


def error(draw):
    return broken(draw, f"--ugly-comments{draw.choice(('', ' --cute-comments', ' --max-line-len 20'))}")
