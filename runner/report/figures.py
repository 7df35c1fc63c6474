"""Pictures of a sweep as matplotlib figures of plain tables, and their conversion to SVG and PNG.

Pictures use a few named colours only. Within the page these become the page's own (`INLINE`), so that a picture follows
its dark and print styles. The same records give the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from runner.report.wording import CONTROL, number, usd

INK, MUTED, FAINT, ACCENT, PAPER = "#1b1f24", "#5b6470", "#d5d9df", "#0f6b8c", "#fefefe"
INLINE = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    FAINT: "var(--line)",
    ACCENT: "var(--accent)",
    PAPER: "var(--paper)",
}
"""Colour of a drawing -> the page's own colour."""
LINES = (("-", "o"), ((0, (5, 1.5)), "s"), ((0, (1, 1)), "^"), ((0, (6, 1.5, 1, 1.5)), "D"))
"""Dashes and markers that distinguish lines without colour."""
MARKERS = "os^Dv<>ph"
"""Markers of columns that share a line; further columns have them filled."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, sharp, and read by who cannot see it
    "svg.hashsalt": "assay",
    "text.parse_math": False,  # a task may be called `$\frac{`
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": MUTED,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.frameon": False,
}
_NARROW = 13
"""Characters of a name that fit above a column of the heat map."""
_LONGEST = 46
"""Characters of a name in a picture; tables have it whole."""
_SHORT = 8
"""Characters of labels of which five stand in a line of a legend."""
_LOG_TICKS = (1.0, 2.0, 5.0)
"""Figures of each power of ten that have a tick on an axis of a log scale."""
_ALONE = 0.7
"""Opacity of bars that need not be told from others."""
_THIN = 0.03
"""Smallest piece of a bar with its size written in it, as a share of the axis."""


@contextmanager
def style() -> Iterator[None]:
    """Return the context in which figures are made and written. Letters that the font lacks become boxes, in PNG
    only.
    """
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def settle(figure: Figure) -> None:
    """Lay a figure out once, for both of its files."""
    engine = figure.get_layout_engine()
    if engine:
        engine.execute(figure)
        figure.set_layout_engine(None)  # with any other, each file costs two drawings


def svg(figure: Figure) -> str:
    """Return the drawing as an SVG file."""
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def png(figure: Figure) -> bytes:
    """Return the drawing as a PNG file, for slides."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=160, metadata={"Software": None})
    return written.getvalue()


def inline(text: str, name: str) -> str:
    """Return an SVG file as an element of a page: without prologue and style sheet, with the page's colours and ids."""
    body = text[text.index("<svg") :]
    body = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) width="([^"]*)"', r'\1 style="width: \2"', body, count=1)
    used = set(re.findall(r"(?:url\(#|href=\"#)([^)\"]+)", body))
    body = re.sub(
        r' id="([^"]*)"', lambda found: f' id="{name}-{found[1]}"' if found[1] in used else "", body
    )
    body = re.sub(r"(url\(#|href=\"#)", rf"\1{name}-", body)
    for colour, variable in INLINE.items():
        body = body.replace(colour, variable)
    return body


