"""Dumps of goroutines, and calls that fail.

A dump never holds two groups with the same functions and lines, as their order would be random. It holds at least two
goroutines, as a single one adds an advice.
"""

from fuzz import Case, quote

STATES = (
    "chan receive",
    "chan send",
    "select",
    "IO wait",
    "semacquire",
    "sleep",
    "syscall",
    "sync.Mutex.Lock",
    "runnable",
    "sync.WaitGroup.Wait",
)
METHODS = (
    "loop",
    "Serve",
    "(*Worker).run",
    "(*Pool).Get",
    "handle.func1",
    "Do",
    "Client.send",
    "wait",
    "glob..func2",
    "(*conn).Read",
    "parse[...]",
)


def function(draw):
    """A function, and the line of its file."""
    if draw.chance(0.4):
        package, folder = "main", f"/home/{draw.word()}/job"
    else:
        package = draw.choice(
            (f"{draw.word()}.example/{'/'.join(draw.words(draw.integer(1, 2)))}", draw.word())
        )
        folder = f"/opt/{draw.word()}/{package}"
    return (
        f"{package}.{draw.choice(METHODS)}",
        f"{folder}/{draw.word()}_{draw.word()}.go:{draw.integer(1, 900)}",
    )


def kinds(draw):
    """What the arguments of a frame are; those in capitals may differ from call to call."""
    return [
        draw.choice(("POINTER", "POINTER", "VALUE", "fixed", "braces", "offset", "unsure"))
        for _ in range(draw.integer(0, 3))
    ] + draw.choice(([], [], [], ["dots"]))


def argument(draw, kind, fixed, pointers, vary):
    if kind == "POINTER":
        return f"0x{draw.choice(pointers):x}"
    if kind == "VALUE" and vary:
        return f"0x{draw.integer(0, 60):x}"
    return {
        "braces": f"{{0x{fixed:x}, {{0x1, ...}}}}",
        "offset": "_",
        "unsure": f"0x{fixed:x}?",
        "dots": "...",
    }.get(kind, f"0x{fixed:x}")


def template(draw):
    frames = [(*function(draw), kinds(draw), draw.integer(0, 4000)) for _ in range(draw.integer(1, 4))]
    creator = function(draw) if draw.chance(0.5) else None
    parent = draw.choice(("", f" in goroutine {draw.integer(1, 9)}"))
    return {
        "frames": frames,
        "creator": creator,
        "parent": parent,
        "state": draw.choice(STATES),
        "elided": draw.chance(0.1),
    }


def goroutine(draw, number, plan, pointers, vary):
    head = [plan["state"]]
    if draw.chance(0.3):
        head.append(f"{draw.integer(1, 90)} minutes")
    if draw.chance(0.12):
        head.append("locked to thread")
    lines = [f"goroutine {number} [{', '.join(head)}]:"]
    for name, place, shapes, fixed in plan["frames"]:
        inner = ", ".join(argument(draw, kind, fixed, pointers, vary) for kind in shapes)
        lines += [f"{name}({inner})", f"\t{place}{draw.choice((f' +0x{draw.integer(1, 999):x}', ''))}"]
    if plan["elided"]:
        lines.append("...additional frames elided...")
    if plan["creator"]:
        name, place = plan["creator"]
        lines += [f"created by {name}{plan['parent']}", f"\t{place} +0x1d"]
    return "\n".join(lines) + "\n"


def dump(draw, low=2, high=4, vary=False):
    """Some goroutines of some groups, in any order."""
    plans = [template(draw) for _ in range(draw.integer(low, high))]
    plans[0]["state"] = draw.choice(("running", plans[0]["state"]))
    pointers = [0xC000000000 + 64 * draw.integer(1, 5000) for _ in range(draw.integer(2, 5))] + [0x80001]
    order = [0, *draw.sample([i for i in range(len(plans)) for _ in range(draw.integer(1, 3))], 99)]
    numbers = sorted(draw.sample(range(1, 200), len(order)))
    return "\n".join(
        goroutine(draw, number, plans[i], pointers, vary) for number, i in zip(numbers, order, strict=True)
    )


def log(draw, low=2, high=4, vary=False):
    before = draw.choice(
        (
            "",
            f"{draw.text(2)}panic: {draw.word()}\n\n",
            f"panic: runtime error: {draw.sentence()}\n\n",
            "fatal error: all goroutines are asleep - deadlock!\n\n",
        )
    )
    after = draw.choice(("", "exit status 2\n", f"\n{draw.text(2)}", f"{draw.sentence()}"))
    return before + dump(draw, low, high, vary) + after


