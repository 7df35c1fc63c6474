"""Trials that somebody else ran."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pandas as pd
import pytest
import yaml

from metrics.errors import TableError
from runner.errors import ConfigError
from runner.jobs.import_trials import read_mapping
from runner.report.foreign_trials import import_trials
from runner.report.projections import load_trials
from runner.report.tracked_runs import tracked_runs
from runner.resources import ROOT
from runner.sweeps import sweep_file
from runner.sweeps.sweep_file import SweepFile
from tests.support.sweeps import AGENTMETER, Cli, finished_sweep

pytestmark = pytest.mark.usefixtures("no_pixels")

EXAMPLE = ROOT / "conf/mapping_example.yaml"
HEAD = (
    "harness,llm,task_id,difficulty,trial,outcome,score,cost_cents,prompt_tokens,completion_tokens,steps,duration_ms,"
    "ended"
)
ROWS = (
    "a,m,t1,E,1,ok,1,12.5,1000,200,4,65000,2026-05-01T10:00:00Z",
    "a,m,t2,M,1,ok,0.5,-,2000,300,6,75000,2026-05-01T10:10:00Z",
    "a,m,t3,H,1,timeout,0,210,9000,900,20,600000,2026-05-01T10:20:00Z",
    "b,m,t1,E,1,exit 1,0,3,500,20,2,5000,2026-05-01T10:00:00Z",
    "b,m,t2,M,1,ok,1,30,2500,300,7,70000,2026-05-01T10:10:00Z",
    "b,m,t3,H,1,harness_crash,,,,,,,",
)
PROJECTS = ROOT / "tests/metrics/published/execution_agent_projects.csv"
"""ExecutionAgent, Table 1: what each of fifty projects' own tests gave, and what the agent's did ('-': not built, '+':
built and not executed).
"""


def table(*rows: str) -> Path:
    path = Path("theirs.csv")
    path.write_text("\n".join((HEAD, *rows)) + "\n")
    return path


def mapping(**changed: object) -> Path:
    path = Path("mapping.yaml")
    path.write_text(yaml.safe_dump(yaml.safe_load(EXAMPLE.read_text()) | changed))
    return path


def imported(file: Path, mapped: Path, sweep: Path) -> None:
    """A sweep of somebody's trials, without the report that `job=import` then writes."""
    import_trials(file, read_mapping(mapped), sweep, AGENTMETER)


def test_the_example_mapping_makes_a_sweep_of_a_foreign_table(cli: Cli) -> None:
    ended = cli("job=import", f"path={table(*ROWS)}", f"mapping={EXAMPLE}", "name=theirs")
    assert ended.code == 0, ended.err
    assert "6 trials planned: 5 judged, 1 invalid, 0 not run, 0 refused." in ended.out
    assert "Imported: 6 trials from theirs.csv (SHA-256 " in ended.out
    assert "the cost of 2 is unknown" in ended.out
    assert not (cli.outputs / "trials").exists(), "no records of what was not run here"
    plan, trials = load_trials(cli.outputs / "theirs", cli.outputs)
    assert plan.imported is not None
    assert plan.imported.mapping["constants"] == {"dataset": "terminal_bench"}
    assert trials["cost_usd"].tolist()[:1] == [0.125], "cents"
    assert trials["wall_seconds"].tolist()[0] == 65.0, "milliseconds"
    assert trials["tokens"].tolist()[:2] == [1200, 2300]
    assert trials["tier"].tolist() == ["easy", "medium", "hard"] * 2
    assert trials["status"].tolist()[2:] == ["timeout", "agent_error", "completed", "infra_invalid"]
    assert trials["passed"].tolist()[:4] == [True, False, False, False]
    assert trials["outcome"].tolist()[2:] == [
        "failed (timeout)", "failed (agent_error)", "passed", "infra_invalid"
    ]  # fmt: skip
    assert trials["cost_usd"].isna().tolist() == [False, True, False, False, False, True]


