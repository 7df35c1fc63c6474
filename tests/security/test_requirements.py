"""Attacks by names, versions and requirements of tasks: none becomes an option or a path, and nothing is built."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.benchmarks.nl2repo import upstream
from runner.benchmarks.nl2repo.jobs.make_task import MakeNl2RepoTask
from runner.benchmarks.nl2repo.upstream import Source, fetch_upstream
from runner.benchmarks.project_setup.projects import Project, digest_of
from runner.benchmarks.sources import go_modules, node_modules, packages, references, sdists
from runner.benchmarks.sources.clients import install_wheels
from runner.benchmarks.sources.references import Reference
from runner.benchmarks.sources.sdists import sdist_digest
from runner.benchmarks.sources.task_files import copy_tree, tree_digest
from runner.errors import ConfigError, TaskError
from tests.support.module_proxy import served
from tests.support.package_index import publish_sdist, publish_wheel
from tests.support.suite_factory import write

HASH = f"--hash=sha256:{'0' * 64}"
BUILDS = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n',
    "evil.py": "import pathlib; pathlib.Path({ran!r}).touch()\n",
}
"""Files of an sdist that leaves a trace when it is built, which needs no other package."""

LINES = [
    "--no-binary evil",
    "--no-binary=:all:",
    "--find-links /tmp",
    "--index-url http://evil.example/",
    "--extra-index-url=http://evil.example/",
    "--no-build-isolation",
    "--pre",
    "-r /etc/passwd",
    "-c constraints.txt",
    "-e .",
    "-e git+https://evil.example/x#egg=x",
    "--editable=.",
    f"evil @ file:///tmp/evil.tar.gz {HASH}",
    f"evil @ https://evil.example/evil.tar.gz {HASH}",
    f"evil @ git+ssh://evil.example/x {HASH}",
    "./evil.tar.gz",
    "/tmp/evil.tar.gz",
    "file:///tmp/evil.tar.gz",
    "git+https://evil.example/x",
    f"evil {HASH}",
    f"evil>=1.0 {HASH}",
    f"evil==1.* {HASH}",
    f"evil===1.0 {HASH}",
    f"evil==1.0,==1.1 {HASH}",
    f"evil[all]==1.0 {HASH}",
    "evil==1.0",
    "evil==1.0 --hash=md5:abc",
    "evil==1.0 --hash=sha256:short",
    f"evil==1.0 {HASH} --no-binary evil",
    f"evil==1.0 --config-settings=x {HASH}",
    f"evil==1.0 {HASH}\n--no-binary evil",
    f"evil==1.0\n--no-binary evil {HASH}",
    f"evil==1.0\\\n--no-binary evil {HASH}",
    f"evil==1.0 {HASH}\r--no-binary evil",
    f"evil==1.0 # {HASH}",
    f"evil==${{HOME}} {HASH}",
    f"${{HOME}}==1.0 {HASH}",
    f"$(id)==1.0 {HASH}",
    f"evil==1.0; python_version > '3' @ file:///x {HASH}",
    rf"evil==1.0; os_name == '\n--no-binary evil\n' {HASH}",
    rf"evil==1.0; os_name == 'x\x0d--find-links /tmp' {HASH}",
    rf"evil==1.0; os_name == '\x22\n--index-url http://evil.example/\nx==1; os_name == \x22' {HASH}",
    rf"evil==1.0; os_name == '\N{{LINE SEPARATOR}}--pre' {HASH}",
    rf"evil==1.0; os_name == 'x\\' {HASH}",
    "",
]


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_does_not_pin_a_package_of_the_index_is_refused(line: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"requirement|NAME==VERSION|--hash|address|version"):
        packages.pin(line)
    with pytest.raises(ValueError, match=r"requirement|NAME==VERSION|--hash|address|version"):
        install_wheels([line], tmp_path / "into")
    with pytest.raises(ValidationError):
        source(packages=(line,))
    with pytest.raises(ValidationError):
        reference(requires=(line,))
    assert not (tmp_path / "into").exists()


INTEGRITY = f"sha512-{'A' * 86}=="
DEB = f"pool/main/g/golang-a/golang-a-dev_1.0-1_all.deb {HASH}"


@pytest.mark.parametrize(
    "line",
    [
        f"node_modules/../../x@1.0.0 {INTEGRITY}",
        f"../x@1.0.0 {INTEGRITY}",
        f"/node_modules/x@1.0.0 {INTEGRITY}",
        f"node_modules/x/y@1.0.0 {INTEGRITY}",
        f"node_modules/x/node_modules/../y@1.0.0 {INTEGRITY}",
        f"node_modules/x@^1.0.0 {INTEGRITY}",
        f"node_modules/x@latest {INTEGRITY}",
        f"node_modules/x@1.0.0 {INTEGRITY} --x",
        f"node_modules/x=--y@1.0.0 {INTEGRITY}",
        f"node_modules/x=file:y@1.0.0 {INTEGRITY}",
        f"node_modules/x@1.0.0\n{INTEGRITY}",
        f"node_modules/x@1.0.0 {INTEGRITY}\n",
        "node_modules/x@1.0.0",
        "node_modules/x@1.0.0 sha1-AAAA",
        f"x==1.0 {HASH}",
    ],
)
def test_a_line_that_is_no_place_of_an_npm_package_is_refused(line: str) -> None:
    with pytest.raises(ValidationError, match="is not a line"):
        reference("npm", version="1.0.0", requires=(line,))
    good = f"node_modules/a/node_modules/@s/b=@t/c@1.0.0-rc.1 {INTEGRITY}"
    assert reference("npm", version="1.0.0", requires=(good,)).packages == {"npm": ("tally",)}


@pytest.mark.parametrize(
    "line",
    [
        DEB.replace("/g/", "/../"),
        DEB.replace("pool", "/pool"),
        DEB.replace(".deb", ".tar"),
        DEB.replace("sha256", "md5"),
        f"{DEB} --x",
        f"{DEB}\n",
        "golang-a-dev",
    ],
)
def test_a_line_that_is_no_file_of_the_debian_pool_is_refused(line: str) -> None:
    package = "pool/main/t/tally/tally_1.0.orig.tar.gz"
    with pytest.raises(ValidationError, match="is not a line"):
        reference("debian", package=package, requires=(line,))
    assert reference("debian", package=package, requires=(DEB,)).packages == {"debian": ("tally",)}


@pytest.mark.parametrize(
    "changed",
    [
        {"renamed": ("../x",), "names": ("x",)},
        {"renamed": ("/etc/passwd",), "names": ("x",)},
        {"renamed": ("x",)},
        {"names": ("x",)},
        {"renamed": ("x",), "names": ("",)},
        {"renamed": ("x",), "names": ("a\nb",)},
    ],
)
def test_names_are_replaced_in_files_of_the_reference_only(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        reference(**changed)


def source(**changed: Any) -> Source:
    fields = {"kind": "sdist", "package": "tally", "version": "1.0", "digest": "sha256:0"}
    return Source.model_validate(fields | changed)


def reference(kind: str = "pypi", **changed: Any) -> Reference:
    fields = {
        "source": kind,
        "package": "tally",
        "version": "1.0",
        "digest": "sha256:0",
        "license": "MIT",
        "lines": 1,
    }
    return Reference.model_validate(fields | changed)


def project(kind: str = "sdist", **changed: Any) -> Project:
    fields = {"source": kind, "package": "tally", "version": "1.0", "digest": "sha256:0"}
    return Project.model_validate(fields | {"license": "MIT", "language": "python"} | changed)


NAMES = [
    "--evil",
    "-e",
    "a/../b",
    "../a",
    "a b",
    "a\nb",
    'a"]',
    "a;b",
    "$(id)",
    "",
    "a@b",
    "file:///x",
    ".",
    "a\x1b[2J",
]
VERSIONS = [
    '1.0", "evil @ file:///tmp/evil.tar.gz',
    "1.0 --no-binary",
    "file:///x",
    "../x",
    "*",
    ">=1",
    "",
    "1.0\n2",
    "latest",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_an_option_a_path_or_an_address_is_refused(name: str) -> None:
    for kind in ("pypi", "npm", "go", "debian"):
        version = {"npm": "1.0.0", "go": "v1.0.0"}.get(kind, "1.0")
        with pytest.raises(ValidationError):
            reference(kind, package=name, version=version)
    for kind in ("sdist", "npm", "debian"):
        with pytest.raises(ValidationError):
            project(kind, package=name, version="1.0.0")
    with pytest.raises(ValidationError):
        source(package=name)
    with pytest.raises(ValueError, match="is not"):
        sdist_digest(name, "1.0")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_that_is_more_than_a_version_is_refused(version: str) -> None:
    for kind, name in (("pypi", "a"), ("npm", "a"), ("go", "a.example/b")):
        with pytest.raises(ValidationError):
            reference(kind, package=name, version=version)
    for kind in ("sdist", "npm"):
        with pytest.raises(ValidationError):
            project(kind, version=version)
    with pytest.raises(ValidationError):
        source(version=version)
    with pytest.raises(ValueError, match="is not a version"):
        sdist_digest("a", version)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (packages.npm_name, "@scope"),
        (packages.npm_name, "user/repository"),
        (packages.npm_name, "github:user/repository"),
        (packages.npm_name, "git+ssh://evil.example/x"),
        (packages.npm_name, "@../x"),
        (packages.npm_version, "1.0.0 --script-shell=x"),
        (packages.npm_version, "npm:evil@1.0.0"),
        (packages.npm_version, "^1.0.0"),
        (packages.npm_version, "١.0.0"),
        (packages.go_module, "localhost/x"),
        (packages.go_module, "a.example/../b"),
        (packages.go_module, "a.example//b"),
        (packages.go_module, "a.example/-x"),
        (packages.go_version, "latest"),
        (packages.go_version, "v1.0.0@x"),
        (packages.go_version, "main"),
        (packages.debian_file, "pool/../../etc/passwd"),
        (packages.debian_file, "/pool/main/a/a/a.tar"),
        (packages.debian_file, "pool/main/a/a/a.tar http://evil.example/x"),
        (packages.debian_file, "pool/main/a/a/$(id)"),
        (packages.python_entry, "os:system('id')"),
        (packages.python_entry, 'a:b"\nevil = "x'),
        (packages.python_entry, "a"),
        (packages.python_module, "../../victim"),
        (packages.python_module, "**"),
        (packages.inner_path, "../x"),
        (packages.inner_path, "/root/.ssh"),
        (packages.inner_path, "a/../../x"),
        (packages.inner_path, "a\x1b[2J"),
        (packages.requirement, "evil @ file:///tmp/evil.tar.gz"),
        (packages.requirement, "--no-binary evil"),
        (packages.requirement, "-r x"),
        (packages.requirement, "./x"),
        (packages.requirement, "evil\n--no-binary evil"),
    ],
)
def test_text_that_a_client_would_misread_is_refused(check: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|names an address"):
        check(text)


@pytest.mark.parametrize("requirement", ["evil @ file:///tmp/evil.tar.gz", "--no-binary evil", "-e ."])
def test_a_requirement_typed_for_a_new_task_is_refused(requirement: str) -> None:
    with pytest.raises(ValidationError, match="requires"):
        MakeNl2RepoTask(package="tally", version="1.0", requires=(requirement,))
    with pytest.raises(ValueError, match=r"is not|address"):
        sdists.lock_requirements((requirement,))


@pytest.mark.parametrize(
    ("check", "text", "written"),
    [
        (packages.pin, f"Old_Tally==1.0 {HASH}", f"old-tally==1.0 {HASH}"),
        (
            packages.pin,
            f"a==1.0+cpu ; python_version > '3' {HASH} {HASH}",
            f'a==1.0+cpu ; python_version > "3" {HASH} {HASH}',
        ),
        (
            packages.requirement,
            "A_b[x,Y] >= 1.0 ; python_version > '3'",
            'a-b[x,y]>=1.0 ; python_version > "3"',
        ),
        (packages.npm_name, "@scope/pack.age", "@scope/pack.age"),
        (packages.npm_version, "1.0.0-beta.1+5", "1.0.0-beta.1+5"),
        (packages.go_module, "github.com/BurntSushi/toml/v2", "github.com/BurntSushi/toml/v2"),
        (packages.go_version, "v2.0.0+incompatible", "v2.0.0+incompatible"),
        (packages.go_version, "v0.0.0-20210604000000-d5e0c0615ace", "v0.0.0-20210604000000-d5e0c0615ace"),
        (packages.debian_file, "pool/main/libc/libconfuse/libconfuse_3.3~rc1+dfsg.orig.tar.xz", None),
        (packages.python_entry, "a.__main__:main", "a.__main__:main"),
    ],
)
def test_honest_requirements_are_normalised(
    check: Callable[[str], str], text: str, written: str | None
) -> None:
    assert check(text) == (written or text)


# --- code that would run ----------------------------------------------------------------------------------------------


def test_a_hostile_sdist_is_never_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options in `packages` and `requires`, and a second requirement in `version`, built it on this machine."""
    ran = tmp_path / "ran"
    files = {name: text.format(ran=str(ran)) for name, text in BUILDS.items()}
    publish_sdist(tmp_path / "index", "evil", "1.0", files)
    publish_wheel(tmp_path / "index", "tally", "1.0", {"tally.py": ""})
    packed = tmp_path / "index" / "evil" / "evil-1.0.tar.gz"
    sha = hashlib.sha256(packed.read_bytes()).hexdigest()
    address = f"evil @ {packed.as_uri()} --hash=sha256:{sha}"
    with served(tmp_path / "index") as (index, _):
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        attempts: list[Callable[[], object]] = [
            lambda: install_wheels(["--no-binary evil", address], tmp_path / "into"),
            lambda: install_wheels([f"evil==1.0 --hash=sha256:{sha}"], tmp_path / "into"),
            lambda: source(packages=("--no-binary evil", address)),
            lambda: reference(requires=("--no-binary evil", address)),
            lambda: sdist_digest("tally", f'1.0", "{address.split(" --", maxsplit=1)[0]}'),
            lambda: sdists.lock_requirements(("--no-binary evil", address.split(" --", maxsplit=1)[0])),
            lambda: sdists.lock_requirements(("evil==1.0",)),
        ]
        for attempt in attempts:
            with pytest.raises((ConfigError, ValueError)):
                attempt()
    assert not ran.exists()


