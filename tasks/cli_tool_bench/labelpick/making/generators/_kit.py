"""Logs of labeled values, and calls that fail."""

from fuzz import Case, quote

VALUES = (
    "",
    "-",
    "a:b:c",
    "caf\u00e9",
    "日本語",
    "🙂",
    "GET /index.html HTTP/1.1",
    "x" * 60,
    '"quoted"',
    "it's",
    "<b>&amp;</b>",
    "%s %d",
    " spaced ",
    "back\\slash",
    "NaN",
    "1e3",
    "0x1F",
    "-0",
    "+5",
    "1_000",
)
LABELS = ("status", "size", "time", "host", "uri", "level", "user")


def record(draw, odd=0.12):
    fields = {
        "status": draw.choice((200, 200, 301, 404, 500, 503)),
        "size": draw.choice((draw.integer(0, 5000), draw.integer(0, 50))),
        "time": draw.number(0, 9, 3),
        "host": f"{draw.word()}.example",
        "uri": f"/{'/'.join(draw.words(draw.integer(0, 2)))}",
        "level": draw.choice(("INFO", "warn", "Error", "info", "ERROR")),
        "user": draw.choice((draw.word(), draw.word().upper(), draw.sentence(2))),
    }
    for label in fields:
        if draw.chance(odd):
            fields[label] = draw.choice(VALUES)
    labels = draw.sample(LABELS, draw.integer(5, 7)) if draw.chance(0.5) else LABELS
    return "\t".join(f"{label}:{fields[label]}" for label in labels)


def log(draw, low=2, high=8, odd=0.12):
    return "\n".join(record(draw, odd) for _ in range(draw.integer(low, high))) + "\n"


def call(draw, flags, odd=0.12):
    """A call over one or two files or standard input."""
    name, other = draw.sample(("access.log", "app.log", "a b.ltsv", "data.txt", "b.log"), 2)
    files = {name: log(draw, odd=odd)}
    source = draw.choice((quote(name), quote(name), f"< {quote(name)}"))
    if draw.chance(0.2):
        files[other] = log(draw, 1, 3, odd)
        source = f"{quote(name)} {quote(other)}"
    parts = [flag for flag in flags if flag]
    for long, short in (("--filter", "-f"), ("--expr", "-e")):
        if (
            sum(part.startswith((long, short)) for part in parts) > 1
        ):  # an option must not be spelled in both ways
            parts = [part.replace(long, short) for part in parts]
    return Case(" ".join((draw.tool, *draw.sample(parts, len(parts)), source)), files)


LINES = (
    "",
    "\t",
    "no colon at all",
    "a:1\t\tb:2",
    ":empty label",
    "a:",
    "a:1\ta:2",
    "time:1\ttime:2\tsize:3",
    "a b:1\tc.d:2",
    "a:1 b:2",
    "A:1\ta:2",
    "k\u00e9y:v\t日本:語",
    "a:1\r",
    "size:5\t",
    "a:b:c:d",
    "size:\ttime:x",
    "x,y:1",
    "time:0\tsize:0",
    "status:200\tnothing\tsize:1",
    "uri:" + "z" * 3000,
)


def edge(draw, flags):
    lines = [draw.choice(LINES) for _ in range(draw.integer(1, 4))]
    text = draw.choice(
        ("\n".join(lines) + "\n", "\n".join(lines), "", "\n", "\ufeff" + "\n".join(lines) + "\n")
    )
    return Case(
        " ".join(part for part in (draw.tool, flags, draw.choice(("in.log", "< in.log"))) if part),
        {"in.log": text},
    )


def failing(draw, flags, own=()):
    """Calls that end with an error."""
    name = draw.file("log")
    if own and draw.chance(0.6):
        command = f"{draw.tool} {flags} {draw.choice(own)} {name}".replace("  ", " ")
        return Case(command.replace("--expr", "-e"), {name: log(draw)})
    files, long = {name: log(draw, 1, 3)}, "y" * draw.choice((65536, 70000, 65535))
    wrong = draw.choice(
        (
            f"no-{name}",
            f"{draw.word()}/{name}",
            f"{name} gone.log",
            f"gone.log {name}",
            f"{name}/x",
            "''",
            "long.log",
            f"-f status {name}",
            f"-f 'size > big' {name}",
            f"-f 'uri =~ [' {name}",
            ".",
            f"--filter 'a b' {name}",
        )
    )
    if wrong == "long.log":
        files["long.log"] = f"a:1\nb:{long}\nc:3\n"
    return Case(" ".join(part for part in (draw.tool, flags, wrong) if part), files)


def filters(draw):
    number = draw.choice(
        (
            f"size {draw.choice(('>', '>=', '<', '<='))} {draw.choice((10, 25, 100, 1000, 2500))}",
            f"time {draw.choice(('>', '<', '>=', '<='))} {draw.number(1, 8, 1)}",
            f"status {draw.choice(('>=', '<'))} {draw.choice((300, 400, 404, 500))}",
        )
    )
    text = draw.choice(
        (
            f"status {draw.choice(('==', '!='))} {draw.choice((200, 404, 500))}",
            f"level {draw.choice(('==*', '!=*', '==', '!='))} {draw.choice(('info', 'ERROR', 'Warn'))}",
            "uri == /",
            "host != amber.example",
        )
    )
    pattern = draw.choice(
        (
            "uri =~ ^/[a-m]",
            "uri !~ /.*/",
            f"host =~ {draw.choice('aeo')}.*e",
            "level =~* ^(info|warn)$",
            "level !~* E",
            "user =~ ^[A-Z ]+",
            "status =~ ^[45]",
            "time =~ [.]\\d\\d$",
            "user !~* [xyz]",
            "size !~ 0$",
        )
    )
    return draw.choice((number, number, text, pattern))


def formula(draw):
    return draw.choice(
        (
            "total = size + time",
            "ms=time*1000",
            f"kb = size / {draw.choice((1024, 1000, 3))}",
            "diff = size - time",
            f"size = size * {draw.integer(2, 9)}",
            f"rate = (size + {draw.integer(1, 9)}) / (time + 1)",
            f"third = status / {draw.choice((3, 7, 100))}",
            "big = size * size * 1000",
            f"const = {draw.integer(1, 99)} * {draw.integer(1, 99)}",
            f"c = {draw.integer(1, 9)} + {draw.number(0, 9, 2)}",
            "mix = size + time * 2 - status / 4",
            "time = time - 1",
            f"x = {draw.integer(1, 9)} / {draw.choice((4, 3, 8))}",
            "tiny = time / 1000000",
            "neg = status - 1000",
            "p = ((size))",
            "sum=size+status+time",
        )
    )
