"""`job=verify_ground_truth dataset=harbor`: the mode in which each task can be judged is found by its own solution."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.benchmarks.harbor.dataset import HarborDataset
from runner.benchmarks.harbor.truth import read_modes
from runner.errors import ConfigError, TaskError
from runner.records import Beside
from runner.resources import ROOT
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support import service_tasks
from tests.support.sweeps import Cli
from tests.support.tasks_factory import dataset, make_task
from tests.sweeps.test_plan import keys

pytestmark = pytest.mark.usefixtures("no_page")


def found(folder: Path, task: str = "made") -> tuple[HarborDataset, str]:
    """Find the truth of a task. Return the dataset and what the job says."""
    made = dataset(folder)
    sandboxes = DockerSandboxes()
    sandboxes.prepare((), print)
    return made, made.find_truth(folder / task, None, sandboxes, print)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("make", "ports"),
    [
        (service_tasks.key_value_store, (5328,)),
        (service_tasks.git_web_server, (8080, 9418)),
        (service_tasks.nginx_logging, (80, 8081)),
    ],
)
def test_tasks_that_leave_a_service_were_worth_nothing(
    tmp_path: Path, make: Callable[[Path, str], Path], ports: tuple[int, ...]
) -> None:
    """They got 0 silently: the service was dead before the tests ran."""
    make(tmp_path, "made")
    made, words = found(tmp_path)
    (task,) = made.tasks()
    assert task.verifier.beside == Beside(ports=ports)
    assert "mode beside" in words
    truth = json.loads((tmp_path / "made" / "truth.json").read_text())
    assert truth["tried"]["shared"]["solution"] == [0.0]
    assert truth["tried"]["beside"] == {"solution": [1.0, 1.0], "nothing": [0.0], "reason": ""}
    assert (task.flags, task.fresh_dirs) == ((), ())


@pytest.mark.docker
@pytest.mark.parametrize("kind", ["the process", "its files"])
def test_tests_that_must_see_more_than_ports_stay_live(tmp_path: Path, kind: str) -> None:
    if kind == "the process":
        service_tasks.process_to_see(tmp_path, "made")
    else:
        service_tasks.nginx_logging(tmp_path, "made", service_tasks.LINES_TEST)
    made, words = found(tmp_path)
    (task,) = made.tasks()
    assert "mode live" in words
    assert (task.verifier.keep_processes, task.fresh_dirs) == (True, ("/tests", "/logs/verifier"))


@pytest.mark.docker
@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_a_task_without_services_is_judged_without_processes(tmp_path: Path, mode: str) -> None:
    separate = 'artifacts = ["/app/done"]\n[verifier]\nenvironment_mode = "separate"\n'
    make_task(tmp_path, "made", toml=separate if mode == "separate" else "")
    before = keys(tmp_path)
    made, words = found(tmp_path)
    (task,) = made.tasks()
    assert f"mode {mode}" in words
    assert task.verifier.ends_processes
    assert keys(tmp_path) == before


@pytest.mark.docker
@pytest.mark.parametrize(
    ("solve", "test", "why"),
    [
        ("echo no compiler", "echo there is no compiler; echo 0 > /logs/verifier/reward.txt", "no compiler"),
        ("touch /app/done", "echo 1 > /logs/verifier/reward.txt", "untouched machine gets 1.0"),
    ],
)
def test_a_task_that_can_judge_nobody_says_so_before_a_model_is_paid(
    tmp_path: Path, solve: str, test: str, why: str
) -> None:
    make_task(tmp_path, "made", solve, test=test)
    with pytest.raises(TaskError, match=why):
        found(tmp_path)
    made = dataset(tmp_path)
    (task,) = made.tasks()
    assert task.flags == ("solution_fails",)
    said: list[str] = []
    made.prepare(said.append)
    assert len(said) == 1
    assert why in said[0]


@pytest.mark.docker
def test_an_image_that_cannot_be_built_is_no_finding_about_the_solution(tmp_path: Path) -> None:
    """It was flagged `solution_fails` from then on, after all modes had been tried."""
    folder = make_task(tmp_path, "made", dockerfile="ARG BASE\nFROM ${BASE}\nRUN false\n")
    with pytest.raises(TaskError, match=r"could not be tried: .*could not be built"):
        found(tmp_path)
    assert not (folder / "truth.json").exists()


def truth(folder: Path, **fields: object) -> None:
    (folder / "truth.json").write_text(json.dumps({"digest": "", "mode": None} | fields))


def test_what_was_found_about_other_files_does_not_count(tmp_path: Path) -> None:
    folder = make_task(tmp_path, "made")
    made = dataset(tmp_path)
    truth(folder, digest=made._tried(folder), mode="beside", ports=[80])
    assert made.tasks()[0].verifier.beside == Beside(ports=(80,))
    (folder / "tests" / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt\n")
    assert made.tasks()[0].verifier.beside is None


def test_what_is_typed_comes_before_what_was_found(tmp_path: Path) -> None:
    make_task(tmp_path, "made")
    (tmp_path / "modes.yaml").write_text("made: {mode: beside, ports: [80]}\nabsent: {mode: live}\n")
    modes = tmp_path / "modes.yaml"
    assert dataset(tmp_path, modes=modes).tasks()[0].verifier.beside == Beside(ports=(80,))
    assert dataset(tmp_path, modes=modes, beside=("made",)).tasks()[0].verifier.beside == Beside()
    assert dataset(tmp_path, modes=modes, keep_processes=("made",)).tasks()[0].verifier.keep_processes
    with pytest.raises(ConfigError, match="no task is called 'other'"):
        dataset(tmp_path, beside=("other",)).tasks()


def test_modes_go_by_the_folder_whatever_a_task_is_called(tmp_path: Path) -> None:
    """Tasks of Terminal-Bench 2.1 are called `terminal-bench/NAME`, and the preset's modes did not reach them."""
    make_task(tmp_path, "made", toml='[task]\nname = "some-bench/made"\n')
    (tmp_path / "modes.yaml").write_text("made: {mode: beside, ports: [80]}\n")
    (task,) = dataset(tmp_path, modes=tmp_path / "modes.yaml").tasks()
    assert (task.name, task.verifier.beside) == ("some-bench/made", Beside(ports=(80,)))


