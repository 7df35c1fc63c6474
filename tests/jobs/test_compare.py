"""Two rankings of the same cells: sweeps, metrics, scorings, a core set."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from runner.benchmarks.harbor.dataset import HarborDataset
from runner.errors import ConfigError
from runner.records import Scoring
from runner.report.comparison import Side, compare, write_comparison
from runner.report.projections import load_trials
from runner.report.tracked_runs import tracked_runs
from runner.report.trial_sources import read_source
from runner.sweeps.core_sets import CoreSetFile
from runner.sweeps.yaml_files import read_yaml
from tests.support.sweeps import AGENTMETER, AGENTS, MODELS, TASKS, Cli, finished_sweep, forget, passes
from tests.support.tasks_factory import make_task

FIGURES = {"cells", "spearman", "kendall", "top1", "topk", "overlap", "mae"}

pytestmark = pytest.mark.usefixtures("no_page")


def read_comparison(sweep: Path, name: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads((sweep / "comparisons" / f"{name}.json").read_text())
    return found


def compared(outputs: Path, left: str, right: str, scoring: Scoring | None = None) -> str:
    """Compare two sides as `job=compare` does, without writing the report. Return the text."""
    sides = []
    for word in (left, right):
        name, _, metric = word.partition(":")
        source = read_source(name, outputs)
        sides.append(Side(source, metric or "AMS", source.scoring or AGENTMETER))
    found, cells, text = compare(sides[0], sides[1]._replace(scoring=scoring or sides[1].scoring))
    write_comparison(outputs / left.partition(":")[0], found, cells)
    return text


def test_two_metrics_of_one_sweep_agree_as_far_as_their_ranks(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    ended = cli("job=compare", "left=full:mean_reward", "right=full:pass_rate")
    assert ended.code == 0, ended.err
    assert "full:mean_reward against full:pass_rate" in ended.out
    found = read_comparison(sweep, "mean_reward_vs_full_pass_rate")["agreement"]
    assert found == dict.fromkeys(("spearman", "kendall", "overlap"), pytest.approx(1.0)) | {
        "cells": 9, "top1": True, "topk": True, "mae": 0.0,
        "why": "cells share place 3, so their names decide which are the 3 best",
    }  # fmt: skip
    table = pd.read_csv(sweep / "comparisons" / "mean_reward_vs_full_pass_rate.csv")
    assert table["left_rank"].tolist() == sorted(table["left_rank"])
    assert table["difference"].tolist() == [0.0] * 9


def test_a_price_ranks_the_cheapest_first_and_has_no_difference_to_a_share(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs, passed=lambda _: True)
    text = compared(cli.outputs, "full", "full:usd_per_pass")
    found = read_comparison(sweep, "AMS_vs_full_usd_per_pass")["agreement"]
    assert found["spearman"] > 0.9, "what costs less scores more, when all pass"  # type: ignore[operator]
    assert found["mae"] is None
    assert "AMS and usd_per_pass have different units, so no MAE" in text
    table = pd.read_csv(sweep / "comparisons" / "AMS_vs_full_usd_per_pass.csv")
    cheapest = table.sort_values("right").iloc[0]
    assert cheapest["right_rank"] == 1
    assert table["difference"].isna().all()


def test_the_agreement_is_on_the_left_sweeps_run_until_its_trials_change(cli: Cli) -> None:
    """And again from disk alone, as job=track rebuilds it."""
    sweep = finished_sweep(cli.outputs)
    finished_sweep(cli.outputs, "other", dataset="other", passed=lambda each: not passes(each))
    compared(cli.outputs, "full:pass_rate", "other:pass_rate")
    run = tracked_runs(sweep, "none")[-1]
    family = "agreement_pass_rate_vs_other_pass_rate"
    assert {name for name in run.metrics if name.startswith("agreement")} == {
        f"{family}/{x}" for x in FIGURES
    }
    assert run.metrics[f"{family}/spearman"] == -1.0, "cells of two datasets are matched by agent and model"
    logged = {path.name for path, folder in run.files.items() if folder == "comparisons"}
    assert logged == {f"pass_rate_vs_other_pass_rate.{ending}" for ending in ("json", "csv")}
    forget(cli.outputs, load_trials(sweep, cli.outputs)[1]["key"].iloc[0])
    assert not [name for name in tracked_runs(sweep, "none")[-1].metrics if name.startswith("agreement")]


def test_a_typed_scoring_is_the_right_sides(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    ended = cli("job=compare", "left=full", "scoring.alpha=1")
    assert "Scored by agentmeter alpha=0.6; on the right by agentmeter alpha=1.0." in ended.out
    [file] = (sweep / "comparisons").glob("AMS_vs_full_AMS_agentmeter_alpha_1_*.json")
    found = read_comparison(sweep, file.stem)
    assert [found[side]["scoring"] for side in ("left", "right")] == [
        "agentmeter alpha=0.6", "agentmeter alpha=1.0"
    ]  # fmt: skip
    assert found["agreement"]["mae"] > 0  # type: ignore[operator]


def test_scorings_of_one_title_and_alpha_are_told_apart_and_kept_side_by_side(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    text = "Scored by agentmeter tiers.easy.tau=0.12 alpha=0.6; on the right by agentmeter tiers.easy.tau={} alpha=0.6."
    for tau in (0.01, 0.02):
        easy = AGENTMETER.tiers["easy"].model_copy(update={"tau": tau})
        other = AGENTMETER.model_copy(update={"tiers": {**AGENTMETER.tiers, "easy": easy}})
        assert text.format(tau) in " ".join(compared(cli.outputs, "full", "full", other).split())
    assert len(list((sweep / "comparisons").glob("*.json"))) == 2


def test_a_comparison_stands_until_the_trials_on_its_right_change(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    other = load_trials(sweep, cli.outputs)[1].assign(reason="")
    other.to_csv("other.csv", index=False)

    def agreements() -> int:
        return sum(name.startswith("agreement") for name in tracked_runs(sweep, "none")[-1].metrics)

    compared(cli.outputs, "full", "other.csv")
    assert agreements()
    other.assign(reward=0.5).to_csv("other.csv", index=False)
    assert not agreements()
    other.assign(reward=7).to_csv("other.csv", index=False)
    assert not agreements(), "what can no longer be scored"
    Path("other.csv").unlink()
    assert agreements(), "nothing says otherwise"


def test_two_files_of_one_name_are_two_comparisons(cli: Cli) -> None:
    """The second replaced the first."""
    sweep = finished_sweep(cli.outputs)
    trials = load_trials(sweep, cli.outputs)[1]
    for folder in ("one", "two"):
        Path(folder).mkdir()
        trials.to_csv(Path(folder, "trials.csv"), index=False)
        compared(cli.outputs, "full", f"{folder}/trials.csv")
    assert len(list((sweep / "comparisons").glob("AMS_vs_trials.csv_AMS_*.json"))) == 2
    families = {name.partition("/")[0] for name in tracked_runs(sweep, "none")[-1].metrics}
    assert sum(name.startswith("agreement_") for name in families) == 2


def test_a_comparison_of_two_sweeps_moves_with_their_outputs(cli: Cli) -> None:
    """It named the right side's folder from the root on, so once moved, it never fell, whatever came of its trials."""
    finished_sweep(cli.outputs)
    finished_sweep(cli.outputs, "other", dataset="other")
    compared(cli.outputs, "full", "other")
    moved = cli.outputs.rename(f"{cli.outputs}-moved")
    found = read_comparison(moved / "full", "AMS_vs_other_AMS")
    assert (found["left"]["path"], found["right"]["path"]) == ("full", "other")

    def agreements() -> int:
        return sum(name.startswith("agreement") for name in tracked_runs(moved / "full", "none")[-1].metrics)

    assert agreements()
    forget(moved, load_trials(moved / "other", moved)[1]["key"].iloc[0])
    assert not agreements()