def test_withheld_names_delete_nothing_outside_the_tools(tmp_path: Path) -> None:
    """`(into / "tools").glob(f"{name}*")` accepted `..` and the found folders were deleted."""
    victim = tmp_path / "victim"
    write(victim, {"kept": ""})
    write(tmp_path / "image", {"Dockerfile": "", "judge.lock": "", "tools.lock": ""})
    hostile = source().model_copy(update={"withheld": ("../../victim",)})
    with pytest.raises(ValidationError):
        source(withheld=("../../victim",))
    with pytest.raises((ConfigError, ValueError)):
        upstream.write_context(tmp_path / "image", hostile, {}, tmp_path / "context")
    assert (victim / "kept").exists()


@pytest.mark.parametrize("entry", ["../victim", "{victim}", "cmd/../../victim", "link/../../victim"])
def test_the_entry_of_a_reference_moves_nothing_of_this_machine(tmp_path: Path, entry: str) -> None:
    """`_called` renamed the folder wherever it was."""
    victim = tmp_path / "victim"
    write(victim, {"kept": ""})
    with pytest.raises(ValidationError):
        reference("go", package="a.example/b", version="v1.0.0", entry=entry.format(victim=victim))
    assert (victim / "kept").exists()


def test_a_go_module_vendors_no_folder_of_this_machine() -> None:
    module = {"Replace": [{"Old": {"Path": "a.example/b"}, "New": {"Path": "../../../root/private"}}]}
    with pytest.raises(ConfigError, match=r"replaces a\.example/b by a folder"):
        go_modules.check_replacements(module)
    go_modules.check_replacements({"Replace": None})


