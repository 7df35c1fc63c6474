"""The parts of this machine's environment that a task may read: variables that the user names, never a provider's key.
The record names them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from runner.agents.bounds import Oracle
from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
from runner.benchmarks.cli_tool_bench.verifier import DifferentialVerifier
from runner.benchmarks.project_setup.dataset import TASK
from runner.benchmarks.sources.task_files import check_links
from runner.errors import ConfigError, TaskError
from runner.gateway import Gateway
from runner.protocols import Dataset
from runner.records import Budget, Status, Task
from runner.resources import ROOT
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.project_factory import make_project, project_bench
from tests.support.suite_factory import make_folder, suite_dataset
from tests.support.tasks_factory import dataset, make_task

SECRET = "sk-canary-of-this-machine"
NAME = "ASSAY_TEST_SECRET"
Run = Callable[..., subprocess.CompletedProcess[str]]

PLACES = {
    "the agent's machine": "[environment]\nenv = {{ A = '{value}' }}\n",
    "the verifier": "[verifier]\nenv = {{ A = '{value}' }}\n",
    "a separate verifier": (
        "[verifier]\nenvironment_mode = 'separate'\n"
        "[verifier.environment]\ndocker_image = 'x'\nenv = {{ A = '{value}' }}\n"
    ),
    "the solution": "[solution]\nenv = {{ A = '{value}' }}\n",
}  # fmt: skip


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, SECRET)


def only(root: Path, toml: str, **options: object) -> Task:
    make_task(root, "one", toml=toml)
    (task,) = dataset(root, **options).tasks()
    return task


def knows(task: Task) -> bool:
    return SECRET in task.model_dump_json()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "value",
    [
        "${ASSAY_TEST_SECRET}",
        "x${ASSAY_TEST_SECRET}y",
        "${ASSAY_TEST_SECRET:-}",
        "${ASSAY_TEST_SECRET:-${HOME}}",
    ],
)
def test_a_variable_that_the_user_does_not_name_reaches_no_task(
    tmp_path: Path, place: str, value: str
) -> None:
    task = only(tmp_path, PLACES[place].format(value=value))
    reason = f"asks for {NAME} of this machine's environment: if it may have it, add dataset.env=[{NAME}]."
    if ":-" not in value:
        assert reason in str(task.solution_refused if place == "the solution" else task.refused)
    assert not knows(task)
    assert task.host_env == ()


@pytest.mark.parametrize("place", PLACES)
def test_a_variable_that_the_user_names_is_given_and_told(tmp_path: Path, place: str) -> None:
    task = only(tmp_path, PLACES[place].format(value="${ASSAY_TEST_SECRET:-x}"), env=[NAME, "HOME"])
    assert task.refused is None
    assert knows(task)
    assert task.host_env == (NAME,)


@pytest.mark.parametrize(
    "value",
    [
        "$ASSAY_TEST_SECRET",
        "${ASSAY_TEST_SECRET-x}",
        "${!ASSAY_TEST_SECRET}",
        "$(env)",
        "`env`",
        "${oc.env:ASSAY_TEST_SECRET}",
    ],
)
def test_other_spellings_mean_nothing(tmp_path: Path, value: str) -> None:
    task = only(tmp_path, PLACES["the agent's machine"].format(value=value), env=[NAME])
    assert task.environment.env == {"A": value}


@pytest.mark.parametrize("name", ["*", "ASSAY_*", "", "A B", "A=B", "1A", "A\n"])
def test_variables_are_named_one_by_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="env"):
        dataset(tmp_path, env=[name])


def test_a_default_is_not_read_again(tmp_path: Path) -> None:
    """The shell would expand `${A:-${B}}` to B's value; here the default is literal text."""
    task = only(
        tmp_path, PLACES["the agent's machine"].format(value="${UNSET:-$ASSAY_TEST_SECRET}"), env=["UNSET"]
    )
    assert task.environment.env == {"A": "$ASSAY_TEST_SECRET"}


