"""Files that are rewritten."""

from _sheets import Sheet, odd_text, wrong
from fuzz import Case, Draw

OPTIONS = ("-r", "--replace", "--repl")
OTHERS = ("", "", "", " -s 2", " -n", " -b expand", " -t")
NAMES = ("a.css", "b.scss", "css/c.css", "d e.css", "ünï.css")


def common(draw: Draw) -> Case:
    """Return a call that rewrites one file, or several, whose messages are sorted."""
    options = draw.choice(OPTIONS) + draw.choice(OTHERS)
    names = draw.sample(NAMES, draw.choice((1, 1, 2, 3)))
    files = {name: Sheet(draw).text(1, 4) for name in names}
    words = " ".join(f"'{name}'" for name in names)
    if len(names) == 1:
        again = draw.choice(("", "", f" && cat {words}", f" && {draw.tool} {options} {words}"))
        return Case(f"{draw.tool} {options} {words}{again}", files)
    shown = draw.choice(
        (options, options.removeprefix("--replace").removeprefix("--repl").removeprefix("-r").strip())
    )
    return Case(f"{draw.tool} {shown} {words} | sort", files)


def boundary(draw: Draw) -> Case:
    """Return odd files, patterns, or standard input, which is not rewritten."""
    text = odd_text(draw)
    commands = (
        f"{draw.tool} -r a.css",
        f"{draw.tool} -r < a.css",
        f"{draw.tool} -r '*.css' | sort",
        f"{draw.tool} '**/*.css' | sort",
        f"{draw.tool} -r '?.css' -n; ls | sort",
        f"{draw.tool} -r a.css a.css",
        f"{draw.tool} -r - a.css",
        f"{draw.tool} -n a.css b.css | sort",
        f"{draw.tool} --replace 'none*.css'",
    )
    return Case(draw.choice(commands), {"a.css": text, "b.css": "a {\n    b: c\n}", "css/c.css": "x{y:z}"})


def error(draw: Draw) -> Case:
    """Return a call that must fail."""
    return wrong(draw, draw.choice(OPTIONS))
