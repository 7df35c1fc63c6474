"""Leave entries out by regular expressions."""

from __future__ import annotations

from _forest import dressed, edge, failing, forest, line
from fuzz import Case, Draw, quote

PATTERNS = (
    *(
        "\\.txt$",
        "\\.js$",
        "\\.md$",
        "[0-9]",
        "^{top}/[a-m]",
        "{word}",
        "{word}$",
        "^{top}/{word}",
        "\\.test\\.",
        "[eo]r$",
    ),
    *(
        "[A-Z]",
        "/[^/]*/",
        "a.*e",
        "^[^.]*$",
        "\\.log$|\\.md$",
        "{word}|{word}",
        "{word}|\\.txt",
        "^{top}/[^/]+/[^/]+$",
    ),
)


def option(draw: Draw, files: dict[str, str], top: str) -> str:
    """Return the option with an expression that concerns these files."""
    parts = [part for path in files for part in path.split("/")[1:]]
    pattern = draw.choice(PATTERNS)
    while "{word}" in pattern:
        pattern = pattern.replace(
            "{word}", draw.choice([part for part in parts if part.isalpha()] or ["none"]), 1
        )
    pattern = pattern.replace("{top}", top)
    return draw.choice(("-I {}", "--exclude {}", "--exclude={}")).format(quote(pattern))


def common(draw: Draw) -> Case:
    """Leave out entries of an ordinary folder."""
    top, files = forest(draw, draw.integer(2, 4))
    options = option(draw, files, top) + dressed(draw) + draw.choice(("", "", " -a", " -J", " -L 2", " -d"))
    place = draw.choice((top, top, f"./{top}", f"{top}/"))
    return Case(line(draw, place, options), files)


def boundary(draw: Draw) -> Case:
    """Use an expression that matches everything or nothing, or one about the start itself."""
    if draw.chance(0.6):
        top, files = forest(draw, 2)
        pattern = draw.choice(
            (
                ".",
                "^$",
                f"^{top}$",
                f"{top}",
                "a|",
                "|",
                "$",
                "^",
                "é|ü",
                "\\s",
                "日",
                "/",
                "DS_Store",
                "^\\./",
            )
        )
        command = f"{draw.tool} {draw.choice((top, './' + top))} -I {quote(pattern)}{draw.choice(('', ' -J', ' -f', ' -a'))}"
        return Case(command, files | {f"{top}/.DS_Store": "", f"{top}/ü b": ""})
    return edge(draw, f"-I {quote(draw.choice(('v1', '[0-9]$', 'link', 'x', 'sub/', '^[a-m]')))}")


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, "") if draw.chance(0.3) else wrong(draw)


def wrong(draw: Draw) -> Case:
    """Use an invalid expression, none, or the option twice."""
    top, files = forest(draw, 1)
    value = draw.choice(
        ("[", "(", ")", "*", "?", "+", "a**", "[b-a]", "(?<n", "{word}|*", "\\", "(?:", "x{3,1}", "a|b|(")
    )
    if draw.chance(0.3):
        return Case(f"{draw.tool} {top} -I {draw.word()} -I '\\.{draw.letters(2)}$'", files)
    return Case(
        f"{draw.tool} {top}{dressed(draw)} --exclude {quote(value.replace('{word}', draw.word()))}", files
    )
