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

from metrics.ams import Scoring, ams, task_parts, tier_score, tier_scores
from metrics.checks import check
from metrics.errors import TableError, listed
from metrics.ranking import FEWEST, Agreement, agreement
from metrics.table import valid

MOST_SETS = 20_000
"""Sets that are all tried, to see what the greedy search misses."""
_CHUNK = 2_000
"""Sets scored at a time."""
_RANDOM = 200
"""Random sets that the chosen one is held against."""


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
    random_spearman: float
    """Mean Spearman on the held-out cells of random sets of the same size: what the choice has to beat."""
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
    unpriced: np.ndarray
    """Valid trials of unknown cost, shape (cells, tasks)."""

    def of(self, cells: np.ndarray) -> _Full:
        """These cells alone."""
        return replace(self, parts=self.parts[:, cells], usd=self.usd[cells], unpriced=self.unpriced[cells])

    def ams(self, sets: np.ndarray) -> np.ndarray:
        """AMS of each cell on each set; `sets` is 0/1 of shape (sets, tasks), the result (sets, cells).

        A tier of which a set holds no task yet wanted as nothing, the same for all cells.
        """
        scores = np.zeros((len(sets), self.parts.shape[1]))
        for number, weight in enumerate(self.weights):
            of = sets * (self.tier == number)
            reward, budgeted, expensive = (
                of @ self.parts.swapaxes(1, 2) / of.sum(axis=1, keepdims=True).clip(min=1)
            )
            scores += weight * tier_score(reward, budgeted, expensive, self.alpha)
        return np.asarray(scores.round(12))  # as AMS is, so that what ties there ties here

    def everything(self) -> np.ndarray:
        """AMS of each cell on all tasks, shape (cells,)."""
        return np.asarray(self.ams(np.ones((1, len(self.tier))))[0])

    def best(self, sets: np.ndarray) -> tuple[np.ndarray, tuple[float, float, float]]:
        """The best of some sets, with its Spearman against the full set, its trials of unknown cost, and its known
        cost: in this order, then the first of them. What nobody knows the cost of is not cheap.
        """
        full = self.everything()
        chunks = (sets[n : n + _CHUNK] for n in range(0, len(sets), _CHUNK))
        correlations = np.concatenate([_spearman(self.ams(chunk), full) for chunk in chunks]).round(9)
        cost = (sets @ self.usd.sum(axis=0)).round(9)  # sums of other orders are not other costs
        unpriced = sets @ self.unpriced.sum(axis=0)
        number = np.lexsort((np.arange(len(sets)), cost, unpriced, -correlations))[0]
        return sets[number], (float(correlations[number]), float(unpriced[number]), float(cost[number]))


def choose(
    trials: pd.DataFrame,
    scoring: Scoring,
    per_tier: Mapping[str, int] | int,
    held_out: float = 1 / 3,
    seed: int = 0,
) -> CoreSet:
    """`per_tier` tasks of each tier that has weight, so that AMS on them ranks the cells as AMS on all tasks does.

    A seeded share `held_out` of the cells (at least 3) takes no part in the choice. Of two sets the one with the
    greater Spearman on the other cells wins, then the one with fewer trials of unknown cost, then the cheaper one.
    Greedy: the best task is added until the tiers are full, then tasks are exchanged while that helps. Where there are
    at most `MOST_SETS` sets, all are tried, and what the greedy search missed is reported.

    Cells without AMS, as nothing is known of what they cost, take no part. Raises `TableError` for several datasets, a
    task that not every cell plans, fewer than 6 cells, and a tier with fewer tasks than wanted.
    """
    trials = check(trials, scoring, one_dataset=True)
    scores = ams(tier_scores(trials, scoring), scoring)["AMS"]
    if scores.isna().all():
        raise TableError({"No cost of any cell is known, so there is no AMS to choose by": trials.index})
    trials = trials[trials["cell"].isin(scores.dropna().index)]
    tiers = [name for name, tier in scoring.tiers.items() if tier.weight]
    planned = trials[trials["tier"].isin(tiers)]
    full, cells, names = _full(planned, scoring, tiers)
    wanted = [per_tier if isinstance(per_tier, int) else per_tier.get(name, 0) for name in tiers]
    for name, count in zip(tiers, wanted, strict=True):
        has = planned.loc[planned["tier"] == name, "task"]
        if not 1 <= count <= has.nunique():
            raise TableError({f"{count} tasks of tier {name} wanted, which has {has.nunique()}": has.index})
    fit, held = _split(planned, cells, held_out, seed)
    chosen, shortfall = _search(full.of(fit), wanted)

    core, target, picked = full.ams(chosen[None, :])[0], full.everything(), chosen > 0
    compared = [agreement(pd.Series(core[of]), pd.Series(target[of])) for of in (fit, held)]
    return CoreSet(
        tasks={name: tuple(names[picked & (full.tier == number)]) for number, name in enumerate(tiers)},
        chosen_with=tuple(cells[fit]),
        held_out=tuple(cells[held]),
        fitted=compared[0],
        agreement=compared[1],
        random_spearman=_random(full.of(held), wanted, seed),
        cost_usd=float(full.usd[:, picked].sum()),
        full_cost_usd=float(full.usd.sum()),
        unpriced=int(planned.loc[valid(planned), "cost_usd"].isna().sum()),
        greedy_shortfall=shortfall,
    )


