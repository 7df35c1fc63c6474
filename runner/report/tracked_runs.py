"""The tracked runs that a sweep should have, from its folder alone; `tracking.mlflow` brings a store up to date."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from metrics.table import valid
from runner.report.comparison import COMPARISONS, Comparison, current_comparisons
from runner.report.conclusions import lead_sentence, small_tiers
from runner.report.findings import Findings, find
from runner.report.four_criteria import not_in_the_running, verdict, winners
from runner.report.leaderboard import lines
from runner.report.projections import REPORT, TABLES
from runner.report.rescoring import current_ranking
from runner.report.sections_matrix import PAGES
from runner.report.trial_endings import refused
from runner.report.trial_sources import digest, labelled, sweep_trials
from runner.report.wording import MARKS, agent_name, model_name
from runner.sweeps import sweep_file
from runner.sweeps.store import Store
from runner.sweeps.sweep_file import SweepFile

LAYOUT = 3
"""Version of the layout. It is raised when logged runs must be written again."""
COLUMNS = (
    "task",
    "outcome",
    "reward",
    "tier",
    "category",
    "attempt",
    "cost_usd",
    "tokens",
    "turns",
    "reason",
)
"""Columns of `trials.json`; MLflow joins runs by the first and compares them by the second."""

_HEADLINES = {
    "AMS": "AMS",
    "pass_rate": "pass_rate",
    "mean_reward": "mean_reward",
    "usd_per_pass": "usd_per_pass",
    "tokens_per_pass": "tokens_per_pass",
    "cost_usd": "spend_usd",
    "turns": "turns",
    "passes": "passes",
    "planned": "planned",
    "coverage": "coverage",
    "invalid": "invalid",
}
"""Metric -> column of `cell_scores`. They have no prefix, so that MLflow shows them first."""
_APART = ("unpriced", "judge_usd", "judge_unpriced")
_INTERVALS = ("AMS", "pass_rate", "usd_per_pass", "wilson")
_LEADS = {
    "yes": "a clear lead",
    "no": "no clear lead",
    "few": "too few tasks to tell",
    "tie": "a tie",
    "-": "no rival",
}
"""Value of `Winner.clear` -> words for it."""
_TIER_PARTS = ("SR", "CostAUBQC", "EFR", "TierScore")


class TaskSet(NamedTuple):
    """The tasks of a run, as the trials' records describe them."""

    dataset: str
    tasks: tuple[dict[str, str], ...]
    """Name, digest, tier, category and language of each, in the order of their names. Empty if no trial ran."""

    @property
    def digest(self) -> str:
        """Digest of the tasks: two runs that have the same one ran the same files."""
        return hashlib.sha256(json.dumps(self.tasks, sort_keys=True).encode()).hexdigest()[:8]


class TrackedRun(NamedTuple):
    """A run of the sweep as it should be tracked."""

    identity: str
    """Name of the cell; empty for the run of the sweep itself."""
    name: str
    params: dict[str, str]
    metrics: dict[str, float]
    """Finite values, with six decimals because MLflow's UI does not round. The tables have all decimals."""
    tags: dict[str, str]
    """Tags; `assay.missing.<metric>` says why a metric is absent."""
    files: dict[Path, str | None]
    """Host file -> artifact folder."""
    trials: pd.DataFrame
    tasks: TaskSet | None
    """The cell's tasks; None for the run of the sweep."""
    started: int
    """Start of the first trial, in milliseconds since 1970."""
    ended: int

    def digest(self) -> str:
        """Return a digest of everything that is logged. A trajectory is as old as its record in `trials`."""
        files = sorted(f"{folder}/{path.name}" for path, folder in self.files.items())
        logged = [
            LAYOUT,
            self.name,
            self.params,
            self.metrics,
            self.tags,
            files,
            self.trials.to_csv(),
            self.tasks,
        ]
        return hashlib.sha256(json.dumps(logged, sort_keys=True).encode()).hexdigest()


def tracked_runs(sweep: Path, trajectories: str) -> list[TrackedRun]:
    """Return the runs of the sweep in this folder: its cells, best first, and the sweep itself.

    `trajectories`: all, failed or none. Raises `ConfigError` when the folder holds no readable sweep.
    """
    plan, records, trials = sweep_trials(sweep, sweep.parent)
    found = find(plan, sweep, labelled(trials, plan.scoring), {})
    digests = {key: record.digests.get("task", "") for key, record in records.items()}
    return [*_cells(found, Store(sweep.parent), trajectories, digests), _sweep(found)]


