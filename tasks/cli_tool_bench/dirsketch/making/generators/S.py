from _kit import edge, failing, folder
from fuzz import Case


def common(draw):
    flags = [
        draw.choice(("-s", "-s", "-h", "-s -h")),
        *draw.sample(
            ("-d", "-a", "-Q", "-C", "-r", "-L 1", "-i", "-f", "--noreport", "-P txt", "-L 2"),
            draw.choice((0, 1, 2)),
        ),
    ]
    flags = sorted(flags, key=lambda flag: flag[1:] in ("L 1",))
    big = (
        {f"box/{draw.word()}.bin": "y" * draw.choice((1023, 1024, 1025, 10239, 10240, 99999, 12345, 1048577))}
        if draw.chance(0.4)
        else {}
    )
    return Case(f"{draw.tool} {' '.join(flags)} box", folder(draw) | big)


def boundary(draw):
    return edge(
        draw, draw.choice(("-s", "--s", "-s=1", "-s -L 1", "-h -L 1", "-h", "-s -L 2", "-s -d")), ("-a", "-f")
    )


def error(draw):
    return failing(draw, "-s", ("-s=some", "-sh", "--size"))
