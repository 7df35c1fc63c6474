"""A command under the name of another sweep."""

from __future__ import annotations

from tests.support.sweeps import Door, finished_sweep

PLAN = ("agent=oracle", "name=full", "dry_run=true")


def test_cells_that_a_sweep_of_this_name_had_are_named(door: Door) -> None:
    """They were gone from its tables without a word."""
    finished_sweep(door.outputs)
    said = door(*PLAN)
    assert said.code == 0, said.err
    assert (
        "full had other cells, which its tables no longer show: codex·glm·bench·default, codex·gpt·"
        in " ".join(said.out.split())
    )
    assert "with another name=, shows them again" in said.out


def test_a_sweep_that_was_imported_is_not_replaced(door: Door) -> None:
    """Its plan is in no record, so nothing could make it again."""
    (finished_sweep(door.outputs) / "imported.parquet").touch()
    said = door(*PLAN)
    assert (said.code, said.out) == (2, ""), said
    assert "full is an imported sweep; choose another name=" in said.err


def test_half_a_plan_is_in_nobodys_way(door: Door) -> None:
    plan = finished_sweep(door.outputs) / "sweep.json"
    plan.write_text(plan.read_text()[:100])
    said = door(*PLAN)
    assert (said.code, "other cells" in said.out) == (0, False), said.err