def test_an_imported_sweep_is_scored_anew_and_tracked_like_ours(cli: Cli) -> None:
    imported(table(*ROWS), EXAMPLE, cli.outputs / "theirs")
    ended = cli("job=track", "name=theirs", "scoring.alpha=1")
    assert ended.out.startswith("Scored anew: alpha 0.6 -> 1.0.")
    board = pd.read_csv(cli.outputs / "theirs" / "leaderboard.csv", index_col="agent")
    # The cost of its failure on t2 is not known: an expensive one at worst.
    assert board.loc["a", "AMS"] == pytest.approx(1 / 3)
    assert board.loc["a", "AMS_most"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert board.loc["b", "AMS"] == pytest.approx((0 + 1 + 0) / 3)
    runs = tracked_runs(cli.outputs / "theirs", "all")
    assert [run.identity for run in runs] == ["b·m·terminal_bench·default", "a·m·terminal_bench·default", ""]
    assert runs[0].params["imported"].startswith("6 trials from theirs.csv")
    page = (cli.outputs / "theirs/report/index.html").read_text()
    assert "Every figure is made from the imported table" in page
    assert "outputs/trials" not in page, "it has no records"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,m,t1,E,1,ok,1,1,1,1,1,1,", "Two rows of one cell, task and attempt: row 1, 7"),
        ("a,m,t4,E,1,ok,1.5,1,1,1,1,1,", "reward is outside [0, 1]: row 7"),
        ("a,m,t4,E,1,ok,good,1,1,1,1,1,", "reward is not a number: row 7"),
        ("a,m,t4,E,1,ok,1,12 cents,1,1,1,1,", "cost_usd is not a number: row 7"),
        ("a,m,t4,E,1,ok,1,1,-5,1,1,1,", "input_tokens is negative: row 7"),
        ("a,m,t4,E,first,ok,1,1,1,1,1,1,", "attempt is not a whole number: row 7"),
        ("a,m,t1,H,2,ok,1,1,1,1,1,1,", "One task in several tiers (t1): row 1, 4, 7"),
        ("a,m,,E,1,ok,1,1,1,1,1,1,", "task is missing: row 7"),
        (",m,t4,E,1,ok,1,1,1,1,1,1,", "agent is missing: row 7"),
        ("a,m,t4,E,1,ok,1,1,1,1,1,1,yesterday", "finished_at is not an ISO 8601 time: row 7"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(tmp_path: Path, row: str, message: str) -> None:
    (file := tmp_path / "theirs.csv").write_text("\n".join((HEAD, *ROWS, row)))
    with pytest.raises(TableError) as refused:
        imported(file, EXAMPLE, tmp_path / "theirs")
    assert str(refused.value).startswith(message)
    assert not (tmp_path / "theirs").exists()


def test_of_two_imports_at_once_one_wrote_the_trials_and_the_other_said_whence_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, write = tmp_path / "theirs", sweep_file.write
    second_is_there = Event()

    def slowly(folder: Path, plan: SweepFile) -> None:
        if plan.imported and plan.imported.rows == 1:
            second_is_there.wait(1)
        write(folder, plan)
        second_is_there.set()

    monkeypatch.setattr(sweep_file, "write", slowly)
    with ThreadPoolExecutor(2) as pool:
        imports = []
        for count in (1, 2):
            (file := tmp_path / f"{count}.csv").write_text("\n".join((HEAD, *ROWS[:count])))
            imports.append(pool.submit(imported, file, EXAMPLE, sweep))
            while count == 1 and not (sweep / sweep_file.IMPORTED).exists():
                time.sleep(0.01)
        for each in imports:
            each.result()
    plan, trials = load_trials(sweep, tmp_path)
    assert plan.imported
    assert plan.imported.rows == len(trials)


def test_an_unknown_status_is_refused_with_those_that_there_are(cli: Cli) -> None:
    words = {"status": {"ok": "completed"}}
    ended = cli("job=import", f"path={table(*ROWS)}", f"mapping={mapping(words=words)}", "name=theirs")
    assert ended.code == 2
    assert "Unknown status (exit 1, harness_crash); there are completed, agent_error" in ended.err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": {"agnet": "harness"}}, "mapping.columns: trials have no 'agnet'. Did you mean 'agent'?"),
        ({"columns": {"agent": "harnes"}}, "has no column 'harnes'. Did you mean 'harness'?"),
        ({"columns": {"agent": "harness"}}, "mapping: say what model, task, status is"),
        ({"constants": {"dataset": "x", "agent": "y"}}, "agent is both a column and a constant"),
        (
            {"per_unit": {"turns": 1, "interactions": 2}},
            "mapping.per_unit.interactions: mapping.columns does not say",
        ),
        ({"components": {"reward": "score"}}, "reward is a column of its own"),
        ({"per_unit": {"cost_usd": 0}}, "mapping.per_unit.cost_usd: Input should be greater than 0"),
        ({"planed": "grid"}, "mapping.planed: unknown key. Did you mean 'planned'?"),
    ],
)
def test_a_mapping_that_does_not_fit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, object], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    cleared: dict[str, object] = {"words": {}, "per_unit": {}} if "columns" in changed else {}
    with pytest.raises(ConfigError) as refused:
        imported(table(*ROWS), mapping(**cleared, **changed), tmp_path / "theirs")
    assert message in str(refused.value)


