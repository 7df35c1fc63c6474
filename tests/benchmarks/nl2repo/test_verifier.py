"""Hidden suites in real sandboxes: scores of partial repositories, and records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree as ET

import pytest
import requests

from runner.benchmarks.nl2repo.dataset import TRUTH
from runner.benchmarks.nl2repo.suite import Suite
from runner.benchmarks.nl2repo.suite_results import read_reports
from runner.benchmarks.nl2repo.verifier import _verdict, suite_of
from runner.errors import ConfigError, TaskError, VerifierError
from runner.records import Environment
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.local import LocalSandboxes
from tests.bench.suites import CODE, SuiteBench
from tests.support.module_proxy import served
from tests.support.package_index import publish_wheel
from tests.support.serving import bridge_address
from tests.support.shipped_tools import EVERY
from tests.support.suite_factory import (
    COMMANDS,
    PASSED,
    UPSTREAM,
    add_upstream,
    make_folder,
    suite_dataset,
    write,
)

pytestmark = pytest.mark.docker

MOST = "tally/most.py"
INSTALLED = ("pip install --no-deps -e .", "cd tests && python -m pytest -p no:cacheprovider .")


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> SuiteBench:
    base_image.ensure(connect(), print)
    return SuiteBench.make(tmp_path_factory.mktemp("suites"), DockerSandboxes())


@pytest.mark.parametrize(("failures", "reward"), [(1, 1.0), (2, 0.0)], ids=["once", "twice"])
def test_an_engine_that_failed_once_at_a_workspace_made_the_agent_fail(
    bench: SuiteBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int, reward: float
) -> None:
    """The engine has to fail twice, and to unpack an empty workspace on the same machine afterwards."""
    copy, send = tmp_path / "judged.tar", requests.Session.send
    failed: list[str | None] = []

    def failing(
        session: requests.Session, request: requests.PreparedRequest, **options: Any
    ) -> requests.Response:
        if request.method == "PUT" and copy.exists() and len(failed) < failures:
            failed.append(request.url)
            raise requests.ConnectionError("the engine closed the connection")
        return send(session, request, **options)

    monkeypatch.setattr(requests.Session, "send", failing)
    verdict = bench.judge(tmp_path, CODE)
    assert len(failed) == failures
    assert verdict.reward == reward, verdict
    assert (verdict.error is None) == (reward == 1.0)


def test_whole_code_scores_1_and_every_outcome_is_recorded(bench: SuiteBench, tmp_path: Path) -> None:
    verdict = bench.judge(tmp_path, CODE)
    assert verdict.reward == 1.0, verdict
    assert verdict.components["tests_skipped"] == 0.0  # none of the tests that count
    assert verdict.components["tests_extra"] == 2.0, "the skipped test and the expected failure"
    suite = ET.fromstring((tmp_path / "junit-0.xml").read_bytes())[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("9", "0", "2")
    names = {f"{case.get('classname')}::{case.get('name')}" for case in suite if not len(case)}
    assert names == set(PASSED)


@pytest.mark.skipif(not EVERY, reason="makes base images of other suites: see make every-case")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["3.11", "3.9"])
def test_a_suite_runs_on_an_earlier_python(tmp_path: Path, version: str) -> None:
    of_version = (
        "import sys\nfrom importlib.metadata import version\n"
        f"def test_python(): assert '%d.%d' % sys.version_info[:2] == '{version}', tally\n"
        "def test_pip(): assert version('tally') == '1.0', tally\n"
    )
    files = UPSTREAM | {"tests/test_python.py": f"import tally\n{of_version}"}
    commands = json.dumps(["pip install -e .", *COMMANDS])
    folder = make_folder(tmp_path / "tasks", **{"test_case_count.txt": "9", "test_commands.json": commands})
    add_upstream(folder, files, python=version, python_reason="A test asks for it.")
    dataset = suite_dataset(folder.parent, tmp_path / "cache")
    truth = dataset.ground_truth(folder, DockerSandboxes(), print)
    assert {*truth.passed} == {*PASSED, "tests/test_python.py::test_python", "tests/test_python.py::test_pip"}


def test_nothing_scores_0(bench: SuiteBench, tmp_path: Path) -> None:
    verdict = bench.judge(tmp_path, {})
    assert (verdict.reward, verdict.error) == (0.0, None)
    assert verdict.components["failure_import"] == 7.0
    assert verdict.components["tests_uncollected"] == 2.0
    commands = ["pytest tests/test_tally.py", "pytest tests/test_zero.py && touch never"]
    bench.judge(tmp_path, {}, commands=commands)
    for index in range(2):  # each file is counted with the command that tried to collect it
        suite = ET.fromstring((tmp_path / f"junit-{index}.xml").read_bytes())[0]
        names = [case.get("name") for case in suite]
        assert names == [["tests/test_tally.py"], ["tests/test_zero.py"]][index]
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_a_session_ends_as_its_tests_do_and_the_shell_goes_on(bench: SuiteBench, tmp_path: Path) -> None:
    """Our traps fail, but do not change the exit code."""
    command = "pytest tests/test_tally.py && pytest tests/test_zero.py"
    assert bench.judge(tmp_path, CODE, commands=[command]).reward == 1.0
    broken = CODE[MOST].replace("max(", "min(")
    verdict = bench.judge(tmp_path, {**CODE, MOST: broken}, commands=[command])
    assert verdict.reward == pytest.approx(4 / 7)
    assert "exit code 1" in verdict.output


def test_an_installation_that_takes_too_long_is_not_a_test_timeout(tmp_path: Path) -> None:
    suite = Suite(commands=("pip install .", "pytest tests"), deleted=("tests",), count=1, expected=("gone",))
    ended = [
        {"event": "command", "command": at, "code": code, "seconds": 9.0} for at, code in ((0, None), (1, 4))
    ]
    verdict = _verdict(suite, read_reports("\n".join(map(json.dumps, ended)), 2), tmp_path, "")
    assert (verdict.components["install"], verdict.components["tests_unreported"]) == (0.0, 1.0)
    assert verdict.components["failure_timeout"] == 0.0


def test_a_published_count_that_differs_stands_beside_the_score(tmp_path: Path) -> None:
    suite = Suite(
        commands=("pytest tests",), deleted=("tests",), count=4, published=5, expected=("a", "b", "c", "d")
    )
    ran = {"event": "test", "command": 0, "id": "a", "file": "/workspace/tests/x.py", "outcome": "passed"}
    verdict = _verdict(suite, read_reports(json.dumps(ran), 1), tmp_path, "")
    assert verdict.reward == 0.25
    assert verdict.components["score_by_published_count"] == 0.2
    assert (verdict.components["tests_counted"], verdict.components["tests_published"]) == (4.0, 5.0)
    alike = _verdict(suite.model_copy(update={"published": None}), read_reports("", 1), tmp_path, "")
    assert "score_by_published_count" not in alike.components


@pytest.mark.parametrize(
    ("files", "passed", "failure"),
    [
        ({MOST: ""}, 2, "failure_import"),  # the file that imports it is not collected; the other one runs
        ({MOST: CODE[MOST].replace("max(", "min(")}, 6, "failure_assertion"),
        (
            {"tally/__init__.py": CODE["tally/__init__.py"].replace(", times=1", "").replace("times", "1")},
            5,
            "failure_signature",
        ),
        ({"tally/__init__.py": "import nowhere\n"}, 0, "failure_import"),
    ],
    ids=["half_the_modules_gone", "one_function_wrong", "a_parameter_missing", "broken_import"],
)
def test_partial_code_scores_what_its_junit_says(
    bench: SuiteBench, tmp_path: Path, files: dict[str, str], passed: int, failure: str
) -> None:
    verdict = bench.judge(tmp_path, {**CODE, **files})
    assert verdict.reward == pytest.approx(passed / 7)
    assert verdict.components[failure] == 7 - passed
    suite = ET.fromstring((tmp_path / "junit-0.xml").read_bytes())[0]
    assert sum(not len(case) for case in suite) == passed


def test_a_suite_that_is_killed_keeps_its_results(bench: SuiteBench, tmp_path: Path) -> None:
    """The suite is killed once the endless test runs, at any speed of this machine."""
    hangs = "open('hangs', 'w').close()\n    __import__('time').sleep(999)"
    slow = CODE[MOST].replace("tally = Tally(words)", hangs)
    command = "pytest tests & until [ -e hangs ]; do sleep 0.1; done; kill -9 $!"
    verdict = bench.judge(tmp_path, {**CODE, MOST: slow}, commands=[command])
    assert verdict.reward == pytest.approx(3 / 7)
    assert verdict.components["tests_unreported"] == 4.0


def test_a_command_has_a_time_limit_and_the_next_one_still_runs(bench: SuiteBench, tmp_path: Path) -> None:
    commands = ["setsid sleep 998 & sleep 999", "pytest tests; sleep 999"]
    verdict = bench.judge(tmp_path, CODE, commands=commands, command_seconds=1.0)
    assert verdict.reward is not None
    assert verdict.components["install"] == 0.0
    assert verdict.output.count("its time limit after") == 2
    assert verdict.components["failure_timeout"] == 7 - 7 * verdict.reward


def test_commands_run_in_a_shell_and_the_installation_is_recorded(bench: SuiteBench, tmp_path: Path) -> None:
    verdict = bench.judge(
        tmp_path, CODE, commands=["touch x && " + INSTALLED[0], INSTALLED[1]], expected=PASSED
    )
    assert (verdict.reward, verdict.components["install"]) == (1.0, 1.0), verdict


@pytest.mark.parametrize(("network", "installed"), [("open", 1.0), ("none", 0.0)])
def test_only_installations_may_reach_the_package_index(
    bench: SuiteBench, tmp_path: Path, network: Literal["open", "none"], installed: float
) -> None:
    publish_wheel(tmp_path / "index", "needle", "1.0", {"needle.py": ""})
    bridge = bridge_address()
    with served(tmp_path / "index", bridge) as (address, asked):
        port = address.rpartition(":")[2]
        env = {"PIP_INDEX_URL": address, "PIP_TRUSTED_HOST": bridge, "PIP_RETRIES": "0"}
        commands = [
            "pip install needle",
            f"! (echo >/dev/tcp/{bridge}/{port}) && python -c 'import needle' && pytest tests",
        ]
        one = replace(bench, install_network=network)
        verdict = one.judge(tmp_path, CODE, task=one.task, commands=commands, env=env)
    assert (verdict.components["install"], verdict.reward) == (installed, installed), verdict
    assert bool(asked) is bool(installed)


def test_a_workspace_of_links_scores_0(bench: SuiteBench, tmp_path: Path) -> None:
    script = (
        "ln -s / tally && mkdir tests && ln -s /etc/passwd tests/test_zero.py && ln -s /opt pyproject.toml"
    )
    verdict = bench.judge(tmp_path, {}, script=script)
    assert verdict.reward == 0.0
    assert not verdict.error


def test_a_suite_that_expects_more_tests_than_are_published_is_our_failure(
    bench: SuiteBench, tmp_path: Path
) -> None:
    with pytest.raises(VerifierError, match=r"7 tests of .* are expected to pass and 5 are published"):
        bench.judge(tmp_path, CODE, count=5)


def test_a_suite_that_was_not_fetched_is_our_failure(bench: SuiteBench, tmp_path: Path) -> None:
    task = bench.task.model_copy(
        update={"verifier": bench.task.verifier.model_copy(update={"tests": tmp_path})}
    )
    with pytest.raises(VerifierError, match="fetch them with job=setup"):
        suite_of(task)


def test_the_local_sandbox_judges_nothing(bench: SuiteBench, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use sandbox=docker"):
        bench.dataset.verifier.run(bench.task, suite_of(bench.task), tmp_path, LocalSandboxes(), tmp_path)


def test_the_ground_truth_is_what_upstream_passes_twice(bench: SuiteBench) -> None:
    folder = bench.root / "tasks" / "tally"
    truth = bench.dataset.ground_truth(folder, bench.sandboxes, print)
    assert truth.passed == PASSED
    assert (len(truth.skipped), len(truth.xfailed), len(truth.failed)) == (1, 1, 0)
    assert bench.task.refused is None


NO_TRUTHS = {
    "unsteady": (
        """
