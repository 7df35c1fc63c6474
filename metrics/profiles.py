"""Profiles of cells beside their scores: tiers, budgets, effort of passes and failures, attempts, caches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from metrics.ams import Scoring, ams, task_parts, tier_scores
from metrics.attempts import pass_at_k
from metrics.table import GROUPED, categorized, contribution, per_pass, per_task, select, valid


def pass_profile(trials: pd.DataFrame, attempts: str) -> pd.DataFrame:
    """Return the passes of each cell by tier (AgentMeter Figure 4); index (cell, tier), tiers without tasks left out.

    Columns: `planned` tasks, `valid` (those with a valid trial), `passes`, `pass_rate` = passes / planned.
    """
    tasks = per_task(trials, select(trials, attempts), ["passed"]).groupby(["cell", "tier"])
    table = pd.DataFrame(
        {"planned": tasks.size(), "valid": tasks["valid"].sum(), "passes": tasks["passed"].sum()}
    )
    return table.assign(pass_rate=table["passes"] / table["planned"])


def composition(trials: pd.DataFrame, stratum: str) -> pd.DataFrame:
    """Return the number of **planned** tasks by stratum and tier (AgentMeter section 3.2); index the stratum.

    There is a column per tier; a stratum without a task of a tier has 0.
    """
    tasks = trials.drop_duplicates(["dataset", "task"])
    return pd.crosstab(tasks[stratum], tasks["tier"])


def passes_by(trials: pd.DataFrame, attempts: str, stratum: str) -> pd.DataFrame:
    """Return the passes of each cell by a column of its tasks, such as `source`; index (cell, stratum).

    Columns: `planned` tasks; `passes`, `pass_rate` and `mean_reward` over them, where a task without a valid trial
    contributes zero.
    """
    tasks = per_task(trials, select(trials, attempts), ["passed", "reward"])
    of_task = trials.groupby(["dataset", "task"])[stratum].first()
    own = of_task.loc[pd.MultiIndex.from_frame(tasks[["dataset", "task"]])].set_axis(tasks.index)
    grouped = tasks.groupby(["cell", own])
    table = pd.DataFrame({"planned": grouped.size(), "passes": grouped["passed"].sum()})
    return table.assign(pass_rate=grouped["passed"].mean(), mean_reward=grouped["reward"].mean())


def budget_curve(
    trials: pd.DataFrame, attempts: str, budgets: Sequence[float], cbq: str = "quality"
) -> pd.DataFrame:
    """Return CBQ(b) (AgentMeter eq. 3) of each cell and tier at each of `budgets` (USD per trial).

    The index is (cell, tier). There is a column per budget b: the mean over **planned** tasks of R·[C ≤ b], or of
    R·y·[C ≤ b] if `cbq` is `passes`. An unknown cost fits no budget. CBQ rises with b up to SR, less the rewards whose
    cost is unknown, and with `passes` less those of failed trials.
    """
    rows = select(trials, attempts)
    within = rows["cost_usd"].to_numpy(float)[:, None] <= np.asarray(budgets)
    names = [f"within_{number}" for number in range(len(budgets))]
    quality = pd.DataFrame(
        contribution(rows, cbq).to_numpy()[:, None] * within, index=rows.index, columns=names
    )
    tasks = per_task(trials, pd.concat([rows, quality], axis=1), names)
    curve = tasks.groupby(["cell", "tier"])[names].mean()
    return curve.set_axis(pd.Index(budgets, name="budget"), axis=1)


def effort_of_outcomes(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the tokens, USD and turns of passes and of failures (AgentMeter Table 5), over all **valid** trials.

    The index is (tier, outcome): tier `all` and each tier, outcome `pass` and `fail`. Columns: `trials` (the
    denominator), `median_tokens`, `mean_tokens`, `median_usd`, `mean_usd`, `median_turns`, all per trial, and
    `unpriced`, the trials of unknown cost, which are in neither USD figure. The table is descriptive, not part of AMS.
    """
    rows = trials.loc[valid(trials), ["tier", "passed", "tokens", "cost_usd", "turns"]]
    outcome = np.where(rows["passed"].astype(bool), "pass", "fail")
    values = rows[["tokens", "cost_usd", "turns"]].astype(float).assign(outcome=pd.Categorical(outcome))
    both = pd.concat([values.assign(tier="all"), values.assign(tier=rows["tier"].astype("str"))])
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