def test_a_grid_counts_what_the_table_lacks_as_not_run(cli: Cli) -> None:
    words = ("job=import", f"path={table(*ROWS[:5])}", "name=theirs")
    assert "5 trials planned" in cli(*words, f"mapping={EXAMPLE}").out
    ended = cli(*words, f"mapping={mapping(planned='grid')}")
    assert "6 trials planned: 5 judged, 0 invalid, 1 not run" in ended.out
    assert "1 trials are planned and not in the table" in ended.out


def test_a_sweep_that_was_run_here_is_never_replaced_by_an_import(cli: Cli) -> None:
    finished_sweep(cli.outputs)
    ended = cli("job=import", f"path={table(*ROWS)}", f"mapping={EXAMPLE}", "name=full")
    assert ended.code == 2
    assert "full is a sweep that was run here" in ended.err


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_published_results_are_imported_as_they_are(cli: Cli, ending: str) -> None:
    """The fifty projects of ExecutionAgent: 41 were built; nobody published what a project cost."""
    path = Path(f"projects.{ending}")
    published = pd.read_csv(PROJECTS)
    write = {
        "csv": lambda: published.to_csv(path, index=False),
        "parquet": lambda: published.to_parquet(path),
        "json": lambda: published.to_json(path, orient="records"),
    }
    write[ending]()
    mapping = {
        "columns": {"task": "project", "language": "languages", "passed": "agent_tests"},
        "constants": {
            "agent": "execution_agent", "model": "gpt-4o-mini", "dataset": "projects", "tier": "all",
            "status": "completed",
        },
        "words": {"passed": {"-": False, "*": True}},
        "components": {"truth_tests": "truth_tests"},
    }  # fmt: skip
    Path("m.yaml").write_text(yaml.safe_dump(mapping))
    ended = cli("job=import", f"path={path}", "mapping=m.yaml", f"name={ending}")
    assert ended.code == 0, ended.err
    assert "50 trials planned: 50 judged" in ended.out
    assert "the cost of 50 is unknown" in " ".join(ended.out.split())
    folder = cli.outputs / ending
    assert pd.read_csv(folder / "leaderboard.csv")["passes"].tolist() == [41]
    content = json.loads((folder / "sweep.json").read_text())
    assert content["imported"]["file"] == path.name
    trials = load_trials(folder, cli.outputs)[1]
    assert trials["cost_usd"].isna().all()
    assert trials["truth_tests"].tolist() == published["truth_tests"].tolist()


