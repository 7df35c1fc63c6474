"""NL2Repo-Bench's public folders, and the defects of some of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.nl2repo import published_folder, upstream
from runner.benchmarks.nl2repo.dataset import SOURCE, TRUTH, Nl2RepoBench
from runner.benchmarks.nl2repo.suite import HIDDEN, covered, read_suite, runs_tests, targets
from runner.benchmarks.nl2repo.upstream import Source
from runner.benchmarks.sources import sdists
from runner.errors import ConfigError, TaskError
from runner.records import Task
from tests.support.module_proxy import served
from tests.support.package_index import publish_sdist
from tests.support.suite_factory import PASSED, add_truth, add_upstream, make_folder, suite_dataset, write


def whole(root: Path, name: str = "tally", **changed: Any) -> Path:
    """Make a folder with upstream's files, except for `changed` files."""
    folder = make_folder(root, name, **changed)
    add_upstream(folder)
    return folder


def with_truth(dataset: Nl2RepoBench, *folders: Path) -> Nl2RepoBench:
    """Add a truth to each of the folders; return the dataset."""
    for folder in folders:
        add_truth(dataset, folder)
    return dataset


def only(dataset: Nl2RepoBench) -> Task:
    """Return the only task of a dataset."""
    (task,) = dataset.tasks()
    return task


def test_a_whole_task(tmp_path: Path) -> None:
    folder = whole(tmp_path / "tasks")
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    task = only(dataset)
    assert task.refused is None
    assert task.flags == ("no_install_step",)
    assert task.environment.network == "no-network"
    assert dataset.suite(folder).expected == PASSED


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"start.md": None, "start.md.download_failed.txt": "x"}, "Its document was never downloaded"),
        ({"start.md": "Download failed: 404 not found (tally)"}, "start.md is not a document but a note"),
        ({"start.md": None}, "start.md is missing."),
        ({"start.md": " \n"}, "start.md is empty."),
        ({"start.md": "# other\n\n" + "Write the library other. " * 80}, "start.md never names tally"),
        ({"test_case_count.txt": "many"}, "test_case_count.txt holds 'many'"),
        ({"test_case_count.txt": "0"}, "test_case_count.txt holds '0'"),
        ({"test_case_count.txt": None}, "test_case_count.txt is missing."),
        (
            {"test_commands.json": '["pip install -e ."]'},
            "test_commands.json has no command that runs pytest",
        ),
        ({"test_commands.json": "[1]"}, "test_commands.json must be a list of texts."),
        ({"test_commands.json": "["}, "test_commands.json is not JSON"),
        ({"test_files.json": '["../x"]'}, "test_files.json: '../x' leaves the workspace."),
        ({"test_case_count.txt": "9"}, "Upstream passes 7 of its tests here, and 9 are published"),
    ],
)
def test_broken_data_is_refused_with_the_reason(tmp_path: Path, changed: dict[str, Any], reason: str) -> None:
    broken = whole(tmp_path / "tasks", **changed)
    good = whole(tmp_path / "tasks", "zebra")
    dataset = suite_dataset(tmp_path / "tasks", tmp_path / "cache")
    with_truth(dataset, good)
    with suppress(TaskError):  # data that cannot be read has no truth
        add_truth(dataset, broken)
    task, other = dataset.tasks()
    assert task.refused
    assert task.refused.startswith(reason), task.refused
    assert task.refused.endswith(".")
    assert other.refused is None


def test_a_count_that_differs_is_scored_against_the_truth_if_the_source_says_so(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tasks", **{"test_case_count.txt": "8"})
    add_upstream(folder, count="truth")
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    task = only(dataset)
    assert task.refused is None
    assert "count_differs" in task.flags
    suite = dataset.suite(folder)
    assert (suite.count, suite.published, suite.expected) == (7, 8, PASSED)
    (folder / "test_case_count.txt").write_text("9")
    assert only(dataset).refused == (
        "Upstream passes 7 of its tests here, and 9 are published: too few. Name another version in source.yaml, or "
        "what its tests require."
    )
    (folder / "test_case_count.txt").write_text("7")
    alike = only(dataset)
    assert (dataset.suite(folder).published, "count_differs" in alike.flags) == (None, False)
    assert alike.digest != task.digest


def test_the_papers_instruction_is_flagged_and_makes_another_trial(tmp_path: Path) -> None:
    """Ours tells what the paper's agents were not told, and keeps the names that trials have had."""
    folder = whole(tmp_path / "tasks")
    ours, paper = (
        suite_dataset(tmp_path / "tasks", tmp_path / "cache", instruction=words)
        for words in ("ours", "paper")
    )
    before = only(with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder))
    assert only(ours).digest == before.digest
    assert only(paper).digest != before.digest
    assert set(only(paper).flags) - set(before.flags) == {"paper_instruction"}
    assert "start.md" in only(paper).instruction
    for warning in ("nobody answers", "test suite", "judged"):
        assert warning in before.instruction
        assert warning not in only(paper).instruction


