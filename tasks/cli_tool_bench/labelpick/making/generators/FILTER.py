from _kit import LABELS, call, edge, failing, filters
from fuzz import quote


def common(draw):
    flags = [f"{draw.choice(('-f', '--filter'))} {quote(filters(draw))}"]
    if draw.chance(0.35):
        flags.append(f"-f {quote(filters(draw))}")
        labels = [flag.split("'")[1].split()[0] for flag in flags]
        flags = (
            flags[:1] if labels[0] == labels[1] else flags
        )  # the last filter for a label counts, which the order would change
    flags.append(draw.choice(("", "", "-K", f"-k {','.join(draw.sample(LABELS, 3))}", "-i host")))
    return call(draw, flags)


def boundary(draw):
    odd = draw.choice(
        (
            "a == 1",
            "a != 1",
            "a =~ ",
            "missing == ",
            "missing =~ ^$",
            "missing > 0",
            "a > 0",
            "size >= 0",
            "time < 1e3",
            "a ~ 1",
            "a = 1",
            "a ==  1",
            "size == 5",
            "a ==* B:C:D",
            "uri =~ ^z+$",
            "日本 == 語",
            "a b == 1",
            ": == x",
            "size > NaN",
            "size < Inf",
            "size >= 0x0",
            "a =~* B",
        )
    )
    return edge(draw, f"-f {quote(odd)}")


def error(draw):
    word = draw.word()
    own = (
        f"-f {word}",
        f"-f 'size > {word}'",
        "-f 'uri =~ ('",
        f"-f '{word} =='",
        "-f ''",
        "-f 'time <= '",
        "--filter 'status >= 4xx'",
        f"--filter 'user !~ *{word}'",
        f"-f {word}==200",
        "-f 'size < 1,5'",
        "-f 'level =~* [z-a]'",
    )
    return failing(draw, draw.choice(("", "-K", "-k size")), own)