def test_a_cell_of_other_tasks_is_named_and_in_no_comparison(cli: Cli) -> None:
    """It kept its rank there, and no core set could be chosen for it."""
    sweep = finished_sweep(cli.outputs)
    plan = json.loads((sweep / "sweep.json").read_text())
    odd = ("codex", "qwen", "easy-1")
    plan["planned"] = [p for p in plan["planned"] if (p["agent"], p["model"], p["task"]) != odd]
    (sweep / "sweep.json").write_text(json.dumps(plan))
    for words in (
        ("job=compare", "left=full", "right=full:pass_rate"),
        ("job=core_set", "input=full", "k=2"),
        ("-m", "job=sensitivity", "name=full", "scoring.alpha=0.5,0.7"),
    ):
        ended = cli(*words)
        assert ended.code == 0, ended.err
        named = "1 of 9 cells planned other tasks than the others, so they have no rank and are compared with nobody"
        assert f"{named}: codex·qwen·bench·default." in " ".join(ended.out.split())
    assert read_comparison(sweep, "AMS_vs_full_pass_rate")["agreement"]["cells"] == 8
    core = read_yaml(Path("core_set.yaml"), CoreSetFile, "")
    compared = [*core.chosen_with, *core.held_out]
    assert len(compared) == 8
    assert "codex·qwen·bench·default" not in compared
    assert set(pd.read_csv(sweep / "sensitivity.csv")["cell"]) == set(compared)


