"""A key of a scoring that is typed changes that key alone; what a sweep was calibrated with stays."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from runner.__main__ import main
from tests.support.sweeps import AGENTMETER, Cli, finished_sweep

pytestmark = pytest.mark.usefixtures("no_page")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a sweep that was scored with a tiers file of its own, made once: its tests change copies."""
    folder = tmp_path_factory.mktemp("calibrated")
    finished_sweep(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["runner"])
        words = (f"outputs={folder}", "tracker=none")
        assert main([*words, "job=calibrate", "inputs=[full]"]) == 0
        assert main([*words, "job=track", "name=full", "scoring.tiers=tiers.yaml"]) == 0
    return folder


@pytest.fixture
def calibrated(cli: Cli, made: Path) -> Path:
    shutil.copytree(made, cli.outputs, dirs_exist_ok=True)
    return cli.outputs / "full"


def scoring_of(sweep: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sweep / "sweep.json").read_text())["scoring"]
    return found


@pytest.mark.parametrize("job", ["track", "report"])
def test_alpha_dropped_the_calibrated_tiers(cli: Cli, calibrated: Path, job: str) -> None:
    before = scoring_of(calibrated)
    ended = cli(f"job={job}", "name=full", "scoring.alpha=0.8")
    assert ended.out.startswith("Scored anew: alpha 0.6 -> 0.8.\n")
    assert scoring_of(calibrated) == before | {"alpha": 0.8}
    assert before["labels"]


def test_alpha_of_a_comparison_dropped_the_calibrated_tiers(cli: Cli, calibrated: Path) -> None:
    ended = cli("job=compare", "left=full", "scoring.alpha=1")
    assert ended.code == 0, ended.err
    [file] = (calibrated / "comparisons").glob("*.json")
    found = json.loads(file.read_text())
    assert found["left"]["scoring"].startswith("agentmeter tiers.yaml@")
    assert found["right"]["scoring"].startswith("agentmeter tiers.yaml@")
    assert found["right"]["scoring"].endswith("alpha=1.0")


def test_the_alpha_preset_changed_tiers_and_alpha_at_once(cli: Cli, calibrated: Path) -> None:
    own = scoring_of(calibrated)
    ended = cli("experiment=agentmeter_alpha", "name=full")
    assert ended.code == 0, ended.err
    scorings = json.loads((calibrated / "sensitivity.json").read_text())["scorings"].values()
    assert len(scorings) == 6 * 3, "the sweep's own is one of them"
    same = [each for each in scorings if each["tiers"] == own["tiers"]]
    assert sorted(each["alpha"] for each in same) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert all(each["labels"] == own["labels"] for each in scorings)
    halved = next(each for each in scorings if each["name"] == "agentmeter budgets x0.5")
    assert halved["tiers"]["hard"]["tau"] == own["tiers"]["hard"]["tau"] / 2
    assert pd.read_csv(calibrated / "sensitivity.csv")["scoring"].nunique() == 18


def test_one_number_of_a_tier_leaves_the_others(cli: Cli, calibrated: Path) -> None:
    before = scoring_of(calibrated)
    assert cli("job=track", "name=full", "scoring.tiers.hard.tau=9").code == 0
    after = scoring_of(calibrated)
    assert after["tiers"].pop("hard") == before["tiers"].pop("hard") | {"tau": 9}
    assert after == before


def test_a_whole_scoring_that_is_typed_is_taken_whole(cli: Cli, calibrated: Path) -> None:
    assert cli("job=track", "name=full", "scoring=agentmeter", "scoring.alpha=0.8").code == 0
    assert scoring_of(calibrated) == AGENTMETER.model_dump(mode="json") | {"alpha": 0.8}


def test_several_alphas_of_a_calibrated_sweep(cli: Cli, calibrated: Path) -> None:
    ended = cli("-m", "job=sensitivity", "name=full", "scoring.alpha=0.4,0.8")
    assert ended.code == 0, ended.err
    scorings = json.loads((calibrated / "sensitivity.json").read_text())["scorings"].values()
    assert [each["alpha"] for each in scorings] == [0.6, 0.4, 0.8]
    assert len({json.dumps(each["tiers"]) for each in scorings}) == 1


def test_a_tier_that_the_sweep_lacks_comes_whole(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    content = json.loads((sweep / "sweep.json").read_text())
    del content["scoring"]["tiers"]["hard"]
    (sweep / "sweep.json").write_text(json.dumps(content))
    assert cli("job=track", "name=full", "scoring.tiers.hard.weight=2").code == 0
    hard = AGENTMETER.model_dump(mode="json")["tiers"]["hard"]
    assert scoring_of(sweep)["tiers"]["hard"] == hard | {"weight": 2.0}


def test_alphas_outside_of_their_range_are_refused(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    ended = cli("job=sensitivity", "name=full", "alphas=[0.5,2]")
    assert ended.code == 2
    assert "job.alphas: alpha lies in [0, 1]" in ended.err


def test_importing_again_dropped_the_scoring(cli: Cli) -> None:
    columns = ["agent", "task", "passed", "cost_usd"]
    Path("t.csv").write_text(",".join(columns) + "\nx,t1,1,1\nx,t2,0,1\nx,t3,1,1\n")
    constants = {"model": "m", "dataset": "d", "tier": "easy", "status": "completed"}
    Path("m.yaml").write_text(yaml.safe_dump({"columns": {c: c for c in columns}, "constants": constants}))
    words = ("job=import", "path=t.csv", "mapping=m.yaml", "name=theirs")
    assert cli(*words).code == 0
    assert cli("job=track", "name=theirs", "scoring.alpha=0.8").code == 0
    assert cli(*words, "scoring.seed=3").code == 0
    found = scoring_of(cli.outputs / "theirs")
    assert (found["alpha"], found["seed"]) == (0.8, 3)