def test_a_solutions_variable_concerns_the_oracle_alone(tmp_path: Path) -> None:
    task = only(tmp_path, PLACES["the solution"].format(value="${ASSAY_TEST_SECRET}"))
    assert task.refused is None
    with pytest.raises(TaskError, match=r"its solution cannot be applied\. It asks for ASSAY_TEST_SECRET"):
        Oracle().command(task, None)


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MOONSHOT_API_KEY", "DASHSCOPE_API_KEY"]
)
def test_a_providers_key_is_given_to_nobody(command: Run, tmp_path: Path, name: str) -> None:
    make_task(tmp_path / "tasks", "one", toml=f"[environment]\nenv = {{ A = '${{{name}}}' }}\n")
    given = ("agent=nop", "dataset=harbor", f"dataset.root={tmp_path / 'tasks'}", "dry_run=true")
    ended = command(*given, f"dataset.env=[{name},HOME]", **{name: SECRET})
    assert ended.returncode == 2
    assert f"dataset.env: {name} is where a provider's key is, which no sandbox ever gets" in ended.stderr
    ended = command(*given, **{name: SECRET})
    assert f"asks for {name} of this machine's environment" in ended.stdout
    assert SECRET not in ended.stdout + ended.stderr


def test_a_key_of_a_model_that_is_typed_is_given_to_nobody(command: Run, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "one")
    given = (
        "agent=mini_swe_agent",
        "model=gpt",
        "model.api_key_env=MY_KEY",
        "dataset.env=[MY_KEY]",
        "dry_run=true",
    )
    ended = command(*given, "dataset=harbor", f"dataset.root={tmp_path / 'tasks'}")
    assert ended.returncode == 2
    assert "MY_KEY is where a provider's key is" in ended.stderr


@pytest.mark.docker
def test_what_was_given_is_on_the_record_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_TEST_OTHER", "other-canary")
    toml = f"[environment]\nenv = {{ A = '${{{NAME}}}', B = '${{ASSAY_TEST_OTHER:-none}}' }}\n"
    make_task(tmp_path / "tasks", "one", "echo $A $B; touch /app/done", toml=toml)
    tasks = dataset(tmp_path / "tasks", env=[NAME])
    cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=tasks, budget=Budget(), attempts=1)
    sandboxes, store = DockerSandboxes(), Store(tmp_path / "outputs")
    (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
    record = run_to_the_end(
        planned, TrialContext(sandboxes, Gateway(tmp_path), store, "test", {}), 0, lambda: False
    )
    assert (record.status, record.host_env) == (Status.COMPLETED, (NAME,))
    folder = store.folder(planned.key)
    assert f"{SECRET} none" in (folder / "agent.stdout").read_text()
    assert json.loads((folder / "record.json").read_text())["host_env"] == [NAME]
    assert SECRET not in (folder / "record.json").read_text()


# --- the rest of a task's folder -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        *(
            "tests",
            "environment",
            "solution",
            "task.toml",
            "instruction.md",
            "tests/test.sh",
            "environment/Dockerfile",
        ),
        *("environment/.dockerignore", "tests/deep/x", "tests/__pycache__", "environment/__pycache__/x.pyc"),
        *("tests/x.pyc", "solution/solve.sh"),
    ],
)
@pytest.mark.parametrize("target", ["/etc", "{outside}", "../../../outside", "inner/../../../../outside"])
def test_no_link_of_a_task_leads_out_of_its_folder(tmp_path: Path, place: str, target: str) -> None:
    (tmp_path / "outside").write_text(SECRET)
    folder = make_task(tmp_path / "tasks" / "deep", "one")
    link = folder / place
    link.parent.mkdir(exist_ok=True)
    if link.is_dir():
        link.rename(tmp_path / "moved")
    link.unlink(missing_ok=True)
    link.symlink_to(target.format(outside=tmp_path / "outside"))
    if link.resolve().is_relative_to(folder.resolve()):
        pytest.skip("this depth of that target is inside")
    (task,) = dataset(tmp_path / "tasks" / "deep").tasks()
    assert "is a link that leaves the task's folder" in str(task.refused)
    assert SECRET not in task.model_dump_json()


