"""`job=find_nl2repo_sources` on made-up tasks, with a package index, a Debian and clones of this machine."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner.benchmarks.nl2repo import published_folder
from runner.benchmarks.nl2repo.finding import (
    archives,
    declarations,
    document_names,
    requirements,
    test_counts,
)
from runner.benchmarks.nl2repo.upstream import Source, fetch_upstream, write_context
from runner.errors import ConfigError
from tests.support.module_proxy import served
from tests.support.package_index import publish_sdist, publish_wheel
from tests.support.suite_factory import TESTS, UPSTREAM, make_folder, write
from tests.support.sweeps import Cli, Ended

OLD_TESTS = TESTS.replace('"times", [1, 2]', '"times", [1]')
"""One test less than `TESTS`, which with the last file are nine."""

STRANGERS = "The archives of its name hold another library than its document describes."


class Finder:
    """The job with an index of its own, and tasks in a folder."""

    def __init__(self, cli: Cli, asked: list[str]) -> None:
        self.cli, self.asked = cli, asked
        self.tasks, self.index = cli.outputs / "tasks", cli.outputs / "index"
        self.sources = cli.outputs / "sources"

    def __call__(self, *words: str) -> Ended:
        return self.cli(
            "job=find_nl2repo_sources",
            "dataset=nl2repo",
            f"dataset.root={self.tasks}",
            f"dataset.sources={self.sources}",
            "job.debian=false",
            *words,
        )

    def source(self, task: str = "tally") -> dict[str, Any]:
        node: dict[str, Any] = yaml.safe_load((self.sources / task / "source.yaml").read_text())
        return node

    def finding(self, ended: Ended) -> dict[str, Any]:
        (found,) = json.loads(next(self.cli.outputs.rglob("findings.json")).read_text())
        assert ended.code == 0, ended.err
        node: dict[str, Any] = found
        return node


@pytest.fixture
def find(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Finder]:
    (cli.outputs / "index").mkdir(parents=True)
    with served(cli.outputs / "index") as (address, asked):
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        monkeypatch.setenv("UV_CACHE_DIR", str(cli.outputs / "uv"))
        finder = Finder(cli, asked)
        make_folder(finder.tasks, **{"test_case_count.txt": "9"})
        yield finder


def test_the_version_that_a_document_names_is_the_source(find: Finder) -> None:
    make_folder(find.tasks, "other")
    (find.tasks / "tally" / "start.md").write_text('# tally\n\ntally counts.\n\n__version__ = "1.0"\n')
    for version in ("0.9", "1.0", "2.0"):
        publish_sdist(find.index, "tally", version, UPSTREAM)
    ended = find("job.tasks=[tally]")
    assert ended.code == 0, ended.err
    assert "[1/1] tally: sdist tally 1.0, 9 tests (9 published)" in ended.out
    packed = (find.index / "tally" / "tally-1.0.tar.gz").read_bytes()
    source = find.source()
    assert source["digest"] == f"sha256:{hashlib.sha256(packed).hexdigest()}"
    assert (source["kind"], source["package"], source["version"], source["count"]) == (
        "sdist",
        "tally",
        "1.0",
        "truth",
    )
    assert source["lines"] == 12
    assert not (find.sources / "other").exists()


def test_neighbours_are_tried_towards_the_published_number(find: Finder) -> None:
    publish_sdist(find.index, "tally", "3.0", UPSTREAM | {"tests/test_more.py": "def test_more(): pass\n"})
    publish_sdist(find.index, "tally", "2.0", UPSTREAM)
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"tests/test_tally.py": OLD_TESTS})
    assert find().code == 0
    assert find.source()["version"] == "2.0"
    assert not any("tally-1.0" in path for path in find.asked), "an older release has still fewer tests"


def test_newer_neighbours_of_a_named_version_are_tried_too(find: Finder) -> None:
    (find.tasks / "tally" / "start.md").write_text('# tally\n\ntally counts.\n\n__version__ = "1.0"\n')
    publish_sdist(find.index, "tally", "3.0", UPSTREAM | {"tests/test_more.py": "def test_more(): pass\n"})
    publish_sdist(find.index, "tally", "2.0", UPSTREAM)
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"tests/test_tally.py": OLD_TESTS})
    assert find().code == 0
    assert find.source()["version"] == "2.0"


def test_too_many_tests_are_better_than_too_few_for_a_truth(find: Finder) -> None:
    """One is closer to the published nine than twenty are, and can only be refused."""
    few = UPSTREAM | {"tests/test_tally.py": "def test_one(): pass\n"}
    more = UPSTREAM | {"tests/test_more.py": "".join(f"def test_more_{n}(): pass\n" for n in range(20))}
    publish_sdist(find.index, "tally", "2.0", more)
    publish_sdist(find.index, "tally", "1.0", few)
    assert find().code == 0
    assert find.source()["version"] == "2.0"
    (find.sources / "tally" / "source.yaml").unlink()
    assert find("job.without={tally: ['2.0']}").code == 0
    assert find.source()["version"] == "1.0", "the other is known to be refused too"


def test_a_second_run_asks_nothing_and_finds_the_same(find: Finder) -> None:
    publish_sdist(find.index, "tally", "1.0", UPSTREAM)
    assert find().code == 0
    first = (find.sources / "tally" / "source.yaml").read_bytes()
    (find.sources / "tally" / "source.yaml").unlink()
    find.asked.clear()
    assert find().code == 0
    assert (find.sources / "tally" / "source.yaml").read_bytes() == first
    assert find.asked == []


def test_a_task_with_a_source_is_left_alone(find: Finder) -> None:
    write(find.sources / "tally", {"source.yaml": "kind: sdist\n"})
    ended = find()
    assert "0 of 0 tasks have a source" in ended.out
    assert (find.sources / "tally" / "source.yaml").read_text() == "kind: sdist\n"


def test_a_dry_run_asks_nobody(find: Finder) -> None:
    ended = find("dry_run=true", "job.packages={tally: other-tally}")
    assert ended.code == 0, ended.err
    assert "  tally: other-tally" in ended.out
    assert find.asked == []
    assert find("job.tasks=[gone]").code == 2


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"tally/__init__.py": "x = 1\n"}, "No archive of it has the tests that its commands name."),
        (None, "No archive of it can be had from the package index, Debian or a clone."),
    ],
)
def test_a_task_without_an_archive_has_a_reason(
    find: Finder, files: dict[str, str] | None, reason: str
) -> None:
    if files:
        publish_sdist(find.index, "tally", "1.0", files)
    found = find.finding(find())
    assert found["reason"] == reason
    assert "source" not in found
    assert not find.sources.exists()


def test_a_broken_document_is_the_reason(find: Finder) -> None:
    (find.tasks / "tally" / "start.md").unlink()
    assert find.finding(find())["reason"] == "start.md is missing."
    assert find.asked == []


def test_an_index_that_does_not_answer_is_asked_again(find: Finder, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_sdist(find.index, "tally", "1.0", UPSTREAM)
    with monkeypatch.context() as patched:
        patched.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9")
        patched.setenv("UV_HTTP_RETRIES", "0")
        assert "the same command asks again" in find.finding(find())["reason"]
    assert find().code == 0
    assert find.source()["version"] == "1.0"


HOSTILE = {
    "leaves the folder": ("../../escaped", b"x", None),
    "is absolute": ("/tmp/escaped", b"x", None),
    "links outside": ("tally-1.0/tests/out", b"", "../../../escaped"),
    "is too large": ("tally-1.0/large", b"\0" * (80 << 20), None),
}


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_archive_is_refused(find: Finder, how: str) -> None:
    """The last one holds 80 MiB in 80 KiB: `runner.archives` has the limits."""
    name, content, link = HOSTILE[how]
    publish_sdist(find.index, "tally", "1.0", UPSTREAM)
    packed = find.index / "tally" / "tally-1.0.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        if link:
            entry.type, entry.linkname = tarfile.SYMTYPE, link
        archive.addfile(entry, io.BytesIO(content))
    digest = hashlib.sha256(packed.read_bytes()).hexdigest()
    page = f'<a href="tally-1.0.tar.gz#sha256={digest}">tally-1.0.tar.gz</a>\n'
    (find.index / "tally" / "index.html").write_text(page)
    found = find.finding(find())
    assert found["tried"][0].startswith("sdist 1.0: refused:")
    assert not list(find.cli.outputs.rglob("escaped"))


def test_setup_code_never_runs(find: Finder) -> None:
    ran = find.cli.outputs / "ran"
    code = f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='tally')\n"
    setup = {name: text for name, text in UPSTREAM.items() if name != "pyproject.toml"} | {"setup.py": code}
    publish_sdist(find.index, "tally", "1.0", setup)
    assert find().code == 0
    assert find.source()["version"] == "1.0"
    assert not ran.exists()


def test_requirements_of_the_tests_are_pinned_with_their_plugins(find: Finder) -> None:
    project = (
        '[project]\nname = "tally"\ndependencies = ["wanted"]\n'
        '[dependency-groups]\ndev = ["pytest-odd", "mypy"]\n'
    )
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"pyproject.toml": project})
    publish_wheel(find.index, "wanted", "1.5", {"wanted.py": ""})
    point = "[pytest11]\nodd = pytest_odd.plugin\n"
    publish_wheel(
        find.index,
        "pytest-odd".replace("-", "_"),
        "3.0",
        {"pytest_odd-3.0.dist-info/entry_points.txt": point},
    )
    (find.index / "pytest_odd").rename(find.index / "pytest-odd")
    ended = find()
    assert ended.code == 0, ended.err
    source = find.source()
    assert [line.split(" ")[0] for line in source["packages"]] == ["pytest-odd==3.0", "wanted==1.5"]
    assert all("--hash=sha256:" in line for line in source["packages"])
    assert source["plugins"] == ["pytest_odd.plugin"]
    ours = find.cli.outputs / "image"
    pins = {line.split("==")[0]: line for line in source["packages"]}
    write(ours, {"judge.lock": pins["wanted"], "tools.lock": pins["wanted"]})
    into = find.cli.outputs / "context"
    write_context(ours, Source.model_validate(source), {}, into)
    assert (into / "judge" / "pytest_odd-3.0.dist-info").is_dir(), (
        "the judge imports plugins from its own folder only"
    )
    assert not (into / "tools" / "pytest_odd-3.0.dist-info").exists()


def test_what_tests_need_and_nothing_declares_is_required(find: Finder) -> None:
    """Upstream's tests use it if it is there, and what developers have is declared nowhere."""
    tests = {"tests/test_mocked.py": "import mock\ndef test_mocked(): pass\n"}
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | tests)
    publish_wheel(find.index, "mock", "5.0", {"mock.py": ""})
    publish_wheel(find.index, "optional", "2.0", {"optional.py": ""})
    ended = find("job.requires={tally: ['optional>=1']}")
    assert ended.code == 0, ended.err
    assert [line.split(" ")[0] for line in find.source()["packages"]] == ["mock==5.0", "optional==2.0"]
    (find.sources / "tally" / "source.yaml").unlink()
    assert find().code == 0
    assert [line.split(" ")[0] for line in find.source()["packages"]] == ["mock==5.0"]
    refused = find("job.requires={tally: ['x @ https://host.example/x.whl']}")
    assert refused.code == 2


