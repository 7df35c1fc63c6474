from _kit import call, edge, failing
from fuzz import quote

PATTERNS = (
    "IO wait",
    "chan",
    "^1:",
    "^[2-9]",
    "minutes",
    "locked",
    "Created by",
    "select|sleep",
    "running",
    "sync.*",
    "goroutine [1-4]",
    "^.: s",
    "(?i)CHAN",
    "\\\\[[0-9]+ min",
    "e$",
    "[.]go:[0-9]*]",
)

ODD = ("", ".", "$", "x^", "日本", "running", "^2", "\\n", "(?s).*", "select", " ")


def common(draw):
    return call(
        draw,
        f"{draw.choice(('-f ', '-f=', '--f '))}{quote(draw.choice(PATTERNS))}",
        draw.choice(("", "", "-full-path", "-aggressive", f"-m {quote(draw.choice(PATTERNS))}")),
    )


def boundary(draw):
    return edge(draw, f"-f {quote(draw.choice(ODD))}")


def error(draw):
    return failing(draw, "-f sleep", ('-f "["', '-f "*" in.log', '-f "a(" in.log', "-f", "-f in.log -f"))
