"""`job=import_da_code`: tasks of DA-Code become folders that are judged here."""

from __future__ import annotations

import json
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.harbor.da_code.checkout import read_checkout
from runner.benchmarks.harbor.da_code.folders import Image, write_task
from runner.benchmarks.harbor.da_code.inside import judge
from runner.errors import ConfigError, TaskError
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.sweeps import Cli
from tests.support.tasks_factory import dataset

IMAGE = Image("debian:trixie-slim", (), 90.0, 30.0)
TABLE = "name,value\na,1\nb,2\n"
SETTINGS = {"type": "line", "graph_title": "Sales", "figsize": [8, 6]}
ML = {"task": "machine learning", "type": "binary classification", "metric": "f1"}
BOUNDS = {"lower_bound": 0.5, "upper_bound": 0.9}
EVALUATIONS: dict[str, dict[str, Any]] = {
    "table": {
        "func": ["compare_csv"],
        "result": [{"file": ["result.csv"]}],
        "options": [{"condition_cols": [1], "ignore_order": True}],
    },
    "either": {
        "func": "compare_csv",
        "result": [{"multi": True, "file": ["one.csv", "two.csv"]}],
        "options": [{"ignore_order": [False, True]}],
    },
    "both": {"func": ["compare_csv"], "result": [{"file": ["one.csv", "two.csv"]}], "options": [{}]},
    "answer": {"func": ["compare_text"], "result": [{"number": [{"Top": ["a"]}]}], "options": [{}]},
    "stored": {
        "func": ["compare_sqlite"],
        "result": [{"file": ["made.db"]}],
        "options": [{"condition_tabs": ["t"], "condition_cols": [[]], "ignore_order": [True]}],
    },
    "figure": {
        "func": ["compare_image"],
        "result": [{"multi": True, "file": ["plot.png", "dabench/plot.json", "dabench/result.npy"]}],
        "options": [{"keys": ["type", "graph_title", "figsize"]}],
    },
    "labels": {
        "config": ML | BOUNDS,
        "func": ["compare_ml"],
        "result": [{"file": "labels.csv"}],
        "options": [{"target_column": "label"}],
    },
    "contest": {
        "config": ML | {"type": "regression", "metric": "rmse", "lower_bound": 9, "upper_bound": 1},
        "func": ["compare_competition_ml"],
        "result": [{"file": "contest.csv"}],
    },
}


def made(root: Path, **evaluations: dict[str, Any]) -> Path:
    """Make a checkout with a task for each evaluation, or for all of `EVALUATIONS`."""
    evaluations = evaluations or EVALUATIONS
    configs = root / "da_code" / "configs"
    for folder in ("task", "eval"):
        (configs / folder).mkdir(parents=True, exist_ok=True)
    asked = [
        {"id": name, "type": "Data Insight", "instruction": f"Find {name}.", "hardness": "Medium"}
        for name in evaluations
    ]
    (configs / "task" / "all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    judged = [{"id": name} | one for name, one in evaluations.items()]
    (configs / "eval" / "eval_all.jsonl").write_text("".join(json.dumps(one) + "\n" for one in judged))
    for name in evaluations:
        source, gold = (root / "da_code" / folder / name for folder in ("source", "gold"))
        source.mkdir(parents=True)
        gold.mkdir(parents=True)
        (source / "README.md").write_text("The data.")
        make_gold(gold)
    return root


def make_gold(gold: Path) -> None:
    """Write the right result of each kind."""
    for name in ("result.csv", "one.csv", "two.csv"):
        (gold / name).write_text(TABLE)
    (gold / "labels.csv").write_text("id,label\n1,yes\n2,no\n3,no\n")
    (gold / "contest.csv").write_text("id,price\n1,10\n2,20\n3,30\n")
    with sqlite3.connect(gold / "made.db") as opened:
        opened.execute("CREATE TABLE t (a)")
        opened.execute("INSERT INTO t VALUES (1), (2)")
    opened.close()
    (gold / "plot.json").write_text(json.dumps(SETTINGS))
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }".ljust(117) + b"\n"
    numbers = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<2d", 3, 4)
    (gold / "result.npy").write_bytes(numbers)


