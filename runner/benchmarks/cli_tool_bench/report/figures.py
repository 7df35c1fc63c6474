"""Draw the pictures of CLI-Tool-Bench: against the reference's size, quadrants, files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from metrics.tool_bench import loess
from runner.report.figures import ACCENT, FAINT, INK, MUTED, cut, panels
from runner.report.wording import short

MOST_FILES = 20
"""End of the axis of files, as in the paper's Figure 5; larger workspaces are counted in words."""
_MARKERS = "os^Dv"
_PLACES = 100
"""Number of points at which the LOESS line is drawn."""


def against_lines(points: pd.DataFrame, score: str, *, line: bool) -> Figure:
    """Draw a panel for each agent: `score` of each (cell, task) against `reference_lines` (log), LOESS dashed."""
    agents = sorted(points["agent"].unique())
    figure, parts = panels(len(agents), 2.5, margin=0.6)
    tiers = list(points.sort_values("reference_lines")["tier"].unique())
    for axes, agent in zip(parts, agents, strict=True):
        own = points[points["agent"] == agent]
        for marker, tier in zip(np.resize(list(_MARKERS), len(tiers)), tiers, strict=True):
            of = own[own["tier"] == tier]
            axes.scatter(
                of["reference_lines"], of[score], s=16, marker=marker, color=ACCENT, alpha=0.5, lw=0, label=str(tier)
            )  # fmt: skip
        if line:
            x = np.log10(own["reference_lines"].to_numpy(float))
            at = np.linspace(x.min(), x.max(), _PLACES)
            curve = loess(x, own[score].to_numpy(float), at)
            axes.plot(10**at, curve, color=INK, lw=1.2, ls="--", label="LOESS")
        axes.set(title=cut(str(agent)), xscale="log", ylim=(-0.05, 1.05))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    figure.supxlabel("lines of the reference's code", fontsize=9, color=MUTED)
    figure.legend(*parts[0].get_legend_handles_labels(), loc="outside upper right", ncols=6, fontsize=8)
    return figure


def quadrants(points: pd.DataFrame, centres: pd.DataFrame) -> Figure:
    """Draw a panel for each agent: trials (`tokens`, `score`, `agent`) as dots, and the mean of each cell as a cross.

    `centres` has the means with their `agent` and `mark`. The dashed lines are the means of the panel's trials. Tokens
    are on a log scale where they span more than a factor of ten and none is 0.
    """
    agents = list(dict.fromkeys(centres["agent"]))
    figure, parts = panels(len(agents), 2.7 if len(agents) > 1 else 3.4, margin=0.5)
    tokens = points["tokens"]
    if tokens.min() > 0 and tokens.max() > 10 * tokens.min():
        parts[0].set_xscale("log")  # before the panels' formatters, which it would replace
    for axes, agent in zip(parts, agents, strict=True):
        _quadrants(axes, points[points["agent"] == agent], centres[centres["agent"] == agent])
        axes.set_title(cut(str(agent)))
    parts[0].set_ylim(-0.06, 1.06)
    figure.supxlabel("tokens of a trial", fontsize=9, color=MUTED)
    return figure


def _quadrants(axes: Axes, points: pd.DataFrame, centres: pd.DataFrame) -> None:
    """Draw one agent's trials and means."""
    axes.scatter(points["tokens"], points["score"], s=14, color=ACCENT, alpha=0.25, lw=0)
    axes.scatter(centres["tokens"], centres["score"], s=60, marker="x", color=INK, lw=1.6, zorder=3)
    for centre in centres.to_dict("records"):
        axes.annotate(
            str(centre["mark"]), (centre["tokens"], centre["score"]), (4, 4), textcoords="offset points",
            fontsize=7.5, color=INK, zorder=4,
        )  # fmt: skip
    axes.axvline(points["tokens"].mean(), color=MUTED, lw=0.8, ls="--")
    axes.axhline(points["score"].mean(), color=MUTED, lw=0.8, ls="--")
    axes.margins(x=0.08)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def files(counts: Sequence[tuple[str, np.ndarray]]) -> Figure:
    """Draw a box for each name over the dots of its workspaces, by files; those above `MOST_FILES` are counted."""
    figure = Figure(figsize=(7.2, 0.8 + 0.36 * len(counts)))
    figure.set_layout_engine("constrained", rect=(0, 0, 0.98, 1))  # words at its edge are wider in pixels
    axes = figure.add_subplot()
    names, values = zip(*counts, strict=True)
    axes.boxplot(
        values, positions=range(len(counts)), orientation="horizontal", widths=0.55, showfliers=False,
        boxprops={"color": MUTED}, whiskerprops={"color": FAINT}, capprops={"color": FAINT},
        medianprops={"color": INK, "lw": 1.6},
    )  # fmt: skip
    for place, files in enumerate(values):
        within = files[files <= MOST_FILES]
        axes.scatter(within, np.full(len(within), place), s=12, color=ACCENT, alpha=0.35, lw=0, zorder=3)
        if more := len(files) - len(within):
            word = f"★ {more} more, up to {files.max():.0f}"
            axes.annotate(
                word, (1, place), (6, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                va="center", fontsize=7.5, color=MUTED,
            )  # fmt: skip
    axes.set_yticks(range(len(counts)), [cut(name) for name in names], color=INK)
    axes.set(xlim=(-0.5, MOST_FILES + 0.5), ylim=(len(counts) - 0.4, -0.6), xlabel="files")
    axes.set_xticks(range(0, MOST_FILES + 1, 5))
    axes.tick_params(axis="y", length=0)
    return figure
