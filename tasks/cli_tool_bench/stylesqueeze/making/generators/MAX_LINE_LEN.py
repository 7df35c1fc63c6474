from _sheets import EDGES, broken, call, kept, rule, sheet


def common(draw):
    return call(draw, f"--max-line-len {draw.choice((1, 20, 30, 40, 60, 80, 100, 150))}", sheet(draw, draw.integer(3, 8)))


def boundary(draw):
    length = draw.choice(("0", "-5", "1", "2", "99999", "abc", "12px", "1.9", "0x20", "''", "007"))
    text = draw.choice((sheet(draw, 3), draw.choice(EDGES), kept(draw) + rule(draw) + rule(draw), "@media print{a{b:c}d{e:f}}g{h:i}", "é{b:c}日{d:e}🙂{f:g}h{i:j}"))
    return call(draw, f"--max-line-len {length}", text)


def error(draw):
    return broken(draw, f"--max-line-len {draw.choice((0, 10, 50, 80))}")
