"""job=environment from the command line: from a project to two scripts, results and an account."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from runner.benchmarks.project_setup import given_project
from runner.benchmarks.project_setup.deliverables import TRUTH, Outcomes, Rerun, Truth
from runner.benchmarks.project_setup.jobs.environment import ACCOUNT, NO_TEST
from runner.benchmarks.project_setup.jobs.project_account import LINES, account
from runner.benchmarks.sources.checkouts import project_paths
from runner.errors import ConfigError
from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import ErrorInfo, Status
from runner.resources import ROOT
from tests.support.records_factory import trial_record
from tests.support.suite_factory import write
from tests.support.sweeps import Cli

pytestmark = pytest.mark.usefixtures("no_page")

SCRIPTS = {
    "Dockerfile": "ARG BASE\nFROM ${BASE}\nCOPY project /workspace/project\n",
    "run_tests.sh": "python3 -m unittest -v\n",
}
PROJECT = {
    "test_sums.py": "import unittest\n\n\nclass Sums(unittest.TestCase):\n"
    "    def test_right(self):\n        self.assertEqual(1 + 1, 2)\n\n"
    "    def test_wrong(self):\n        self.assertEqual(1 + 1, 3)\n\n"
    '    @unittest.skip("not here")\n    def test_skipped(self):\n        pass\n',
    "README.md": "Sums.\n",
}
OUTCOMES = {"passed": 1, "failed": 1, "skipped": 1}
LEFT = {"Dockerfile", "run_tests.sh", "results.json", ACCOUNT, "task"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "sums", PROJECT)
    return tmp_path / "sums"


def place(cli: Cli, name: str = "mine", project: str = "sums") -> Path:
    """Return the folder of a project's results."""
    return cli.outputs / name / "environment" / project


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def step(name: str, **args: str) -> Behaviour:
    """Return an answer of the model with one tool."""
    return Behaviour(text=json.dumps({"thoughts": "next", "tool": {"name": name, "args": args}}))


