"""Faults found when trials of others were imported: words for missing values, names, sizes, and names of sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from metrics.errors import TableError
from runner.errors import ConfigError
from runner.jobs.import_trials import read_mapping
from runner.report.foreign_trials import import_trials
from runner.report.projections import load_trials
from tests.support.sweeps import AGENTMETER, Cli

HEAD = ("agent", "model", "task", "tier", "attempt", "passed", "tokens")
CONSTANTS = {"dataset": "d", "status": "completed"}

pytestmark = pytest.mark.usefixtures("no_page")


def mapped(**changed: Any) -> Path:
    node: dict[str, Any] = {"columns": {name: name for name in HEAD}, "constants": CONSTANTS} | changed
    Path("m.yaml").write_text(yaml.safe_dump(node))
    return Path("m.yaml")


def table(*rows: str) -> Path:
    Path("t.csv").write_text("\n".join((",".join(HEAD), *rows)) + "\n")
    return Path("t.csv")


def trials_of(outputs: Path, *rows: str, **changed: Any) -> pd.DataFrame:
    """The trials of an import of these rows."""
    import_trials(table(*rows), read_mapping(mapped(**changed)), outputs / "theirs", AGENTMETER)
    return load_trials(outputs / "theirs", outputs)[1]


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("word", ["NA", "None", "null", "nan", "N/A", "NULL", "<NA>", "n/a"])
@pytest.mark.parametrize("key", ["the word", "*"])
def test_words_for_nothing_never_reached_the_mapping(outputs: Path, word: str, key: str) -> None:
    """418 failures became invalid trials."""
    meant = {"TRUE": True, word if key == "the word" else key: False}
    rows = ("a,m,t1,easy,1,TRUE,5", f"a,m,t2,easy,1,{word},5")
    trials = trials_of(outputs, *rows, words={"passed": meant})
    assert trials["outcome"].tolist() == ["passed", "failed"]


@pytest.mark.parametrize("word", ["NA", "None", "null", "NaN", "-", ""])
def test_words_for_nothing_are_missing_where_no_words_are_given(outputs: Path, word: str) -> None:
    trials = trials_of(outputs, "a,m,t1,easy,1,1,7", f"a,m,t2,easy,1,1,{word}")
    assert trials["tokens"].isna().tolist() == [False, True]


def test_words_for_nothing_are_missing_in_a_file_of_trials_without_a_mapping(cli: Cli) -> None:
    rows = [
        {"cell": cell, "agent": cell, "model": "m", "budget": "b", "dataset": "d", "tier": tier, "task": f"{tier}{n}",
         "attempt": 1, "status": "completed", "finished_at": "NA", "reward": n % 2, "passed": n % 2, "tokens": "null",
         "turns": "", "cost_usd": "None" if n else 1}
        for cell in "ab" for tier in ("easy", "medium", "hard") for n in (0, 1)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv("t.csv", index=False)
    import_trials(
        Path("t.csv"),
        read_mapping(
            mapped(columns={name: name for name in rows[0] if name not in ("cell", "dataset", "status")})
        ),
        cli.outputs / "theirs",
        AGENTMETER,
    )
    ended = cli("job=compare", "left=theirs", "right=t.csv")
    assert ended.code == 0, ended.err


@pytest.mark.parametrize("word", ["yes", "null", "1"])
def test_a_word_that_yaml_takes_for_something_else_is_named(outputs: Path, word: str) -> None:
    Path("m.yaml").write_text(f"columns: {{agent: a}}\nwords:\n  passed:\n    {word}: true\n")
    with pytest.raises(ConfigError, match="put it in quotes"):
        read_mapping(outputs / "m.yaml")


@pytest.mark.parametrize("part", ["agent", "model", "task"])
def test_spaces_around_a_name_made_another_of_it(outputs: Path, part: str) -> None:
    """Two cells alike on the screen; a task with a space put a whole cell among those of other tasks."""
    names = {"agent": "a", "model": "m", "task": "t2"}
    spaced = names | {part: f" {names[part]} "}
    trials = trials_of(outputs, "a,m,t1,easy,1,1,5", f"{','.join(spaced.values())},easy,1,1,5")
    assert trials["cell"].unique().tolist() == ["a·m·d·default"]
    assert trials["task"].tolist() == ["t1", "t2"]


@pytest.mark.parametrize("other", ["a  b", "a\u00a0b", "a\u200b b", "a\u2060 b"])
def test_names_that_look_alike_are_refused(outputs: Path, other: str) -> None:
    with pytest.raises(TableError, match="Names of agent that look alike"):
        trials_of(outputs, "a b,m,t1,easy,1,1,5", f"{other},m,t1,easy,1,1,5")


def test_cells_with_the_sign_between_their_parts_merged(outputs: Path) -> None:
    with pytest.raises(TableError, match=r"One cell of several agents \(a·b·c·d·default\): row 1, 2"):
        trials_of(outputs, "a·b,c,t1,easy,1,1,5", "a,b·c,t2,easy,1,0,5")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (f"a,m,t2,easy,{10**30},1,5", "attempt is above 1000000: row 2"),
        ("a,m,t2,easy,1e30,1,5", "attempt is above 1000000: row 2"),
        (f"a,m,t2,easy,1,1,{2**63}", "tokens is above 2\\^53: row 2"),
        ("a,m,t2,easy,1,1,1e300", "tokens is above 2\\^53: row 2"),
        ("a,m,t2,easy,1,1,inf", "tokens is infinite: row 2"),
    ],
)
def test_numbers_without_measure_ended_in_a_traceback(outputs: Path, row: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        trials_of(outputs, "a,m,t1,easy,1,1,5", row)


def import_words(name: str | None = "theirs") -> list[str]:
    return ["job=import", "path=t.csv", "mapping=m.yaml", *([f"name={name}"] if name else [])]


def test_an_import_without_a_name_took_that_of_the_default_sweep(cli: Cli) -> None:
    table("a,m,t1,easy,1,1,5")
    mapped()
    ended = cli(*import_words(None))
    assert ended.code == 2
    assert "name: an import has none of its own. Add name=NAME." in ended.err
    assert not list(cli.outputs.glob("*/sweep.json"))


def test_an_import_replaced_another_of_its_name_unasked(cli: Cli) -> None:
    table("a,m,t1,easy,1,1,5")
    mapped()
    assert cli(*import_words()).code == 0
    before = (cli.outputs / "theirs/sweep.json").read_bytes()
    table("b,m,t1,easy,1,1,5")
    ended = cli(*import_words())
    assert ended.code == 2
    assert (
        "theirs was imported from t.csv, with other content; choose another name=, or add replace=true"
        in ended.err
    )
    assert (cli.outputs / "theirs/sweep.json").read_bytes() == before
    assert cli(*import_words(), "replace=true").code == 0
    assert load_trials(cli.outputs / "theirs", cli.outputs)[1]["agent"].tolist() == ["b"]


@pytest.mark.parametrize("name", ["trials", "mlartifacts", "cache", "Trials", "mlflow.db"])
def test_names_of_what_lies_beside_sweeps_were_taken_for_sweeps(cli: Cli, name: str) -> None:
    table("a,m,t1,easy,1,1,5")
    mapped()
    ended = cli(*import_words(name))
    assert ended.code == 2
    assert "name: outputs has something else of that name" in ended.err
    assert not (cli.outputs / name).exists()


def test_the_plan_of_an_import_is_in_its_table_alone(outputs: Path) -> None:
    """A million trials made a sweep.json of 323 MB."""
    trials = trials_of(outputs, *(f"a,m,t{n},easy,1,1,5" for n in range(50)))
    content = json.loads((outputs / "theirs/sweep.json").read_text())
    assert content["planned"] == []
    assert len(trials) == 50
    assert trials["key"].is_unique


def test_a_sweep_of_ours_that_plans_nothing_is_refused(outputs: Path) -> None:
    trials_of(outputs, "a,m,t1,easy,1,1,5")
    path = outputs / "theirs/sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"imported": None}))
    with pytest.raises(ConfigError, match="it plans no trial"):
        load_trials(outputs / "theirs", outputs)


def uncounted(outputs: Path) -> None:
    """Public data of nine tasks and two cells, without turns and interactions; one cell passes every other task."""
    rows = [f"{who},m,t{n},easy,1,{n % 2 if who == 'a' else 0},{100 * n}" for who in "ab" for n in range(9)]
    costed = "\n".join([",".join((*HEAD, "cost")), *(f"{row},0.{n + 1}" for n, row in enumerate(rows))])
    Path("t.csv").write_text(costed + "\n")
    columns = {name: name for name in HEAD} | {"cost_usd": "cost"}
    import_trials(Path("t.csv"), read_mapping(mapped(columns=columns)), outputs / "theirs", AGENTMETER)


def test_calibration_blamed_all_rows_for_what_nobody_counted(cli: Cli) -> None:
    uncounted(cli.outputs)
    ended = cli("job=calibrate", "inputs=[theirs]")
    assert ended.code == 2
    assert ended.err == "TableError: No trial has turns or interactions; measures=[tokens] leaves that out\n"
    ended = cli("job=calibrate", "inputs=[theirs]", "measures=[tokens]")
    assert ended.code == 0, ended.err
    tiers = yaml.safe_load(Path("tiers.yaml").read_text())
    assert tiers["measures"] == ["tokens"]
    assert tiers["effort"]["t8"] == 100, "the dearest in tokens, and failed"
    assert tiers["effort"]["t1"] == pytest.approx(55 / 2 + 45 / 8, abs=1e-3)
    assert cli("job=track", "name=theirs", "scoring.tiers=tiers.yaml").code == 0


def test_calibration_by_success_alone(cli: Cli) -> None:
    uncounted(cli.outputs)
    assert cli("job=calibrate", "inputs=[theirs]", "measures=[]").code == 0
    effort = yaml.safe_load(Path("tiers.yaml").read_text())["effort"]
    assert (effort["t0"], effort["t1"]) == (100, 50)
