from _kit import edge, failing, folder
from fuzz import Case, quote

PATTERNS = (
    r"\\.txt$",
    r"\\.md$",
    "^[a-m]",
    "e",
    "[0-9]+",
    "^file",
    r"\\.(py|c)$",
    "(?i)TXT",
    "src.*txt",
    "box/.*/",
    "^box/[a-z]*[.]",
    "^.{5}\\\\.",
    "r|z",
    r"\\.gz$|\\.zip$",
    "^$",
)


def common(draw):
    flags = [
        f"-I {quote(draw.choice(PATTERNS))}",
        *draw.sample(("--ignore-case", "-a", "-Q", "-f", "-d", "--noreport"), draw.choice((0, 0, 1, 2))),
    ]
    return Case(f"{draw.tool} {' '.join(draw.sample(flags, len(flags)))} box", folder(draw))


def boundary(draw):
    pattern = draw.choice(
        (
            "",
            "[",
            "*",
            "(?P<x>a)",
            "\\\\",
            "日本",
            "a b",
            "(?!x)",
            ".",
            "$HOME",
            "[[:upper:]]",
            "^-",
            "x{2,}",
            "box",
        )
    )
    return edge(draw, f"-I {quote(pattern)}", ("-f", "-a"))


def error(draw):
    return failing(draw, f"-I {draw.word()}")
