"""Time and memory of scoring: part of `make bench`. Measures; asserts nothing.

Each measurement has a process of its own, so that its peak memory is its own. Trials are made up: of all cells on all
tasks, in the columns and types that a trials table has, by a process of their own; names are read as categories. The
peak is that of scoring, with the table in memory, and not that of making it up.
"""

from __future__ import annotations

import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from metrics.checks import check
from metrics.ranking import four_criteria
from metrics.uncertainty import bootstrap, pairwise
from runner.records import Scoring, TierScoring
from runner.report.leaderboard import cell_scores

TIERS = {"easy": 0.1, "medium": 0.4, "hard": 2.0}
"""Tier -> mean cost of a trial in USD."""
SCORING = Scoring(
    name="bench",
    tiers={
        name: TierScoring(budgets=tuple(usd * part for part in (0.2, 0.5, 1.0, 1.5, 2.0)), tau=2 * usd)
        for name, usd in TIERS.items()
    },
)
_TEXTS = ("agent", "model", "budget", "dataset", "cell", "tier", "task", "status")
REPEATS = 3


class Cost(NamedTuple):
    """Cost of one piece of work."""

    seconds: float
    processor_seconds: float
    """Processor time, which other processes do not change."""
    peak_mb: float
    """Peak memory of the whole process during the work, with the trials and the libraries."""


def main() -> None:
    """Run every measurement, one line each."""
    paired = _apart(_paired, (24, 90, 5))
    print(f"24 cells x 90 tasks x 5 attempts, 2000 paired resamples: {_against(paired.seconds, 2, 's')}")
    few = [_apart(_scored, (20, 1000, 5)) for _ in range(REPEATS)]
    many = [_apart(_scored, (200, 1000, 5)) for _ in range(REPEATS)]
    seconds, processor, peak = (statistics.median(column) for column in zip(*many, strict=True))
    print(
        f"1,000,000 trials scored and tabulated: {_against(seconds, 10, 's')}, {processor:.2f} s of processor, "
        f"peak {_against(peak, 2000, 'MB')}"
    )
    ratio = processor / statistics.median(cost.processor_seconds for cost in few)
    print(f"  ten times the trials of 100,000 take {ratio:.1f} times as much processor time (linear: 10)")
    most = _apart(_scored, (200, 10_000, 5))
    print(
        f"10,000,000 trials scored and tabulated: {_against(most.seconds, 40, 's')}, {most.processor_seconds:.1f} s of "
        f"processor, peak {_against(most.peak_mb, 4000, 'MB')}"
    )


def _against(value: float, bound: float, unit: str) -> str:
    return f"{value:.4g} {unit} (bound {bound:g} {unit}: {'met' if value <= bound else 'missed'})"


def _apart(work: Callable[[pd.DataFrame], None], shape: tuple[int, int, int]) -> Cost:
    """Measure `work` in a process that does nothing else, the second time: once everything is imported."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_measured, work, shape).result()


def _measured(work: Callable[[pd.DataFrame], None], shape: tuple[int, int, int]) -> Cost:
    work(made_up((2, 6, 1)))
    trials = _read(shape)
    Path("/proc/self/clear_refs").write_text(
        "5"
    )  # the peak begins anew, with the trials and the libraries in it
    started, started_processor = time.perf_counter(), time.process_time()
    work(trials)
    seconds, processor = time.perf_counter() - started, time.process_time() - started_processor
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak, "Linux tells the peak memory of a process"
    return Cost(seconds, processor, int(peak[1]) / 1024)


def _read(shape: tuple[int, int, int]) -> pd.DataFrame:
    """Return trials that another process made up, with names as categories."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        path = Path(folder, "trials.parquet")
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            pool.submit(_write, shape, path).result()
        table = parquet.read_table(path, read_dictionary=list(_TEXTS))
        trials: pd.DataFrame = table.to_pandas(split_blocks=True, self_destruct=True)
    del table
    pa.default_memory_pool().release_unused()
    return trials


def _write(shape: tuple[int, int, int], path: Path) -> None:
    made_up(shape).to_parquet(path, index=False)


def _paired(trials: pd.DataFrame) -> None:
    """Compute a leaderboard with all statistics of pairs."""
    typed = check(trials, SCORING)
    draws = bootstrap(typed, SCORING)
    cells = cell_scores(typed, SCORING, draws)
    pairwise(draws)
    four_criteria(cells, draws)


def _scored(trials: pd.DataFrame) -> None:
    """Compute the whole leaderboard, intervals included, from an unchecked table."""
    cell_scores(check(trials, SCORING), SCORING)


def made_up(shape: tuple[int, int, int]) -> pd.DataFrame:
    """Make up trials of so many cells, tasks and attempts: a third of the tasks in each tier, one in fifty invalid."""
    rng = np.random.default_rng(0)
    size = int(np.prod(shape))
    cell, task, attempt = np.unravel_index(np.arange(size), shape)
    reward = (rng.random(size) < 0.5).astype(float)
    judged = rng.random(size) > 0.02
    columns = {
        "agent": _taken([f"agent-{n % 8}" for n in range(shape[0])], cell),
        "model": _taken([f"model-{n // 8}" for n in range(shape[0])], cell),
        "budget": "default",
        "dataset": "made-up",
        "cell": _taken([f"agent-{n % 8} model-{n // 8} made-up default" for n in range(shape[0])], cell),
        "tier": _taken(list(TIERS), task % len(TIERS)),
        "task": _taken([f"task-{n:04d}" for n in range(shape[1])], task),
        "attempt": attempt + 1,
        "status": _taken(["infra_invalid", "completed"], judged.astype(int)),
        "started_at": pd.Timestamp("2026-01-01", tz="UTC"),
        "finished_at": pd.Timestamp("2026-01-01", tz="UTC")
        + pd.to_timedelta(rng.integers(0, 86_400, size), "s"),
        "reward": np.where(judged, reward, np.nan),
        "passed": pd.array(np.where(judged, reward, np.nan), dtype="boolean"),
        "tokens": pd.array(rng.integers(1_000, 1_000_000, size), dtype="Int64"),
        "cost_usd": rng.exponential(np.array(list(TIERS.values()))[task % len(TIERS)]),
        "turns": pd.array(rng.integers(1, 90, size), dtype="Int64"),
        "judge_usd": 0.0,
        "retries": 0,
        "ran": True,
        "scripted": False,
        "replayed": False,
    }
    return pd.DataFrame(columns)


def _taken(names: list[str], codes: np.ndarray) -> pd.Series[str]:
    """Return names by their numbers, without an array of numpy's, which would take four bytes for each letter."""
    return pd.Series(names, dtype="str").take(codes).reset_index(drop=True)


if __name__ == "__main__":
    main()