def test_a_helper_of_tests_that_cannot_be_had_is_left_out(find: Finder) -> None:
    tests = {"tests/test_mocked.py": "import mock\ndef test_mocked(): pass\n"}
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | tests)
    assert find().code == 0
    assert "packages" not in find.source()


def test_a_requirement_without_a_wheel_is_taken_from_its_sdist_unbuilt(find: Finder) -> None:
    project = '[project]\nname = "tally"\ndependencies = ["wheelless"]\n'
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"pyproject.toml": project})
    ran = find.cli.outputs / "ran"
    files = {
        "setup.py": f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='wheelless')\n",
        "wheelless.py": "x = 1\n",
        "inner/__init__.py": "y = 2\n",
        "PKG-INFO": "Metadata-Version: 1.1\nName: wheelless\nVersion: 0.6\n",
        "wheelless.egg-info/top_level.txt": "inner\nwheelless\n",
    }
    publish_sdist(find.index, "wheelless", "0.6", files)
    ended = find()
    assert ended.code == 0, ended.err
    source = Source.model_validate(find.source())
    packed = (find.index / "wheelless" / "wheelless-0.6.tar.gz").read_bytes()
    assert source.sdists == (f"wheelless==0.6 --hash=sha256:{hashlib.sha256(packed).hexdigest()}",)
    ours, into = find.cli.outputs / "image", find.cli.outputs / "context"
    write(ours, {"judge.lock": "", "tools.lock": ""})
    write_context(ours, source, {}, into)
    placed = {path.relative_to(into / "packages").as_posix() for path in (into / "packages").rglob("*")}
    assert placed >= {"wheelless.py", "inner/__init__.py", "wheelless-0.6.dist-info/METADATA"}
    assert not ran.exists()


