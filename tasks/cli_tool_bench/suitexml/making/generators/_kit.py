"""Logs of tests, and commands whose output does not depend on machine and time."""

import json

from fuzz import Case

MASK = """sed -E 's/ (hostname|timestamp)="[^"]*"//g'"""
OUTPUT = (
    "got 3, want 4",
    "<b>&amp;</b> ]]> end",
    "日本語 🙂",
    "=== not a marker",
    "PASSED",
    "tab\there",
    "panic: no",
    "\u00fcn\u00efc\u00f6de",
    "  two blanks",
    "\x1b[31mred\x1b[0m",
    "",
)


def noise(draw, indent="    ", share=0.6):
    if not draw.chance(share):
        return []
    return [
        f"{indent}{draw.word()}_test.go:{draw.integer(1, 300)}: {draw.choice(OUTPUT) if draw.chance(0.4) else draw.sentence(4)}"
        for _ in range(draw.integer(1, 3))
    ]


def seconds(draw):
    return draw.choice(("0.00", "0.01", f"{draw.number(0, 3):.2f}", f"{draw.number(0, 40):.2f}"))


def tests(draw, low=1, high=4, fail=0.3, sub=0.35):
    """Lines of some tests, and whether one failed."""
    lines, failed = [], False
    for word in draw.words(draw.integer(low, high)):
        name = f"Test{word.capitalize()}"
        result = "FAIL" if draw.chance(fail) else draw.choice(("PASS", "PASS", "PASS", "SKIP"))
        inner, ends = [], []
        if draw.chance(sub):
            for child in draw.words(draw.integer(1, 3)):
                kind = "FAIL" if result == "FAIL" and draw.chance(0.6) else "PASS"
                inner += [f"=== RUN   {name}/{child}", *noise(draw, "        ", 0.4)]
                ends.append(f"    --- {kind}: {name}/{child} ({seconds(draw)}s)")
                failed = failed or kind == "FAIL"
        if draw.chance(0.15):
            inner = [f"=== PAUSE {name}", *draw.choice(([], ["loose line"])), f"=== CONT  {name}", *inner]
        lines += [
            f"=== RUN   {name}",
            *noise(draw),
            *inner,
            f"--- {result}: {name} ({seconds(draw)}s)",
            *ends,
        ]
        failed = failed or result == "FAIL"
    return lines, failed


def package_name(draw):
    return f"{draw.word()}.example/{'/'.join(draw.words(draw.integer(1, 2)))}"


def package(draw, fail=0.3, sub=0.35, share=0.15):
    """Lines of one package with its summary."""
    name = package_name(draw)
    kind = draw.integer(0, 99) / 100
    if kind < share / 3:
        return [f"?   \t{name}\t[no test files]"]
    if kind < share * 2 / 3:
        return [
            "testing: warning: no tests to run",
            "PASS",
            f"ok  \t{name}\t0.00{draw.integer(1, 9)}s [no tests to run]",
        ]
    if kind < share:
        lines = ["goos: linux", "goarch: amd64"]
        for word in draw.words(draw.integer(1, 2)):
            for _ in range(draw.choice((1, 1, 2))):
                memory = draw.choice(("", "\t 16 B/op\t 2 allocs/op"))
                speed = draw.choice(("250", "1.5", "604"))
                lines.append(
                    f"Benchmark{word.capitalize()}-8   \t{draw.integer(1, 9)}000000\t{speed} ns/op{memory}"
                )
        return [*lines, "PASS", f"ok  \t{name}\t{draw.number(1, 9):.3f}s"]
    lines, failed = tests(draw, fail=fail, sub=sub)
    covered = f"coverage: {draw.number(1, 99, 1)}% of statements" if draw.chance(0.25) else ""
    took = draw.choice((f"{draw.number(0, 9):.3f}s", "(cached)"))
    more = f"\t{covered}" if covered and draw.chance(0.5) else ""
    end = f"FAIL\t{name}\t{draw.number(0, 9):.3f}s" if failed else f"ok  \t{name}\t{took}{more}"
    return [
        *lines,
        *draw.choice(([], [], [draw.sentence()])),
        "FAIL" if failed else "PASS",
        *([covered] if covered else []),
        *(["exit status 1"] if failed else []),
        end,
    ]


def broken(draw):
    """Lines of a package that does not build."""
    name = package_name(draw)
    head = draw.choice((f"# {name}", f"# {name} [{name}.test]", f"# {name}_test"))
    return [
        head,
        f"./{draw.word()}.go:{draw.integer(1, 99)}:{draw.integer(1, 9)}: undefined: {draw.word()}",
        *draw.choice(([], ["./x.go:1:1: expected 'package', found \"<\""])),
        f"FAIL\t{name} [build failed]",
    ]