def _full(planned: pd.DataFrame, scoring: Scoring, tiers: list[str]) -> tuple[_Full, pd.Index, pd.Index]:
    """Arrays of the trials of these tiers, and what their cells and tasks are called."""
    parts = task_parts(planned, scoring)
    grids = parts.pivot_table(index="cell", columns="task", values=["reward", "budgeted", "expensive"])
    cells, names = grids.index, grids["reward"].columns
    if (torn := grids["reward"].isna().any()).any():
        rows = planned.index[planned["task"].isin(names[torn])]
        raise TableError({f"Tasks that not every cell plans ({listed(names[torn])})": rows})
    counted = planned[valid(planned)]
    spent = [
        counted.assign(spent=values)
        .pivot_table(index="cell", columns="task", values="spent", aggfunc="sum")
        .reindex(index=cells, columns=names)
        .fillna(0.0)
        .to_numpy()
        for values in (counted["cost_usd"], counted["cost_usd"].isna().astype(float))
    ]
    weights = np.array([scoring.tiers[name].weight for name in tiers])
    tier = parts.drop_duplicates("task").set_index("task")["tier"].reindex(names)
    full = _Full(
        alpha=scoring.alpha,
        weights=weights / weights.sum(),
        tier=pd.Index(tiers).get_indexer(pd.Index(tier)),
        parts=np.stack([grids[name].to_numpy() for name in ("reward", "budgeted", "expensive")]),
        usd=spent[0],
        unpriced=spent[1],
    )
    return full, cells, names


def _split(
    trials: pd.DataFrame, cells: pd.Index, held_out: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the cells to choose with, and of those held out; each at least `FEWEST`."""
    if len(cells) < 2 * FEWEST:
        few = f"{len(cells)} cells, where {FEWEST} are needed to choose with and {FEWEST} to hold out"
        raise TableError({few: trials.index})
    count = min(max(round(len(cells) * held_out), FEWEST), len(cells) - FEWEST)
    order = np.random.default_rng(seed).permutation(len(cells))
    return np.sort(order[count:]), np.sort(order[:count])


def _search(full: _Full, wanted: list[int]) -> tuple[np.ndarray, float | None]:
    """The set, 0/1 of shape (tasks,), and what greedy search alone would have missed if that is known."""
    chosen, (correlation, *_) = _greedy(full, wanted)
    sizes = [int((full.tier == number).sum()) for number in range(len(wanted))]
    if prod(comb(size, count) for size, count in zip(sizes, wanted, strict=True)) > MOST_SETS:
        return chosen, None
    exact, (best, *_) = full.best(_every_set(full.tier, wanted))
    return exact, best - correlation


def _greedy(full: _Full, wanted: list[int]) -> tuple[np.ndarray, tuple[float, float, float]]:
    """The set that greedy search finds, with what it is worth (`_Full.best`)."""
    steps = np.eye(len(full.tier))
    chosen, room, value = np.zeros(len(full.tier)), np.array(wanted), (0.0, 0.0, 0.0)
    while room.any():
        added, value = full.best(chosen + steps[(chosen == 0) & (room[full.tier] > 0)])
        room[full.tier[added > chosen]] -= 1
        chosen = added
    before = None
    while value != before:
        before = value
        for out in np.flatnonzero(chosen):
            into = np.flatnonzero((chosen == 0) & (full.tier == full.tier[out]))
            exchanged = chosen - steps[out] + steps[into]
            chosen, value = full.best(np.vstack([chosen, exchanged]))
    return chosen, value


def _random(full: _Full, wanted: list[int], seed: int) -> float:
    """Mean Spearman against the full set of `_RANDOM` random sets with so many tasks of each tier."""
    rng = np.random.default_rng(seed)
    sets = np.zeros((_RANDOM, len(full.tier)))
    for number, count in enumerate(wanted):
        of = np.flatnonzero(full.tier == number)
        drawn = rng.permuted(np.tile(of, (_RANDOM, 1)), axis=1)[:, :count]
        np.put_along_axis(sets, drawn, 1, axis=1)
    return float(_spearman(full.ams(sets), full.everything()).mean())


def _every_set(tier: np.ndarray, wanted: list[int]) -> np.ndarray:
    """All sets with so many tasks of each tier, 0/1 of shape (sets, tasks)."""
    choices = [combinations(np.flatnonzero(tier == number), count) for number, count in enumerate(wanted)]
    rows = [[task for part in parts for task in part] for parts in product(*choices)]
    sets = np.zeros((len(rows), len(tier)))
    np.put_along_axis(sets, np.array(rows), 1, axis=1)
    return sets


def _spearman(scores: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Of each row of `scores` (sets, cells) against `target` (cells,); 0 where all scores of a row are equal."""
    ranks = pd.DataFrame(scores.T).rank().to_numpy()
    ranks = ranks - ranks.mean(axis=0)
    wanted = pd.Series(target).rank().to_numpy()
    wanted = wanted - wanted.mean()
    scale = np.sqrt((ranks**2).sum(axis=0) * (wanted**2).sum())
    return np.asarray(np.divide(wanted @ ranks, scale, out=np.zeros(len(scale)), where=scale > 0))