def written(tmp_path: Path, name: str, **evaluations: dict[str, Any]) -> Path:
    """Return the folder of one imported task."""
    checkout = made(tmp_path / "checkout", **evaluations)
    write_task(read_checkout(checkout, None, None)[name], tmp_path / "new" / name, IMAGE)
    return tmp_path / "new" / name


def test_a_task_keeps_its_words_and_files_and_hides_what_is_right(tmp_path: Path) -> None:
    folder = written(tmp_path, "table")
    (task,) = dataset(tmp_path / "new").tasks()
    assert task.refused is None
    assert task.instruction == (
        "Find table.\n\nThe files that you need are in /workspace. Results are read from /workspace: result.csv.\n"
    )
    assert (task.tier, task.category, task.source) == ("medium", "data-insight", "da-code")
    assert (task.agent_timeout_seconds, task.verifier.timeout_seconds) == (90.0, 30.0)
    assert task.artifacts == ("/workspace/result.csv",)
    assert {
        path.relative_to(folder / "environment").as_posix() for path in folder.glob("environment/**/*.*")
    } == {
        "record_figure.py",
        "data/README.md",
    }, "the agent's image has neither gold results nor the judge"


@pytest.mark.parametrize("name", EVALUATIONS)
def test_each_kind_of_task_is_judged_by_its_own_gold_result(tmp_path: Path, name: str) -> None:
    """The importer itself tries the gold result, which gets 1, and the untouched files."""
    folder = written(tmp_path, name)
    assert (folder / "solution" / "solve.sh").is_file()
    assert list((folder / "solution" / "output").iterdir())


def test_a_misspelt_option_counts_for_nothing(tmp_path: Path) -> None:
    """Published tasks have `conditon_cols`, which DA-Code's evaluator ignores: all columns are compared."""
    table = EVALUATIONS["table"] | {"options": [{"conditon_cols": [1], "ignore_order": True}]}
    folder = written(tmp_path, "table", table=table)
    [[part]] = json.loads((folder / "tests" / "grading.json").read_text())["parts"]
    assert (part["columns"], part["ignore_order"]) == ([], True)


def test_the_figures_numbers_are_asked_for_and_judged(tmp_path: Path) -> None:
    folder = written(tmp_path, "figure")
    (task,) = dataset(tmp_path / "new").tasks()
    assert "record_figure.py SCRIPT" in task.instruction
    assert set(task.artifacts) == {
        "/workspace/plot.png",
        "/workspace/dabench/plot.json",
        "/workspace/dabench/result.npy",
    }
    assert (folder / "tests" / "gold" / "0-figure" / "result.npy").is_file()


CLUSTER = {"config": ML | {"type": "cluster", "metric": "silhouette"}}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("labels", CLUSTER, "the agent itself writes"),
    ("labels", {"config": ML | BOUNDS | {"metric": "crps"}}, "metric 'crps' is unknown"),
    ("labels", {"config": ML | {"lower_bound": 1, "upper_bound": 1}}, "Both bounds"),
    ("labels", {"config": ML | BOUNDS, "options": [{"average": "odd"}]}, "averaged by 'odd'"),
    ("contest", {"config": ML | {"metric": "rmse"}}, "no two bounds"),
    ("contest", {"config": ML | BOUNDS | {"type": "multi", "metric": "roc_auc_score"}}, "two classes only"),
    ("table", {"func": ["compare_dbt"]}, "judged by compare_dbt"),
    ("table", {"conj": "sum"}, "joined by 'sum'"),
    ("table", {"func": ["compare_csv"] * 2}, "1 results and 2 entries in func"),
    ("table", {"options": [{"condition_cols": [2]}]}, "not all in the gold table"),
    ("table", {"options": [{"ignore_order": "yes"}]}, "neither true nor false"),
    ("table", {"options": [{"score_rule": "some"}]}, "neither all nor divide"),
    ("table", {"result": [{"file": ["../secret.csv"]}]}, "not a name of a file inside"),
    ("table", {"result": [{"file": ["absent.csv"]}]}, "absent.csv is missing"),
    ("table", {"result": []}, "names no result"),
    ("either", {"options": [{"ignore_order": [True]}]}, "fewer than there are results"),
    ("answer", {"result": [{"number": ["a"]}]}, "cannot be read"),
    (
        "stored",
        {"options": [{"condition_tabs": ["t", "t"], "ignore_order": [True]}]},
        "1 entries for 2 tables",
    ),
    ("stored", {"result": [{"file": ["result.csv"]}], "options": [{}]}, "not a SQLite database"),
    ("figure", {"options": [{"keys": ["pixels"]}]}, "compared by 'pixels'"),
]


