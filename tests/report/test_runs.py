"""Tracked runs of a sweep, without any store."""

from __future__ import annotations

from pathlib import Path

from runner.report.projections import write_projections
from runner.report.tracked_runs import tracked_runs
from tests.report.plans import row, sweep_of_four, write_sweep
from tests.support.records_factory import NOON


def test_a_missing_score_says_which_tier_has_no_task(tmp_path: Path) -> None:
    planned, records = sweep_of_four()
    sweep = write_sweep(tmp_path, [p for p in planned if p.tier == "easy"], records)
    cell = tracked_runs(sweep, "none")[0]
    assert "AMS" not in cell.metrics
    assert cell.tags["assay.missing.AMS"] == "no task of tier hard"
    assert cell.metrics["tier_easy/SR"] == 1.0


def test_a_sweep_of_which_nothing_ran_is_tracked_too(tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path, [row("codex", task) for task in ("easy-1", "hard-1")], {})
    write_projections(sweep, tmp_path)
    cell, whole = tracked_runs(sweep, "all")
    assert (cell.started, cell.ended) == (NOON.timestamp() * 1000,) * 2
    assert ("AMS" in cell.metrics, cell.metrics["invalid"]) == (False, 2)
    assert cell.tags["assay.missing.AMS"] == "no valid trial"
    assert whole.tags["assay.missing.cost_usd"].startswith("unknown")
    assert {path.name for path in whole.files} >= {"leaderboard.txt", "sweep.json"}


def test_a_cost_that_nobody_knows_is_not_tracked_as_none(tmp_path: Path) -> None:
    """A cell without any price was logged as 0 USD, and one with some as if they were all."""
    planned, records = sweep_of_four()
    changed = {
        key: each.model_copy(update={"cost_usd": None})
        for key, each in records.items()
        if each.agent == "codex" or (each.agent, each.task) == ("mini_swe_agent", "easy-1")
    }
    runs = tracked_runs(write_sweep(tmp_path, planned, {**records, **changed}), "none")
    tracked = {run.params.get("agent", "sweep"): run for run in runs}
    assert "cost_usd" not in tracked["codex"].metrics
    assert tracked["codex"].tags["assay.missing.cost_usd"].startswith("unknown")
    assert tracked["mini_swe_agent"].metrics["cost_usd"] > 0
    assert {agent: run.metrics.get("unpriced") for agent, run in tracked.items()} == {
        "codex": 6, "mini_swe_agent": 1, "sweep": 7, "oracle": None, "nop": None,
    }  # fmt: skip


def test_a_cell_of_several_datasets_names_its_own(tmp_path: Path) -> None:
    planned = [row("codex", "easy-1"), row("codex", "easy-1", dataset="core30", attempt=2)]
    names = [run.name for run in tracked_runs(write_sweep(tmp_path, planned, {}), "none")]
    model = "scripted_careful (scripted)"
    assert names == [f"codex · {model} · core30", f"codex · {model} · quickstart", "sweep quickstart"]


def test_the_digest_follows_the_records_and_nothing_else(tmp_path: Path) -> None:
    planned, records = sweep_of_four()
    first = tracked_runs(write_sweep(tmp_path, planned, records), "all")
    again = tracked_runs(write_sweep(tmp_path, planned, records), "all")
    assert [run.digest() for run in first] == [run.digest() for run in again]
    changed = {
        key: r.model_copy(update={"turns": 6}) if r.agent == "codex" else r for key, r in records.items()
    }
    other = tracked_runs(write_sweep(tmp_path, planned, changed), "all")
    differs = [
        a.identity.split("·")[0] for a, b in zip(first, other, strict=True) if a.digest() != b.digest()
    ]
    assert differs == ["codex", ""]
