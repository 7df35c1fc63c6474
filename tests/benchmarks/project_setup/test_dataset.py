"""dataset=execution: projects are fetched by digest; truths hold only for the scripts and images that gave them."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from runner.benchmarks.project_setup import given_project
from runner.benchmarks.project_setup.dataset import SOLUTION, TASK, ProjectSetupBench
from runner.benchmarks.project_setup.deliverables import PROJECT, TRUTH, Outcomes, Truth
from runner.benchmarks.project_setup.projects import digest_of, size
from runner.benchmarks.sources.checkouts import project_paths
from runner.benchmarks.sources.references import new_folder
from runner.errors import ConfigError, TaskError
from runner.files import write_atomically
from runner.records import Task
from tests.support.project_factory import OUTCOMES, SCRIPTS, add_truth, make_project, project_bench
from tests.support.suite_factory import UPSTREAM, write


@pytest.fixture
def bench(tmp_path: Path) -> ProjectSetupBench:
    """Dataset of one whole task, `tally`."""
    found = project_bench(tmp_path / "tasks", tmp_path / "cache")
    add_truth(found, make_project(found.root))
    return found


def only(bench: ProjectSetupBench) -> Task:
    (task,) = bench.tasks()
    return task


def test_a_whole_task(bench: ProjectSetupBench) -> None:
    task = only(bench)
    assert task.refused is None
    assert (task.language, task.tier, task.category) == ("python", "easy", "plain")
    assert (task.environment.network, task.environment.workdir) == ("public", "/workspace")
    assert task.agent_user is None
    assert task.verifier.tests == bench.root / "tally"


def test_the_context_holds_the_project_and_no_answers(bench: ProjectSetupBench) -> None:
    messages: list[str] = []
    bench.prepare(messages.append)
    bench.prepare(messages.append)
    assert messages == ["Fetching project tally", "Fetching the oracle of tally"]
    context = only(bench).environment.context
    assert context is not None
    found = {path.relative_to(context).as_posix() for path in context.rglob("*") if path.is_file()}
    assert found == {"Dockerfile", *(f"{PROJECT}/{name}" for name in UPSTREAM)}
    assert not list(bench.cache.rglob(".making-*"))


def test_the_oracle_leaves_the_three_files(bench: ProjectSetupBench) -> None:
    bench.prepare(lambda _: None)
    solution = only(bench).solution
    assert solution is not None
    files = {path.name: path.read_text() for path in (solution / "source").iterdir()}
    assert Outcomes.model_validate_json(files.pop("results.json")) == OUTCOMES
    assert files == SCRIPTS
    assert "cp -r /solution/source/. ." in (solution / "solve.sh").read_text()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"source": "svn"}, "task.yaml: "),
        ({"digest": None}, "(digest: Field required)"),
        ({"license": None}, "(license: Field required)"),
        ({"tests": "many"}, "(tests: Extra inputs are not permitted)"),
        ({"test_seconds": 0}, "(test_seconds: Input should be greater than 0)"),
    ],
)
def test_a_bad_task_file_is_refused_with_the_reason(
    bench: ProjectSetupBench, changed: dict[str, Any], reason: str
) -> None:
    make_project(bench.root, "broken", **changed)
    broken, good = bench.tasks()
    assert broken.refused
    assert reason in broken.refused
    assert good.refused is None


def test_a_task_file_that_is_not_yaml_is_refused(bench: ProjectSetupBench) -> None:
    (bench.root / "tally" / TASK).write_text("{")
    assert "is not YAML" in str(only(bench).refused)


def test_a_task_without_a_truth_is_refused(bench: ProjectSetupBench) -> None:
    (bench.root / "tally" / TRUTH).unlink()
    assert only(bench).refused == "Nobody has recorded what its tests do here: run job=verify_ground_truth."
    assert only(bench.model_copy(update={"truthless": True})).refused is None
    (bench.root / "tally" / TRUTH).write_text("[]")
    assert only(bench).refused == "truth.json cannot be read: run job=verify_ground_truth."


@pytest.mark.parametrize("what", ["script", "recipe", "project", "image", "base"])
def test_a_truth_holds_only_for_its_project_scripts_and_image(
    bench: ProjectSetupBench, tmp_path: Path, what: str
) -> None:
    assert only(bench).refused is None
    folder = bench.root / "tally"
    if what == "script":
        (folder / SOLUTION / "run_tests.sh").write_text("python3 -m pytest tests\n")
    elif what == "recipe":
        (folder / SOLUTION / "Dockerfile").write_text("FROM other\n")
    elif what == "project":
        make_project(bench.root, digest=f"sha256:{'0' * 64}")
    elif what == "image":
        write(tmp_path / "image", {"Dockerfile": "FROM other\n"})
        bench = bench.model_copy(update={"image": tmp_path / "image"})
    else:
        bench = bench.model_copy(update={"build_args": {"BASE": "other"}})
    assert str(only(bench).refused).startswith("Its project, scripts or image are not those")


def test_published_figures_need_no_scripts(bench: ProjectSetupBench) -> None:
    folder = bench.root / "tally"
    for name in SCRIPTS:
        (folder / SOLUTION / name).unlink()
    (folder / TRUTH).write_text(Truth(outcomes=OUTCOMES, origin="their Table 5").model_dump_json())
    task = only(bench)
    assert task.refused is None
    assert task.solution is None


def test_everything_that_changes_a_result_changes_the_digest(bench: ProjectSetupBench) -> None:
    before = only(bench)
    add_truth(bench, bench.root / "tally", Outcomes(passed=8))
    truth = only(bench)
    make_project(bench.root, test_seconds=5)
    add_truth(bench, bench.root / "tally", Outcomes(passed=8))
    limits = only(bench)
    assert len({before.digest, truth.digest, limits.digest}) == 3
    assert before.environment.digest == limits.environment.digest


def test_a_truth_that_gains_names_leaves_finished_trials_finished(bench: ProjectSetupBench) -> None:
    before = only(bench).digest
    file = bench.root / "tally" / TRUTH
    truth = Truth.model_validate_json(file.read_bytes())
    for update in ({"tests": {"pytest a": "passed"}}, {"unnamed": "nothing was printed"}):
        file.write_text(truth.model_copy(update=update).model_dump_json())
        assert only(bench).digest == before


def test_a_project_with_another_digest_is_refused(bench: ProjectSetupBench) -> None:
    (bench.root / "tally" / "upstream" / "README.md").write_text("other")
    with pytest.raises(ConfigError, match=r"its digest is .* but the task says"):
        bench.prepare(lambda _: None)
    assert not list((bench.cache / "projects").iterdir())


def test_two_workers_that_fetch_the_same_do_not_fail(tmp_path: Path) -> None:
    with new_folder(tmp_path / "shared", "it", lambda _: None) as place:
        assert place
        (place / "file").write_text("slower")
        write(tmp_path / "shared", {"file": "faster"})
    assert (tmp_path / "shared" / "file").read_text() == "faster"


def test_a_dataset_without_tasks_says_so(bench: ProjectSetupBench, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no task 'other'"):
        bench.model_copy(update={"include": ("other",)}).tasks()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no folder in .* has a task\.yaml"):
        bench.model_copy(update={"root": tmp_path / "empty"}).tasks()


# --- what lies here --------------------------------------------------------------------------------------------------


def packed(into: Path, files: dict[str, str]) -> Path:
    """Make an archive of these paths, zip or tar by its suffix."""
    if into.suffix == ".zip":
        with zipfile.ZipFile(into, "w") as archive:
            for name, text in files.items():
                member = zipfile.ZipInfo(name)
                member.external_attr = (0o755 if name.endswith("configure") else 0o644) << 16
                archive.writestr(member, text)
        return into
    with tarfile.open(into, "w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return into


def fetched(bench: ProjectSetupBench, archive: Path) -> Path:
    """Return the project of a task whose source is this archive."""
    folder = make_project(
        bench.root, "packed", source="archive", package=str(archive), digest=digest_of(archive)
    )
    context = bench.make(folder, None, lambda _: None).environment.context
    assert context is not None
    return context / PROJECT


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
@pytest.mark.parametrize("top", ["", "tally-1.0/"])
def test_an_archive_may_have_a_top_folder_or_none(
    bench: ProjectSetupBench, tmp_path: Path, suffix: str, top: str
) -> None:
    archive = packed(tmp_path / f"tally{suffix}", {f"{top}README": "x", f"{top}configure": "#!/bin/sh\n"})
    project = fetched(bench, archive)
    assert {path.name for path in project.iterdir()} == {"README", "configure"}
    if suffix == ".zip":
        assert os.access(project / "configure", os.X_OK)
        assert not os.access(project / "README", os.X_OK)


@pytest.mark.parametrize("suffix", [".tar.gz", ".zip"])
@pytest.mark.parametrize("path", ["../../escaped", "/tmp/../escaped", "tally/../../../escaped"])
def test_no_member_of_an_archive_leaves_its_folder(
    bench: ProjectSetupBench, tmp_path: Path, suffix: str, path: str
) -> None:
    archive = packed(tmp_path / f"evil{suffix}", {"tally/README": "x", path: "y"})
    with suppress(ConfigError):  # refused, or unpacked in its place under a harmless name
        fetched(bench, archive)
    outside = [found for found in tmp_path.rglob("escaped") if PROJECT not in found.parts]
    assert not outside
    assert not Path("/escaped").exists()


def test_a_link_that_leaves_its_archive_is_refused(bench: ProjectSetupBench, tmp_path: Path) -> None:
    archive = tmp_path / "links.tar"
    with tarfile.open(archive, "w") as tar:
        member = tarfile.TarInfo("tally/passwords")
        member.type, member.linkname = tarfile.SYMTYPE, "../../../../etc"
        tar.addfile(member)
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        fetched(bench, archive)


def test_a_file_that_is_not_an_archive_is_refused(bench: ProjectSetupBench, tmp_path: Path) -> None:
    (tmp_path / "notes.tar.gz").write_text("not packed")
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        fetched(bench, tmp_path / "notes.tar.gz")


def test_neither_secrets_nor_history_of_a_checkout_are_copied(
    bench: ProjectSetupBench, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    write(checkout, {"a.py": "", "new.py": "", ".env": "KEY=1", "gone.py": "", ".gitignore": ".env\n"})
    git = ["git", "-C", str(checkout), "-c", "user.name=x", "-c", "user.email=x@host.example"]
    for words in (["init", "--quiet"], ["add", "a.py", "gone.py"], ["commit", "--quiet", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    (checkout / "gone.py").unlink()
    assert set(project_paths(checkout)) == {"a.py", "new.py", ".gitignore"}
    folder = make_project(bench.root, "checkout", package=str(checkout), digest=digest_of(checkout))
    context = bench.make(folder, None, lambda _: None).environment.context
    assert context is not None
    assert {path.name for path in (context / PROJECT).iterdir()} == {"a.py", "new.py", ".gitignore"}


def test_secrets_of_a_clone_inside_a_checkout_are_not_copied(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "", "clone/b.py": "", "clone/.env": "KEY=1", "clone/.gitignore": ".env\n"})
    for place in (tmp_path, tmp_path / "clone"):
        subprocess.run(["git", "init", "--quiet", str(place)], check=True)
    assert project_paths(tmp_path) == ["a.py", "clone/.gitignore", "clone/b.py"]


def test_a_broken_checkout_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {".git": "gitdir: nowhere"})
    with pytest.raises(TaskError, match=r"git cannot list the files of the checkout .*not a git repo"):
        project_paths(tmp_path)


def test_a_checkout_runs_nothing_on_this_machine(tmp_path: Path) -> None:
    """Git would run the file system monitor that an untrusted checkout configures."""
    checkout = tmp_path / "checkout"
    write(checkout, {"a.py": ""})
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    monitor = tmp_path / "monitor.sh"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    monitor.chmod(0o755)
    subprocess.run(["git", "-C", str(checkout), "config", "core.fsmonitor", str(monitor)], check=True)
    assert project_paths(checkout) == ["a.py"]
    assert not (tmp_path / "ran").exists()


def test_pipes_of_a_folder_are_left_out_and_links_are_copied_as_links(
    bench: ProjectSetupBench, tmp_path: Path
) -> None:
    place = tmp_path / "odd"
    write(place, {"deep/a.py": "x"})
    os.mkfifo(place / "pipe")
    (place / "there").symlink_to("deep")
    (place / "nowhere").symlink_to("gone")
    folder = make_project(bench.root, "odd", package=str(place), digest=digest_of(place))
    context = bench.make(folder, None, lambda _: None).environment.context
    assert context is not None
    found = {path.relative_to(context / PROJECT).as_posix() for path in (context / PROJECT).rglob("*")}
    assert found == {"deep", "deep/a.py", "there", "nowhere"}
    assert (context / PROJECT / "there").is_symlink()


# --- what somebody names ---------------------------------------------------------------------------------------------


def test_a_named_project_becomes_a_task(tmp_path: Path) -> None:
    write(tmp_path / "My Project", UPSTREAM)
    given = str(tmp_path / "My Project")
    assert given_project.named(given) == "My-Project"
    project = given_project.described(given, 1e6)
    given_project.write_task(project, tmp_path / "tasks" / "mine")
    bench = project_bench(tmp_path / "tasks", tmp_path / "cache", truthless=True)
    task = only(bench)
    assert task.refused is None
    bench.prepare(lambda _: None)
    assert task.environment.context is not None
    assert (task.environment.context / PROJECT / "tally" / "most.py").is_file()
    (tmp_path / "My Project" / "new.py").write_text("x")
    assert given_project.described(given, 1e6).digest != project.digest


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("tally==1.0", "tally-1.0"),
        ("/a/tally-1.0.tar.gz", "tally-1.0"),
        ("/a/tally.tgz", "tally"),
        ("/a/tally_1.0.orig.tar.xz", "tally_1.0.orig"),
        ("/a/tally-main.zip", "tally-main"),
        ("/a/../b", "b"),
        ("/", "project"),
    ],
)
def test_names_of_given_projects(given: str, name: str) -> None:
    assert given_project.named(given) == name


def test_projects_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no archive")
    write(tmp_path / "large", {"a": "x" * 3000})
    write_atomically(tmp_path / "cut.tar.gz", packed(tmp_path / "whole.tar.gz", UPSTREAM).read_bytes()[:200])
    for given, reason in {
        "empty": "is empty",
        "notes.txt": "cannot be unpacked: it is neither a tar nor a zip file",
        "cut.tar.gz": r"cut.tar.gz cannot be unpacked: ",
        "large": "holds 0 MB, and job.max_mb is 0.002",
        "none": ".*none does not exist: name a folder, a tar or zip file, or NAME==VERSION",
    }.items():
        with pytest.raises((ConfigError, TaskError), match=reason):
            given_project.described(str(tmp_path / given), 2000)
    with pytest.raises(ConfigError, match="clone it first"):
        given_project.described("https://git.example/tally", 2000)


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    for name in ("bomb.tar.gz", "bomb.zip"):
        archive = packed(tmp_path / name, {"zeros": "0" * 5_000_000})
        assert size(archive) == 5_000_000
