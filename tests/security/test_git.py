"""Attacks by clones and checkouts: git runs nothing that they configure, and reads nothing outside of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from runner.benchmarks.project_setup.projects import Project, digest_of, fetch
from runner.benchmarks.sources.checkouts import list_files, project_paths
from runner.benchmarks.sources.clones import pack_head
from runner.errors import TaskError
from runner.resources import ROOT
from tests.support.suite_factory import write

SECRET = "a secret of this machine"


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=x", "-c", "user.email=x@host.example", "-c", "protocol.file.allow=always"]
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", *name, "-C", str(folder), *words]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Make a repository of a program, ignored files, and attributes for every kind of program that git runs."""
    place = tmp_path / "clone"
    attributes = "*.py filter=evil diff=evil merge=evil export-subst text eol=lf\n"
    write(place, {"a.py": "print(1)\n", ".gitattributes": attributes, ".gitignore": "*.env\n"})
    git(place, "init", "--quiet", "--initial-branch=main")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "-m", "x")
    return place


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Return a program that leaves a trace, `ran/trace`, when it runs."""
    folder = tmp_path / "ran"
    folder.mkdir()
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {folder}/trace\ncat\n")
    program.chmod(0o755)
    return program


def trace(ran: Path) -> bool:
    return ran.with_name("trace").exists()


CONFIGURED = {
    "a monitor": "[core]\n\tfsmonitor = {ran}\n",
    "a monitor of version 2": "[core]\n\tfsmonitor = {ran}\n\tfsmonitorHookVersion = 2\n",
    "a filter that smudges": '[filter "evil"]\n\tsmudge = {ran}\n\trequired = true\n',
    "a filter that cleans": '[filter "evil"]\n\tclean = {ran}\n\trequired = true\n',
    "a filter that is a process": '[filter "evil"]\n\tprocess = {ran}\n',
    "a packer of tar files": '[tar "tar"]\n\tcommand = {ran}\n\tremote = true\n',
    "an umask of tar files": "[tar]\n\tumask = 0777\n",
    "hooks": "[core]\n\thooksPath = {folder}\n",
    "a pager": "[core]\n\tpager = {ran}\n[pager]\n\tls-files = {ran}\n\tarchive = {ran}\n",
    "an editor and an asker": "[core]\n\teditor = {ran}\n\taskPass = {ran}\n\tsshCommand = {ran}\n\tgitProxy = {ran}\n",
    "a helper of credentials": "[credential]\n\thelper = {ran}\n",
    "an external diff": '[diff]\n\texternal = {ran}\n[diff "evil"]\n\ttextconv = {ran}\n\tcommand = {ran}\n',
    "an alias": "[alias]\n\tls-files = !{ran}\n\tarchive = !{ran}\n\trev-parse = !{ran}\n",
    "an include": "[include]\n\tpath = {folder}/included\n",
    "an include for this folder": '[includeIf "gitdir:**"]\n\tpath = {folder}/included\n',
    "another work tree": "[core]\n\tworktree = {folder}\n",
    "a promisor": (
        "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tpartialClone = origin\n"
        '[remote "origin"]\n\turl = ext::{ran}\n\tpromisor = true\n\tuploadpack = {ran}\n[protocol]\n\tallow = always\n'
    ),
    "a command for alternates": "[core]\n\talternateRefsCommand = {ran}\n",
    "no sense": "[core\n",
    "an unknown extension": "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tevil = true\n",
}  # fmt: skip


def configure(clone: Path, ran: Path, text: str) -> None:
    """Give a clone this configuration, hooks of every name, and attributes in `.git`."""
    included = 'a = b\n[core]\n\tfsmonitor = "{ran}"\n[filter "evil"]\n\tsmudge = {ran}\n\tclean = {ran}\n'
    (ran.parent / "included").write_text("[x]\n\t" + included.format(ran=ran))
    (clone / ".git/config").write_text(text.format(ran=ran, folder=ran.parent))
    (clone / ".git/info").mkdir(exist_ok=True)
    (clone / ".git/info/attributes").write_text("* filter=evil diff=evil\n")
    for folder in (clone / ".git/hooks", ran.parent):
        folder.mkdir(exist_ok=True)
        for name in (
            "post-index-change",
            "post-checkout",
            "fsmonitor-watchman",
            "pre-auto-gc",
            "reference-transaction",
        ):
            (folder / name).write_bytes(ran.read_bytes())
            (folder / name).chmod(0o755)


@pytest.mark.parametrize("name", CONFIGURED)
def test_packing_a_clone_runs_nothing_that_it_configures(
    clone: Path, ran: Path, tmp_path: Path, name: str
) -> None:
    honest = pack_head(clone, "python", tmp_path / "honest.tar")
    configure(clone, ran, CONFIGURED[name])
    if name == "a promisor":  # git would have to fetch these objects
        for path in (clone / ".git/objects").glob("[0-9a-f][0-9a-f]/*"):
            if git_type(path) == "blob":
                path.unlink()
        with pytest.raises(TaskError, match="git archive failed"):
            pack_head(clone, "python", tmp_path / "into.tar")
    else:
        assert pack_head(clone, "python", tmp_path / "into.tar") == honest
    assert not trace(ran)


def git_type(path: Path) -> str:
    import zlib  # noqa: PLC0415

    return zlib.decompress(path.read_bytes()).split(b" ")[0].decode()


@pytest.mark.parametrize("name", CONFIGURED)
def test_listing_a_checkout_runs_nothing_that_it_configures(clone: Path, ran: Path, name: str) -> None:
    write(clone, {"new.py": "", "x.env": SECRET})
    configure(clone, ran, CONFIGURED[name])
    (clone / "a.py").write_text("print(2)\n")
    assert project_paths(clone) == [".gitattributes", ".gitignore", "a.py", "new.py"]
    assert not trace(ran)


# --- paths ------------------------------------------------------------------------------------------------------------


def forge(clone: Path, honest: str, evil: str) -> None:
    """Make the index list a path of the same length that git itself would refuse."""
    assert len(honest) == len(evil)
    write(clone, {honest: "x"})
    git(clone, "add", "--force", honest)
    index = clone / ".git/index"
    content = index.read_bytes()[:-20].replace(honest.encode(), evil.encode())
    index.write_bytes(content + hashlib.sha1(content).digest())


@pytest.mark.parametrize(
    ("honest", "evil"),
    [
        ("xx/secret", "../secret"),
        ("xxxxx/xx/xx/secret", "clone/../../secret"),
        ("aa/bb/secret", "a/../secrets"),
        ("xtmp/secret", "/tmp/secret"),
        ("xgit/config", ".git/config"),
        ("xGIT/config", ".GIT/config"),
        ("sub/xgit/config", "sub/.git/config"),
    ],
)
def test_an_index_that_lists_what_is_outside_is_refused(
    clone: Path, tmp_path: Path, honest: str, evil: str
) -> None:
    """The file `../secret` was copied into the project."""
    (tmp_path / "secret").write_text(SECRET)
    forge(clone, honest, evil)
    with pytest.raises(TaskError, match="which is outside of it"):
        project_paths(clone)
    with pytest.raises(TaskError, match="which is outside of it"):
        digest_of(clone)


def test_a_tracked_path_beneath_a_link_is_not_followed(clone: Path, tmp_path: Path) -> None:
    write(tmp_path / "private", {"key": SECRET})
    write(clone, {"folder/key": "x"})
    git(clone, "add", "folder/key")
    (clone / "folder/key").unlink()
    (clone / "folder").rmdir()
    (clone / "folder").symlink_to(tmp_path / "private")
    assert "folder/key" not in project_paths(clone)


def test_a_tracked_file_that_became_a_folder_takes_no_ignored_file_along(clone: Path) -> None:
    (clone / "a.py").unlink()
    write(clone, {"a.py/secret.env": SECRET, "a.py/b.py": ""})
    assert project_paths(clone) == [".gitattributes", ".gitignore", "a.py/b.py"]


@pytest.mark.parametrize("path", [".git/index", ".git/info/exclude", ".git/HEAD", ".git"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.timeout(30)
def test_a_repository_of_pipes_and_links_is_not_waited_for(clone: Path, path: str, kind: str) -> None:
    place = clone / path
    place.parent.mkdir(exist_ok=True)
    if place.is_dir():
        place.rename(clone.with_name("moved"))
    else:
        place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero")
    if path == ".git/HEAD":
        with pytest.raises(TaskError, match="its HEAD cannot be read"):
            pack_head(clone, "python", clone.with_name("into.tar"))
    else:
        with pytest.raises(TaskError, match="git cannot list the files"):
            project_paths(clone)


@pytest.mark.parametrize("path", [".gitignore", "deep/er/.gitignore"])
@pytest.mark.timeout(30)
def test_a_pipe_for_a_list_of_ignored_files_is_not_waited_for(clone: Path, path: str) -> None:
    """Git waited until its time limit for somebody to write into the pipe."""
    write(clone, {"deep/er/new.py": ""})
    (clone / path).unlink(missing_ok=True)
    os.mkfifo(clone / path)
    with pytest.raises(TaskError, match=rf"git cannot list the files .*: {path} is not a file"):
        project_paths(clone)


def test_pipes_in_a_checkout_are_left_out(clone: Path, tmp_path: Path) -> None:
    os.mkfifo(clone / "pipe")
    (clone / "a.py").unlink()
    os.mkfifo(clone / "a.py")
    assert project_paths(clone) == [".gitattributes", ".gitignore"]
    project = Project(
        source="folder", package="clone", digest=digest_of(clone), license="MIT", language="python"
    )
    context = fetch(project, tmp_path, ROOT / "tasks/execution/image", tmp_path, tmp_path / "cache", print)
    assert not (context / "project/pipe").exists()


# --- objects and heads ------------------------------------------------------------------------------------------------


@pytest.fixture
def private(tmp_path: Path) -> str:
    """Make a private repository of the user's and return its commit."""
    place = tmp_path / "private"
    write(place, {"key.py": SECRET})
    git(place, "init", "--quiet", "--initial-branch=main")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "-m", "x")
    return git(place, "rev-parse", "HEAD").strip()


