"""Redraw two figures of a sweep from its `trials.parquet`, as a start for figures of your own.

    python redraw_figures.py outputs/mine/trials.parquet figures

It needs pandas (with pyarrow) and matplotlib, and nothing of Assay: docs/metrics.md explains the columns. Both figures
are over planned tasks, so a task without a valid trial counts as failed. Of several attempts the mean counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("agg")  # files alone, no window
mpl.rcParams["text.parse_math"] = False  # names are shown as they are, with dollar signs

from matplotlib import pyplot as plt  # noqa: E402

BOUNDS = ("oracle", "nop")
OURS = ("infra_invalid", "cancelled")
"""Endings that say nothing about the agent."""
MARKERS = "os^Dv<>ph"


def cells(trials: pd.DataFrame) -> pd.DataFrame:
    """Return planned tasks, pass rate and USD per pass of each agent and model; NaN without a pass or a known cost."""
    trials = trials[~trials["agent"].isin(BOUNDS)]
    for mark in ("scripted", "replayed"):  # such a model is not a language model, or nobody asked it
        trials = trials.assign(model=trials["model"].where(~trials[mark], trials["model"] + f" ({mark})"))
    valid = trials[~trials["status"].isin(OURS) & trials["reward"].notna()]
    names = ["agent", "model"]
    planned = trials.groupby(names)["task"].nunique()
    rate = valid["passed"].astype(float).groupby([valid[name] for name in (*names, "task")]).mean()
    passed = rate.groupby(names).sum().reindex(planned.index, fill_value=0.0)
    sums = valid.astype({"passed": float})[[*names, "passed", "cost_usd"]].groupby(names)
    usd = sums["cost_usd"].sum(min_count=1).where(sums["cost_usd"].count() == sums.size())
    passes = sums["passed"].sum()
    return pd.DataFrame(
        {"tasks": planned, "pass_rate": passed / planned, "usd_per_pass": usd / passes.where(passes > 0)}
    )


def by_model(table: pd.DataFrame) -> plt.Figure:
    """Draw the pass rate of each agent, a line for each model (after AgentMeter's Figure 1a)."""
    rates = table["pass_rate"].unstack("agent")  # noqa: PD010 - nothing to aggregate
    figure, axes = plt.subplots(figsize=(7, 1 + 0.5 * len(rates)), layout="constrained")
    axes.hlines(range(len(rates)), rates.min(axis=1), rates.max(axis=1), color="#d5d9df", lw=3)
    for place, agent in enumerate(rates):
        size = 30 + 40 * (len(rates.columns) - place)  # of equal rates one lies within the other
        style = {"marker": MARKERS[place % len(MARKERS)], "facecolor": "none", "edgecolor": f"C{place % 10}"}
        axes.scatter(rates[agent], range(len(rates)), s=size, label=agent, zorder=3, **style)
    axes.set_yticks(range(len(rates)), rates.index)
    axes.set_xlabel("tasks passed, of those planned")
    axes.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.margins(x=0.1, y=0.5 / len(rates))
    axes.invert_yaxis()
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def cost_and_quality(table: pd.DataFrame) -> plt.Figure | None:
    """Draw the pass rate against USD per pass; None if no cell has both."""
    known = table.dropna(subset=["usd_per_pass"])
    if known.empty:
        return None
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    agents, models = (known.index.unique(level) for level in ("agent", "model"))
    for (agent, model), cell in known.iterrows():
        colour, marker = f"C{agents.get_loc(agent) % 10}", MARKERS[models.get_loc(model) % len(MARKERS)]
        axes.scatter(cell["usd_per_pass"], cell["pass_rate"], color=colour, marker=marker, alpha=0.8)
    for place, agent in enumerate(agents):
        axes.scatter([], [], color=f"C{place % 10}", marker="s", label=agent)
    for place, model in enumerate(models):
        axes.scatter([], [], color="#5b6470", marker=MARKERS[place % len(MARKERS)], label=model)
    axes.set(xlabel="USD per pass", ylabel="tasks passed, of those planned")
    axes.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.margins(x=0.1, y=0.15)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def main() -> None:
    """Draw both figures of each dataset in the table."""
    file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for dataset, trials in pd.read_parquet(file).groupby("dataset"):
        table = cells(trials)
        if table.empty:
            print(
                f"{dataset}: only the bounds {' and '.join(BOUNDS)} were planned, so there is nothing to draw."
            )
            continue
        for name, figure in (("by_model", by_model(table)), ("cost_and_quality", cost_and_quality(table))):
            if figure is None:
                print(f"{dataset}: no cell has both a pass and known costs, so {name} is not drawn.")
            else:
                path = folder / f"{name}-{dataset}.pdf".replace("/", "_")
                figure.savefig(path)
                figure.savefig(path.with_suffix(".png"), dpi=160)
                print(path)


if __name__ == "__main__":
    main()