@pytest.mark.parametrize(
    "place", ["tests/pipe", "environment/__pycache__/pipe", "task.toml", "instruction.md"]
)
@pytest.mark.timeout(20)
def test_a_pipe_in_a_task_is_not_waited_for(tmp_path: Path, place: str) -> None:
    folder = make_task(tmp_path, "one")
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / place).unlink(missing_ok=True)
    os.mkfifo(folder / place)
    with pytest.raises(TaskError, match="is neither a file nor a folder nor a link"):
        check_links(folder)
    (task,) = dataset(tmp_path).tasks()
    assert task.refused


@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize(
    ("bench", "place"),
    [
        *(("execution", name) for name in (TASK, "truth.json", "solution", "solution/Dockerfile")),
        *(("nl2repo", name) for name in ("start.md", "test_files.json", "source.yaml", "truth.json")),
        *(("cli_tool_bench", name) for name in ("instruction.md", "cases.jsonl", "task.toml")),
    ],
)
@pytest.mark.timeout(20)
def test_other_benchmarks_follow_no_link_out_and_wait_for_no_pipe(
    tmp_path: Path, bench: str, place: str, kind: str
) -> None:
    folder = tmp_path / "tasks" / "one"
    outside = tmp_path / "outside"
    outside.write_text(SECRET)
    if bench == "execution":
        benchmark: Dataset = project_bench(tmp_path / "tasks", tmp_path / "cache", truthless=True)
        make_project(tmp_path / "tasks", "one")
    elif bench == "nl2repo":
        benchmark = suite_dataset(tmp_path / "tasks", tmp_path / "cache")
        make_folder(tmp_path / "tasks", "one")
    else:
        shutil.copytree(ROOT / "tasks/cli_tool_bench/verstamp", folder)
        images = ROOT / "tasks/cli_tool_bench/images"
        verifier = DifferentialVerifier(cache=tmp_path / "cache")
        benchmark = CliToolBench(name="tools", root=tmp_path / "tasks", images=images, verifier=verifier)
    if (folder / place).is_dir():
        shutil.rmtree(folder / place)
    (folder / place).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(folder / place)
    else:
        (folder / place).symlink_to(outside)
    try:
        tasks = benchmark.tasks()
    except ConfigError:  # without that file the folder is not a task
        return
    assert [task.refused for task in tasks if "link" in str(task.refused)]


@pytest.mark.parametrize(
    "content",
    [
        "a = " + "[" * 100_000,
        "a = " + "1" * 5000,
        "a = 2020-13-45",
        "[environment]\n_target_ = 'os.system'\n" + "b" * 10 + " = \x00",
        "\xff",
    ],
    ids=["deep", "a number without end", "a date that is none", "a NUL", "other bytes"],
)
def test_a_task_file_that_breaks_its_parser_refuses_that_task_alone(tmp_path: Path, content: str) -> None:
    make_task(tmp_path, "good")
    (make_task(tmp_path, "bad") / "task.toml").write_bytes(content.encode("latin-1"))
    bad, good = dataset(tmp_path).tasks()
    assert "is not valid TOML" in str(bad.refused)
    assert good.refused is None


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "a: 2020-13-45",
        "a: " + "1" * 5000,
        "!!python/object/apply:os.system [id]",
        "a: !!python/name:os.system",
        "\x00",
    ],
    ids=["deep", "a date that is none", "a number without end", "a call", "a name", "a NUL"],
)
def test_a_yaml_file_that_breaks_its_parser_refuses_that_task_alone(tmp_path: Path, content: str) -> None:
    bench = project_bench(tmp_path / "tasks", tmp_path / "cache", truthless=True)
    make_project(bench.root, "good")
    (make_project(bench.root, "bad") / TASK).write_text(content)
    bad, good = bench.tasks()
    assert bad.refused
    assert good.refused is None


@pytest.mark.parametrize("key", ["_target_", "environment", "verifier", "agent", "metadata", "solution"])
def test_a_task_names_no_class(tmp_path: Path, key: str) -> None:
    """`_target_` belongs to our own configuration, not to a task's."""
    line = "_target_ = 'subprocess.Popen'\nargs = ['touch', 'x']\n"
    toml = f"{line}\n[agent]\n" if key == "_target_" else f"[{key}]\n{line}"
    task = only(tmp_path, toml)
    assert task.refused is None
    assert "Popen" not in task.model_dump_json(exclude={"directory"})