def borrow(clone: Path, private: str, way: str) -> None:
    """Make a clone refer to a private repository's objects."""
    theirs, mine = clone.with_name("private") / ".git", clone / ".git"
    if way == "alternates":
        write(mine, {"objects/info/alternates": f"{theirs}/objects\n"})
    elif way == "relative alternates":
        write(mine, {"objects/info/alternates": "../../../private/.git/objects\n"})
    elif way == "a link for objects":
        (mine / "objects").rename(mine / "old")
        (mine / "objects").symlink_to(theirs / "objects")
    elif way == "links for objects":
        for path in (theirs / "objects").glob("[0-9a-f][0-9a-f]"):
            if not (mine / "objects" / path.name).exists():
                (mine / "objects" / path.name).symlink_to(path)
    elif way == "a link for .git":
        mine.rename(clone / "old")
        mine.symlink_to(theirs)
    elif way == "a file for .git":
        mine.rename(clone / "old")
        mine.write_text(f"gitdir: {theirs}\n")
    if way not in ("a link for .git", "a file for .git"):
        (mine / "HEAD").write_text(f"{private}\n")


@pytest.mark.parametrize(
    "way",
    [
        "alternates",
        "relative alternates",
        "a link for objects",
        "links for objects",
        "a link for .git",
        "a file for .git",
    ],
)
def test_a_clone_packs_no_other_repository_of_this_machine(
    clone: Path, private: str, tmp_path: Path, way: str
) -> None:
    borrow(clone, private, way)
    with pytest.raises(TaskError, match=r"borrows its objects|is not a clone of its own|HEAD cannot be read"):
        pack_head(clone, "python", tmp_path / "into.tar")
    assert not (tmp_path / "into.tar").exists()


