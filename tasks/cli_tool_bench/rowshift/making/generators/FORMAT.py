"""Formats of the files."""

from _tables import as_text, call, keyed, pair, wrong
from fuzz import Case, Draw


def common(draw: Draw) -> Case:
    """Return a comparison of files whose format is given."""
    kind = draw.choice(("csv", "tsv", "json", "json", "json"))
    both = pair(draw, typed=kind == "json")
    key = keyed(draw, both) if draw.chance(0.75) else ""
    option = draw.choice((f"--format {kind}", f"--format={kind}"))
    return call(draw, both, f"{key} {option}{draw.choice(('', '', '', ' --show-unchanged'))}", kind)


def boundary(draw: Draw) -> Case:
    """Return odd JSON, or tables with another delimiter than the format's."""
    kind = draw.integer(0, 5)
    both = pair(draw, typed=True, odd=True)
    files = {"old.json": as_text(both.old, "json"), "new.json": as_text(both.new, "json")}
    if kind == 0:
        files["new.json"] = draw.choice(("[]", "{}", "", "[1, 2]", "[{}]", "null", files["new.json"][:-3]))
    elif kind == 1:
        both.new[-1].pop(list(both.new[-1])[-1])
        files["new.json"] = as_text(both.new, "json")
    elif kind in (2, 3):
        mixed = pair(draw, odd=True, columns=False)
        other = draw.choice(("ssv", "tsv", "csv"))
        option = draw.choice(("csv", "tsv"))
        texts = {
            "old.txt": as_text(mixed.old, other),
            "new.txt": as_text(mixed.new, draw.choice(("csv", other))),
        }
        return Case(f"{draw.tool} --format {option} old.txt new.txt", texts)
    return Case(f"{draw.tool} old.json new.json --format json {keyed(draw, both)}", files)


def error(draw: Draw) -> Case:
    """Return a call with a format that must fail."""
    return wrong(draw, draw.choice(("--format csv", "--format tsv --key zip", "--format xml", "--format")))