def test_what_a_requirement_without_a_wheel_requires_is_pinned_too(find: Finder) -> None:
    """The requirement is another package's, so that only the index can name it."""
    project = '[project]\nname = "tally"\ndependencies = ["wrapper"]\n'
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"pyproject.toml": project})
    about = "Metadata-Version: 2.1\nName: wrapper\nVersion: 1.0\nRequires-Dist: wheelless<2\n"
    publish_wheel(find.index, "wrapper", "1.0", {"wrapper.py": "", "wrapper-1.0.dist-info/METADATA": about})
    files = {
        "wheelless.py": "",
        "PKG-INFO": "Metadata-Version: 1.1\nName: wheelless\nVersion: 0.6\n",
        "wheelless.egg-info/top_level.txt": "wheelless\n",
        "wheelless.egg-info/requires.txt": "further\n\n[docs]\nsphinx\n",
    }
    publish_sdist(find.index, "wheelless", "0.6", files)
    publish_wheel(find.index, "further", "3.0", {"further.py": ""})
    assert find().code == 0
    source = find.source()
    assert [line.split(" ")[0] for line in source["packages"]] == ["further==3.0", "wrapper==1.0"]
    assert [line.split(" ")[0] for line in source["sdists"]] == ["wheelless==0.6"]


def test_a_requirement_that_would_have_to_be_built_is_the_reason(find: Finder) -> None:
    project = '[project]\nname = "tally"\ndependencies = ["compiled"]\n'
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"pyproject.toml": project})
    publish_sdist(find.index, "compiled", "0.6", {"compiled.c": "int x;\n"})
    reason = find.finding(find())["reason"]
    assert reason.startswith("What sdist 1.0 requires cannot be pinned")
    assert "compiled 0.6: its sdist does not say which modules it has" in reason


