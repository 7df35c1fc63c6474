from _kit import call, edge, failing, filters, formula
from fuzz import quote


def common(draw):
    first = formula(draw)
    label = first.split("=")[0].strip()
    flags = [
        f"{draw.choice(('-e', '--expr'))} {quote(first)}",
        f"-k {','.join(draw.sample(('host', 'size', 'time', 'status', label, label), 4))}",
    ]
    if draw.chance(0.3):
        flags.append(
            f"-f {quote(draw.choice((f'{label} > {draw.integer(0, 200)}', f'{label} != 0', filters(draw))))}"
        )
    elif draw.chance(0.3):
        flags.append(f"-e {quote(f'extra = {draw.integer(1, 50)} * status')}")
        flags[1] += ",extra"
    return call(draw, [*flags, draw.choice(("", "", "-K"))], odd=0.05)


def boundary(draw):
    odd = draw.choice(
        (
            "r = a + 1",
            "r = a * 1000000",
            "r = a / 3",
            "a = a",
            "r = 1 / 3",
            "r = 10 / 2",
            "r = 2 * 3.0",
            "r=",
            "r",
            "r = = 1",
            "r = -a",
            "r = 1 +",
            "r = missing + 1",
            "r = a b",
            "r = 1e400 * 1",
            "r = 123456789 + 1",
            "r = 1234567.0 + 1",
            "r = 0.1 + 0.2",
            "r = 0x10 + 1",
            "r = size - time",
            "a = 'x'",
            'r = "t"',
            " r  = 5",
            "r = 7",
            "r = 1.0",
            "r = a / 1000000",
        )
    )
    return edge(draw, f"-e {quote(odd)} {draw.choice(('-k r,a', '-k a,r,size', '', '-K -k r'))}".strip())


def error(draw):
    own = (
        "-e 'r = size / 0'",
        f"-e 'r = {draw.integer(1, 9)} / 0'",
        "-e 'r = 1 / (2 - 2)'",
        f"--expr 'size = {draw.integer()} / (3 - 3)'",
        "-e 'r = status / (1 - 1) + 5'",
        f"-e 'r = status / (size - size)' -k {draw.word()}",
    )
    return failing(draw, draw.choice((f"-e {quote(formula(draw))}", "-k r,size", "-K")), own)
