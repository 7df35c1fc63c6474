"""Print the repository as a stream for `git fast-import`; its hashes are the same on every machine."""

import sys

SELFTEST = """from convert import convert

for amount, source, target, expected in [
    (1, "km", "m", 1000), (2, "mile", "m", 3218.688), (3, "foot", "inch", 36), (1, "league", "km", 4.828032),
    (5, "yard", "foot", 15), (1, "furlong", "yard", 220), (1, "nmi", "m", 1852), (10, "cm", "mm", 100),
]:
    found = convert(amount, source, target)
    assert abs(found - expected) < 1e-6, f"{amount} {source} is {expected} {target}, not {found}"
print("ok")
"""
CONVERT = """from units import METRES


def convert(amount, source, target):
    return amount * METRES[source] / METRES[target]
"""
METRES = {
    "m": 1.0, "km": 1000.0, "cm": 0.01, "mm": 0.001, "inch": 0.0254, "foot": 0.3048, "yard": 0.9144,
    "furlong": 201.168, "mile": 1609.344, "league": 4828.032, "nmi": 1852.0,
}
RARE = ("rod", "chain", "fathom", "cubit", "hand", "span", "ell", "toise", "verst", "li", "ri", "cable")
SUBJECTS = (
    "Add {unit}", "Sort the table", "Docs: mention {unit}", "Tidy the table", "More digits for {unit}", "Round {unit}",
)
SELFTEST_ADDED, TAGGED, BROKEN, DELETED, COMMITS = 3, 9, 37, 24, 60


def table(metres):
    rows = "".join(f'    "{unit}": {value!r},\n' for unit, value in metres.items())
    return f'"""Lengths in metres."""\n\nMETRES = {{\n{rows}}}\n'


def data(text):
    return f"data {len(text.encode())}\n{text}\n"


def commit(number, subject, files, deleted=()):
    who = f"Ada Example <ada@example.org> {1_900_000_000 + number * 5400} +0000"
    changes = "".join(f"M 100644 inline {name}\n{data(text)}" for name, text in files.items())
    removals = "".join(f"D {name}\n" for name in deleted)
    return f"commit refs/heads/main\nmark :{number}\ncommitter {who}\n{data(subject)}{changes}{removals}\n"


metres = dict(METRES)
history = "# How the units came about\n"
for number in range(1, COMMITS + 1):
    unit = RARE[number % len(RARE)]
    files, deleted = {}, []
    subject = SUBJECTS[number % len(SUBJECTS)].format(unit=unit)
    metres[unit] = round(0.7 + 0.013 * number, 4)
    if number == 1:
        files["convert.py"] = CONVERT
    if number == SELFTEST_ADDED:
        files["selftest.py"] = SELFTEST
    if number < DELETED:
        history += f"\n{number}. The {unit} was measured again, by {unit}s of {number % 5 + 2} towns.\n"
        files["docs/history.md"] = history
    if number == DELETED:
        deleted.append("docs/history.md")
    if number == BROKEN:
        metres["furlong"] = 201.186
    files["units.py"] = table(dict(sorted(metres.items())))
    sys.stdout.write(commit(number, subject, files, deleted))
    if number == TAGGED:
        sys.stdout.write(f"reset refs/tags/v1.0\nfrom :{number}\n\n")