def _cells(
    found: Findings, store: Store, trajectories: str, digests: Mapping[str, str]
) -> Iterator[TrackedRun]:
    plan, tiers = found.plan, found.tiers
    several = len(set(found.cells["dataset"])) > 1
    for cell, figures in lines(found.cells).items():
        own = found.trials[found.trials["cell"] == cell]
        agent, model = agent_name(figures), model_name(figures)
        choices = {
            "agent": figures["agent"],
            "model": model,
            "dataset": figures["dataset"],
            "budget": figures["budget"],
        }
        metrics, missing = _finite(
            {
                **_headlines(figures),
                **_apart(figures),
                **_families(plan, figures, tiers.loc[[cell]].droplevel("cell")),
            }
        )
        if figures["why"]:
            missing["assay.missing.AMS"] = figures["why"]
        yield TrackedRun(
            identity=cell,
            name=" · ".join([agent, model, *([figures["dataset"]] if several else [])]),
            params={**choices, **_shared(plan)},
            metrics=metrics,
            tags={"assay.kind": _kind(figures), **_marks(own), **missing},
            files=_trajectories(own, store, trajectories),
            trials=own,
            tasks=_tasks(figures["dataset"], own, digests),
            **_times(plan, own),
        )


def _tasks(dataset: str, trials: pd.DataFrame, digests: Mapping[str, str]) -> TaskSet:
    """Return the tasks of a cell's trials that ran; `digests` has that of the task of each trial with a record."""
    if not digests:  # an import need not have the columns
        return TaskSet(dataset, ())
    ran = trials.assign(digest=[digests.get(key, "") for key in trials["key"]])
    ran = ran[ran["digest"] != ""].drop_duplicates(["task", "digest"]).sort_values(["task", "digest"])
    rows = ran[["task", "digest", "tier", "category", "language"]].astype(str).to_dict("records")
    return TaskSet(dataset, tuple({str(name): value for name, value in row.items()} for row in rows))


def _kind(cell: Mapping[str, Any]) -> str:
    """Return the kind of a cell; the saved view shows `cell`, those that compete."""
    return "bound" if cell["bound"] else "other_tasks" if cell["other_tasks"] else "cell"


def _sweep(found: Findings) -> TrackedRun:
    """Return the run of the sweep itself: plan, configuration, leaderboard, report and all trials."""
    plan, trials, sweep = found.plan, found.trials, found.folder
    state = cache(lambda: digest(trials, plan.scoring))  # of a million trials it takes a second
    compared, ranking = current_comparisons(sweep, state), current_ranking(sweep, state)
    metrics, missing = _finite(
        {
            "cells": trials["cell"].nunique(),
            "trials": len(trials),
            "judged": valid(trials).sum(),
            "refused": refused(trials).sum(),
            "cost_usd": trials["cost_usd"].sum(min_count=1),
            **_apart(found.cells[list(_APART)].sum().to_dict()),
            **_agreements(compared),
        }
    )
    files = [*(sweep / name for name in (*TABLES, sweep_file.NAME, "config.yaml")), *ranking]
    pairs = [file.with_suffix(ending) for file in compared for ending in (".json", ".csv")]
    # Not the pages of trials: each trial is a trace there, and they may be thousands.
    report = sorted(path for path in (sweep / REPORT.parent).glob("*") if path.name != PAGES)
    contents = {"assay.rescored": _content(ranking[0])} if ranking else {}
    contents |= {"assay.report": _content(sweep / REPORT)} if report else {}
    return TrackedRun(
        identity="",
        name=f"sweep {plan.name}",
        params=_shared(plan),
        metrics=metrics,
        tags={"assay.kind": "sweep", **_marks(trials), **_best(found), **contents, **missing},
        files={path: None for path in files if path.exists()}
        | dict.fromkeys(pairs, COMPARISONS)
        | dict.fromkeys(report, REPORT.parent.name),
        trials=trials,
        tasks=None,
        **_times(plan, trials),
    )


