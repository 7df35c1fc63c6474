"""What people said of pairs of outputs: a CSV file with a header, a pair a row.

`label` says whether both outputs mean the same. The pair is `reference` and `candidate`, or `pair`, its digest, as
`differential.json` has all three under `judged`. `class` is its command class. Other columns are their author's.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from metrics.differential import exact
from runner.benchmarks.cli_tool_bench.semantic import Pair
from runner.errors import LabelError
from runner.records import Record

if TYPE_CHECKING:
    from pathlib import Path

WORDS = {
    **dict.fromkeys(("equivalent", "yes", "true", "1"), True),
    **dict.fromkeys(("different", "no", "false", "0"), False),
}
"""What a label may say, in any case."""
LONGEST = 1 << 24
"""Characters of one cell."""


class Label(Record):
    """A row."""

    row: int
    """As a spreadsheet counts: the header is row 1."""
    digest: str
    """`Pair.digest`."""
    pair: Pair | None
    """None: only its digest is given."""
    command_class: str
    """Empty where the file says none."""
    equivalent: bool


def read_labels(path: Path) -> tuple[Label, ...]:
    """All rows. Raises `LabelError` with the row and what is wrong with it."""
    csv.field_size_limit(LONGEST)
    labels: dict[str, Label] = {}
    row = 1
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, strict=True, restval="")
            _check_columns(rows.fieldnames or ())
            for row, cells in enumerate(rows, start=2):
                _add(labels, _label(row, cells))
    except OSError as error:
        raise LabelError(f"job.labels: cannot read {path} ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise LabelError(f"{path.name} is not UTF-8 text (byte {error.start}): convert it.") from error
    except csv.Error as error:
        raise LabelError(f"{path.name}, the row after row {row}: {error}.") from error
    except ValueError as error:
        raise LabelError(f"{path.name}, row {row}: {error}.") from error
    if not labels:
        raise LabelError(f"{path.name} has no row below its header.")
    return tuple(labels.values())


def _check_columns(names: Collection[str]) -> None:
    if "label" not in names or not ("pair" in names or {"reference", "candidate"}.issubset(names)):
        raise ValueError("the columns label, and reference and candidate, or pair, are needed")


def _add(labels: dict[str, Label], label: Label) -> None:
    before = labels.setdefault(label.digest, label)
    if before is not label:
        raise ValueError(f"the pair of row {before.row} again")


def _label(number: int, cells: Mapping[str, str]) -> Label:
    """One row. Raises `ValueError`."""
    if None in cells:
        raise ValueError("more cells than the header has")
    word = cells["label"].strip().lower()
    if word not in WORDS:
        raise ValueError(f"label {cells['label']!r} is none of {', '.join(WORDS)}")
    digest = cells.get("pair", "").strip()
    pair = Pair.of(cells.get("reference", ""), cells.get("candidate", ""))
    if not any(pair) and digest:
        known = None
    elif digest not in ("", pair.digest):
        raise ValueError(f"these texts are not those of pair {digest}: they have been changed since")
    elif exact(*pair):
        raise ValueError("both texts are an exact match, of which no judge is asked")
    else:
        known = pair
    return Label(
        row=number,
        digest=digest or pair.digest,
        pair=known,
        command_class=cells.get("class", "").strip(),
        equivalent=WORDS[word],
    )