@pytest.mark.parametrize(
    "content", ["[]", "{", "[" * 100_000, '"text"', None], ids=["list", "cut", "deep", "text", "absent"]
)
def test_an_odd_package_json_is_an_error_with_a_sentence(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "package.json").write_text(content)
    with pytest.raises(ConfigError, match=r"package\.json"):
        node_modules.package_json(tmp_path)


# --- folders and archives in a task's folder --------------------------------------------------------------------------

SECRET = "a secret of this machine"


def linked(folder: Path, target: str) -> Path:
    """Make a folder of upstream's in which a test is a link."""
    write(folder, {"tests/test_a.py": "", "a.py": ""})
    (folder / "tests" / "secret.py").symlink_to(target)
    return folder


@pytest.mark.parametrize(
    "target", ["{secret}", "../../secret", "../../up/secret", "../../upstream/../secret"]
)
def test_a_link_in_a_folder_copies_no_file_of_this_machine(tmp_path: Path, target: str) -> None:
    """The digest covers only a link's target, which its author knows. Copying a test followed the link."""
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "up").symlink_to(tmp_path)
    folder = linked(tmp_path / "upstream", target.format(secret=tmp_path / "secret"))
    upstream = source(kind="folder", package="upstream", digest=tree_digest(folder))
    with pytest.raises(
        TaskError, match=r"tests/secret\.py is neither a file nor a folder nor a link that stays"
    ):
        fetch_upstream(upstream, tmp_path, tmp_path / "cache", print)
    with pytest.raises(TaskError, match="a link that stays inside"):
        copy_tree(folder, tmp_path / "copied")
    assert not any(SECRET in path.read_text() for path in tmp_path.glob("c*/**/*") if path.is_file())