import random, pytest, tally
@pytest.mark.parametrize("toss", range(64))
def test_coin(toss):
    assert random.SystemRandom().random() < 0.5
""",
        r"tests pass in one run only, such as tests/test_zero\.py::test_coin\[\d+\]: there is no ground truth",
    ),
    "free": (
        """
def test_free():
    assert True
def test_earned():
    import tally
""",
        r"1 tests pass in an empty workspace, such as tests/test_zero\.py::test_free: they would be given away",
    ),
    "never": (
        "import tally.nowhere\n",
        r"Upstream passes none of its tests here:\n(?s:.*)No module named",
    ),
}


@pytest.mark.parametrize("tests", NO_TRUTHS)
def test_suites_without_a_ground_truth(bench: SuiteBench, tmp_path: Path, tests: str) -> None:
    """Two tosses of 64 coins agree with a probability of 10^-19."""
    text, why = NO_TRUTHS[tests]
    folder = make_folder(tmp_path / "tasks")
    files = {
        "tests/test_zero.py": text,
        "tally/__init__.py": "",
        "pyproject.toml": UPSTREAM["pyproject.toml"],
    }
    add_upstream(folder, files)
    dataset = suite_dataset(tmp_path / "tasks", bench.root / "cache")
    with pytest.raises(TaskError, match=why):
        dataset.ground_truth(folder, bench.sandboxes, print)
    assert not (folder / TRUTH).exists()


def test_the_agent_never_sees_a_hidden_test(bench: SuiteBench) -> None:
    context = bench.task.environment.context
    assert context
    assert not [path for path in context.rglob("*") if path.name.startswith("test_zero")]


def test_tests_of_a_published_image(bench: SuiteBench, tmp_path: Path) -> None:
    """The image's test files are hidden. A candidate's file in their place is not used, and one beside them, even with
    the same name, does not count.
    """
    context = tmp_path / "authors"
    hidden = {path: text for path, text in UPSTREAM.items() if not path.startswith("tally/")}
    write(context / "workspace", hidden)
    numbers = "RUN userdel agent && useradd --uid 1000 somebody"
    lines = ("ARG BASE", "FROM ${BASE}", numbers, "COPY workspace /workspace", "WORKDIR /workspace")
    write(context, {"Dockerfile": "\n".join(lines)})
    authors = Environment(context=context, build_args={"BASE": "assay-base"}, digest=f"sha256:{'a' * 24}")
    image = bench.sandboxes.image(authors)
    folder = make_folder(tmp_path / "tasks", **{"test_commands.json": '["touch tally/its_own", "pytest"]'})
    write(folder, {"source.yaml": f"kind: none\nimage: {image.id}\n"})
    dataset = suite_dataset(tmp_path / "tasks", bench.root / "cache")
    dataset.prepare(print)
    (task,) = dataset.tasks()
    assert (task.refused, task.solution) == (None, None)
    assert task.flags == ("tests_not_deleted", "no_install_step", "no_ground_truth")
    passing = "def test_own(): pass\n"
    own = {"tests/test_zero.py": passing, "test_zero.py": passing, "test_own.py": passing}
    verdict = bench.judge(tmp_path, {**CODE, **own}, task=task)
    assert (verdict.reward, verdict.components["install"]) == (1.0, 1.0), verdict
    with pytest.raises(TaskError, match="no upstream code"):
        dataset.ground_truth(folder, bench.sandboxes, print)