@pytest.mark.parametrize(("name", "changed", "why"), REFUSED, ids=[why for _, _, why in REFUSED])
def test_what_cannot_be_judged_is_left_out_with_the_reason(
    tmp_path: Path, name: str, changed: dict[str, Any], why: str
) -> None:
    with pytest.raises(TaskError, match=why):
        written(tmp_path, name, **{name: EVALUATIONS[name] | changed})


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda source, _: (source / "README.md").unlink(), "no source files"),
        (lambda source, _: (source / "link").symlink_to("/etc/passwd"), "leaves the task's folder"),
        (
            lambda source, _: (source / "data.csv").write_text(
                "version https://git-lfs.github.com/spec/v1\n"
            ),
            "pointer of Git LFS",
        ),
        (lambda source, _: (source / "result.csv").write_text(TABLE), "already hold a result"),
        (lambda _, gold: (gold / "result.csv").unlink(), "result.csv is missing"),
        (lambda _, gold: (gold / "result.csv").write_bytes(b"a\n\xff"), "cannot be used"),
        (
            lambda _, gold: (gold / "result.csv").unlink() or (gold / "result.csv").symlink_to("/etc/passwd"),
            "result.csv is missing",
        ),
    ],
)
def test_a_checkout_that_lacks_something_is_said(tmp_path: Path, broken: Any, why: str) -> None:
    checkout = made(tmp_path / "checkout")
    broken(*(checkout / "da_code" / folder / "table" for folder in ("source", "gold")))
    with pytest.raises(TaskError, match=why):
        write_task(read_checkout(checkout, None, None)["table"], tmp_path / "new", IMAGE)


def test_a_gold_array_that_only_pickle_reads_is_refused(tmp_path: Path) -> None:
    checkout = made(tmp_path / "checkout")
    data = checkout / "da_code" / "gold" / "figure" / "result.npy"
    data.write_bytes(data.read_bytes().replace(b"<f8", b"|O "))
    with pytest.raises(TaskError, match="not plain numbers"):
        write_task(read_checkout(checkout, None, None)["figure"], tmp_path / "new", IMAGE)


def test_a_gold_result_that_does_not_get_1_is_refused(tmp_path: Path) -> None:
    checkout = made(tmp_path / "checkout")
    (checkout / "da_code" / "gold" / "contest" / "contest.csv").write_text("id,price\n1,10\n2,\n3,30\n")
    with pytest.raises(TaskError, match=r"own gold result gets 0 and not 1.*not finite numbers"):
        write_task(read_checkout(checkout, None, None)["contest"], tmp_path / "new", IMAGE)


def test_data_may_lie_elsewhere(tmp_path: Path) -> None:
    checkout = made(tmp_path / "checkout")
    for folder in ("source", "gold"):
        (checkout / "da_code" / folder).rename(tmp_path / folder)
    found = read_checkout(checkout, tmp_path / "source", tmp_path / "gold")
    write_task(found["table"], tmp_path / "new", IMAGE)
    with pytest.raises(ConfigError, match=r"all\.jsonl is missing"):
        read_checkout(tmp_path, None, None)