def test_trials_keep_their_names_where_the_count_does_not_differ(tmp_path: Path) -> None:
    """`published` came later than the first sweeps: a suite without it is named as it was then."""
    folder = whole(tmp_path / "tasks")
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    assert "published" not in dataset.suite(folder).identity


def test_a_document_of_another_task_is_refused_and_the_owners_is_not(tmp_path: Path) -> None:
    text = "# pytest-cases\n\npytest-cases does things for python pytest cases.\n"
    folders = [
        whole(tmp_path / "tasks", name, **{"start.md": text})
        for name in ("more-Itertools", "python-pytest-cases")
    ]
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), *folders)
    wrong, right = dataset.tasks()
    assert wrong.refused == "start.md is identical to that of python-pytest-cases."
    assert right.refused is None


@pytest.mark.parametrize(
    ("commands", "deleted", "flags", "hidden"),
    [
        (["pip install -e .", "pytest tests"], ["tests"], (), ("tests",)),
        (
            ["pip install -e .", "pytest test_schema.py"],
            ["tests"],
            ("tests_not_deleted",),
            ("tests", "test_schema.py"),
        ),
        (["pip install -e .", "pytest"], ["tests"], ("tests_not_deleted",), ("tests",)),
        (["pytest tests/a.py"], ["tests/"], ("no_install_step",), ("tests/",)),
        (["pip install pytest .", "pytest /workspace/tests"], ["tests"], (), ("tests",)),
        (["pip install . & pip install x", "pytest tests"], ["tests"], ("background_install",), ("tests",)),
        (
            ["touch x && pip install -e .", "set -e; pytest -q tests/b.py::T > log"],
            ["tests/b.py"],
            (),
            ("tests/b.py",),
        ),
    ],
)
def test_tests_that_are_not_deleted_and_no_installation_are_flagged(
    tmp_path: Path, commands: list[str], deleted: list[str], flags: tuple[str, ...], hidden: tuple[str, ...]
) -> None:
    changed = {"test_commands.json": json.dumps(commands), "test_files.json": json.dumps(deleted)}
    folder = whole(tmp_path / "tasks", **changed)
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    assert only(dataset).flags == flags
    assert dataset.suite(folder).deleted == hidden


def test_a_folder_that_holds_the_library_too_is_not_taken_from_upstream(tmp_path: Path) -> None:
    """If `pytest src` is a command and one file of `src` is on the deletion list, the agent's library stays."""
    changed = {
        "test_commands.json": '["pip install -e .", "pytest tally"]',
        "test_files.json": '["tally/test_x.py"]',
    }
    folder = whole(tmp_path / "tasks", **changed)
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    assert only(dataset).flags == ("tests_not_deleted",)
    deleted = dataset.suite(folder).deleted
    assert deleted == ("tally/test_x.py",)
    upstreams = ["LICENCE.md", "setup.py", "tally/README.md", "tally/__init__.py", "tally/test_x.py"]
    assert upstream.hidden(upstreams, deleted) == ["LICENCE.md", "setup.py", "tally/test_x.py"]


