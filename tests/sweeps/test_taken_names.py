"""A command under the name of another sweep."""

from __future__ import annotations

from tests.support.sweeps import Cli, finished_sweep

PLAN = ("agent=oracle", "name=full", "dry_run=true")


def test_cells_that_a_sweep_of_this_name_had_are_named(cli: Cli) -> None:
    """They were gone from its tables without a word."""
    finished_sweep(cli.outputs)
    ended = cli(*PLAN)
    assert ended.code == 0, ended.err
    assert (
        "full had other cells, which its tables no longer show: codex·glm·bench·default, codex·gpt·"
        in " ".join(ended.out.split())
    )
    assert "with another name=, shows them again" in ended.out


def test_a_sweep_that_was_imported_is_not_replaced(cli: Cli) -> None:
    """Its plan is in no record, so nothing could make it again."""
    (finished_sweep(cli.outputs) / "imported.parquet").touch()
    ended = cli(*PLAN)
    assert (ended.code, ended.out) == (2, ""), ended
    assert "full is an imported sweep; choose another name=" in ended.err


def test_half_a_plan_is_in_nobodys_way(cli: Cli) -> None:
    plan = finished_sweep(cli.outputs) / "sweep.json"
    plan.write_text(plan.read_text()[:100])
    ended = cli(*PLAN)
    assert (ended.code, "other cells" in ended.out) == (0, False), ended.err
