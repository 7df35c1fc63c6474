"""Pictures of NL2Repo-Bench: limits on turns, transitions between tools."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import PercentFormatter

from runner.report.figures import ACCENT, INK, PAPER, cut

_MARKERS = "os^D"


def rounds(shown: pd.DataFrame, tiers: Sequence[str]) -> Figure:
    """A panel an agent and model: `score` and each of `tiers` against `turns`; shares in [0, 1]."""
    groups = list(shown.groupby(["agent", "model"], sort=True))
    figure = Figure(figsize=(7.2, 0.5 + 2.4 * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, ((agent, model), own) in zip(panels, groups, strict=True):
        axes.plot(own["turns"], own["score"], color=INK, lw=1.5, label="all")
        for marker, shade, tier in zip(
            np.resize(list(_MARKERS), len(tiers)), np.linspace(1, 0.4, len(tiers)), tiers, strict=True
        ):
            axes.plot(
                own["turns"], own[tier], color=ACCENT, alpha=shade, marker=marker, ms=4, lw=1, label=tier[5:]
            )
        axes.set_title(cut(f"{agent} · {model}"), color=INK, fontsize=9)
        axes.set(ylim=(0, 1))
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    panels[-1].set_xlabel("turns allowed")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), fontsize=8)
    return figure


def transitions(tables: dict[str, pd.DataFrame]) -> Figure:
    """A panel a cell: share of the calls of a kind (rows) that another follows (columns)."""
    across = min(len(tables), 2)
    down = -(-len(tables) // across)
    figure = Figure(figsize=(7.2, 0.4 + 3.2 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes, (name, table) in zip(panels, tables.items(), strict=False):
        shares = table.div(table.sum(axis=1).replace(0, np.nan), axis=0).to_numpy(float)
        for (row, column), share in np.ndenumerate(np.nan_to_num(shares)):
            if share >= 0.005:  # noqa: PLR2004 - what rounds to nothing is left out
                square = Rectangle(
                    (column - 0.5, row - 0.5), 1, 1, facecolor=ACCENT, alpha=float(share), lw=0
                )
                axes.add_patch(square)  # and no bitmap, which the page's policy refuses
                colour = PAPER if share > 0.6 else INK  # noqa: PLR2004 - dark enough for light words
                axes.text(column, row, f"{share:.0%}", ha="center", va="center", fontsize=6, color=colour)
        axes.set(xlim=(-0.5, len(table.columns) - 0.5), ylim=(len(table.index) - 0.5, -0.5), aspect="equal")
        axes.set_xticks(range(len(table.columns)), table.columns, rotation=45, ha="right", fontsize=7)
        axes.set_yticks(range(len(table.index)), table.index, fontsize=7)
        axes.set_title(cut(name), color=INK, fontsize=9)
    for axes in panels[len(tables) :]:
        axes.set_axis_off()
    return figure
