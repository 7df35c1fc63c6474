"""Show sizes, those of folders summed up."""

from __future__ import annotations

from _forest import dressed, edge, failing, forest, line
from fuzz import Case, Draw

VIEWS = (
    "",
    "",
    "",
    " -h",
    " --si",
    " -s",
    " --human-readable",
    " -J",
    " -L 1",
    " -L 0",
    " --sort size",
    " -d",
    " -a",
    " -I txt",
)
SIZES = (
    0,
    1,
    9,
    10,
    999,
    1000,
    1001,
    1023,
    1024,
    1025,
    1535,
    1536,
    9999,
    10000,
    10240,
    99999,
    100000,
    123456,
)


def sized(draw: Draw) -> tuple[str, dict[str, str]]:
    """Return a folder whose files have various sizes."""
    top, files = forest(draw, draw.integer(1, 3), 0.15)
    return top, {
        path: "x" * draw.choice(SIZES[:14]) if draw.chance(0.6) else text for path, text in files.items()
    }


def option(draw: Draw) -> str:
    """Return the option, with others."""
    return f"--du{draw.choice(VIEWS)}{dressed(draw, 1)}"


def common(draw: Draw) -> Case:
    """Draw a folder with sizes."""
    top, files = sized(draw)
    return Case(line(draw, top, option(draw)), files)


def boundary(draw: Draw) -> Case:
    """Draw files of extreme sizes, or an odd folder."""
    if draw.chance(0.5):
        word = draw.word()
        prep = "".join(
            f"head -c {size} /dev/zero > {word}/{size}.bin; "
            for size in draw.sample((*SIZES, 1048575, 1048576, 2500000), 3)
        )
        return Case(
            f"{draw.tool} {word} --du{draw.choice(('', ' -h', ' --si', ' -h --si', ' -J -h'))}",
            {f"{word}/a.txt": "é\n"},
            prep,
        )
    return edge(draw, f"--du{draw.choice(('', ' -h', ' --si', ' -J'))}")


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw))
