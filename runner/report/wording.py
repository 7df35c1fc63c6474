"""Words and numbers for people, for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

MARKS = ("scripted", "replayed")
"""Marks of a model whose answers are a script or a recording; they stand beside its name everywhere."""
CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")
"""Table for `str.translate` that replaces all control characters but tab and newline: they steer terminals and are not
allowed in SVG, and names are other people's.
"""


def number(value: float, style: str | Callable[[float], str]) -> str:
    """Return a number as text: a dash if it is missing, "no pass" if it is infinite."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "no pass"
    value += 0.0  # a negative zero is a zero
    return format(value, style) if isinstance(style, str) else style(value)


def span(low: float, high: float, style: str | Callable[[float], str] = ".2f", to: str = "-") -> str:
    """Return an interval; empty if there is none, or its low end is infinite."""
    return "" if not math.isfinite(low) else f"{number(low, style)}{to}{number(high, style)}"


def passes(count: float) -> str:
    """Return passes, to a tenth where attempts were averaged."""
    return f"{round(count, 1):g}"


def counted(number: int, word: str) -> str:
    """Return a number of things in words: 1 trial, 2 trials."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def short(count: float) -> str:
    """Return three digits and a unit: 870, 12.3k, 4.56M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.0f}"


def usd(amount: float) -> str:
    """Return USD to the cent, or with two digits below ten cents."""
    return f"{amount:.2g}" if 0 < 10 * abs(amount) < 1 else f"{amount:.2f}"


def spend(amount: float, unpriced: int, ran: int) -> str:
    """Return USD, with `>=` where some trials that ran have no price, and a dash where none has."""
    if unpriced and unpriced == ran:
        return "-"
    return f">={usd(amount)}" if unpriced else usd(amount)


def model_name(cell: Mapping[str, Any]) -> str:
    """Return the model with its marks."""
    return " ".join([cell["model"], *(f"({mark})" for mark in MARKS if cell[mark])])


def agent_name(cell: Mapping[str, Any]) -> str:
    """Return the agent, with the reason if it does not compete."""
    mark = " (bound)" if cell["bound"] else " (other tasks)" if cell["other_tasks"] else ""
    return f"{cell['agent']}{mark}"


def cell_name(cell: Mapping[str, Any], *, budget: bool = False) -> str:
    """Return agent and model, and the budget if it is asked for."""
    parts = [agent_name(cell), model_name(cell), *([f"budget {cell['budget']}"] if budget else [])]
    return " · ".join(parts)
