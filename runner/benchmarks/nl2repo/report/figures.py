"""Picture of NL2Repo-Bench: scores under limits on turns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from runner.report.figures import ACCENT, INK, cut

_MARKERS = "os^D"
_BEHIND = 0.2
"""Distance of "unlimited" from the largest limit, as a share of the axis of limits."""


def rounds(scores: pd.DataFrame, tiers: Sequence[str]) -> Figure:
    """Draw a panel for each agent and model: `score` and each of `tiers` against `turns`; shares in [0, 1].

    Infinite `turns`, no limit, have a place of their own behind the largest limit.
    """
    limits = np.unique(scores["turns"])
    finite = limits[np.isfinite(limits)]
    last = float(finite.max()) + _BEHIND * max(float(np.ptp(finite)), 1.0)
    groups = list(
        scores.assign(at=scores["turns"].replace(np.inf, last)).groupby(["agent", "model"], sort=True)
    )
    figure = Figure(figsize=(7.2, 0.9 + 2.4 * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, ((agent, model), own) in zip(panels, groups, strict=True):
        axes.plot(own["at"], own["score"], color=INK, lw=1.5, label="all")
        for marker, shade, tier in zip(
            np.resize(list(_MARKERS), len(tiers)), np.linspace(1, 0.4, len(tiers)), tiers, strict=True
        ):
            axes.plot(
                own["at"], own[tier], color=ACCENT, alpha=shade, marker=marker, ms=4, lw=1, label=tier[5:]
            )
        axes.set_title(cut(f"{agent} · {model}"), color=INK, fontsize=9)
        axes.set(ylim=(-0.03, 1.03), ylabel="score")
        axes.yaxis.set_major_formatter(PercentFormatter(1))
    names = [f"{limit:.0f}" if np.isfinite(limit) else "unlimited" for limit in limits]
    panels[-1].set_xticks([limit if np.isfinite(limit) else last for limit in limits], names)
    panels[-1].set_xlabel("turns allowed")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), fontsize=8)
    return figure