@pytest.mark.parametrize(("code", "package"), [("", "tally"), ("def unrelated(): pass\n", "")])
def test_a_library_published_under_the_name_of_its_module_is_found_if_it_is_the_same(
    find: Finder, code: str, package: str
) -> None:
    _described_as_tally(find)
    publish_sdist(
        find.index,
        "tally",
        "1.0",
        UPSTREAM | ({"tally/__init__.py": code, "tally/most.py": code} if code else {}),
    )
    publish_sdist(find.index, "counter", "1.0", {"counter.py": ""})
    node = find.finding(find("job.tasks=[counter]"))
    if package:
        assert (node["package"], find.source("counter")["package"]) == (package, package)
    else:
        assert "tally 1.0: it is another library." in node["tried"]
        assert node["reason"] == STRANGERS


@pytest.mark.parametrize("package", ["tally", "counter"])
def test_an_older_library_of_the_same_name_gives_way_to_one_that_resembles_the_document(
    find: Finder, package: str
) -> None:
    """It is the source only if there is no other one."""
    _described_as_tally(find)
    older = {"tally/__init__.py": "", "tally/most.py": "", "counter.py": "def unrelated(): pass\n"}
    publish_sdist(find.index, "counter", "1.0", UPSTREAM | older)
    if package == "tally":
        publish_sdist(find.index, "tally", "1.0", UPSTREAM)
    assert find("job.tasks=[counter]").code == 0
    assert find.source("counter")["package"] == package