@pytest.mark.parametrize("text", ["made: {mode: sideways}", "made: [", "- made"])
def test_a_file_of_modes_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    make_task(tmp_path, "made")
    (tmp_path / "modes.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"modes\.yaml cannot be read"):
        dataset(tmp_path, modes=tmp_path / "modes.yaml").tasks()


@pytest.mark.parametrize("name", ["terminal_bench_2", "skillsbench"])
def test_shipped_modes_say_what_they_rest_on(name: str) -> None:
    modes = read_modes(ROOT / "tasks" / "harbor" / f"{name}.yaml")
    assert modes
    for task, truth in modes.items():
        assert bool(truth.found_on) is not truth.by_hand, task
        assert (truth.ports is not None) is (truth.mode == "beside"), task


def test_each_mode_has_a_key_of_its_own(tmp_path: Path) -> None:
    make_task(tmp_path, "made")
    ways = [{}, {"beside": ("made",)}, {"keep_processes": ("made",)}]
    digests = [dataset(tmp_path, **way).tasks()[0].digest for way in ways]
    assert len(set(digests)) == 3


@pytest.mark.docker
def test_the_job_finds_the_modes_of_a_folder_and_the_plan_says_what_fails(cli: Cli) -> None:
    make_task(cli.outputs / "mytasks", "good")
    make_task(
        cli.outputs / "mytasks", "lost", "true", test="echo no network; echo 0 > /logs/verifier/reward.txt"
    )
    words = ("dataset=harbor", "dataset.root=mytasks", "dataset.build_args.BASE=assay-base")
    ended = cli("job=verify_ground_truth", *words)
    assert ended.code == 2
    assert "good: judged in mode shared" in ended.out
    assert "1 tasks have no ground truth:\nlost: Its own solution fails here: no network" in ended.err
    plan = cli(*words, "agent=oracle", "dry_run=true", "name=bounds")
    assert "flagged: lost: solution_fails" in plan.out
    assert cli(*words, "job=verify_ground_truth", "job.tasks=[good]").code == 0
    ran = cli(*words, "agent=nop", "name=bounds")
    assert "lost is flagged solution_fails: Its own solution fails here: no network" in ran.out + ran.err
