"""A core set: few tasks a tier that put cells in the order of the full set, at the least cost.

AgentMeter's Core30 is one, chosen by hand (section 3.3); stratified construction is its future work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb, prod

import numpy as np
import pandas as pd

from metrics.ams import Scoring, task_parts, tier_score
from metrics.checks import check
from metrics.errors import TableError
from metrics.ranking import FEWEST, Agreement, agreement
from metrics.table import valid

MOST_SETS = 20_000
"""Sets that are all tried, to see what the greedy search misses."""
_CHUNK = 2_000
"""Sets scored at a time."""


@dataclass(frozen=True)
class CoreSet:
    """Chosen tasks, and how far their ranking can be trusted."""

    tasks: Mapping[str, tuple[str, ...]]
    """Tier -> tasks, by name."""
    chosen_with: tuple[str, ...]
    """Cells that the tasks were chosen with."""
    held_out: tuple[str, ...]
    """Cells that took no part in the choice."""
    fitted: Agreement
    """AMS on the core set against the full set, on the cells it was chosen with: too good to be true."""
    agreement: Agreement
    """The same on the held-out cells: what to expect of a new cell."""
    cost_usd: float
    """Of the chosen tasks: known cost of all valid trials of all cells."""
    full_cost_usd: float
    """Of all tasks of the tiers."""
    unpriced: int
    """Valid trials whose cost is unknown and in neither."""
    greedy_shortfall: float | None
    """Spearman on the cells chosen with that greedy search alone would have missed; None where the sets are too many
    to try them all, and the greedy one is the core set."""

    @property
    def saving(self) -> float:
        """Share of the full set's cost that a run of the core set saves; NaN if nothing has a known cost."""
        return 1 - self.cost_usd / self.full_cost_usd if self.full_cost_usd else float("nan")