def test_a_library_without_the_modules_of_the_document_is_never_the_source(find: Finder) -> None:
    """Its own tests would pass on its own code, and every workspace would be judged by them."""
    _described_as_tally(find)
    other = {path.replace("tally/", "counter/"): text for path, text in UPSTREAM.items()}
    publish_sdist(find.index, "counter", "1.0", other)
    node = find.finding(find("job.tasks=[counter]"))
    assert "counter 1.0: it is another library." in node["tried"]
    assert node["reason"] == STRANGERS
    assert find("job.tasks=[counter]", "job.packages={counter: counter}").code == 0
    assert find.source("counter")["package"] == "counter", "the user says that it is the one"


def test_an_archive_that_no_parser_can_take_is_another_library(find: Finder) -> None:
    _described_as_tally(find)
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"tally/deep.py": f"x = {'-' * 200_000}1\n"})
    assert "tally 1.0: it is another library." in find.finding(find("job.tasks=[counter]"))["tried"]


def _described_as_tally(find: Finder) -> None:
    """Make the task `counter`, whose document describes the packages of tally."""
    folder = make_folder(find.tasks, "counter", **{"test_case_count.txt": "9"})
    text = "# counter\n\ncounter has `tally/__init__.py` with `Tally`, and `tally/most.py` with `most`.\n"
    (folder / "start.md").write_text(text)


