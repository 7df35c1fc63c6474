"""Picture of ExecutionAgent's benchmark: programs that terminals ran."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from runner.report.figures import ACCENT, INK, MUTED, cut, panels


def programs(shares: pd.DataFrame) -> Figure:
    """Draw a panel for each cell (rows) with a bar for each program (columns, most frequent first)."""
    figure, parts = panels(len(shares), 0.5 + 0.17 * len(shares.columns))
    places = np.arange(len(shares.columns))
    for axes, (name, values) in zip(parts, shares.iterrows(), strict=True):
        axes.barh(places, values, height=0.7, color=ACCENT)
        for place, value in enumerate(values):
            axes.text(value + 0.005, place, f"{value:.0%}", va="center", fontsize=6.5, color=MUTED)
        axes.set_title(cut(str(name)), color=INK, fontsize=9)
        axes.set_yticks(places, [cut(str(program)) for program in shares.columns], color=INK)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10)))
    parts[0].set(ylim=(len(places) - 0.4, -0.6), xlim=(0, 1.12 * float(shares.to_numpy().max())))
    return figure
