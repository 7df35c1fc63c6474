"""Reports on coverage, and calls whose thresholds lie near what they hold."""

from __future__ import annotations

import json
from typing import Any

from fuzz import Case, Draw, quote

Summary = dict[str, Any]
PATHS = (
    "src/a.py",
    "src/b.py",
    "src/deep/er/c.py",
    "tests/test_a.py",
    "main.py",
    "a b.py",
    "naïve.py",
    "日本/x.py",
    'q"uote.py',
    "it's.py",
)
OTHERS = {"line": "branch", "branch": "combined", "combined": "line"}


def summary(draw: Draw, *, branches: bool = True, good: bool = False) -> Summary:
    """Return the numbers of a file."""
    statements = draw.choice((1, 2, 3, 7, 8, 10, 40, 100, 333, draw.integer(1, 60)))
    covered = statements if good else draw.integer(statements // 2, statements)
    found: Summary = {
        "covered_lines": covered,
        "num_statements": statements,
        "missing_lines": statements - covered,
    }
    if branches:
        count = draw.choice((0, 1, 2, 4, 6, 7, 12, 30))
        found |= {
            "num_branches": count,
            "covered_branches": count if good else draw.integer(count // 2, count),
        }
    return found


def report(draw: Draw, *, branches: bool = True, good: bool = False, files: int = 0) -> dict[str, Any]:
    """Return a report whose totals are the sums of its files."""
    names = draw.sample(PATHS, files or draw.integer(1, 5))
    found = {name: summary(draw, branches=branches, good=good or draw.chance(0.3)) for name in names}
    totals = {key: sum(numbers[key] for numbers in found.values()) for key in next(iter(found.values()))}
    meta = {"version": "5.5", "branch_coverage": branches, "show_contexts": False}
    members = {name: {"executed_lines": [1, 2], "summary": numbers} for name, numbers in found.items()}
    return {"meta": meta, "files": members, "totals": totals}


def percent(numbers: Summary, measure: str) -> float:
    """Return a measure of a file or of all."""
    parts = {
        "line": ("statements", "lines"),
        "branch": ("branches",),
        "combined": ("statements", "lines", "branches"),
    }[measure]
    whole = covered = 0
    if "lines" in parts:
        whole, covered = whole + numbers["num_statements"], covered + numbers["covered_lines"]
    if "branches" in parts:
        whole, covered = whole + numbers.get("num_branches", 0), covered + numbers.get("covered_branches", 0)
    return 100.0 if whole == 0 else 100 * covered / whole


def near(draw: Draw, number: float, *, passes: bool) -> str:
    """Return a threshold that a percentage passes, or not, often by little."""
    below = int(number)
    if passes:
        return draw.choice(
            (
                f"{below}",
                f"{below}.0",
                f"{max(number - 0.01, 0):.3f}",
                f"{max(below - draw.integer(0, 30), 0)}",
                "0",
                f"{max(below - 1, 0)}e0",
            )
        )
    return draw.choice(
        (
            f"{below + 1}",
            f"{number + 0.001:.4f}",
            f"{below + 1}.50",
            f"{below + draw.integer(1, 20)}",
            "100.01",
            "+101",
            "1E+2.5"[:4],
        )
    )


def everywhere(draw: Draw, found: dict[str, Any], option: str, *, passes: bool) -> str:
    """Return a threshold for an option: passes, or fails for one file at least."""
    measure = option.removeprefix("--").removeprefix("file-").split("-")[0]
    rows = (
        [numbers["summary"] for numbers in found["files"].values()]
        if option.startswith("--file")
        else [found["totals"]]
    )
    values = [percent(row, measure) for row in rows]
    return near(draw, min(values), passes=True) if passes else near(draw, draw.choice(values), passes=False)


def write(draw: Draw, option: str, value: str) -> str:
    """Return an option with its value."""
    return f"{option}{draw.choice((' ', '='))}{quote(value)}"


def call(draw: Draw, found: Any, options: str, *, named: float = 0.4, tail: str = "") -> Case:
    """Return a check of a report, under its usual name or another."""
    text = (
        found
        if isinstance(found, str)
        else json.dumps(found, indent=draw.choice((None, 2)), ensure_ascii=draw.chance(0.5))
    )
    if draw.chance(named):
        name = draw.choice(("report.json", "out/cov.json", "my report.json", "coverage.old.json"))
        where = f"--coverage-json{draw.choice((' ', '='))}{quote(name)}"
        words = draw.choice((f"{where} {options}", f"{options} {where}"))
    else:
        name, words = "coverage.json", options
    return Case(f"{draw.tool} {words}".strip() + tail, {name: text})


def usual(draw: Draw, option: str) -> Case:
    """Return a check with an option that passes, or whose failure the shell shows."""
    found = report(draw)
    passes = draw.chance(0.4)
    words = [write(draw, option, everywhere(draw, found, option, passes=passes))]
    if option != "--line-coverage-min" and draw.chance(0.8):
        words.append(
            write(
                draw,
                "--line-coverage-min",
                draw.choice(("0", "0", everywhere(draw, found, "--line-coverage-min", passes=True))),
            )
        )
    if draw.chance(0.3):
        other = draw.choice(
            ("--file-line-coverage-min", "--branch-coverage-min", "--file-combined-coverage-min")
        )
        if other != option:
            words.append(write(draw, other, everywhere(draw, found, other, passes=draw.chance(0.6))))
    draw.random.shuffle(words)
    sure = (
        passes
        and len(words) == 2
        and words != []
        and all("line-coverage-min" not in word or "--file" not in word for word in words)
    )
    tail = draw.choice(('; echo "status $?"', " || echo refused", " > out.txt; echo $? > status", "; true"))
    return call(draw, found, " ".join(words), tail="" if sure and _passes(found, words) else tail)


def _passes(found: dict[str, Any], words: list[str]) -> bool:
    """Return whether thresholds for the totals surely pass."""
    for word in words:
        option, value = word.replace("=", " ", 1).split(" ", 1)
        if option.startswith("--file") or not value.replace(".", "", 1).isdigit():
            return False
        measure = option.removeprefix("--").split("-")[0]
        if measure == "number" or percent(found["totals"], measure) < float(value):
            return False
    return True


def odd(draw: Draw, option: str) -> Case:
    """Return a check of an odd report, or with an odd threshold."""
    kind = draw.integer(0, 6)
    value = draw.choice(("0", "50", "100"))
    words = (
        f"{option} {value} --line-coverage-min 0"
        if option and option != "--line-coverage-min"
        else f"--line-coverage-min {value}"
    )
    if kind == 0:
        return call(draw, report(draw, branches=False), words)
    if kind == 1:
        numbers = {
            "covered_lines": 0,
            "num_statements": 0,
            "num_branches": 0,
            "covered_branches": draw.choice((0, None)),
        }
        return call(draw, {"meta": {"branch_coverage": True}, "files": {}, "totals": numbers}, words)
    if kind == 2:
        found = report(draw, good=True)
        return call(draw, found, f"{option} 100.00" if option and "number" not in option else "")
    if kind == 3:
        threshold = draw.choice(
            (
                "-5",
                "0.0",
                "1e2",
                "1_0",
                " 7 ",
                "1E-3",
                "-0",
                "Infinity",
                "-inf",
                "٣",
                "0099",
                "99.99999",
                "66.6667",
            )
        )
        return call(
            draw,
            report(draw),
            f"{option or '--line-coverage-min'}={quote(threshold)}"
            + ("" if option in ("", "--line-coverage-min") else " --line-coverage-min=0"),
        )
    if kind == 4:
        found = report(draw)
        found["totals"] |= {
            "covered_lines": draw.choice((2, 1.9, "3", True, 10**20)),
            "num_statements": draw.choice((3, 7, "9", 10**20 + 1)),
        }
        return call(draw, found, words)
    if kind == 5:
        found = report(draw, files=draw.integer(6, 10))
        return call(draw, found, words, tail="; true")
    return call(
        draw,
        report(draw),
        f"{option or '--line-coverage-min'} 100 {words} {draw.choice(('', '--file-line-coverage-min 10'))}",
    )


def wrong(draw: Draw, option: str, value: str = "0") -> Case:
    """Return a check that must fail: by its thresholds, its report or its usage."""
    sound = f"{option} {value}" if option else ""
    found = report(draw)
    kind = draw.integer(0, 9)
    if kind in (0, 1, 2):
        target = (
            option
            if option and "number" not in option and "json" not in option
            else "--file-line-coverage-min"
        )
        low = "" if draw.chance(0.3) else " --line-coverage-min 0"
        place = " --line-coverage-min 100.5" if target == "--line-coverage-min" else low
        return call(
            draw,
            found,
            f"{target} {draw.choice(('100.5', '101', '1e3', near(draw, 100.0, passes=False)))}{place}",
        )
    if kind == 3:
        return Case(
            f"{draw.tool} {sound} --coverage-json {draw.word()}.json", {"coverage.json": json.dumps(found)}
        )
    if kind == 4:
        text = draw.choice(
            ("", "{}", "[]", "null", json.dumps(found)[: draw.integer(5, 60)], '{"files": {}}')
        )
        return call(draw, text, sound, named=0.1)
    if kind == 5:
        member = draw.choice(("meta", "files", "totals"))
        return call(draw, {key: part for key, part in found.items() if key != member}, sound, named=0.1)
    if kind == 6:
        bad = draw.choice((draw.word(), "ninety", "90%", "''", "1,5", "1.2.3", "0x10"))
        return call(
            draw, found, f"{option if option and 'json' not in option else '--line-coverage-min'} {bad}"
        )
    if kind == 7:
        return call(
            draw,
            found,
            f"{sound} {draw.choice((f'--{draw.word()}', draw.word(), '-x', '--line-min 3', '--config missing.toml'))}",
        )
    if kind == 8:
        return call(
            draw,
            found,
            f"{sound} {draw.choice(('--file-line-coverage-min', '--line-coverage-min', '--number-missing-lines-max'))}",
            named=0,
        )
    return Case(
        f"{draw.tool} {sound}".strip(),
        {draw.choice(("cov.json", "Coverage.json", f"{draw.word()}.json")): json.dumps(found)},
    )