def tokens_across_agents(trials: pd.DataFrame) -> pd.DataFrame:
    """Return how many tokens one task takes with the same model under different agents (AgentMeter, section 1).

    Counted are **valid** trials with tokens; an agent's tokens and passes are means over its attempts at the task. The
    index is model and task, with dataset and budget between them where these columns exist; tasks with one agent are
    left out. Columns: `agents`, the number of agents; `least` and `most`, the agents with the fewest and most tokens,
    each with its `_tokens`, `_passed` (share of attempts) and `_repeated` (repeated reads; NaN where they were not
    counted); `ratio` = most_tokens / least_tokens. Ties go by name.
    """
    unit = [name for name in ("model", "dataset", "budget", "task") if name in trials]
    counted = ["tokens", "passed", "repeated_reads"]
    has_tokens = valid(trials) & (trials["tokens"].fillna(0) > 0)
    rows = trials.reindex(columns=[*unit, "agent", *counted])[has_tokens]
    values = rows[counted].astype(float)
    means = values.groupby([rows[name] for name in (*unit, "agent")]).mean()
    each = means.reset_index().sort_values([*unit, "tokens", "agent"]).groupby(unit)
    table = pd.DataFrame({"agents": each.size()})
    for name, ends in (("least", each.nth(0)), ("most", each.nth(-1))):
        own = ends.set_index(unit)
        table[name] = own["agent"]
        own_values = own[counted]
        table[[f"{name}_tokens", f"{name}_passed", f"{name}_repeated"]] = own_values
    return table.assign(ratio=table["most_tokens"] / table["least_tokens"])[table["agents"] > 1]


def by_attempt(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Score each attempt of each cell as if it were the only one; index (cell, attempt).

    Columns: `planned`, the tasks with this attempt; `passes`; `pass_rate` = passes / planned; `AMS`, NaN if a tier
    with weight has no task with this attempt.
    """
    alone = categorized(trials.assign(cell=_cell_and_attempt(trials)), GROUPED)
    parts = task_parts(alone, scoring)  # of one attempt at a task, every rule selects that one
    tasks = parts.groupby("cell")
    table = pd.DataFrame({"planned": tasks.size(), "passes": tasks["passed"].sum()})
    table = table.assign(pass_rate=table["passes"] / table["planned"])
    table = table.join(ams(tier_scores(alone, scoring, parts), scoring)["AMS"])
    keys = table.index.astype("str").to_series().str.rsplit("\n", n=1)
    table.index = pd.MultiIndex.from_arrays([keys.str[0], keys.str[1].astype(int)], names=["cell", "attempt"])
    return table.sort_index()


def _cell_and_attempt(trials: pd.DataFrame) -> pd.Categorical[str]:
    """Return the name of each trial's cell with its attempt on a second line; each different name is made once."""
    cells, names = pd.factorize(trials["cell"])
    attempts, numbers = pd.factorize(trials["attempt"].astype(int))
    codes, pairs = pd.factorize(cells * len(numbers) + attempts)
    cell_of, attempt_of = (places.tolist() for places in np.divmod(pairs, len(numbers)))
    words = [f"{names[cell]}\n{numbers[attempt]}" for cell, attempt in zip(cell_of, attempt_of, strict=True)]
    return pd.Categorical.from_codes(codes, pd.Index(words))


def over_attempts(trials: pd.DataFrame, scoring: Scoring) -> pd.DataFrame:
    """Return how much a cell's scores vary from attempt to attempt (called for in AgentMeter's section 6); index cell.

    Columns: `attempts`; `pass_rate_mean`, `pass_rate_sd`, `AMS_mean` and `AMS_sd`, the mean and SD (n − 1; NaN for one
    attempt) over attempts scored alone (`by_attempt`); `repeated`, the tasks with two or more valid attempts;
    `unsteady`, those among them with both a pass and a failure.
    """
    alone = by_attempt(trials, scoring).groupby("cell")
    rows = trials.loc[valid(trials), ["cell", "task", "passed"]]
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
    """Return pass@1 to pass@`most` of each cell; index cell, a column per k.

    Each is the mean over **planned** tasks of `pass_at_k` from the task's valid attempts. A task without a valid
    attempt counts 0; one with fewer than k makes the figure a lower bound.
    """
    counts = valid(trials)
    passed = counts & trials["passed"].fillna(value=False).astype(bool)
    tasks = pd.DataFrame({"valid": counts, "passed": passed}).groupby([trials["cell"], trials["task"]]).sum()
    n, c = (tasks[name].to_numpy() for name in ("valid", "passed"))
    curve = pd.DataFrame({k: pass_at_k(n, c, k) for k in range(1, most + 1)}, index=tasks.index)
    return curve.groupby("cell").mean().rename_axis("k", axis=1)


def cache_view(trials: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Return the effect of caches on each cell's cost, over all **valid** trials; index cell.

    Columns: `cache_share` = ΣH / ΣX, the share of input tokens read from a cache; `creation_share` = ΣA / ΣX;
    `fresh_share`, the rest, at least 0; `usd`, as charged; `usd_uncached` = Σ(p_in·X + p_out·Y), the price of the same
    calls without caches; `usd_uncached_per_pass`; `cache_saving` = 1 − usd / usd_uncached.

    `rates` has the index model and the columns `p_in` and `p_out`, USD per token; figures of a model without rates are
    NaN. Higher rates for long calls are not applied, since the counts are sums over a trial's calls.
    """
    counts = ["input_tokens", "cache_creation_tokens", "cache_hit_tokens", "output_tokens"]
    rows = trials.loc[valid(trials), ["cell", "model", *counts, "cost_usd", "passed"]]
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
