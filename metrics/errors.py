"""The error that `metrics` raises about a trials table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

SHOWN = 5
"""Number of names or rows that a message lists; `TableError.rows` has all of them."""


class TableError(ValueError):
    """Error raised for a trials table that cannot be scored. Nothing in the table was guessed or repaired.

    The message has one line per problem, with the first rows at fault.
    """

    rows: tuple[Hashable, ...]
    """Index labels of all rows at fault, each once; empty if no rows can be named."""

    def __init__(self, problems: Mapping[str, Iterable[Hashable]]) -> None:
        found = {problem: list(rows) for problem, rows in problems.items()}
        self.rows = tuple(dict.fromkeys(row for rows in found.values() for row in rows))
        super().__init__("\n".join(_line(problem, rows) for problem, rows in found.items()))


def listed(names: Iterable[object]) -> str:
    """Return the first `SHOWN` names as text, and the number of the others."""
    words = [str(name) for name in names]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _line(problem: str, rows: list[Hashable]) -> str:
    return f"{problem}: row {listed(rows)}" if rows else problem
