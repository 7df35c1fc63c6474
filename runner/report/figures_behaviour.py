"""Pictures of how agents work: their tool calls, what follows what, and calls against scores (NL2Repo-Bench, 4.3)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from runner.report.figures import ACCENT, INK, MUTED, PAPER, cut, label_squares, panels

_DARK = 0.6
"""Share of the accent colour from which words on it are light."""


def counts(table: pd.DataFrame) -> Figure:
    """Draw a square for each row and column with its number, darker for more; zeros are left out."""
    figure = Figure(figsize=(7.2, 1.3 + 0.36 * len(table)), layout="constrained")
    axes = figure.add_subplot()
    most = float(table.to_numpy(float).max(initial=0.0)) or 1.0
    for (row, column), value in np.ndenumerate(table.to_numpy(float)):
        if value > 0:
            shade = 0.05 + 0.95 * float(np.sqrt(value / most))
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=ACCENT, alpha=shade, lw=0))
            colour = PAPER if shade > _DARK else INK
            axes.text(
                column + 0.5, row + 0.5, f"{value:.1f}", ha="center", va="center", fontsize=7.5, color=colour
            )
    rows, columns = ([cut(str(name)) for name in names] for names in (table.index, table.columns))
    label_squares(axes, rows, columns, rotation=30, ha="left")
    return figure


def calls_and_score(points: pd.DataFrame) -> Figure:
    """Draw `score` against `calls`, with a `mark` in each point.

    The dashed line joins the origin and the point with the best score: on it, a call earns what it earns there.
    """
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    axes = figure.add_subplot()
    best = points.iloc[int(points["score"].to_numpy().argmax())]
    far, high = 1.12 * float(points["calls"].max()), 1.15 * float(points["score"].max()) or 1.0
    if best["calls"] > 0 and best["score"] > 0:
        reach = min(far, high * float(best["calls"]) / float(best["score"]))
        slope = float(best["score"]) / float(best["calls"])
        axes.plot([0, reach], [0, slope * reach], color=MUTED, lw=1, ls="--", zorder=1)
    marks: dict[tuple[float, float], list[str]] = {}
    for calls, score, mark in zip(points["calls"], points["score"], points["mark"], strict=True):
        marks.setdefault((float(calls), float(score)), []).append(str(mark))
    for (calls, score), own in marks.items():
        text = ", ".join(own)
        size = 95 + 60 * (len(text) - 1)
        axes.scatter([calls], [score], s=size, facecolor=PAPER, edgecolor=ACCENT, lw=1.2, zorder=3)
        axes.annotate(text, (calls, score), ha="center", va="center", fontsize=6.5, color=INK, zorder=4)
    axes.set(xlim=(0, far), ylim=(-0.04 * high, high), xlabel="tool calls, mean of a trial", ylabel="score")
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return figure


def transitions(tables: dict[str, pd.DataFrame]) -> Figure:
    """Draw a panel for each cell: the share of calls of a kind (rows) that another kind (columns) follows."""
    figure, parts = panels(len(tables), 3.2, margin=0.4, same_axes=False)
    for axes, (name, table) in zip(parts, tables.items(), strict=True):
        shares = table.div(table.sum(axis=1).replace(0, np.nan), axis=0).to_numpy(float)
        for (row, column), share in np.ndenumerate(np.nan_to_num(shares)):
            if share >= 0.005:  # noqa: PLR2004 - what rounds to nothing is left out
                square = Rectangle(
                    (column - 0.5, row - 0.5), 1, 1, facecolor=ACCENT, alpha=float(share), lw=0
                )
                axes.add_patch(square)  # and no bitmap, which the page's policy refuses
                colour = PAPER if share > _DARK else INK
                axes.text(column, row, f"{share:.0%}", ha="center", va="center", fontsize=6, color=colour)
        axes.set(xlim=(-0.5, len(table.columns) - 0.5), ylim=(len(table.index) - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(len(table.columns)), table.columns, rotation=45, ha="right", fontsize=7)
        axes.set_yticks(range(len(table.index)), table.index, fontsize=7)
        axes.set_title(cut(name), color=INK, fontsize=9)
    return figure