def test_the_job_imports_what_it_can(cli: Cli) -> None:
    checkout = made(
        cli.outputs / "checkout", good=EVALUATIONS["table"], bad=EVALUATIONS["table"] | {"func": ["x"]}
    )
    assert checkout.is_dir()
    ended = cli("job=import_da_code", "job.root=checkout", "job.path=tasks")
    assert ended.code == 2
    assert "1 tasks were left out:\nbad: It is judged by x, which is unknown here." in ended.err
    assert [path.name for path in (cli.outputs / "tasks").iterdir()] == ["good"]
    recipe = (cli.outputs / "tasks" / "good" / "environment" / "Dockerfile").read_text()
    assert recipe.startswith("ARG BASE=python:")
    assert "pip install --no-cache-dir numpy==" in recipe
    again = cli(
        "job=import_da_code", "job.root=checkout", "job.path=tasks", "job.tasks=[good]", "job.packages=[]"
    )
    assert again.code == 0
    assert "pip" not in (cli.outputs / "tasks" / "good" / "environment" / "Dockerfile").read_text()
    ended = cli("job=import_da_code", "job.root=checkout", "job.path=tasks", "job.tasks=[ugly]")
    assert "no task 'ugly'" in ended.err


def test_the_recorder_writes_what_the_judge_reads(tmp_path: Path) -> None:
    """As an agent does it: the script saves a figure, and the two files beside it are judged."""
    pytest.importorskip("matplotlib")
    folder = written(tmp_path, "figure")
    script = (
        "import matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots(figsize=(8, 6))\n"
        "axes.plot([1, 2], [3, 4])\n"
        "axes.set_title('sales')\n"
        "plt.savefig('plot.png')\n"
    )
    (tmp_path / "draw.py").write_text(script)
    recorder = folder / "environment" / "record_figure.py"
    subprocess.run([sys.executable, str(recorder), "draw.py"], cwd=tmp_path, check=True)
    grading = json.loads((folder / "tests" / "grading.json").read_text())
    assert judge.judge(grading, folder / "tests" / "gold", tmp_path) == (1.0, [])
    (tmp_path / "draw.py").write_text(script.replace("[3, 4]", "[3, 5]"))
    subprocess.run([sys.executable, str(recorder), "draw.py"], cwd=tmp_path, check=True)
    assert judge.judge(grading, folder / "tests" / "gold", tmp_path) == (0.0, [])


@pytest.mark.parametrize("name", ["table", "figure"])
def test_a_result_that_links_to_the_gold_result_is_worth_nothing(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, name)
    gold, work = folder / "tests" / "gold", tmp_path / "work"
    work.mkdir()
    (work / "plot.png").write_text("an image")
    (work / "dabench").symlink_to(gold / "0-figure")
    (work / "result.csv").symlink_to(gold / "0-result.csv")
    reward, complaints = judge.judge(json.loads((folder / "tests" / "grading.json").read_text()), gold, work)
    assert reward == 0
    assert "is a link or lies behind one" in complaints[0]


def test_an_answer_of_any_depth_is_worth_nothing_and_no_crash(tmp_path: Path) -> None:
    unordered = EVALUATIONS["answer"] | {
        "result": [{"number": [{"Top": ["a", "b"]}]}],
        "options": [{"ignore_order": True}],
    }
    folder = written(tmp_path, "answer", answer=unordered)
    grading = json.loads((folder / "tests" / "grading.json").read_text())
    for depth in (10, *range(700, 1000, 7), 100_000):
        (tmp_path / "answer.json").write_text('{"Top": ["a", ' + "[" * depth + "]" * depth + "]}")
        assert judge.judge(grading, folder / "tests" / "gold", tmp_path)[0] == 0


@pytest.mark.docker
@pytest.mark.parametrize("name", ["table", "figure"])
def test_an_imported_task_gives_its_gold_result_1_and_nothing_0(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path, name)
    sandboxes = DockerSandboxes()
    sandboxes.prepare((), print)
    assert "mode separate" in dataset(tmp_path / "new").find_truth(folder, None, sandboxes, print)