def call(draw, *flags, content=None):
    name = draw.file(draw.choice(("log", "txt")))
    source = draw.choice((quote(name), f"< {quote(name)}", f"< {quote(name)}"))
    parts = [flag for flag in flags if flag]
    return Case(
        " ".join((draw.tool, *draw.sample(parts, len(parts)), source)),
        {name: log(draw) if content is None else content},
    )


FRAME = "main.run()\n\t/job/run.go:7 +0x1\n"
OTHER = "lib.Wait(0x5)\n\t/lib/wait.go:9\n"
EDGES = (
    "",
    "no dump at all\nin here\n",
    "no line end",
    f"goroutine 1 [running]:\n{FRAME}\ngoroutine 2 [select]:\n{OTHER}",
    f"goroutine 1 [running]:\n{FRAME}\ngoroutine 2 [select]:\n{OTHER}\n\n\nafter\n",
    f"goroutine 1 [running]:\n{FRAME}\ngoroutine 2 [running]:\n{FRAME}done\n",
    f"goroutine 1 [running]:\n{FRAME}\ngoroutine 2 [IO wait, 1 minutes]:\n{FRAME}\ngoroutine 3 [IO wait, 0 minutes, locked to thread]:\n{FRAME}",
    f"goroutine 3 [running]:\n\tgoroutine running on other thread; stack unavailable\n\ngoroutine 4 [select]:\n{OTHER}",
    "goroutine 1 [a]:\nmain.f(0x80000, 0x80001, 0x9, 0xa)\n\t/m.go:1\n\ngoroutine 2 [a]:\nmain.f(0x80000, 0x80002, 0x9, 0xa)\n\t/m.go:1\n",
    f"goroutine 1 [running]:\n{FRAME}\ngoroutine 2 [select]:\n{OTHER}text\ngoroutine 7 [running]:\n{OTHER}\ngoroutine 8 [sleep]:\n{FRAME}end\n",
    "goroutine 1 [running]:\nmain.ünï(...)\n\t/日本/a b.go:3\ncreated by x%2ey.Z\n\t/q/z.go:1\n\n"
    + f"goroutine 2 [select]:\n{OTHER}",
    "  goroutine 1 [running]:\n  main.f()\n  \t/m.go:1\n\n  goroutine 2 [select]:\n  x.g()\n  \t/x.go:2\n",
    f"goroutine x [running]:\n{FRAME}goroutine 1 [running]\n{FRAME}",
    "goroutine 1 [running]:\r\nmain.f()\r\n\t/m.go:1 +0x2\r\n\r\ngoroutine 2 [running]:\r\nmain.g()\r\n\t/m.go:2 +0x2\r\n",
    f"goroutine 1 [running]:\n{FRAME}main.main()\n\t/job/main.go:3\n\ngoroutine 2 [select]:\n{OTHER}{FRAME}\ngoroutine 4 [sleep]:\n{OTHER}",
)
BROKEN = (
    "goroutine 9 [running]:\nnot a frame\n",
    "goroutine 9 [running]:\n\ngoroutine 10 [select]:\nmain.f()\n\t/m.go:1\n",
    "goroutine 9 [running]:\nmain.f()\nno file\n",
    "goroutine 9 [running]:\nmain.f(0xzz)\n\t/m.go:1\n",
    "goroutine 9 [running]:\nmain.f({0x1)\n\t/m.go:1\n",
    "goroutine 9 [running]:\nmain.f(0x1})\n\t/m.go:1\n",
    "goroutine 9 [running]:\nmain.f()\n\t/m.go:1\ncreated by main.g\nno file\n",
    "goroutine 9 [running]:\na/b(0x1)\n\t/m.go:1\n",
    "goroutine 9 [running]:\nmain.f(1,2)\n\t/m.go:1\n",
)


def edge(draw, flags):
    return Case(
        " ".join(part for part in (draw.tool, flags, draw.choice(("in.log", "< in.log"))) if part),
        {"in.log": draw.choice(EDGES)},
    )


def failing(draw, flags, own=()):
    """Calls that end with an error."""
    if draw.chance(0.5):
        return call(
            draw, flags, content=dump(draw, 2, 2) + "\n" + draw.choice(BROKEN) + draw.choice(("", "tail\n"))
        )
    word = draw.word()
    wrong = draw.choice(
        (
            *own,
            *own,
            f"{word}.log",
            "in.log more.log",
            "-f '['",
            "-m '(?P<'",
            f"-{word} in.log",
            "-full-path -rel-path in.log",
            f"{word}/in.log",
            ".",
            f"-aggressive={word} in.log",
            "-m in.log -f",
        )
    )
    return Case(" ".join(part for part in (draw.tool, flags, wrong) if part), {"in.log": log(draw)})
