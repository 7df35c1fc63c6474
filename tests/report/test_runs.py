"""What should be tracked, without any store."""

from __future__ import annotations

from pathlib import Path

from runner.report.projections import write_projections
from runner.report.runs import tracked_runs
from tests.records_factory import NOON
from tests.report.plans import row, sweep_of_four, write_sweep


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
    assert (cell.metrics["AMS"], cell.metrics["invalid"]) == (0, 2)
    assert whole.tags["assay.missing.cost_usd"].startswith("unknown")
    assert {path.name for path in whole.files} >= {"leaderboard.txt", "sweep.json"}


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
