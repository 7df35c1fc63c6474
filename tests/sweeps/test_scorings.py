"""Scoring apart from running: tiers files, scoring anew, and one sweep under several scorings."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from runner.report.projections import load_trials
from runner.report.rescoring import compare_scorings
from runner.report.tracked_runs import tracked_runs
from tests.report.plans import record, row, write_sweep
from tests.support.sweeps import AGENTMETER, TASKS, TIERS, Cli, finished_sweep, forget

pytestmark = pytest.mark.usefixtures("no_page")


def scoring_of(sweep: Path) -> dict[str, object]:
    content: dict[str, dict[str, object]] = json.loads((sweep / "sweep.json").read_text())
    return content["scoring"]


def test_a_typed_scoring_becomes_the_sweeps_own_and_stays_it(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    (sweep / "projected.json").write_text("{}")
    changed = cli("job=track", "name=full", "scoring.alpha=0.8")
    assert changed.out.startswith("Scored anew: alpha 0.6 -> 0.8.\n")
    assert not (sweep / "projected.json").exists(), "the sweep command would show the former tables"
    assert scoring_of(sweep)["alpha"] == 0.8
    again = cli("job=track", "name=full")
    assert "Scored anew" not in again.out
    assert "alpha 0.8;" in again.out
    assert pd.read_csv(sweep / "leaderboard.csv").AMS.max() > 0


def test_the_reading_of_failed_trials_is_changed_and_changed_back(cli: Cli) -> None:
    """Its default is not written, so that the files of earlier versions stay as they are."""
    sweep = finished_sweep(cli.outputs)
    before = (sweep / "sweep.json").read_bytes()
    assert cli("job=report", "name=full", "scoring.cbq=passes").out.startswith(
        "Scored anew: cbq quality -> passes.\n"
    )
    assert scoring_of(sweep)["cbq"] == "passes"
    assert cli("job=report", "name=full", "scoring.alpha=0.6").code == 0
    assert scoring_of(sweep)["cbq"] == "passes", "a typed key changes that key alone"
    assert cli("job=report", "name=full", "scoring.cbq=quality").out.startswith(
        "Scored anew: cbq passes -> quality.\n"
    )
    assert json.loads((sweep / "sweep.json").read_bytes())["scoring"] == json.loads(before)["scoring"]


def test_a_calibrated_tiers_file_labels_tasks_and_sets_budgets_of_scoring_alone(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    before = load_trials(sweep, cli.outputs)[1]
    ended = cli("job=calibrate", "inputs=[full]")
    assert ended.code == 0, ended.err
    assert "12 tasks of bench: 108 valid trials of 9 cells, 0 of unknown cost." in ended.out
    file = Path("tiers.yaml")
    found = yaml.safe_load(file.read_text())
    assert found["labels"] == {task: task.split("-")[0] for task in TASKS}, "harder tasks took more"
    efforts = [max(found["effort"][f"{tier}-{n}"] for n in range(1, 5)) for tier in TIERS]
    assert efforts == sorted(efforts)
    assert list(found["inputs"]) == ["full"]

    found["labels"]["easy-1"], found["labels"]["hard-1"] = "hard", "easy"
    file.write_text(yaml.safe_dump(found))
    ended = cli("job=track", "name=full", "scoring.tiers=tiers.yaml")
    assert "tiers.easy.budgets" in ended.out
    assert scoring_of(sweep)["labels"] == found["labels"]
    assert str(scoring_of(sweep)["calibrated"]).startswith("tiers.yaml@")
    file.unlink()  # the sweep holds what it needs of it
    after = load_trials(sweep, cli.outputs)[1]
    assert set(after.loc[after["task"] == "easy-1", "tier"]) == {"hard"}
    assert set(after.loc[after["task"] == "hard-1", "tier"]) == {"easy"}
    assert (after["key"] == before["key"]).all(), "no trial is another trial"


def test_a_task_missing_in_the_tiers_file_is_named_and_changes_nothing(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    cli("job=calibrate", "inputs=[full]")
    lines = Path("tiers.yaml").read_text().splitlines()
    Path("tiers.yaml").write_text("\n".join(line for line in lines if not line.strip().startswith("hard-3:")))
    before = (sweep / "sweep.json").read_text()
    ended = cli("job=track", "name=full", "scoring.tiers=tiers.yaml")
    assert ended.code == 2
    assert ended.err.startswith("TableError: Tasks without a tier (hard-3): row 11, 23,")
    assert (sweep / "sweep.json").read_text() == before


def test_attempts_of_too_many_choices_are_named_and_change_nothing(cli: Cli) -> None:
    """It was written first and refused then, with a traceback, and so was every report from then on."""
    planned = [row("codex", "easy-1", attempt=n) for n in range(1, 19)]
    sweep = write_sweep(cli.outputs, planned, {each.key: record(each) for each in planned})
    before = (sweep / "sweep.json").read_text()
    ended = cli("job=track", "name=quickstart", "scoring.attempts=pass@9")
    assert ended.code == 2
    assert ended.err.startswith(
        "TableError: pass@9 of 18 attempts has more than 5000 choices a task: row 1, 2,"
    )
    assert (sweep / "sweep.json").read_text() == before


def test_a_run_whose_task_the_tiers_file_lacks_is_refused_before_it_starts(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    cli("job=calibrate", "inputs=[full]")
    ended = cli("agent=oracle", "scoring.tiers=tiers.yaml", "dry_run=true")
    assert ended.code == 2
    assert "scoring.tiers: decode-telemetry, git-archaeology" in ended.err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("labels: [", "is not YAML"),
        ("labels: {}", "is not a TiersFile (dataset: Field required)"),
        ("- 1", "is not a TiersFile (the whole: "),
    ],
)
def test_what_is_no_tiers_file_is_refused(cli: Cli, content: str | None, reason: str) -> None:
    finished_sweep(cli.outputs)
    if content is not None:
        Path("t.yaml").write_text(content)
    ended = cli("job=track", "name=full", "scoring.tiers=t.yaml")
    assert ended.code == 2
    assert ended.err.startswith(f"ConfigError: scoring.tiers: {Path.cwd()}/t.yaml")
    assert reason in ended.err


def test_a_tiers_file_that_scores_rest_on_is_never_overwritten(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    assert cli("job=calibrate", "inputs=[full]").code == 0
    assert cli("job=calibrate", "inputs=[full]").code == 0, "the same again is no harm"
    ended = cli("job=calibrate", "inputs=[full]", "quantiles=[0.5]")
    assert ended.code == 2
    assert "choose another path=" in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("inputs=[ful]",), "has no sweep named ful. Did you mean 'full'? Valid: full, other"),
        ((), "Which trials? Add inputs=["),
        (
            ("inputs=[full,other]",),
            "Trials of several datasets (bench, other) where one is wanted: row other:1,",
        ),
        (("inputs=[full]", "quantiles=[0.9,0.1]"), "job.quantiles: quantiles rise"),
        (("inputs=[full]", "quantils=[0.9]"), "unknown key 'quantils'. Did you mean 'quantiles'?"),
    ],
)
def test_calibration_says_what_is_wrong_with_its_inputs(
    cli: Cli, words: tuple[str, ...], message: str
) -> None:
    finished_sweep(cli.outputs)
    finished_sweep(cli.outputs, "other", dataset="other")
    ended = cli("job=calibrate", *words)
    assert ended.code == 2
    assert message in ended.err


def test_the_failure_that_sets_tau_is_not_above_it(cli: Cli) -> None:
    """The file had six decimals of tau, so that a failure dearer in the seventh became an expensive one."""
    rows = [
        {"cell": "a", "dataset": "d", "tier": "x", "task": f"t{n}", "attempt": 1, "status": "completed",
         "finished_at": None, "reward": 0, "passed": False, "tokens": n, "turns": n, "interactions": n,
         "cost_usd": 0.12345649}
        for n in range(3)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv("trials.csv", index=False)
    assert cli("job=calibrate", "inputs=[trials.csv]").code == 0
    tiers = yaml.safe_load(Path("tiers.yaml").read_text())["tiers"]
    assert [tier["tau"] for tier in tiers.values()] == [0.12345649] * 3


def test_sweeps_that_share_records_are_calibrated_on_each_record_once(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    finished_sweep(cli.outputs, "again")
    assert "108 valid trials" in cli("job=calibrate", "inputs=[full,again]").out


def test_the_alpha_preset_ranks_a_finished_sweep_under_alpha_and_grids(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    ended = cli(
        *("-m", "experiment=agentmeter_alpha", "name=full"),
        *("scoring=agentmeter,agentmeter_half", "scoring.alpha=0,0.6"),
    )
    assert ended.code == 0, ended.err
    assert "bench: agreement with agentmeter alpha=0.6" in ended.out
    table = pd.read_csv(sweep / "sensitivity.csv")
    assert list(table) == ["dataset", "cell", "scoring", "AMS", "rank"]
    found = json.loads((sweep / "sensitivity.json").read_text())
    assert len(found["scorings"]) == 2 * 2, "α 0.6 with Table 1's grids is the sweep's own"
    assert len(table) == 9 * 4
    own = found["agreement"]["bench"][found["base"]]
    assert (own["spearman"], own["top1"], own["topk"], own["mae"]) == (1.0, True, True, 0.0)
    rising = table[table["scoring"].str.startswith("agentmeter_half")].groupby("scoring").AMS.mean()
    assert rising.is_monotonic_increasing, "the more of plain success counts, the less do halved budgets cost"
    assert scoring_of(sweep)["alpha"] == 0.6, "the sweep's own scoring stays"


def test_another_scorings_ranking_is_tracked_until_trials_or_scoring_change(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    compare_scorings(sweep, [AGENTMETER.model_copy(update={"alpha": alpha}) for alpha in (0.0, 1.0)])
    logged = {path.name for path in tracked_runs(sweep, "none")[-1].files}
    assert {"sensitivity.csv", "sensitivity.json"} <= logged
    forget(cli.outputs, load_trials(sweep, cli.outputs)[1]["key"].iloc[0])
    assert not {path.name for path in tracked_runs(sweep, "none")[-1].files} & {
        "sensitivity.csv",
        "sensitivity.json",
    }


def test_sensitivity_asks_for_scorings(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    ended = cli("job=sensitivity", "name=full")
    assert ended.code == 2
    assert "Which scorings? Add -m scoring.alpha=0.4,0.8" in ended.err
    ended = cli("-m", "job=track", "name=full", "scoring.alpha=0.4,0.8")
    assert ended.code == 2
    assert "2 scorings were given, and this job takes one" in ended.err
