"""How cells differ beside their scores: tiers, budgets, effort of passes against failures, attempts, caches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metrics.ams import Scoring, ams, tier_scores
from metrics.attempts import pass_at_k
from metrics.table import per_pass, per_task, select, valid


def pass_profile(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Passes of each cell by tier (AgentMeter figure 4); index (cell, tier) of the tiers that it plans tasks of.

    Columns: `planned` tasks, `valid` ones, `passes`, `pass_rate` = passes / planned.
    """
    tasks = per_task(trials, select(trials, attempts), ["passed"]).groupby(["cell", "tier"])
    table = pd.DataFrame(
        {"planned": tasks.size(), "valid": tasks["valid"].sum(), "passes": tasks["passed"].sum()}
    )
    return table.assign(pass_rate=table["passes"] / table["planned"])


def budget_curve(trials: pd.DataFrame, attempts: str, budgets: Sequence[float]) -> pd.DataFrame:
    """CBQ(b) (AgentMeter eq. 3) of each cell and tier at each of `budgets` (USD a trial); index (cell, tier).

    A column per budget: mean over **planned** tasks of R·[C ≤ b]. An unknown cost fits no budget. Rises with b, and
    ends at SR less the quality whose cost is unknown.
    """
    rows = select(trials, attempts)
    within = rows["cost_usd"].to_numpy(float)[:, None] <= np.asarray(budgets)
    names = [f"within_{number}" for number in range(len(budgets))]
    quality = pd.DataFrame(rows["reward"].to_numpy()[:, None] * within, index=rows.index, columns=names)
    tasks = per_task(trials, pd.concat([rows, quality], axis=1), names)
    curve = tasks.groupby(["cell", "tier"])[names].mean()
    return curve.set_axis(pd.Index(budgets, name="budget"), axis=1)


def effort_of_outcomes(trials: pd.DataFrame) -> pd.DataFrame:
    """What passes took against failures (AgentMeter Table 5), over all **valid** trials, every attempt.

    Index (tier, outcome): tier `all` and each tier, outcome `pass` and `fail`. Columns: `trials` (the denominator),
    `median_tokens`, `mean_tokens`, `median_usd`, `mean_usd`, `median_turns`, and `unpriced`, the trials whose cost is
    unknown and so in neither USD figure. Descriptive; no part of AMS.
    """
    rows = trials[valid(trials)]
    outcome = rows["passed"].astype(bool).map({True: "pass", False: "fail"})
    values = rows[["tokens", "cost_usd", "turns"]].astype(float).assign(outcome=outcome)
    both = pd.concat([values.assign(tier="all"), values.assign(tier=rows["tier"])])
    grouped = both.groupby(["tier", "outcome"])
    median, mean = grouped[["tokens", "cost_usd", "turns"]].median(), grouped[["tokens", "cost_usd"]].mean()
    return pd.DataFrame(
        {
            "trials": grouped.size(),
            "median_tokens": median["tokens"],
            "mean_tokens": mean["tokens"],
            "median_usd": median["cost_usd"],
            "mean_usd": mean["cost_usd"],
            "median_turns": median["turns"],
            "unpriced": grouped.size() - grouped["cost_usd"].count(),
        }
    )


