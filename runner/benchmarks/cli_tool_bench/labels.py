"""Human labels of pairs of outputs: a CSV file with a header and one pair per row.

The column `label` says whether both outputs mean the same. The pair is given by `reference` and `candidate`, or by its
digest, `pair`; `differential.json` has all three under `judged`. `class` is the command class. Other columns are
ignored.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from metrics.differential import exact
from runner.benchmarks.cli_tool_bench.semantic import Pair
from runner.errors import LabelError
from runner.records import Record

if TYPE_CHECKING:
    from pathlib import Path

LABELS = {
    **dict.fromkeys(("equivalent", "yes", "true", "1"), True),
    **dict.fromkeys(("different", "no", "false", "0"), False),
}
"""Label, in lower case -> whether both outputs mean the same."""
LONGEST_CELL = 1 << 24
"""Longest cell, in characters."""


class Label(Record):
    """One row of the file."""

    row: int
    """Number of the row, as in a spreadsheet: the header is row 1."""
    digest: str
    """`Pair.digest` of the row's pair."""
    pair: Pair | None
    """The two outputs; None if only the digest is given."""
    command_class: str
    """Command class; empty if the file gives none."""
    equivalent: bool


def read_labels(path: Path) -> tuple[Label, ...]:
    """Read all rows. Raises `LabelError` with the row and what is wrong with it."""
    labels: dict[str, Label] = {}
    read_rows(path, "job.labels", _check_columns, lambda row, cells: _add(labels, _read_row(row, cells)))
    return tuple(labels.values())


def read_rows(
    path: Path,
    key: str,
    check: Callable[[Collection[str]], None],
    take: Callable[[int, Mapping[str, str]], None],
) -> None:
    """Give `check` the names of the columns, and `take` each row with its number; both may raise `ValueError`.

    Raises `LabelError` with the row and what is wrong with it; `key` is the option that named the file.
    """
    csv.field_size_limit(LONGEST_CELL)
    row = 1
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, strict=True, restval="")
            check(rows.fieldnames or ())
            for row, cells in enumerate(rows, start=2):
                _check_width(cells)
                take(row, cells)
    except OSError as error:
        raise LabelError(f"{key}: cannot read {path} ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise LabelError(f"{path.name} is not UTF-8 text (byte {error.start}): convert it.") from error
    except csv.Error as error:
        raise LabelError(f"{path.name}, the row after row {row}: {error}.") from error
    except ValueError as error:
        raise LabelError(f"{path.name}, row {row}: {error}.") from error
    if row == 1:
        raise LabelError(f"{path.name} has no row below its header.")


def _check_width(cells: Mapping[str, str]) -> None:
    if None in cells:
        raise ValueError("more cells than the header has")


def _check_columns(names: Collection[str]) -> None:
    if "label" not in names or not ("pair" in names or {"reference", "candidate"}.issubset(names)):
        raise ValueError("the columns label, and reference and candidate, or pair, are needed")


def _add(labels: dict[str, Label], label: Label) -> None:
    first = labels.setdefault(label.digest, label)
    if first is not label:
        raise ValueError(f"the same pair as row {first.row}")


def meaning(label: str) -> bool:
    """Return whether a label says that both outputs mean the same. Raises `ValueError` if it is not a label."""
    word = label.strip().lower()
    if word not in LABELS:
        raise ValueError(f"label {label!r} is none of {', '.join(LABELS)}")
    return LABELS[word]


def _read_row(number: int, cells: Mapping[str, str]) -> Label:
    """Read one row. Raises `ValueError`."""
    equivalent = meaning(cells["label"])
    digest = cells.get("pair", "").strip()
    pair = Pair.of(cells.get("reference", ""), cells.get("candidate", ""))
    only_digest = bool(digest) and not any(pair)
    if not only_digest and digest not in ("", pair.digest):
        raise ValueError(f"these texts are not those of pair {digest}: they have been changed since")
    if not only_digest and exact(*pair):
        raise ValueError("both texts are an exact match, about which no judge is asked")
    return Label(
        row=number,
        digest=digest or pair.digest,
        pair=None if only_digest else pair,
        command_class=cells.get("class", "").strip(),
        equivalent=equivalent,
    )
