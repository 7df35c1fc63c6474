from _kit import algorithm, claims, edge_signing, failing, key, text
from fuzz import Case


def common(draw):
    first, second = algorithm(draw), draw.choice(("", "-alg HS256 ", "-alg HS512 "))
    files = {"claims.json": text(draw, claims(draw)), "key": key(draw)}
    sign = f"{draw.tool} -sign claims.json -alg {first} -key key"
    if draw.chance(0.2):
        return Case(f"{draw.tool} -sign claims.json -alg none | {draw.tool} -alg none -verify -", files)
    return Case(f"{sign} | {draw.tool} {second}-key key -verify -" if draw.chance(0.7) else sign, files)


def boundary(draw):
    case = edge_signing(draw)
    return Case(
        f"{case.command} > t.txt && {draw.tool} -verify t.txt -key key{' -alg none' if 'none' in case.command else ''}",
        case.files,
    )


def error(draw):
    return failing(draw)