def panels(
    count: int, height: float, margin: float = 0.0, *, same_axes: bool = True
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its `count` panels, two in a row. What is left of the last row stays empty.

    Each row is `height` inches high, and `margin` is added to all of them. `same_axes` gives all panels the same axes.
    """
    across = min(count, 2)
    down = -(-count // across)
    figure = Figure(figsize=(7.2, margin + height * down), layout="constrained")
    axes = figure.subplots(down, across, sharex=same_axes, sharey=same_axes, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.set_visible(False)
    return figure, list(axes[:count])


def label_squares(axes: Axes, rows: Sequence[str], columns: Sequence[str], **column_style: Any) -> None:
    """Name the rows and columns of squares of size 1, the first row on top, with the columns' names above them.

    `column_style` is for the names of columns, in matplotlib's words.
    """
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, **column_style)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, color=INK)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def heat_map(scores: pd.DataFrame) -> Figure:
    """Draw AMS of each agent (rows) with each model (columns); the best agent of each model is outlined.

    `scores` has a column a model and a row an agent; NaN where the pair was not run or has no score.
    """
    rows, columns = scores.shape
    agents, models = [cut(name) for name in scores.index], [cut(name) for name in scores.columns]
    wide = 1.0 + 0.075 * max(map(len, agents)) + 0.95 * columns
    figure = Figure(figsize=(wide, 1.0 + 0.42 * rows), layout="constrained")
    axes = figure.add_subplot()
    values = scores.to_numpy(float)
    top = np.nanmax(values, initial=0.0) or 1.0
    for row, column in np.ndindex(rows, columns):
        value, best = float(values[row, column]), np.fmax.reduce(values[:, column])
        if not np.isnan(value):
            shade = 0.05 + 0.40 * value / top
            axes.add_patch(Rectangle((column, row), 1, 1, facecolor=ACCENT, alpha=shade, lw=0))
        if value == best:
            axes.add_patch(Rectangle((column + 0.03, row + 0.04), 0.94, 0.92, fill=False, ec=ACCENT, lw=1.8))
        axes.text(column + 0.5, row + 0.5, number(value, ".3f"), ha="center", va="center")
    crowded = columns > 1 and max(map(len, models)) > _NARROW
    turned: dict[str, Any] = {"rotation": 25, "ha": "left"} if crowded else {}
    label_squares(axes, agents, models, color=INK, **turned)
    return figure


def cost_quality(points: pd.DataFrame) -> Figure:
    """Draw pass rate against USD per pass; columns `usd_per_pass`, `pass_rate`, `mark` (shown), `front` (bool).

    The line is the Pareto front, the dotted lines the medians that make the quadrants. Costs are on a log scale where
    they span more than a factor of ten and none is 0.
    """
    figure = Figure(figsize=(7.2, 3.9), layout="constrained")
    axes = figure.add_subplot()
    cost, rate = points["usd_per_pass"], points["pass_rate"]
    if len(points) and cost.min() > 0 and cost.max() > 10 * cost.min():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=_LOG_TICKS))
    front = points[points["front"]].sort_values("usd_per_pass")
    axes.step(front["usd_per_pass"], front["pass_rate"], where="post", color=ACCENT, lw=1.2)
    for chosen, face in ((~points["front"], PAPER), (points["front"], ACCENT)):
        axes.scatter(cost[chosen], rate[chosen], s=95, facecolor=face, edgecolor=ACCENT, lw=1.2, zorder=3)
    for point in points.itertuples():
        colour = PAPER if point.front else INK
        at = (float(point.usd_per_pass), float(point.pass_rate))  # type: ignore[arg-type]
        axes.annotate(str(point.mark), at, ha="center", va="center", fontsize=6.5, color=colour, zorder=4)
    if len(points) > 1:
        axes.axvline(cost.median(), color=MUTED, lw=0.7, ls=":")
        axes.axhline(rate.median(), color=MUTED, lw=0.7, ls=":")
        for x, y, word in ((0.01, 0.98, "cheap, often right"), (0.99, 0.02, "dear, seldom right")):
            axes.text(
                x, y, word, transform=axes.transAxes, fontsize=7.5, color=MUTED,
                ha="left" if x < 0.5 else "right", va="bottom" if y < 0.5 else "top",  # noqa: PLR2004 - the middle
            )  # fmt: skip
    axes.set(xlabel="USD per pass", ylabel="tasks passed, of those planned")
    axes.set_ylim(max(rate.min() - 0.12, -0.06), min(rate.max() + 0.12, 1.06))
    axes.margins(x=0.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: usd(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    return figure


def stacked(parts: pd.DataFrame, labels: Sequence[str], axis: str, form: str, most: float) -> Figure:
    """Draw a bar for each row, with a piece for each column.

    `labels` name the pieces, `axis` what they measure. Each piece has its size written in it in the format `form`.
    Bars can be `most` long.
    """
    figure = Figure(figsize=(7.2, 0.9 + 0.3 * len(parts)), layout="constrained")
    axes = figure.add_subplot()
    left = np.zeros(len(parts))
    places = np.arange(len(parts))
    shades = np.linspace(0.3, 1.0, len(labels))
    for shade, column, label in zip(shades, parts.columns, labels, strict=True):
        wide = parts[column].to_numpy(float)
        axes.barh(places, wide, left=left, height=0.68, color=ACCENT, alpha=shade, label=label)
        for place in places[wide > _THIN * most]:
            at = left[place] + wide[place] / 2
            colour = PAPER if shade > 0.6 else INK  # noqa: PLR2004 - dark enough for light words
            axes.text(
                at, place, format(wide[place], form), ha="center", va="center", color=colour, fontsize=7.5
            )
        left += wide
    axes.set_yticks(places, [cut(name) for name in parts.index], color=INK)
    axes.set(xlim=(0, most), ylim=(len(parts) - 0.4, -0.6), xlabel=axis)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, form)))
    axes.tick_params(axis="y", length=0)
    figure.legend(
        loc="outside upper right",
        ncols=min(len(labels), 4 if max(map(len, labels)) > _SHORT else 5),
        fontsize=8,
    )
    return figure


def grouped_bars(values: pd.DataFrame, form: str, most: float, axis: str = "") -> Figure:
    """Draw a group of bars for each row, with a bar for each column; `most` ends the axis. One column has no legend.

    Each bar has its value behind it in the format `form`, and a missing one a dash.
    """
    rows, columns = values.shape
    figure = Figure(figsize=(7.2, 0.9 + (0.16 * columns + 0.14) * rows), layout="constrained")
    axes = figure.add_subplot()
    thick = 0.8 / columns
    shades = np.linspace(0.3, 1, columns) if columns > 1 else [_ALONE]
    for at, (shade, column) in enumerate(zip(shades, values, strict=True)):
        places = np.arange(rows) - 0.4 + thick * (at + 0.5)
        own = values[column].to_numpy(float)
        long, name = np.nan_to_num(own), cut(str(column))
        axes.barh(places, long, height=thick * 0.9, color=ACCENT, alpha=shade, label=name)
        for place, end, value in zip(places, long, own, strict=True):
            axes.text(end + 0.008 * most, place, number(value, form), va="center", fontsize=6.5, color=MUTED)
    axes.set_yticks(range(rows), [cut(str(name)) for name in values.index], color=INK)
    axes.set(xlim=(0, 1.06 * most), ylim=(rows - 0.4, -0.6), xlabel=axis)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format(value, form)))
    if columns > 1:
        figure.legend(loc="outside upper right", ncols=min(columns, 4), fontsize=8)
    return figure


def room(scores: pd.Series[float]) -> float:
    """Return where an axis of scores in [0, 1] ends: at the next tenth above the best."""
    return min(1.0, (int(10 * float(scores.max())) + 1) / 10)


def scores_by_group(scores: pd.DataFrame, axis: str) -> Figure:
    """Draw a line for each row from its least to its greatest score, and on it a marker for each column."""
    figure = Figure(figsize=(7.2, 1.0 + 0.34 * len(scores)), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(scores))
    axes.hlines(places, scores.min(axis=1), scores.max(axis=1), color=FAINT, lw=3, zorder=1)
    for at, column in enumerate(scores):
        hollow = at // len(MARKERS) % 2 == 0
        face = "none" if hollow else ACCENT
        axes.scatter(
            scores[column], places, s=42, marker=MARKERS[at % len(MARKERS)], facecolor=face, edgecolor=ACCENT, lw=1.2,
            label=cut(str(column)), zorder=3,
        )  # fmt: skip
    axes.set_yticks(places, [cut(str(name)) for name in scores.index], color=INK)
    axes.set(ylim=(len(scores) - 0.4, -0.6), xlabel=axis)
    axes.margins(x=0.06)
    axes.tick_params(axis="y", length=0)
    figure.legend(loc="outside upper right", ncols=4, fontsize=8)
    return figure


def pass_profile(passes: pd.DataFrame, planned: Mapping[str, int]) -> Figure:
    """Draw passes of each cell (rows, best first) with a piece for each tier (columns), of the tasks `planned`."""
    labels = [f"{tier} (of {planned[tier]})" for tier in passes.columns]
    figure = stacked(passes, labels, "tasks passed", "g", sum(planned.values()))
    figure.axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def budget_curves(curves: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw CBQ (eq. 3) against budget, with a panel for each tier: a column a budget, a row a cell, best first.

    The first cells differ by dashes and markers; the others are faint.
    """
    figure = Figure(figsize=(7.2, 3.1), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, len(curves), sharey=True, squeeze=False)[0])
    for axes, (tier, curve) in zip(panels, curves.items(), strict=True):
        for at, (name, line) in reversed(list(enumerate(curve.iterrows()))):
            is_named = at < len(LINES)
            look: dict[str, Any] = {"color": FAINT, "marker": "o", "ms": 2.5}
            if is_named:
                dashes, point = LINES[at]
                look = {
                    "color": ACCENT,
                    "ls": dashes,
                    "marker": point,
                    "ms": 6 - at,
                    "mfc": "none",
                    "label": cut(str(name)),
                }
            axes.plot(curve.columns, line, lw=1.3, zorder=3 if is_named else 1, **look)
        axes.set(title=tier, xlabel="budget, USD a trial", ylim=(-0.03, 1.03))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].set_ylabel("mean reward within budget")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower left", ncols=2, fontsize=8, handlelength=4)
    return figure


def cut(name: str) -> str:
    """Shorten a long name in its middle, because its end says which model or budget it is."""
    name, half = name.translate(CONTROL), _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[-half:]}"
