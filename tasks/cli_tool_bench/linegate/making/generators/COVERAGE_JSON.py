"""Other places of the report."""

import json

from _reports import call, everywhere, report, wrong, write
from fuzz import Case, Draw, quote


def common(draw: Draw) -> Case:
    """Return a check of one of two reports."""
    found, other = report(draw), report(draw, good=True)
    option = draw.choice(
        (
            "--file-line-coverage-min",
            "--line-coverage-min",
            "--combined-coverage-min",
            "--file-combined-coverage-min",
        )
    )
    words = write(draw, option, everywhere(draw, found, option, passes=draw.chance(0.6)))
    if option != "--line-coverage-min":
        words += " --line-coverage-min 0"
    case = call(draw, found, words, named=1, tail=draw.choice(('; echo "status $?"', " || echo refused")))
    return Case(
        case.command, {**case.files, **({"coverage.json": json.dumps(other)} if draw.chance(0.7) else {})}
    )


def boundary(draw: Draw) -> Case:
    """Return a check of a report with an odd name or from standard input."""
    text = json.dumps(report(draw, good=draw.chance(0.6)))
    name = draw.choice(("日本.json", "a b/c d.json", "noext", ".hidden", "--x.json", "x.JSON", "a'b.json"))
    words = draw.choice(
        (
            f"--coverage-json={quote(name)}",
            f"--coverage-json={quote('./' + name)}",
            f"--coverage-json absent.json --coverage-json={quote(name)}",
        )
    )
    if draw.chance(0.15):
        return Case(f"{draw.tool} --coverage-json /dev/stdin < in.json", {"in.json": text})
    return Case(f"{draw.tool} {words}", {name: text})


def error(draw: Draw) -> Case:
    """Return a check that must fail."""
    if draw.chance(0.3):
        return wrong(draw, "--coverage-json", draw.choice(("''", "nowhere.json", ".", "a/b/c.json")))
    name = draw.choice(("missing.json", ".", "''", "coverage", "coverage.json/", "a/b/c.json"))
    more = draw.choice(("", "", f" {draw.word()}", " --line-coverage-min 0"))
    return Case(
        f"{draw.tool} --coverage-json {name}{more}", {"coverage.json": json.dumps(report(draw, good=True))}
    )