@pytest.mark.parametrize(
    "head",
    [
        "ref: ../../private/.git/refs/heads/main",
        "ref: refs/heads/../../../../private/.git/refs/heads/main",
        "ref: /etc/passwd",
        "ref: refs/heads/--output=/tmp/x",
        "--output=/tmp/x",
        "main; touch /tmp/x",
        "ref: refs/heads/absent",
        "ref: refs/heads/link",
        "",
        "g" * 40,
    ],
)
def test_a_head_that_is_not_a_commit_of_the_clone_is_refused(
    clone: Path, private: str, tmp_path: Path, head: str
) -> None:
    (clone / ".git/HEAD").write_text(head)
    (clone / ".git/refs/heads/link").symlink_to(tmp_path / "private/.git/refs/heads/main")
    (clone / ".git/refs/heads/--output=").mkdir(exist_ok=True)
    assert private
    with pytest.raises(TaskError, match="HEAD"):
        pack_head(clone, "python", tmp_path / "into.tar")


def test_replaced_objects_do_not_count(clone: Path, tmp_path: Path) -> None:
    honest = pack_head(clone, "python", tmp_path / "honest.tar")
    first = git(clone, "rev-parse", "HEAD").strip()
    write(clone, {"evil.py": "x"})
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "-m", "evil")
    evil = git(clone, "rev-parse", "HEAD").strip()
    git(clone, "reset", "--quiet", "--hard", first)
    git(clone, "replace", first, evil)
    assert pack_head(clone, "python", tmp_path / "into.tar") == honest