def test_fewer_than_three_common_cells_have_no_agreement_and_a_reason(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    rows = [(a, m, t) for a in AGENTS[:1] for m in MODELS[:2] for t in TASKS]
    table = pd.DataFrame(rows, columns=["agent", "model", "task"]).assign(
        dataset="bench", budget="default", tier="easy", attempt=1, status="completed", finished_at=None,
        reward=1.0, passed=True, tokens=10, cost_usd=0.1, turns=2,
    )  # fmt: skip
    table.to_csv("two.csv", index=False)
    ended = cli("job=compare", "left=full:pass_rate", "right=two.csv:pass_rate")
    assert ended.code == 0, ended.err
    assert "Not all could be said: 2 common cells, 3 are needed." in ended.out
    assert read_comparison(sweep, "pass_rate_vs_two.csv_pass_rate")["agreement"]["spearman"] is None
    table.assign(cost_usd=-1.0).to_csv("two.csv", index=False)
    ended = cli("job=compare", "left=full", "right=two.csv")
    assert ended.code == 2
    assert ended.err.startswith("TableError: cost_usd is negative: row 1, 2, 3, 4, 5 and 19 more")


def test_a_file_without_what_names_a_cell_is_refused_with_the_columns_it_lacks(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    pd.DataFrame({
        "cell": ["a", "b"], "dataset": "bench", "task": "easy-1", "tier": "easy", "attempt": 1, "status": "completed",
        "finished_at": None, "reward": 1.0, "passed": True, "tokens": 10, "cost_usd": 0.1, "turns": 2,
    }).to_csv("cell.csv", index=False)  # fmt: skip
    ended = cli("job=compare", "left=full:pass_rate", "right=cell.csv:pass_rate")
    assert ended.code == 2
    assert ended.err.startswith("TableError: No column agent, model, budget")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Compare what? Add left=SWEEP"),
        (("left=fulll",), "no sweep named fulll. Did you mean 'full'?"),
        (("left=full", "right=full:pas_rate"), "no metric 'pas_rate'. Did you mean 'pass_rate'?"),
        (("left=full", "core_set=none.yaml"), "job.core_set: "),
        (("left=full",), "full:AMS is on both sides: add right=SWEEP or right=full:METRIC"),
        (("left=full", "right=full", "scoring.alpha=0.6"), "full:AMS is on both sides"),
        (("left=full", "right=/none/theirs.csv"), "/none/theirs.csv is not a file"),
        (("lefft=full",), "unknown key 'lefft'. Did you mean 'left'?"),
    ],
)
def test_what_cannot_be_compared_is_refused(cli: Cli, words: tuple[str, ...], message: str) -> None:
    finished_sweep(cli.outputs)
    ended = cli("job=compare", *words)
    assert ended.code == 2
    assert message in ended.err


def test_a_core_set_is_chosen_compared_with_the_full_set_and_taken_by_a_dataset(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    ended = cli("job=core_set", "input=full", "k=2", "seed=3")
    assert ended.code == 0, ended.err
    core = read_yaml(Path("core_set.yaml"), CoreSetFile, "")
    assert [len(names) for names in core.tasks.values()] == [2, 2, 2]
    assert not set(core.chosen_with) & set(core.held_out)
    assert len(core.held_out) == 3
    assert core.agreement.cells == 3
    assert core.full_cost_usd == pytest.approx(load_trials(sweep, cli.outputs)[1]["cost_usd"].sum())
    assert "6 of 12 tasks of bench, chosen with 6 cells" in ended.out
    assert "On 3 held-out cells: Spearman " in ended.out
    assert core.random_spearman is not None
    assert (
        f"Random sets of the same size, on the same held-out cells: Spearman {core.random_spearman:.3f}"
        in ended.out
    )
    saved = 1 - core.cost_usd / core.full_cost_usd
    assert f"{saved:.0%} saved" in ended.out

    ended = cli("job=compare", "left=full", "core_set=core_set.yaml")
    assert "full:AMS against full:AMS on 6 tasks" in ended.out
    root = cli.outputs / "tasks"
    for name in TASKS:
        make_task(root, name)
    dataset = HarborDataset(name="bench_core", root=root, core_set=Path("core_set.yaml"))
    assert {task.name for task in dataset.tasks()} == core.names
    smaller = HarborDataset(name="bench_core", root=root, core_set=Path("core_set.yaml"), exclude=("easy-*",))
    with pytest.raises(ConfigError, match="dataset bench_core: it has no task easy-"):
        smaller.tasks()


def test_a_core_set_needs_cells_to_choose_with_and_to_hold_out(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    ended = cli("job=core_set", "input=full", "k=5")
    assert ended.code == 2
    assert "5 tasks of tier easy wanted, which has 4" in ended.err
