"""How figures are written for people, in the terminal and on the page alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

MARKS = ("scripted", "replayed")
"""What a model may be instead of a model that was asked; said wherever its name stands."""
CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}")
"""For `str.translate`: what steers a terminal and is not allowed in SVG, all control characters but tab and newline.
Names and texts are other people's.
"""


def number(value: float, style: str | Callable[[float], str]) -> str:
    """Missing is a dash, and an infinite price per pass says why."""
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "no pass"
    value += 0.0  # a negative zero is a zero
    return format(value, style) if isinstance(style, str) else style(value)


def span(low: float, high: float, style: str | Callable[[float], str] = ".2f", to: str = "-") -> str:
    """An interval; empty where there is none, or none that begins at a finite value."""
    return "" if not math.isfinite(low) else f"{number(low, style)}{to}{number(high, style)}"


def passes(count: float) -> str:
    """Whole passes, or to a tenth where attempts were averaged."""
    return f"{round(count, 1):g}"


def short(count: float) -> str:
    """Three digits and a unit: 870, 12.3k, 4.56M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.0f}"


def usd(amount: float) -> str:
    """Cents, or two digits where cents would say too little."""
    return f"{amount:.2g}" if 0 < 10 * abs(amount) < 1 else f"{amount:.2f}"


def spend(amount: float, unpriced: int, ran: int) -> str:
    """Never more certain than it is: `>=` where some trials that ran have no price, a dash where none has."""
    if unpriced and unpriced == ran:
        return "-"
    return f">={usd(amount)}" if unpriced else usd(amount)


def model_name(cell: Mapping[str, Any]) -> str:
    """The model, with what it is if it is none that was asked."""
    return " ".join([cell["model"], *(f"({mark})" for mark in MARKS if cell[mark])])


def agent_name(cell: Mapping[str, Any]) -> str:
    """The agent, and why it does not compete, if so."""
    mark = " (bound)" if cell["bound"] else " (other tasks)" if cell["other_tasks"] else ""
    return f"{cell['agent']}{mark}"


def cell_name(cell: Mapping[str, Any], *, budget: bool = False) -> str:
    """Agent and model, and the budget where it tells cells apart."""
    parts = [agent_name(cell), model_name(cell), *([f"budget {cell['budget']}"] if budget else [])]
    return " · ".join(parts)