def test_without_a_source_or_a_truth_nothing_can_be_judged(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tasks")
    dataset = suite_dataset(tmp_path / "tasks", tmp_path / "cache")
    assert "It is not known where its hidden tests are" in str(only(dataset).refused)
    add_upstream(folder)
    assert str(only(dataset).refused).startswith("Nobody has checked that upstream passes its own tests here")
    with_truth(dataset, folder)
    assert only(dataset).refused is None
    add_upstream(folder, env={"X": "1"})
    assert "are not those whose ground truth is stored" in str(only(dataset).refused)
    (folder / SOURCE).write_text("kind: none\nimage: authors/tally:1.0\n")
    assert "image must be pinned by its digest" in str(only(dataset).refused)
    add_upstream(folder, image=f"authors/tally@sha256:{64 * 'a'}")
    assert "are not those whose ground truth is stored" in str(only(dataset).refused)
    (folder / TRUTH).unlink()
    assert str(only(dataset).refused).startswith("Nobody has checked")
    (folder / SOURCE).write_text("kind: sdist")
    assert "needs a package and a digest" in str(only(dataset).refused)
    (folder / TRUTH).write_text("{")
    add_upstream(folder)
    assert str(only(dataset).refused) == "truth.json cannot be read: run job=verify_ground_truth."


def test_sources_of_public_tasks_lie_apart(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tasks")
    place = tmp_path / "sources" / "tally"
    place.mkdir(parents=True)
    add_upstream(place)
    dataset = suite_dataset(tmp_path / "tasks", tmp_path / "cache", sources=tmp_path / "sources")
    source, here = dataset.source(folder)
    assert (source.kind, here) == ("folder", place)


def test_preparing_fetches_upstream_suite_oracle_and_image_once(tmp_path: Path) -> None:
    folder = whole(tmp_path / "tasks")
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    task = only(dataset)
    assert task.environment == task.verifier.environment, "the agent and the judge use the same image"
    images = _without_wheels(tmp_path, dataset)
    dataset, task = images, only(with_truth(images, folder))
    messages: list[str] = []
    dataset.prepare(messages.append)
    dataset.prepare(messages.append)
    remark = "tally is flagged no_install_step: none of its commands installs anything; they run as published"
    assert [line for line in messages if line != remark] == [
        "Fetching upstream upstream",
        "Fetching the suite of tally",
        "Fetching the oracle of tally",
        "Fetching the image of tally",
    ]
    assert messages.count(remark) == 2
    assert task.verifier.tests
    assert task.solution
    assert read_suite(task.verifier.tests).expected == PASSED
    hidden = _files(task.verifier.tests / HIDDEN)
    assert hidden == ["README.md", "pyproject.toml", "tests/test_tally.py", "tests/test_zero.py"]
    assert _files(task.solution / "source") == [
        "README.md",
        "pyproject.toml",
        "tally/__init__.py",
        "tally/most.py",
    ]
    assert task.environment.context
    assert _files(task.environment.context / "workspace") == ["start.md"]


def test_revealed_tests_are_in_the_agents_workspace_and_change_nothing_else(tmp_path: Path) -> None:
    folder = whole(tmp_path / "tasks")
    blind = with_truth(
        _without_wheels(tmp_path, suite_dataset(tmp_path / "tasks", tmp_path / "cache")), folder
    )
    seeing = blind.model_copy(update={"reveal_tests": True})
    one, other = only(blind), only(seeing)
    seeing.prepare(print)
    assert other.environment.context
    assert _files(other.environment.context / "workspace") == [
        "start.md",
        "tests/test_tally.py",
        "tests/test_zero.py",
    ]
    assert one.digest != other.digest
    assert one.environment.digest != other.environment.digest
    assert one.verifier.tests == other.verifier.tests
    assert one.verifier.environment == other.verifier.environment
    assert "tests are in the directory" in other.instruction
    assert "tests are in the directory" not in one.instruction


def test_upstream_with_another_digest_than_its_source_is_refused(tmp_path: Path) -> None:
    folder = whole(tmp_path / "tasks")
    dataset = with_truth(suite_dataset(tmp_path / "tasks", tmp_path / "cache"), folder)
    write(folder / "upstream", {"tests/test_zero.py": "def test_default(): pass\n"})
    with pytest.raises(ConfigError, match=r"its digest is .* but the task says"):
        dataset.prepare(print)
    assert not list((tmp_path / "cache" / "upstream").iterdir())


def test_an_sdist_that_the_index_does_not_have_is_an_error(tmp_path: Path) -> None:
    source = Source(kind="sdist", package="no-such-package-as-this-one", version="1.0", digest="sha256:0")
    with pytest.raises(ConfigError, match="uv lock"):
        upstream.fetch_upstream(source, tmp_path, tmp_path / "cache", print)


def test_an_sdist_is_fetched_and_nothing_of_it_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients build a package without a wheel or metadata to find its requirements. The name has two spellings."""
    ran = tmp_path / "ran"
    files = {"setup.py": f"open({str(ran)!r}, 'w').close()\n"}
    publish_sdist(tmp_path / "index", "old-tally", "1.0", files)
    with served(tmp_path / "index") as (address, _):
        monkeypatch.setenv("UV_INDEX", address)
        found = sdists.sdist_digest("Old_Tally", "1.0.0")
        source = Source(kind="sdist", package="Old_Tally", version="1.0.0", digest=found)
        fetched = upstream.fetch_upstream(source, tmp_path, tmp_path / "cache", print)
    assert (fetched / "setup.py").read_text() == files["setup.py"]
    assert not ran.exists()


def test_a_folder_without_tasks_and_an_unknown_name_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no folder of NL2Repo-Bench"):
        suite_dataset(tmp_path, tmp_path / "cache").tasks()
    make_folder(tmp_path / "tasks")
    with pytest.raises(ConfigError, match="has no task 'other'"):
        suite_dataset(tmp_path / "tasks", tmp_path / "cache", include=("other",)).tasks()


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("pip install -e . & pip install x", "pip install -e . ; pip install x"),
        ("pip install -e . && pip install x >& log 2>&1", None),
        ("pip install 'a & b'", None),
        ("start server & sleep 1", None),
        ("pip install . & pytest tests", None),
    ],
)
def test_tests_wait_for_what_is_installed_in_the_background(
    tmp_path: Path, command: str, run: str | None
) -> None:
    folder = make_folder(tmp_path, **{"test_commands.json": json.dumps([command, "pytest tests"])})
    assert published_folder.read(folder).commands == (run or command, "pytest tests")


def test_an_image_of_another_python_is_part_of_a_truth(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    add_upstream(folder)
    dataset = suite_dataset(tmp_path, tmp_path / "cache")
    source, _ = dataset.source(folder)
    other = source.model_copy(update={"python": "3.9", "python_reason": "It is old."})
    suite = dataset.bare_suite(published_folder.read(folder), source)
    assert dataset.truth_digest(suite, source) != dataset.truth_digest(suite, other)
    assert dataset.image_of("3.9").build_args == {"BASE": "assay-base-bullseye"}
    with pytest.raises(TaskError, match=r"no image with Python 3\.8: name one in dataset\.pythons"):
        dataset.image_of("3.8")


@pytest.mark.parametrize(
    ("command", "runs", "paths"),
    [
        ("pytest --continue-on-collection-errors tests", True, ["tests"]),
        ("python -m pytest -q -k a tests/x.py::T", True, ["tests/x.py"]),
        ("pytest", True, ["."]),
        ("pip install pytest-mock", False, []),
        ("pip install pytest pytest-mock", False, []),
        ("pip install pytest && cd tests; pytest .", True, ["tests"]),
        ("pytest ./tests /workspace/other/", True, ["tests", "other"]),
        ("pytest --cov mine --ignore tests/slow --tb short tests", True, ["tests"]),
        ("pytest -k tests -m 'not slow' tests 2>&1 | tee log", True, ["tests"]),
        ("pytest a;pytest b >log&&python3.13 -m pytest c", True, ["a", "b", "c"]),
        ("bash -c 'A=1 pytest tests/x.py'\n", True, ["tests/x.py"]),
        ("pip install .\npytest 'tests", True, ["'tests"]),
        ("cd /workspace/src && /usr/bin/py.test", True, ["src"]),
        ("pip install -r requirements-pytest.txt", False, []),
        ("cd src && pytest tests/ && echo done", True, ["src/tests"]),
    ],
)
def test_commands_that_run_tests_and_their_targets(command: str, runs: bool, paths: list[str]) -> None:  # noqa: FBT001
    assert runs_tests(command) is runs
    assert targets(command) == paths


def test_paths_that_a_deletion_list_covers() -> None:
    assert covered("tests/a/b.py", ("tests/",))
    assert covered("x.py", ("./x.py",))
    assert not covered("tests2/x.py", ("tests",))
    assert not covered("test_schema.py", ("tests",))


def _without_wheels(tmp_path: Path, dataset: Nl2RepoBench) -> Nl2RepoBench:
    """Return the dataset with an image that needs nothing from outside."""
    write(tmp_path / "image", {"Dockerfile": "FROM scratch\n", "judge.lock": "", "tools.lock": ""})
    return dataset.model_copy(update={"image": tmp_path / "image"})


def _files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
