from _sheets import EDGES, broken, call, sheet
from fuzz import Case


def common(draw):
    return call(draw, "", sheet(draw))


def boundary(draw):
    if draw.chance(0.15):
        return Case(f"{draw.tool} one.css one.css empty.css two.css", {"one.css": sheet(draw, 1), "empty.css": "", "two.css": "/* none */"})
    return call(draw, "", draw.choice(EDGES) + draw.choice(("", "", sheet(draw, 1))))


def error(draw):
    return broken(draw)