def test_links_inside_a_folder_are_copied_as_links(tmp_path: Path) -> None:
    copy_tree(linked(tmp_path / "upstream", "../a.py"), tmp_path / "copied")
    assert (tmp_path / "copied/tests/secret.py").readlink() == Path("../a.py")


@pytest.mark.parametrize("kind", ["folder", "archive"])
def test_a_reference_must_lie_in_its_tasks_folder(tmp_path: Path, kind: str) -> None:
    write(tmp_path / "outside", {"a": SECRET})
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "link").symlink_to(tmp_path / "outside")
    for package in ("../outside", str(tmp_path / "outside")):
        with pytest.raises(ValidationError, match="not a relative path"):
            reference(kind, package=package)
    referenced = reference(kind, package="link", digest=tree_digest(tmp_path / "outside"))
    with pytest.raises(TaskError, match="leaves the task's folder"):
        references.fetch(referenced, "tool", tmp_path / "task", lambda _: tmp_path, print, tmp_path / "cache")


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/tty"])
def test_a_device_is_not_a_project(place: str) -> None:
    with pytest.raises(TaskError, match="is neither a file nor a folder"):
        digest_of(Path(place))


def test_json_of_toml_is_what_uv_reads() -> None:
    """The locked file quotes names as JSON does. For everything that a parsed requirement may contain, that is valid
    TOML.
    """
    assert json.dumps(packages.requirement("a==1.0")) == '"a==1.0"'
