"""Picture of NL2Repo-Bench: scores under limits on turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from runner.report.figures import ACCENT, INK, cut

_MARKERS = "os^D"


def rounds(scores: pd.DataFrame, tiers: Sequence[str]) -> Figure:
    """Draw a panel for each agent and model: `score` and each of `tiers` against `turns`; shares in [0, 1]."""
    groups = list(scores.groupby(["agent", "model"], sort=True))
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