# --- honest clones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["loose", "packed", "detached", "deep"])
def test_honest_clones_are_packed(clone: Path, tmp_path: Path, way: str) -> None:
    commit = git(clone, "rev-parse", "HEAD").strip()
    if way == "packed":
        git(clone, "gc", "--quiet")
        git(clone, "pack-refs", "--all")
    elif way == "detached":
        git(clone, "checkout", "--quiet", "--detach")
    elif way == "deep":
        git(clone, "checkout", "--quiet", "-b", "feature/x#1+y")
    about = pack_head(clone, "python", tmp_path / "into.tar")
    assert (about["version"], about["lines"]) == (commit, 1)
    with tarfile.open(tmp_path / "into.tar") as archive:
        assert sorted(archive.getnames()) == [".gitattributes", ".gitignore", "a.py"]


def test_repositories_of_sha256_are_read(tmp_path: Path) -> None:
    place = tmp_path / "clone"
    write(place, {"a.py": "x\n", "b.env": SECRET, ".gitignore": "*.env\n"})
    git(place, "init", "--quiet", "--object-format=sha256")
    git(place, "add", ".")
    git(place, "commit", "--quiet", "-m", "x")
    assert project_paths(place) == [".gitignore", "a.py"]
    assert pack_head(place, "python", tmp_path / "into.tar")["lines"] == 1


def test_worktrees_and_submodules_are_listed(clone: Path, tmp_path: Path) -> None:
    (clone / ".git/info/exclude").write_text("*.key\n")
    git(clone, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    write(tmp_path / "tree", {"x.key": SECRET, "x.env": SECRET, "new.py": ""})
    assert project_paths(tmp_path / "tree") == [".gitattributes", ".gitignore", "a.py", "new.py"]
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    git(outer, "submodule", "--quiet", "add", str(clone), "inner")
    write(outer, {"inner/x.env": SECRET})
    found = list_files(outer)
    assert (found.files, found.checkouts) == ([".gitmodules"], ["inner"])
    assert project_paths(outer) == [".gitmodules", "inner/.gitattributes", "inner/.gitignore", "inner/a.py"]


def test_files_that_the_user_ignores_globally_are_not_copied(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "config", {"git/ignore": "*.private\n"})
    write(clone, {"x.private": SECRET})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert "x.private" not in project_paths(clone)