def test_a_clone_is_the_last_resort_and_pinned_by_its_commit(find: Finder) -> None:
    clone = find.cli.outputs / "clones" / "tally"
    write(clone, UPSTREAM)
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", str(clone), *words], check=True)
    assert find(f"dataset.checkouts={clone.parent}").code == 0
    source = Source.model_validate(find.source())
    commit = subprocess.run(
        ["git", "-C", str(clone), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    assert (source.kind, source.package, source.version) == ("git", "tally", commit)
    place = fetch_upstream(source, clone, find.cli.outputs / "another", print, clone.parent)
    assert (place / "tests" / "test_tally.py").read_text() == TESTS
    with pytest.raises(ConfigError, match=r"name that folder with dataset\.checkouts=DIR"):
        fetch_upstream(source, clone, find.cli.outputs / "third", print)


LISTED = """\
Package: {name}
Binary: python3-counting,
 python3-tally
Version: 1:{version}-3
Directory: pool/main/p/{name}
Checksums-Sha256:
 {digest} 100 {name}_{version}.orig.tar.xz
 {other} 9 {name}_{version}-3.debian.tar.xz
"""


def listed(name: str, version: str, letter: str) -> str:
    return LISTED.format(name=name, version=version, digest=letter * 64, other="f" * 64)


def test_what_debian_lists_are_pinned_candidates(tmp_path: Path) -> None:
    asked: list[list[str]] = []
    suites = [listed("python-tally", version, letter) for version, letter in (("2.9", "a"), ("2.10", "b"))]

    def debian(names: list[str], say: object) -> str:  # noqa: ARG001 - the signature of `describe_sources`
        asked.append(names)
        return "\n".join([*suites, suites[0], "Package: native\nVersion: 1\n"])

    names = archives.debian_names("tally", "tally")
    assert names == ["tally", "python-tally", "python3-tally"]
    for _ in range(2):
        found = archives.debian_list(names, tmp_path, print, debian)
        assert found.keys() == {"python-tally", "python3-tally"}
    assert asked == [names], "the second answer comes from the file"
    sources = [candidate.source for candidate in found["python-tally"]]
    path = "pool/main/p/python-tally/python-tally_2.10.orig.tar.xz"
    assert (sources[0].kind, sources[0].package, sources[0].version) == ("debian", path, "2.10")
    assert [source.digest for source in sources] == [f"sha256:{letter * 64}" for letter in "ba"]


def test_a_source_of_debian_is_found_by_the_package_that_is_built_of_it(tmp_path: Path) -> None:
    names = archives.debian_names("tally", "tally")
    found = archives.debian_list(names, tmp_path, print, lambda *_: listed("the-tallies", "2.0", "a"))
    assert found.keys() == {"python3-tally"}
    assert found["python3-tally"][0].source.package == "pool/main/p/the-tallies/the-tallies_2.0.orig.tar.xz"


@pytest.mark.parametrize("words", [(), ("job.moved={tally: {tests: tally/tests}}",)])
def test_tests_that_the_authors_put_elsewhere_are_moved(find: Finder, words: tuple[str, ...]) -> None:
    """The archive has them in the library's folder, where nobody would look for them."""
    inside = {f"tally/{path}" if path.startswith("tests/") else path: text for path, text in UPSTREAM.items()}
    publish_sdist(find.index, "tally", "1.0", inside)
    assert find(*words).code == 0
    source = Source.model_validate(find.source())
    assert source.moved == {"tests": "tally/tests"}
    place = fetch_upstream(source, find.sources, find.cli.outputs / "another", print)
    assert (place / "tests" / "test_tally.py").read_text() == TESTS
    assert not (place / "tally" / "tests").exists()


def test_tests_with_two_places_are_not_moved(find: Finder) -> None:
    inside = {f"tally/{path}" if path.startswith("tests/") else path: text for path, text in UPSTREAM.items()}
    publish_sdist(find.index, "tally", "1.0", inside | {"other/tests/test_x.py": "def test_x(): pass\n"})
    assert find.finding(find())["reason"] == "No archive of it has the tests that its commands name."


@pytest.mark.parametrize("moved", [{"../out": "tests"}, {"tests": "/etc"}, {"tests": "tally/../.."}])
def test_nothing_is_moved_out_of_an_archive_or_into_it(moved: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="is not a path inside the archive"):
        Source(kind="sdist", package="tally", version="1", digest="sha256:x", moved=moved)


def test_a_source_says_which_python_it_takes_and_why(find: Finder) -> None:
    publish_sdist(find.index, "tally", "1.0", UPSTREAM | {"tests/test_mocked.py": "import mock\n"})
    publish_wheel(find.index, "mock", "5.0", {"mock.py": ""})
    ended = find("job.pythons={tally: {version: '3.9', why: 'Its tests use what 3.10 dropped.'}}")
    assert ended.code == 0, ended.err
    source = Source.model_validate(find.source())
    assert (source.python, source.python_reason) == ("3.9", "Its tests use what 3.10 dropped.")
    assert source.shaping["python"] == "3.9"
    with pytest.raises(ValueError, match="needs a python_reason"):
        Source.model_validate(source.model_dump() | {"python_reason": ""})


def test_tests_that_cannot_be_collected_do_not_count(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tasks")
    published = published_folder.read(folder)
    upstream = tmp_path / "upstream"
    write(upstream, UPSTREAM)
    assert test_counts.count(test_counts.test_files(upstream, published), upstream) == (9, True)
    write(upstream, {"tests/test_helped.py": "from tests.helper import one\ndef test_one(): pass\n"})
    assert test_counts.count(test_counts.test_files(upstream, published), upstream) == (9, True)
    write(upstream, {"tests/helper.py": "one = 1\n"})
    assert test_counts.count(test_counts.test_files(upstream, published), upstream) == (10, True)
    write(upstream, {"tests/tests.py": "def test_two(): pass\n"})
    assert test_counts.count(test_counts.test_files(upstream, published), upstream) == (10, True)
    project = (upstream / "pyproject.toml").read_text()
    named = '[tool.pytest.ini_options]\npython_files = ["tests.py", "test_*.py"]\n'
    write(upstream, {"pyproject.toml": project + named})
    assert test_counts.count(test_counts.test_files(upstream, published), upstream) == (11, True)
    write(upstream, {"pyproject.toml": project})
    many = "import pytest\n@pytest.mark.parametrize('x', range(3))\ndef test_x(x): pass\n"
    write(upstream, {"tests/test_many.py": many})
    assert test_counts.count(test_counts.test_files(upstream, published), upstream) == (11, False)


@pytest.mark.parametrize(
    ("task", "document", "name", "versions"),
    [
        ("tally", "Write tally.", "tally", []),
        ("tally", "pip install numpy\npip install python-tally", "python-tally", []),
        ("tally", 'setup(\n    name="py-tally",\n    version="1.2",\n)', "py-tally", ["1.2"]),
        ("tally", 'User(\n    name="John")\ntally==2.0.1 and numpy==9.9', "tally", ["2.0.1"]),
        ("tally", '__version__ = "0.3.dev1"\n', "tally", ["0.3.dev1"]),
        ("tally", '__version__ = "1.0; rm"\n', "tally", []),
    ],
)
def test_names_and_versions_of_documents(task: str, document: str, name: str, versions: list[str]) -> None:
    assert document_names.package_name(task, document) == name
    assert document_names.versions(name, document) == versions


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (
            {"setup.cfg": "[tool:pytest]\naddopts = --cov=x --flake8\n\n[other]\n-n 4\n"},
            ["pytest-cov", "pytest-flake8"],
        ),
        ({"pyproject.toml": '[tool.pytest.ini_options]\nasyncio_mode = "auto"\n'}, ["pytest-asyncio"]),
        ({"tests/test_x.py": "import pytest_mock, os\n"}, ["pytest-mock"]),
        ({"pytest.ini": "[pytest]\nminversion = 6\n"}, []),
    ],
)
def test_plugins_without_which_pytest_does_not_start(
    tmp_path: Path, files: dict[str, str], wanted: list[str]
) -> None:
    write(tmp_path, files)
    everything, _, least = requirements.wanted(tmp_path, sorted(tmp_path.glob("tests/*.py")))
    assert (everything, least) == (wanted, [])


@pytest.mark.parametrize(
    ("files", "runtime", "extras"),
    [
        (
            {
                "PKG-INFO": "Metadata-Version: 2.2\nName: x\nRequires-Dist: a>=1\nRequires-Dist: b; extra == 'test'\n"
            },
            ["a>=1"],
            {"test": ["b"]},
        ),
        (
            {"x.egg-info/requires.txt": "a\n\n[test]\nb\n\n[:python_version < '3']\nc\n"},
            ["a"],
            {"test": ["b"]},
        ),
        (
            {"setup.py": "deps = ['a']\nsetup(install_requires=deps, tests_require=['b'])\n"},
            ["a"],
            {"tests_require": ["b"]},
        ),
        (
            {"setup.cfg": "[options]\ninstall_requires =\n  a\n[options.extras_require]\ntest =\n  b\n"},
            ["a"],
            {"test": ["b"]},
        ),
        ({"requirements-test.txt": "b==1.0  # why\n-e .\n"}, [], {"requirements-test": ["b"]}),
        ({"tox.ini": "[testenv]\ndeps =\n  py39: a\n  b>=1\n  -rx.txt\n"}, [], {"tox": ["a", "b>=1"]}),
        ({"pyproject.toml": '[tool.hatch.envs.test]\ndependencies = ["b"]\n'}, [], {"test": ["b"]}),
        ({"pyproject.toml": '[tool.poetry.group.dev.dependencies]\nc = "^1"\n'}, [], {"dev": ["c"]}),
        ({"setup.py": "while True: pass\n"}, [], {}),
        ({"pyproject.toml": "not toml ["}, [], {}),
    ],
)
def test_declared_requirements(
    tmp_path: Path, files: dict[str, str], runtime: list[str], extras: dict[str, list[str]]
) -> None:
    write(tmp_path, files)
    found = declarations.declared(tmp_path)
    assert [line for line in found.runtime if "python_version" not in line] == runtime
    assert {name: lines for name, lines in found.extras.items() if lines} == extras
