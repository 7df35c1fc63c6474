"""What is wrong with a trials table: the one error that `metrics/` raises about its input."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

SHOWN = 5
"""Names or rows that a message lists; `TableError.rows` has them all."""


class TableError(ValueError):
    """A trials table that no score can honestly be made of. Nothing in it was guessed or mended.

    The message has a line per problem, with the first rows that show it.
    """

    rows: tuple[Hashable, ...]
    """Index labels of all rows concerned, in the table's order, each once; empty where the table has none to name."""

    def __init__(self, problems: Mapping[str, Iterable[Hashable]]) -> None:
        found = {problem: list(rows) for problem, rows in problems.items()}
        self.rows = tuple(dict.fromkeys(row for rows in found.values() for row in rows))
        super().__init__("\n".join(_line(problem, rows) for problem, rows in found.items()))


def listed(names: Iterable[object]) -> str:
    """The first of many names, and how many more there are."""
    words = [str(name) for name in names]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more


def _line(problem: str, rows: list[Hashable]) -> str:
    return f"{problem}: row {listed(rows)}" if rows else problem
