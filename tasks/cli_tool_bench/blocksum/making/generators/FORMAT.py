"""Print a checksum in a format."""

from __future__ import annotations

from _input import failing, odd, reading
from fuzz import Case, Draw, quote

FLAGS = {
    "d": ("", "", "-", "0", "+", " ", "+0", "-+"),
    "u": ("", "", "-", "0"),
    "x": ("", "", "-", "0", "#", "-#"),
    "o": ("", "", "-", "0", "#"),
    "b": ("", "-", "0", "#"),
    "s": ("", "", "-"),
}
AROUND = (
    "",
    "",
    "",
    "sum: {}",
    "<{}>",
    "{}|",
    "[{}]",
    "{} bytes",
    "größe={}",
    "{}%%",
    "a\\n{}",
    "{0}/{0}",
    "日本 {}",
    "'{}'",
)
ODD = (
    *(
        "",
        "%",
        "%%",
        "%q",
        "100%",
        "none",
        "%5%",
        "%d %d",
        "%1$d %1$x",
        "%1$u=%1$X",
        "%s %s %d",
        "%x-%x",
        "%hhd",
        "%hhx",
        "%hd",
    ),
    *(
        "%hu",
        "%ld",
        "%llu",
        "%c|",
        "%f",
        "%.2f",
        "%e",
        "%.3e",
        "%g",
        "%.10g",
        "%12.1f|",
        "%-20s|",
        "%.3s",
        "%20.15d",
        "%.12u",
    ),
    *("%50d", "%-50d|", "%\\x", "\\t%d", "%d\\", "🙂%u", "%#b", "%040b", "{%d}", "$HOME %d", "`%x`"),
)


def conversion(draw: Draw) -> str:
    """Return a conversion with flags, and a width or a precision at times."""
    kind = draw.choice(("d", "d", "i", "u", "u", "x", "x", "X", "o", "b", "s"))
    flags = draw.choice(FLAGS[{"i": "d", "X": "x"}.get(kind, kind)])
    if "0" in flags or draw.chance(0.5):
        return f"%{flags}{draw.integer(8, 24)}{kind}"
    if kind in "dui" and draw.chance(0.3):
        return f"%{flags}.{draw.integer(8, 16)}{kind}"
    return f"%{flags}{kind}"


def option(draw: Draw, text: str) -> str:
    """Return the option with a format in one of its forms."""
    word = quote(text)
    return draw.choice((f"-F {word}", f"-F={word}", f"--format {word}", f"--format={word}"))


def around(draw: Draw) -> str:
    """Return a format with one conversion and text."""
    found = conversion(draw)
    text = draw.choice(AROUND)
    return found if "{0}" in text else text.format(found) if text else found


def common(draw: Draw) -> Case:
    """Print an ordinary file's checksum."""
    before = draw.choice(("", "", "", "-x ", "-S 99 "))
    return reading(draw, before + option(draw, around(draw)))


def boundary(draw: Draw) -> Case:
    """Use an odd format."""
    if draw.chance(0.7):
        return reading(draw, option(draw, draw.choice(ODD)))
    return odd(draw, option(draw, around(draw)))


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, option(draw, around(draw)))
