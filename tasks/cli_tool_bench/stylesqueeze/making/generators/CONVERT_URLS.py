from _sheets import broken, rule, sheet
from fuzz import Case

TARGETS = ("dist", "dist/", "./dist", "public/css", "public/css/", "build/a/b", "css/../dist", "deep/../public")


def url(draw, depth):
    """An address in a style sheet that lies `depth` folders deep. It stays in the folder of the case, and in no target."""
    word = draw.word()
    path = draw.choice((f"img/{word}.png", f"./img/{word}.png", f"img/a/../{word}.gif", f"fonts/{word}.woff?x=1", *((f"../{word}/{word}.svg", f"../img/{word}.jpg") if depth else ())))
    path = draw.choice((path, path, path, path, f"http://{word}.example/i.png", f"https://{word}.example/i.png", f"/{word}/i.png", "data:image/gif;base64,R0lG AAA="))
    return draw.choice(("url({0})", "url( {0} )", "url('{0}')", 'url("{0}")', "url( '{0}' )", "URL({0})" if draw.chance(0.1) else "url({0})")).format(path)


def file(draw):
    depth = draw.integer(0, 2)
    return "/".join(["css", "theme"][:depth] + [draw.file("css")]), depth


def styled(draw, depth):
    parts = [f".{draw.word()} {{ background: {url(draw, depth)} no-repeat 0 0; color: #AABBCC }}\n" for _ in range(draw.integer(1, 3))]
    if draw.chance(0.3):
        parts.insert(0, f"@font-face {{ font-family: X; src: {url(draw, depth)}, {url(draw, depth)} }}\n")
    if draw.chance(0.3):
        parts.append(rule(draw))
    return "".join(parts)


def common(draw):
    name, depth = file(draw)
    files = {name: styled(draw, depth)}
    if draw.chance(0.3):
        other = f"lib/{draw.file('css')}"
        files[other] = styled(draw, 1)
    words = [" ".join(files), f"--convert-urls {draw.choice(TARGETS)}", *(["--max-line-len 50"] if draw.chance(0.15) else [])]
    return Case(f"{draw.tool} {' '.join(draw.sample(words, len(words)))}", files)


def boundary(draw):
    name, depth = file(draw)
    word = draw.word()
    kind = draw.integer(0, 3)
    if kind == 0:  # nothing is converted
        return Case(f"{draw.tool} {name} --convert-urls {draw.choice(('', chr(39) * 2))}".rstrip(), {name: styled(draw, depth)})
    if kind == 1:  # the current folder
        return Case(f"{draw.tool} css/a.css --convert-urls {draw.choice(('.', './', 'css/..'))}", {"css/a.css": f"a{{b:{url(draw, 1)}}}"})
    if kind == 2:
        return Case(f"{draw.tool} --convert-urls dist < {name}", {name: styled(draw, depth)})
    text = draw.choice((f"a{{b:url(img/{word} x.png)}}", f"a{{b:url('img/ünï-{word}.png')}}", f"@import 'img/{word}.css';@import url(sub/{word}.css);", f"a{{b:url(img/a.png),url(img/{word}.png)}}", f"a{{b:url('img/({word}).png')}}", f"/* url(img/{word}.png) */a{{b:url(//{word}.example/x.png)}}", ""))
    return Case(f"{draw.tool} css/b.css --convert-urls {draw.choice(TARGETS)}", {"css/b.css": text})


def error(draw):
    return broken(draw, f"--convert-urls {draw.choice(TARGETS)}")