def log(draw, packages=0, fail=0.3, sub=0.35, broken_share=0.12):
    lines = []
    for _ in range(packages or draw.integer(1, 3)):
        lines += broken(draw) if draw.chance(broken_share) else package(draw, fail, sub)
    return "\n".join(lines) + "\n"


def as_json(draw, text):
    """The same log as events of one package each; build errors stay plain lines."""
    lines, block = [], []
    for line in text.splitlines():
        block.append(line)
        if line.startswith(("ok  \t", "FAIL\t", "?   \t")):
            name = line.split("\t")[1].split()[0]
            if block[0].startswith("# "):
                lines += block
            else:
                clock = {"Time": "2020-01-02T03:04:05Z"}
                lines.append(json.dumps({**clock, "Action": "start", "Package": name}))
                lines += [
                    json.dumps({**clock, "Action": "output", "Package": name, "Output": entry + "\n"})
                    for entry in block
                ]
                lines.append(
                    json.dumps(
                        {**clock, "Action": draw.choice(("pass", "fail")), "Package": name, "Elapsed": 0.1}
                    )
                )
            block = []
    return "\n".join([*lines, *block]) + "\n"


def shown(draw, flags, text, keep=False):
    """A case that prints the report; `keep` keeps the status too."""
    call = " ".join(part for part in (draw.tool, flags, "< test.log") if part)
    if keep:
        return Case(f"{call} > r.xml; code=$?; {MASK} r.xml; rm -f r.xml; exit $code", {"test.log": text})
    return Case(f"{call} | {MASK}", {"test.log": text})


EDGES = (
    "",
    "\n",
    "nothing here\n",
    "--- PASS: TestX (0.00s)\n",
    "=== RUN   TestX\n",
    "=== RUN   TestX\n\n\n  text\n--- FAIL: TestX (1.50 seconds)\nFAIL\n",
    "ok  \tpkg\t0.1s\n",
    "FAIL\tpkg\t0.100s\n",
    "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestA\n--- FAIL: TestA (0.10s)\nFAIL\npkg\nFAIL\tpkg\t1.000s\n",
    "=== RUN   TestP\npanic: boom\n\ngoroutine 1 [running]:\nFAIL\tpkg/p\t0.004s\n",
    "=== RUN   TestI\ntext--- PASS: TestI (0.00s)\nPASS\nok  \tpkg\t0.001s\n",
    "=== RUN   TestQ\n--- PASS: TestQ (0.00s)\nFAIL\nexit status 3\nFAIL\tpkg/q\t0.004s\n",
    "# pkg/b\nb.go:1: bad\n",
    "ok  \tpkg/c\t0.010s\tcoverage: 100.0% of statements\n",
    "BenchmarkZ \t 100\t 5 ns/op\nPASS\nok  \tpkg/z\t1.000s\n",
    "=== RUN   Test<&>\"'\n--- SKIP: Test<&>\"' (0.00s)\nPASS\nok  \tpkg\t0.001s\n",
    "=== RUN   TestE\nctrl \x01\x0b\x1f\n--- PASS: TestE (0.00s)\nok  \tpkg/e\t0.001s\n",
    "=== RUN   TestW\r\n--- PASS: TestW (0.01s)\r\nPASS\r\nok  \tpkg/w\t0.001s\r\n",
    "?   \tpkg/n\t[no test files]\n",
    "=== RUN   TestS\n=== RUN   TestS/a\n=== RUN   TestS/a/b\n--- PASS: TestS (0.00s)\n    --- PASS: TestS/a (0.00s)\n        --- PASS: TestS/a/b (0.00s)\nPASS\nok  \tpkg\t0.001s\n",
    "=== RUN   TestL\n" + "y" * 5000 + "\n",
)


def failing(draw, flags, own=()):
    """Calls that end with status 2."""
    word = draw.word()
    wrong = draw.choice(
        (
            *own,
            f"-{word}",
            f"--{word}=1",
            word,
            "test.log",
            f"-in {word}.log",
            f"-in {word}/x",
            f"-out {word}/r.xml",
            "-iocopy",
            f"-p {word}",
            f"-parser {word}",
            f"-subtest-mode {word}",
            "-no-xml-header=perhaps",
            f"-set-exit-code=no{word}",
            "-iocopy -p a=b",
            "-parser ''",
            "-subtest-mode=IGNORE",
        )
    )
    same = flags and wrong.startswith(flags.split()[0])
    parts = (flags, wrong) if same or wrong in (word, "test.log") else draw.sample((flags, wrong), 2)
    return Case(
        " ".join(part for part in (draw.tool, *parts, "< test.log") if part), {"test.log": log(draw, 1)}
    )
