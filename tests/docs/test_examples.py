"""Scripts under `docs/examples` run on the table of a sweep as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from runner.resources import ROOT
from tests.report.conftest import findings
from tests.report.plans import TASKS, record, row, sweep_of_four


def redraw(folder: Path, *trials: object) -> str:
    """Run the script on these trials in a folder; return what it prints."""
    table = findings(folder, *trials).trials  # type: ignore[arg-type]
    table.to_parquet(folder / "trials.parquet", index=False)
    script = ROOT / "docs" / "examples" / "redraw_figures.py"
    done = subprocess.run(
        [sys.executable, str(script), "trials.parquet", "figures"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_figures_are_redrawn_from_the_table_of_a_sweep(tmp_path: Path) -> None:
    assert "by_model-quickstart.pdf" in redraw(tmp_path, *sweep_of_four())
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        f"{name}-quickstart.{ending}"
        for name in ("by_model", "cost_and_quality")
        for ending in ("pdf", "png")
    }


def test_what_cannot_be_drawn_is_a_sentence(tmp_path: Path) -> None:
    planned = [row("oracle", task) for task in TASKS]
    told = redraw(tmp_path, planned, {one.key: record(one) for one in planned})
    assert "only the bounds oracle and nop were planned" in told
    failed = [row("codex", task) for task in TASKS]
    told = redraw(tmp_path, failed, {one.key: record(one, passed=False) for one in failed})
    assert "no cell has both a pass and known costs, so cost_and_quality is not drawn" in told