@dataclass(frozen=True)
class _Full:
    """The full set: what each task contributes to each cell."""

    alpha: float
    weights: np.ndarray
    """Of the tiers, shape (tiers,), sum 1."""
    tier: np.ndarray
    """Of each task, its number, shape (tasks,)."""
    parts: np.ndarray
    """R, budgeted R and expensive failure, shape (3, cells, tasks)."""
    usd: np.ndarray
    """Known cost, shape (cells, tasks)."""

    def of(self, cells: np.ndarray) -> _Full:
        """These cells alone."""
        return replace(self, parts=self.parts[:, cells], usd=self.usd[cells])

    def ams(self, sets: np.ndarray) -> np.ndarray:
        """AMS of each cell on each set; `sets` is 0/1 of shape (sets, tasks), the result (sets, cells).

        A tier of which a set holds no task yet counts as nothing, the same for all cells.
        """
        scores = np.zeros((len(sets), self.parts.shape[1]))
        for number, weight in enumerate(self.weights):
            of = sets * (self.tier == number)
            sums = np.einsum("st,pct->psc", of, self.parts)
            reward, budgeted, expensive = sums / np.maximum(of.sum(axis=1), 1)[None, :, None]
            scores += weight * tier_score(reward, budgeted, expensive, self.alpha)
        return scores

    def best(self, sets: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
        """The best of some sets, with its Spearman against the full set and its cost: the former first, then the
        latter, then the first of them.
        """
        full = self.ams(np.ones((1, len(self.tier))))[0]
        chunks = (sets[n : n + _CHUNK] for n in range(0, len(sets), _CHUNK))
        correlations = np.concatenate([_spearman(self.ams(chunk), full) for chunk in chunks]).round(9)
        cost = sets @ self.usd.sum(axis=0)
        number = np.lexsort((np.arange(len(sets)), cost, -correlations))[0]
        return sets[number], (float(correlations[number]), float(cost[number]))


def choose(
    trials: pd.DataFrame,
    scoring: Scoring,
    per_tier: Mapping[str, int] | int,
    held_out: float = 1 / 3,
    seed: int = 0,
) -> CoreSet:
    """`per_tier` tasks of each tier that has weight, so that AMS on them ranks the cells as AMS on all tasks does.

    A seeded share `held_out` of the cells (at least 3) takes no part in the choice. Of two sets the one with the
    greater Spearman on the other cells wins, then the one that cost them less. Greedy: the best task is added until
    the tiers are full, then tasks are exchanged while that helps. Where there are at most `MOST_SETS` sets, all are
    tried, and what the greedy search missed is reported.

    Raises `TableError` for several datasets, a task that not every cell plans, fewer than 6 cells, and a tier with
    fewer tasks than wanted.
    """
    check(trials, scoring, one_dataset=True)
    tiers = [name for name, tier in scoring.tiers.items() if tier.weight]
    full, cells, names = _full(trials, scoring, tiers)
    chosen_with, held = _split(trials, cells, held_out, seed)
    counts = [per_tier if isinstance(per_tier, int) else per_tier[name] for name in tiers]
    for number, (name, count) in enumerate(zip(tiers, counts, strict=True)):
        if not 1 <= count <= (full.tier == number).sum():
            raise TableError(
                {f"Tier {name} has not the {count} tasks wanted": trials.index[trials["tier"] == name]}
            )
    chosen, shortfall = _search(full.of(chosen_with), counts)

    scores = pd.DataFrame(
        {"core": full.ams(chosen[None, :])[0], "full": full.ams(np.ones((1, len(names))))[0]}
    )
    scores.index = cells
    picked = chosen > 0
    return CoreSet(
        tasks={name: tuple(names[picked & (full.tier == number)]) for number, name in enumerate(tiers)},
        chosen_with=tuple(cells[chosen_with]),
        held_out=tuple(cells[held]),
        fitted=agreement(scores["core"].iloc[chosen_with], scores["full"].iloc[chosen_with]),
        agreement=agreement(scores["core"].iloc[held], scores["full"].iloc[held]),
        cost_usd=float(full.usd[:, picked].sum()),
        full_cost_usd=float(full.usd.sum()),
        unpriced=int(trials.loc[valid(trials) & trials["tier"].isin(tiers), "cost_usd"].isna().sum()),
        greedy_shortfall=shortfall,
    )


def _full(trials: pd.DataFrame, scoring: Scoring, tiers: list[str]) -> tuple[_Full, pd.Index, pd.Index]:
    """Arrays, and what their cells and tasks are called."""
    planned = trials[trials["tier"].isin(tiers)]
    parts = task_parts(planned, scoring).set_index(["cell", "task"])
    grids = [parts[name].unstack("task") for name in ("reward", "budgeted", "expensive")]  # noqa: PD010 - of an index
    if (torn := grids[0].isna()).any(axis=None):
        some = list(torn.columns[torn.any()])
        rows = planned.index[planned["task"].isin(some)]
        raise TableError({f"Tasks that not every cell plans ({', '.join(some)})": rows})
    cells, names = grids[0].index, grids[0].columns
    spent = planned[valid(planned)].groupby(["cell", "task"])["cost_usd"].sum()
    usd = spent.unstack("task").reindex(index=cells, columns=names).fillna(0.0)  # noqa: PD010 - as above
    of = planned.drop_duplicates("task").set_index("task")["tier"].reindex(names)
    weights = np.array([scoring.tiers[name].weight for name in tiers])
    tier = pd.Index(tiers).get_indexer(pd.Index(of))
    full = _Full(
        scoring.alpha,
        weights / weights.sum(),
        tier,
        np.stack([grid.to_numpy() for grid in grids]),
        usd.to_numpy(),
    )
    return full, cells, names


def _split(
    trials: pd.DataFrame, cells: pd.Index, held_out: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the cells to choose with, and of those held out; each at least `FEWEST`."""
    if len(cells) < 2 * FEWEST:
        raise TableError(
            {
                f"{len(cells)} cells; a core set needs {FEWEST} to choose with and {FEWEST} held out": trials.index
            }
        )
    count = min(max(round(len(cells) * held_out), FEWEST), len(cells) - FEWEST)
    order = np.random.default_rng(seed).permutation(len(cells))
    return np.sort(order[count:]), np.sort(order[:count])


def _search(full: _Full, counts: list[int]) -> tuple[np.ndarray, float | None]:
    """The set, 0/1 of shape (tasks,), and what greedy search alone would have missed if that is known."""
    chosen, (correlation, _) = _greedy(full, counts)
    sizes = [int((full.tier == number).sum()) for number in range(len(counts))]
    if prod(comb(size, count) for size, count in zip(sizes, counts, strict=True)) > MOST_SETS:
        return chosen, None
    exact, (best, _) = full.best(_every_set(full.tier, counts))
    return exact, best - correlation


def _greedy(full: _Full, counts: list[int]) -> tuple[np.ndarray, tuple[float, float]]:
    chosen = np.zeros(len(full.tier))
    room = np.array(counts)
    for _ in range(sum(counts)):
        open_ = np.flatnonzero((chosen == 0) & (room[full.tier] > 0))
        chosen, value = full.best(chosen + np.eye(len(chosen))[open_])
        room = np.array(counts) - np.bincount(full.tier, weights=chosen, minlength=len(counts))
    while True:
        out, into = np.flatnonzero(chosen), np.flatnonzero(chosen == 0)
        swaps = [(a, b) for a in out for b in into if full.tier[a] == full.tier[b]]
        steps = np.eye(len(chosen))
        sets = np.vstack([chosen, *(chosen - steps[a] + steps[b] for a, b in swaps)])
        best, improved = full.best(sets)
        if improved == value:
            return chosen, value
        chosen, value = best, improved


def _every_set(tier: np.ndarray, counts: list[int]) -> np.ndarray:
    """All sets with so many tasks of each tier, 0/1 of shape (sets, tasks)."""
    choices = [combinations(np.flatnonzero(tier == number), count) for number, count in enumerate(counts)]
    rows = [[task for part in parts for task in part] for parts in product(*choices)]
    sets = np.zeros((len(rows), len(tier)))
    np.put_along_axis(sets, np.array(rows), 1, axis=1)
    return sets


def _spearman(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Of each row of `scores` (sets, cells) against `target` (cells,); 0 where all scores of a row are equal."""
    ranks = pd.DataFrame(scores.T.round(12)).rank().to_numpy()
    ranks = ranks - ranks.mean(axis=0)
    wanted = pd.Series(target.round(12)).rank().to_numpy()
    wanted = wanted - wanted.mean()
    scale = np.sqrt((ranks**2).sum(axis=0) * (wanted**2).sum())
    return np.asarray(np.divide(wanted @ ranks, scale, out=np.zeros(len(scale)), where=scale > 0))
