"""`job=import_terminal_bench`: tasks of Terminal-Bench 1 become folders that run here."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import yaml

from runner.benchmarks.harbor.jobs.task_folders import import_tasks
from runner.benchmarks.harbor.terminal_bench import JUDGE, write_task
from runner.errors import TaskError
from runner.resources import ROOT
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.sweeps import Cli
from tests.support.tasks_factory import dataset

COMPOSE = """
services:
  client:
    build: {dockerfile: Dockerfile}
    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}
    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}
    command: [sh, -c, sleep infinity]
    environment: ["TEST_DIR=${T_BENCH_TEST_DIR}", COLOUR=blue]
    volumes: ["${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}"]
"""
DATABASE = "  database: {image: postgres, environment: {POSTGRES_PASSWORD: x}}\n"
SAYS = """
printf '=== short test summary info ===\\n'
test -f /app/done && [ "$TEST_DIR" = /tests ] && echo 'PASSED a::b' || echo 'FAILED a::b - no'
"""
"""Tests that print what pytest prints, on an image without pytest."""


def made(folder: Path, files: dict[str, str | None] | None = None, **changed: Any) -> Path:
    """Make a task of Terminal-Bench 1."""
    task = {
        "instruction": "Make the file /app/done.",
        "difficulty": "medium",
        "category": "file-operations",
        "tags": ["bash"],
        "parser_name": "pytest",
        "max_agent_timeout_sec": 90.0,
        "max_test_timeout_sec": 30.0,
        "author_name": "anonymous",
    } | changed
    texts: dict[str, str | None] = {
        "task.yaml": "# canary\n" + yaml.safe_dump(task),
        "Dockerfile": "ARG BASE\nFROM ${BASE}\nWORKDIR /app\nCOPY data.txt /app/\n",
        "data.txt": "given",
        "docker-compose.yaml": COMPOSE,
        "run-tests.sh": SAYS,
        "tests/test_outputs.py": "def test(): pass\n",
        "solution.sh": "touch /app/done\n",
    }
    for name, text in (texts | (files or {})).items():
        if text is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


def test_a_task_keeps_its_words_limits_and_files(tmp_path: Path) -> None:
    write_task(made(tmp_path / "old"), tmp_path / "new" / "old")
    (task,) = dataset(tmp_path / "new").tasks()
    assert task.refused is None
    assert task.instruction == "Make the file /app/done.\n"
    assert (task.tier, task.category, task.language, task.source) == (
        "medium",
        "file-operations",
        "bash",
        "terminal-bench",
    )
    assert (task.agent_timeout_seconds, task.verifier.timeout_seconds) == (90.0, 30.0)
    assert task.environment.env == {"COLOUR": "blue"}
    files = {path.relative_to(tmp_path / "new" / "old").as_posix() for path in task.directory.rglob("*.*")}
    assert files == {
        "task.toml",
        "instruction.md",
        "environment/data.txt",
        "tests/run-tests.sh",
        "tests/test.sh",
        "tests/test_outputs.py",
        "solution/solve.sh",
    }, "the agent's image has neither tests nor solution"


def test_an_older_file_and_a_typed_solution(tmp_path: Path) -> None:
    typed = "- {command: cd /app, min_timeout_sec: 1}\n- {command: touch done, block: true}\n"
    files = {"solution.sh": None, "solution.yaml": typed, "run-tests.sh": None, "docker-compose.yaml": None}
    described = [{"key": "base", "description": "Do it."}, {"key": "hard", "description": "Guess."}]
    write_task(made(tmp_path / "old", files, instruction=None, descriptions=described), tmp_path / "new")
    assert (tmp_path / "new" / "instruction.md").read_text() == "Do it.\n"
    assert (tmp_path / "new" / "solution" / "solve.sh").read_text() == "#!/bin/bash\ncd /app\ntouch done\n"
    assert "pytest" in (tmp_path / "new" / "tests" / "run-tests.sh").read_text()


def test_a_solution_that_is_typed_key_by_key_is_none(tmp_path: Path) -> None:
    files = {
        "solution.sh": None,
        "solution.yaml": "- {command: 'vim x'}\n- {command: ':q', append_enter: false}\n",
    }
    write_task(made(tmp_path / "old", files), tmp_path / "new")
    assert not (tmp_path / "new" / "solution").exists()


def test_further_containers_keep_what_is_theirs(tmp_path: Path) -> None:
    write_task(made(tmp_path / "old", {"docker-compose.yaml": COMPOSE + DATABASE}), tmp_path / "new")
    written = yaml.safe_load((tmp_path / "new" / "environment" / "docker-compose.yaml").read_text())
    assert written["services"] == {
        "main": {"environment": ["COLOUR=blue"]},
        "database": {"image": "postgres", "environment": {"POSTGRES_PASSWORD": "x"}},
    }


@pytest.mark.parametrize(
    ("files", "changed", "why"),
    [
        ({}, {"parser_name": "swebench"}, "only pytest's summary"),
        ({}, {"run_tests_in_same_shell": True}, "the agent's own shell"),
        ({}, {"instruction": " "}, "neither an instruction"),
        ({}, {"difficulty": "brutal"}, "difficulty"),
        ({"task.yaml": "a: ["}, {}, "cannot be read"),
        ({"docker-compose.yaml": "services: {other: {}}"}, {}, "no service called client"),
        (
            {"docker-compose.yaml": "services: {client: {build: ../elsewhere}}"},
            {},
            "not built from a Dockerfile",
        ),
        ({"Dockerfile": None}, {}, "not built from a Dockerfile"),
    ],
)
def test_what_cannot_be_run_is_left_out_with_the_reason(
    tmp_path: Path, files: dict[str, str | None], changed: dict[str, Any], why: str
) -> None:
    with pytest.raises(TaskError, match=why):
        write_task(made(tmp_path / "old", files, **changed), tmp_path / "new")


def test_a_link_out_of_the_task_is_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "old")
    (folder / "secret").symlink_to("/etc/passwd")
    with pytest.raises(TaskError, match="leaves the task's folder"):
        write_task(folder, tmp_path / "new")


@pytest.mark.parametrize(
    ("printed", "reward"),
    [
        ("= short test summary info =\nPASSED a\nPASSED b", "1"),
        ("= short test summary info =\nPASSED a\nSKIPPED [1] b", "1"),
        ("= short test summary info =\nPASSED a\nFAILED b - assert", "0"),
        ("= short test summary info =\nPASSED a\nERROR b", "0"),
        ("= short test summary info =\nSKIPPED [1] b", "0"),
        ("PASSED a", "0"),
        ("no pytest here", "0"),
        ("= short test summary info =\nPASSED a\n= short test summary info =\nFAILED a", "0"),
    ],
)
def test_the_reward_is_what_pytest_sums_up(tmp_path: Path, printed: str, reward: str) -> None:
    (tmp_path / "run-tests.sh").write_text(f"cat <<'END'\n{printed}\nEND\n")
    script = JUDGE.replace("/logs/verifier", str(tmp_path)).replace("/tests/", f"{tmp_path}/")
    subprocess.run(["bash", "-c", script], check=True, capture_output=True)
    assert (tmp_path / "reward.txt").read_text().strip() == reward


def test_the_job_imports_what_it_can(cli: Cli) -> None:
    made(cli.outputs / "checkout" / "good")
    made(cli.outputs / "checkout" / "bad", parser_name="other")
    ended = cli("job=import_terminal_bench", "job.root=checkout", "job.path=tasks")
    assert ended.code == 2
    assert "1 tasks were left out:\nbad: Its results are read by 'other'" in ended.err
    assert [path.name for path in (cli.outputs / "tasks").iterdir()] == ["good"]
    assert (
        cli("job=import_terminal_bench", "job.root=checkout", "job.path=tasks", "job.tasks=[good]").code == 0
    )
    assert (
        "no task 'ugly'"
        in cli("job=import_terminal_bench", "job.root=checkout", "job.path=tasks", "job.tasks=[ugly]").err
    )


@pytest.mark.docker
def test_an_imported_task_judges_its_solution_here(tmp_path: Path) -> None:
    write_task(made(tmp_path / "old"), tmp_path / "new" / "old")
    sandboxes = DockerSandboxes()
    sandboxes.prepare((), print)
    words = dataset(tmp_path / "new").find_truth(tmp_path / "new" / "old", None, sandboxes, print)
    assert "mode shared" in words


def test_of_two_imports_into_one_folder_one_ended_in_a_traceback(tmp_path: Path) -> None:
    """Both removed the earlier task at the same time, and only one could put its own in its place."""
    both = Barrier(2)

    def write(number: int, into: Path) -> None:
        into.mkdir()
        for name in range(100):
            (into / str(name)).write_text(str(number))
        both.wait()

    with ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            imports = [pool.submit(import_tasks, {"one": n}, tmp_path / "new", write) for n in (1, 2)]
            for each in imports:
                each.result()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["one"]
    texts = [path.read_text() for path in (tmp_path / "new" / "one").iterdir()]
    assert texts in (["1"] * 100, ["2"] * 100)


KILLED = """
import os, signal, sys
from pathlib import Path
from runner.benchmarks.harbor.jobs.task_folders import import_tasks

removed = []

def watch(event, _):
    if event in ("os.remove", "os.rmdir"):
        removed.append(event)
        if len(removed) == 3:
            os.kill(os.getpid(), signal.SIGKILL)

def write(_, into):
    into.mkdir()
    for name in range(5):
        (into / str(name)).write_text("new")
    sys.addaudithook(watch)

import_tasks({"one": None}, Path(sys.argv[1]), write)
"""


def test_a_killed_import_left_half_of_the_earlier_task(tmp_path: Path) -> None:
    earlier = tmp_path / "one"
    earlier.mkdir()
    for name in range(5):
        (earlier / str(name)).write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.read_text() for path in earlier.iterdir()] == ["new"] * 5