@pytest.mark.docker
def test_a_project_is_set_up_and_its_account_is_written(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_API_KEY", "sk-fake")
    steps = [
        *(step("write_file", path=name, content=text) for name, text in SCRIPTS.items()),
        step("write_file", path="results.json", content=json.dumps(OUTCOMES)),
        step("task_done", reason="The tests run."),
    ]
    with FakeUpstream(*steps) as upstream:
        words = [f"model.api_base={upstream.url}", "model.api_key_env=FAKE_API_KEY", "name=mine"]
        agent = ["agent.preparation=false", "agent.attempts=1", "agent.commands=4", "model=gpt"]
        limits = ["job.build_seconds=400", "job.test_seconds=100", "gateway.preflight=false"]
        ended = cli("job=environment", f"project={project}", *agent, *words, *limits)
        assert ended.code == 0, ended.err
        again = cli("job=environment", f"project={project}", *agent, *words, *limits)
        assert (again.code, len(upstream.requests)) == (0, len(steps)), "it was finished"
    folder = place(cli)
    for each in (ended, again):
        assert "From scratch: 1 passed, 1 failed, 1 skipped." in each.out
        assert "AMS" not in each.out, "a leaderboard of one trial came first"
    assert str(folder) in ended.out
    assert names(folder) == LEFT
    assert {name: (folder / name).read_text() for name in SCRIPTS} == SCRIPTS
    results = json.loads((folder / "results.json").read_text())
    assert results == {**OUTCOMES, "runs": [{"framework": "unittest", **OUTCOMES}]}
    account = (folder / ACCOUNT).read_text()
    assert account.startswith("# sums\n\nexecution_agent with gpt worked on it on ")
    assert "| unittest | 1 | 1 | 1 | what it prints |" in account
    assert "docker build --build-arg BASE=assay-base:TAG -t sums ." in account
    assert "and 4 model calls (4000 tokens in, 200 out): 0.0" in account
    assert "What went wrong" not in account
    task = (folder / "task" / "sums" / "task.yaml").read_text()
    assert "build_seconds: 400.0\ntest_seconds: 100.0\n" in task
    assert str(project) not in account


@pytest.mark.docker
def test_the_scripts_become_the_recorded_solution_of_a_task(cli: Cli, project: Path, tmp_path: Path) -> None:
    """`oracle` applies the recorded scripts like any other agent; what it leaves then gives a truth."""
    write(place(cli) / "task" / "sums" / "solution", SCRIPTS)
    assert cli("job=environment", f"project={project}", "agent=oracle", "name=mine").code == 0
    task = tmp_path / "tasks" / "sums"
    write(task, {"task.yaml": (place(cli) / "task" / "sums" / "task.yaml").read_text()})
    words = ["job=verify_ground_truth", "dataset=execution", f"dataset.root={task.parent}", "agent=nop"]
    ended = cli(*words)
    assert ended.code == 2
    assert "needs a Dockerfile and a run_tests.sh" in ended.err
    ended = cli(*words, f"scripts={place(cli)}")
    assert ended.code == 0, ended.err
    assert "[1/1] sums: 1 passed, 1 failed, 1 skipped, twice" in ended.out
    truth = Truth.model_validate_json((task / TRUTH).read_bytes())
    assert truth.outcomes == Outcomes.model_validate(OUTCOMES)
    assert (task / "solution" / "run_tests.sh").read_text() == SCRIPTS["run_tests.sh"]
    planned = cli("dataset=execution", f"dataset.root={task.parent}", "agent=oracle", "dry_run=true")
    assert "1 trials planned: 0 finished, 1 to do." in planned.out


@pytest.mark.docker
def test_a_refused_command_took_the_result_of_the_one_that_was_at_work(cli: Cli, project: Path) -> None:
    """It had written its own task before it was refused. The other one then found no record: "Nothing was run."."""
    slow = {"run_tests.sh": f"sleep 2\n{SCRIPTS['run_tests.sh']}"}
    write(place(cli) / "task" / "sums" / "solution", {**SCRIPTS, **slow})
    words = ["job=environment", f"project={project}", "agent=oracle", "name=mine"]
    command = [sys.executable, "-m", "runner", f"outputs={cli.outputs}", "tracker=none", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as first:
        while not any(cli.outputs.glob("trials/*/*")):
            time.sleep(0.05)
        second = cli(*words, "job.build_seconds=500")
        out, _ = first.communicate()
    assert (second.code, "Another " in second.err) == (2, True), second.err
    assert (first.returncode, "From scratch: 1 passed, 1 failed, 1 skipped." in out) == (0, True), out
    assert (place(cli) / "results.json").is_file()


@pytest.mark.docker
def test_a_project_without_a_test_has_its_own_exit_code_and_a_reason(
    cli: Cli, project: Path, tmp_path: Path
) -> None:
    with tarfile.open(tmp_path / "sums-1.0.tar.gz", "w:gz") as tar:
        tar.add(project, "sums-1.0")
    folder = place(cli, project="sums-1.0")
    write(folder, {"Dockerfile": "of an earlier run\n", "results.json": "{}"})
    ended = cli("job=environment", f"project={tmp_path}/sums-1.0.tar.gz", "agent=nop", "name=mine")
    assert ended.code == NO_TEST
    assert names(folder) == {ACCOUNT, "task"}
    account = (folder / ACCOUNT).read_text()
    assert account.startswith("# sums-1.0\n\nnop worked on it on ")
    assert "It was not built." in account
    assert "There is no Dockerfile and run_tests.sh in /workspace" in account
    assert ended.out.rstrip().endswith(str(folder))


def test_an_image_without_a_test_counts_as_built_in_the_summary() -> None:
    why = ErrorInfo(type="no_tests", message="run_tests.sh ended with exit code 5.", phase="verify")
    text = account("sums", trial_record(), Rerun(built=False, image="sha256:1", error=why), dockerfile=None)
    assert "The image was built, and no test was executed." in text


def test_the_account_of_what_went_wrong_is_plain_text() -> None:
    """Output of a build is hostile, and people see it in their terminals."""
    why = ErrorInfo(type="BuildFailed", message="The image:\n\x1b[31mit failed.", phase="verify")
    measured = Rerun(built=False, error=why, output="first\n" * 50 + "\x1b]0;title\x07last\n")
    record = trial_record(status=Status.TIMEOUT, cost_usd=None)
    text = account("sums", record, measured, dockerfile="FROM nothing\n")
    assert "It was not built." in text
    assert "- The trial ended as timeout.\n- The image: it failed.\n" in text
    assert text.count("    first\n") == LINES - 1
    assert text.endswith("    last\n")
    assert ": an unknown sum." in text
    assert "docker build" not in text
    assert "\x1b" not in text


def test_impossible_requests_are_refused_before_anything_starts(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    given = f"project={project}"
    for words, reason in {
        (given,): "agent execution_agent needs a model: add model=NAME",
        (given, "model=gpt"): "model gpt needs its API key: export OPENAI_API_KEY=...",
        (given, "agent=nop", "dataset=quickstart"): "makes its own dataset: leave out dataset=",
        (given, "agent=nop,oracle", "-m"): "takes one agent and one model: choose them without -m",
        (
            "project=none",
            "agent=nop",
        ): "none does not exist: name a folder, a tar or zip file, or NAME==VERSION",
        (given, "agent=nop", "max_mb=0.0001"): "Leave out build results, or raise job.max_mb.",
        ("agent=nop",): "job.project: it has no default. Add job.project=...",
    }.items():
        ended = cli("job=environment", *words)
        assert (ended.code, reason in ended.err) == (2, True), ended.err
    planned = cli("job=environment", given, "model=gpt", "dry_run=true")
    assert planned.code == 0, planned.err
    assert "1 cells, 1 trials planned: 0 finished, 1 to do." in planned.out
    assert "The most it may cost: 6.00 USD" in planned.out
    assert not (cli.outputs / "trials").exists()


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=t", "-c", "user.email=t", "-c", "protocol.file.allow=always", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_a_git_address_is_cloned_at_a_commit_with_its_submodules(tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    for folder in (inner, outer):
        folder.mkdir()
        git(folder, "init", "-q")
        (folder / "a.txt").write_text(folder.name)
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", "one")
    git(outer, "submodule", "--quiet", "add", inner.as_uri(), "sub")
    git(outer, "commit", "-q", "-m", "two")
    two = git(outer, "rev-parse", "HEAD")
    (outer / "late.txt").write_text("later")
    git(outer, "add", ".")
    git(outer, "commit", "-q", "-m", "three")
    place = tmp_path / "place" / "clone"
    assert given_project.checked_out(outer.as_uri(), two, place) == str(place)
    assert (place / "sub" / "a.txt").read_text() == "inner"
    assert not (place / "late.txt").exists()
    (place / "mark").touch()
    given_project.checked_out(outer.as_uri(), two, place)
    assert (place / "mark").exists(), "it is cloned once"
    assert sorted(project_paths(place)) == [".gitmodules", "a.txt", "mark", "sub/a.txt"]
    assert given_project.named(f"{outer.as_uri()}.git") == "outer"
    assert given_project.described(str(place), 1e6).source == "folder"
    with pytest.raises(ConfigError, match="cannot be cloned at nope"):
        given_project.checked_out(outer.as_uri(), "nope", tmp_path / "other")
    with pytest.raises(ConfigError, match="is for a project that is given by the address"):
        given_project.checked_out("folder", "main", tmp_path / "other")


DESCRIBED = """\
import subprocess
import unittest


class Version(unittest.TestCase):
    def test_git_knows_it(self):
        words = ["git", "describe", "--tags", "--dirty", "--abbrev=40"]
        self.assertEqual(subprocess.check_output(words, text=True).strip(), "v1.2-1-g" + open("head").read())
"""


@pytest.mark.docker
def test_a_project_that_asks_git_for_its_version_keeps_its_history_on_request(
    cli: Cli, tmp_path: Path
) -> None:
    asks = tmp_path / "asks"
    write(asks, {"test_version.py": DESCRIBED})
    git(asks, "init", "-q")
    git(asks, "add", ".")
    git(asks, "commit", "-q", "-m", "one")
    git(asks, "tag", "v1.2")
    git(asks, "commit", "-q", "--allow-empty", "-m", "two")
    head = git(asks, "rev-parse", "HEAD")
    told = {"run_tests.sh": f"printf %s {head} > head\npython3 -m unittest -v\n"}
    words = ["job=environment", f"project={asks.as_uri()}", "agent=oracle"]
    for name, kept, outcome in (
        ("with", "true", "1 passed, 0 failed"),
        ("without", "false", "0 passed, 1 failed"),
    ):
        folder = place(cli, name, "asks")
        write(folder / "task" / "asks" / "solution", {**SCRIPTS, **told})
        ended = cli(*words, f"name={name}", f"keep_git={kept}")
        assert (ended.code, f"From scratch: {outcome}, 0 skipped." in ended.out) == (0, True), (
            ended.out + ended.err
        )
        assert not (folder / "clone" / ".git" / "logs").exists(), "they name who cloned, and from where"


def test_a_history_is_part_of_what_the_project_is(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    write(origin, {"a.txt": "a"})
    git(origin, "init", "-q")
    git(origin, "add", ".")
    git(origin, "commit", "-q", "-m", "one")

    def cloned(name: str) -> Path:
        return Path(given_project.checked_out(origin.as_uri(), "", tmp_path / name / "clone", git=True))

    def digest(place: Path, *, git: bool = True) -> str:
        return given_project.described(str(place), 1e6, git=git).digest

    first = cloned("first")
    git(origin, "tag", "v1")
    tagged = cloned("tagged")
    git(origin, "commit", "-q", "--allow-empty", "-m", "two")
    later = cloned("later")
    assert len({digest(first), digest(tagged), digest(later)}) == 3
    assert digest(tagged) == digest(tagged)
    assert digest(first, git=False) == digest(tagged, git=False) == digest(later, git=False)
    with pytest.raises(ConfigError, match="has a password or token in it"):
        given_project.checked_out("https://me:secret@git.example/a", "", tmp_path / "x", git=True)
    with pytest.raises(ConfigError, match="project=file:///PATH/TO/IT"):
        given_project.checked_out(str(origin), "", tmp_path / "x", git=True)