MEASURED = {
    "framework": "x",
    "model_name": "m",
    "language": "go",
    "build": 1,
    "exec": 0.5,
    "em": 0.25,
    "sm": 0.5,
    "loc": 90,
    "steps": 7,
    "prompt_tokens": 1200,
    "completion_tokens": 300,
    "cost": 0.5,
}


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_component_that_was_not_measured_is_missing_and_never_0(cli: Cli, ending: str) -> None:
    """CLI-Tool-Bench's authors write a text in place of the time of a tool that could not be run."""
    times = {"o/slow": (0.25, 0.5), "o/unbuilt": ("Time N/A", "Time N/A"), "o/at-once": (0, "Time N/A")}
    rows = pd.DataFrame(
        {**MEASURED, "instance_id": name, "time": own, "oracle_time": oracle}
        for name, (own, oracle) in times.items()
    )
    path = Path(f"results.{ending}")
    path.write_text(rows.to_csv(index=False) if ending == "csv" else rows.to_json(orient="records"))
    mapping = {
        "columns": {
            "agent": "framework", "model": "model_name", "task": "instance_id", "language": "language",
            "reward": "em", "turns": "steps", "input_tokens": "prompt_tokens",
            "output_tokens": "completion_tokens", "cost_usd": "cost",
        },
        "constants": {"dataset": "cli_tool_bench", "status": "completed"},
        "components": {
            "build": "build", "exec": "exec", "semantic_match": "sm",
            "runtime_candidate": "time", "runtime_reference": "oracle_time",
        },
    }  # fmt: skip
    Path("m.yaml").write_text(yaml.safe_dump(mapping))
    ended = cli("job=import", f"path={path}", "mapping=m.yaml", f"name=usual-{ending}")
    assert ended.code == 2
    assert "component runtime_candidate is not a number" in ended.err
    Path("m.yaml").write_text(yaml.safe_dump({**mapping, "missing": ["", "Time N/A"]}))
    ended = cli("job=import", f"path={path}", "mapping=m.yaml", f"name=results-{ending}")
    assert ended.code == 0, ended.err
    trials = load_trials(cli.outputs / f"results-{ending}", cli.outputs)[1].set_index("task")
    assert trials["runtime_candidate"].dropna().to_dict() == {"o/slow": 0.25, "o/at-once": 0.0}
    assert trials["runtime_reference"].dropna().to_dict() == {"o/slow": 0.5}
    assert trials["build"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_names_and_words_are_read_as_they_stand(cli: Cli, ending: str) -> None:
    """Task 007 became 7, and TRUE beside a dash a pass without a reward, which is no valid trial."""
    path = Path(f"theirs.{ending}")
    rows = pd.DataFrame({"task": ["007", "07", "7"], "right": ["TRUE", "FALSE", "-"]})
    path.write_text(rows.to_csv(index=False) if ending == "csv" else rows.to_json(orient="records"))
    constants = {"agent": "x", "model": "m", "dataset": "d", "status": "completed"}
    Path("m.yaml").write_text(
        yaml.safe_dump({"columns": {"task": "task", "passed": "right"}, "constants": constants})
    )
    ended = cli("job=import", f"path={path}", "mapping=m.yaml", f"name={ending}")
    assert ended.code == 0, ended.err
    trials = load_trials(cli.outputs / ending, cli.outputs)[1].set_index("task")
    assert trials["reward"].dropna().to_dict() == {"007": 1.0, "07": 0.0}
    assert trials["outcome"].tolist() == ["passed", "failed", "completed"]


def test_rows_longer_than_the_head_are_refused(cli: Cli) -> None:
    """A comma at the end of each shifted all columns by one."""
    ended = cli(
        "job=import", f"path={table(*(f'{row},' for row in ROWS))}", f"mapping={EXAMPLE}", "name=theirs"
    )
    assert ended.code == 2
    assert "theirs.csv cannot be read: its rows have more fields than its head" in ended.err


def test_the_second_of_two_columns_of_one_name_was_left_out_unsaid(cli: Cli) -> None:
    Path("theirs.csv").write_text("task,score,score\na,1,0\n")
    ended = cli("job=import", "path=theirs.csv", f"mapping={EXAMPLE}", "name=theirs")
    assert ended.code == 2
    assert "theirs.csv cannot be read: its head has score twice" in ended.err


def test_a_number_in_json_is_no_time(cli: Cli) -> None:
    """Seconds were guessed from the name of the column."""
    Path("theirs.json").write_text(json.dumps([{"task": "t", "score": 1, "finished_at": 1718010203}]))
    constants = {"agent": "x", "model": "m", "dataset": "d", "status": "completed"}
    columns = {"task": "task", "reward": "score", "finished_at": "finished_at"}
    Path("m.yaml").write_text(yaml.safe_dump({"columns": columns, "constants": constants}))
    ended = cli("job=import", "path=theirs.json", "mapping=m.yaml", "name=theirs")
    assert ended.code == 2
    assert "TableError: finished_at is not an ISO 8601 time: row 1" in ended.err


def test_two_imports_of_the_same_cells_with_other_content_are_no_calibration(cli: Cli) -> None:
    for name, reward in (("a", "1"), ("b", "0")):
        rows = (f"x,m,t{n},E,1,ok,{reward},{n},1,1,1,1,2026-05-01T10:00:00Z" for n in range(1, 7))
        imported(table(*rows), EXAMPLE, cli.outputs / name)
    for inputs in ("a,b", "b,a"):
        ended = cli("job=calibrate", f"inputs=[{inputs}]")
        assert ended.code == 2
        assert ended.err.startswith("TableError: Two rows of one cell, task and attempt")
        assert not Path("tiers.yaml").exists()


def test_one_file_imported_twice_is_calibrated_on_once(cli: Cli) -> None:
    rows = (
        f"x,m,t{n},E,{k},ok,{k - 1},{n},1,1,1,1,2026-05-01T10:00:00Z" for n in range(1, 7) for k in (1, 2)
    )
    file = table(*rows)
    counted = mapping(constants={"dataset": "theirs", "interactions": 3})
    for name in ("a", "b"):
        imported(file, counted, cli.outputs / name)
    ended = cli("job=calibrate", "inputs=[a,b]")
    assert ended.code == 0, ended.err
    assert "12 valid trials of 1 cells" in ended.out


@pytest.mark.parametrize("words", [("job=import", "path=theirs.csv", f"mapping={EXAMPLE}", "name=theirs"),
                                   ("job=compare", "left=full", "right=theirs.csv")])  # fmt: skip
def test_a_table_without_rows_is_refused(cli: Cli, words: tuple[str, ...]) -> None:
    """It ended in a traceback."""
    finished_sweep(cli.outputs)
    table()
    ended = cli(*words)
    assert ended.code == 2
    assert re.match(r"TableError: No trials in \S*theirs\.csv$", ended.err.strip())


def test_cells_of_other_tasks_are_named_and_compete_with_nobody(cli: Cli) -> None:
    rows = [f"{who},m,t{n},E,1,ok,1,5,1,1,1,1,2026-05-01T10:00:00Z" for who in "ab" for n in (1, 2, 3)]
    alone = "c,m,t1,E,1,ok,1,1,1,1,1,1,2026-05-01T10:00:00Z"
    ended = cli("job=import", f"path={table(*rows, alone)}", f"mapping={EXAMPLE}", "name=theirs")
    assert ended.code == 0, ended.err
    text = (
        "1 of 3 cells planned other tasks than the others, so they have no rank and are compared with nobody"
    )
    assert text in " ".join(ended.out.split())
    board = pd.read_csv(cli.outputs / "theirs/leaderboard.csv", index_col="agent")
    assert board["rank"].isna().to_dict() == {"a": False, "b": False, "c": True}
    kinds = [run.tags["assay.kind"] for run in tracked_runs(cli.outputs / "theirs", "none")]
    assert kinds == ["cell", "cell", "other_tasks", "sweep"]
    page = " ".join((cli.outputs / "theirs/report/index.html").read_text().split())
    assert text in page
    assert "c (other tasks)" in page
    assert "a · m: easy 3 of 3" in page
    for name in ("criteria", "pairs", "profile"):
        section = page.partition(f'id="{name}')[2].partition("</section>")[0]
        assert "a · m" in section
        assert "c · m" not in section, "the cheapest, of one task"


def test_a_mapping_in_another_encoding_is_refused_by_name(cli: Cli) -> None:
    """It was a trace."""
    Path("m.yaml").write_bytes("columns: {agent: Läufer}".encode("latin-1"))
    ended = cli("job=import", f"path={table(*ROWS)}", "mapping=m.yaml", "name=theirs")
    assert ended.code == 2
    assert "job.mapping: " in ended.err
    assert "m.yaml is not YAML: 'utf-8' codec" in ended.err