def _content(file: Path) -> str:
    """Return the beginning of a digest, so that a run with another content is replaced."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def _best(found: Findings) -> dict[str, str]:
    """Return the winners by each criterion as tags `assay.best.<criterion>`, and as the run's description in MLflow."""
    tags: defaultdict[str, list[str]] = defaultdict(list)
    names = found.names
    for name, own in found.by_dataset():
        few = small_tiers(own.trials, found.scoring).get(name, ())
        best = winners(own.contenders, found.draws, found.scoring.confidence, few)
        tags["mlflow.note.content"].append(f"**{name}: {verdict(best)}**\n")
        for winner in best:
            cells = " = ".join(names[cell] for cell in winner.best)
            lead = _LEADS[winner.clear]
            criterion = winner.criterion.replace("/", "_per_")
            tags[f"assay.best.{criterion}"].append(f"{cells}: {winner.value}, {lead}")
            tags["mlflow.note.content"].append(f"* {winner.criterion}: {cells}, {winner.value} ({lead})")
        if sentence := lead_sentence(best, names, few):
            tags["mlflow.note.content"].append(f"\n{sentence}")
        if absent := not_in_the_running(best, len(own.contenders)):
            tags["mlflow.note.content"].append(f"\n{absent}")
    tags["mlflow.note.content"].append("\nThe report: *Artifacts*, `report/index.html`.")
    return {tag: "\n".join(texts)[:5000] for tag, texts in tags.items()}


def _agreements(compared: Mapping[Path, Comparison]) -> dict[str, float]:
    """Return `agreement_<comparison>/<figure>`; the file of a comparison says why a figure is absent."""
    return {
        f"agreement_{each.name}/{figure}": float(value)
        for each in compared.values()
        for figure, value in each.agreement.items()
        if figure != "why" and value is not None
    }


def _apart(figures: Mapping[Any, Any]) -> dict[str, float]:
    """Return trials of unknown cost, what judge models charged, and the largest possible AMS, where these apply."""
    apart = {name: figures[name] for name in _APART if figures[name]}
    return apart | (
        {"AMS_most": figures["AMS_most"]} if figures.get("AMS_most", 0) > figures.get("AMS", 0) else {}
    )


def _headlines(figures: Mapping[str, Any]) -> dict[str, float]:
    return {name: figures[column] for name, column in _HEADLINES.items()}


def _families(plan: SweepFile, figures: Mapping[str, Any], tiers: pd.DataFrame) -> dict[str, float]:
    """Return metrics that MLflow groups by the part before the slash."""
    names = [f"{name}_{end}" for name in _INTERVALS for end in ("low", "high")]
    intervals = {f"interval/{name}": figures[name] for name in names}
    parts = {
        f"tier_{tier}/{part}": tiers.loc[tier, part] for tier in plan.scoring.tiers for part in _TIER_PARTS
    }
    return {**intervals, **parts}


def _shared(plan: SweepFile) -> dict[str, str]:
    """Return the parameters that all runs of a sweep have in common."""
    versions = {f"version/{name}": version for name, version in plan.versions.items()}
    imported = {"imported": plan.imported.text} if plan.imported else {}
    rules = {
        "scoring": plan.scoring.title,
        "alpha": str(plan.scoring.alpha),
        "attempts": plan.scoring.attempts,
        "cbq": plan.scoring.cbq,
    }
    return {**rules, **versions, **imported}


def _marks(trials: pd.DataFrame) -> dict[str, str]:
    return {f"assay.{mark}": "true" if trials[mark].any() else "false" for mark in MARKS}


def _finite(metrics: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the finite metrics, and for each of the others a tag that says why it is missing."""
    values = {name: float(value) for name, value in metrics.items()}
    finite = {name: round(value, 6) for name, value in values.items() if math.isfinite(value)}
    missing = {
        f"assay.missing.{name}": "infinite: no pass"
        if math.isinf(value)
        else "unknown: no price, or no valid trial"
        for name, value in values.items()
        if name not in finite
    }
    return finite, missing


def _trajectories(trials: pd.DataFrame, store: Store, which: str) -> dict[Path, str | None]:
    """Return the trajectory files that exist, each with its artifact folder `trajectories/<task>/<attempt>`."""
    passed = trials["passed"].fillna(value=False)
    wanted = {"all": trials, "failed": trials[~passed], "none": trials[:0]}[which]
    places = {
        store.folder(key) / "trajectory.json": f"trajectories/{task}/{attempt}"
        for key, task, attempt in zip(wanted["key"], wanted["task"], wanted["attempt"], strict=True)
    }
    return {path: place for path, place in places.items() if path.exists()}


def _times(plan: SweepFile, trials: pd.DataFrame) -> dict[str, int]:
    """Return the start of the first trial and the end of the last; the time of the plan if none ran."""
    ran = trials["started_at"].notna().any()
    started = trials["started_at"].min() if ran else plan.created
    ended = trials["finished_at"].max() if ran else plan.created
    return {"started": int(started.timestamp() * 1000), "ended": int(ended.timestamp() * 1000)}
