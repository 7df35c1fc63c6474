"""What a sweep shows when it is run again is what it is then."""

from __future__ import annotations

from pathlib import Path

from tests.jobs.sweeps import Door
from tests.tasks_factory import make_task


def resume(door: Door, tasks: Path, *words: str) -> str:
    """The sweep of an agent that does nothing, without isolation; what it printed."""
    sweep = ("agent=nop", "sandbox=local", "executor.retries=0", "dataset=harbor", f"dataset.root={tasks}")
    return door(*sweep, "name=sweep", *words).out


def test_a_task_refused_later_was_not_in_the_denominator_shown(door: Door, tmp_path: Path) -> None:
    """No record had changed, so the leaderboard of the former plan was shown, beneath the refusal of the new one."""
    make_task(tmp_path / "tasks", "a")
    assert "1 trials planned" in resume(door, tmp_path / "tasks")
    (make_task(tmp_path / "tasks", "b") / "instruction.md").unlink()
    assert "2 trials planned" in resume(door, tmp_path / "tasks")
    assert (tmp_path / "sweep/trials.csv").read_text().count("refused") >= 1