def by_attempt(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Each attempt of each cell scored alone, as if it were the only one; index (cell, attempt).

    Columns: `planned` tasks with such an attempt, `passes`, `pass_rate` = passes / planned, `AMS` (NaN where a tier
    has no such attempt).
    """
    names = trials["cell"].astype(str) + "\n" + trials["attempt"].astype(int).astype(str)
    alone = trials.assign(cell=names)
    profile = pass_profile(alone, "latest_completed").groupby("cell")[["planned", "passes"]].sum()
    table = profile.assign(pass_rate=profile["passes"] / profile["planned"])
    table = table.join(ams(tier_scores(alone, scoring), scoring)["AMS"])
    keys = table.index.to_series().str.rsplit("\n", n=1)
    table.index = pd.MultiIndex.from_arrays([keys.str[0], keys.str[1].astype(int)], names=["cell", "attempt"])
    return table.sort_index()


def over_attempts(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """How much a cell's scores vary from attempt to attempt; index cell (what AgentMeter's section 6 asks for).

    Columns: `attempts`; mean and SD (n − 1, NaN for one attempt) over attempts of `pass_rate` and `AMS`, each attempt
    scored alone; `unsteady`: tasks with both a pass and a failure among their valid attempts, of the `repeated` ones
    with two or more.
    """
    alone = by_attempt(trials, scoring).groupby("cell")
    rows = trials[valid(trials)]
    tasks = rows["passed"].astype(bool).groupby([rows["cell"], rows["task"]]).agg(["size", "sum"])
    repeated = tasks["size"] > 1
    unsteady = repeated & (tasks["sum"] > 0) & (tasks["sum"] < tasks["size"])
    table = pd.DataFrame({"attempts": alone.size()})
    for name in ("pass_rate", "AMS"):
        table[f"{name}_mean"] = alone[name].mean(skipna=False)
        table[f"{name}_sd"] = alone[name].std(skipna=False)
    for name, counted in (("repeated", repeated), ("unsteady", unsteady)):
        table[name] = counted.groupby("cell").sum().reindex(table.index, fill_value=0)
    return table


def pass_curve(trials: pd.DataFrame, most: int) -> pd.DataFrame:
    """pass@1 to pass@`most` of each cell; index cell, a column per k. Mean over **planned** tasks of `pass_at_k` from
    the valid attempts of each; a task without any counts 0, and one with fewer than k makes it a lower bound.
    """
    counts = valid(trials)
    passed = counts & trials["passed"].fillna(value=False).astype(bool)
    tasks = pd.DataFrame({"valid": counts, "passed": passed}).groupby([trials["cell"], trials["task"]]).sum()
    n, c = (tasks[name].to_numpy() for name in ("valid", "passed"))
    curve = pd.DataFrame({k: pass_at_k(n, c, k) for k in range(1, most + 1)}, index=tasks.index)
    return curve.groupby("cell").mean().rename_axis("k", axis=1)


def cache_view(trials: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """What caches did for each cell, over all **valid** trials; index cell.

    Columns: `cache_share` = ΣH / ΣX, the share of input read from a cache; `creation_share` = ΣA / ΣX; `fresh_share`,
    the rest, not below 0; `usd`, as charged. By `rates` (index model, columns `p_in` and `p_out`, USD per token):
    `usd_uncached` = Σ(p_in·X + p_out·Y), what the same calls cost without caches, `usd_uncached_per_pass`, and
    `cache_saving` = 1 − usd / usd_uncached. A model without rates: NaN. Higher rates of long calls are not seen here,
    where a trial's calls are summed up.
    """
    rows = trials[valid(trials)]
    counts = ["input_tokens", "cache_creation_tokens", "cache_hit_tokens", "output_tokens"]
    spent = rows[[*counts, "cost_usd", "passed"]].astype(float)
    each = rates[["p_in", "p_out"]].reindex(rows["model"]).set_index(rows.index)
    spent["uncached"] = each["p_in"] * spent["input_tokens"] + each["p_out"] * spent["output_tokens"]
    sums = spent.groupby(rows["cell"]).sum(skipna=False).reindex(sorted(trials["cell"].unique()))
    read = sums["input_tokens"].where(sums["input_tokens"] > 0)
    table = pd.DataFrame(
        {
            "cache_share": sums["cache_hit_tokens"] / read,
            "creation_share": sums["cache_creation_tokens"] / read,
        }
    )
    table["fresh_share"] = (1 - table["cache_share"] - table["creation_share"]).clip(lower=0)
    table["usd"] = sums["cost_usd"]
    table["usd_uncached"] = sums["uncached"]
    table["usd_uncached_per_pass"] = per_pass(sums["uncached"], sums["passed"])
    table["cache_saving"] = 1 - sums["cost_usd"] / sums["uncached"].where(sums["uncached"] > 0)
    return table.rename_axis("cell")
