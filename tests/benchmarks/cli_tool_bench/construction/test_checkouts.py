"""Checkouts: what is taken of them, what they say, and the reference that is made of it. No container is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench.construction import checkout
from runner.benchmarks.cli_tool_bench.construction.installed_commands import find_entry
from runner.benchmarks.cli_tool_bench.construction.recipe import Recipe
from runner.benchmarks.cli_tool_bench.construction.steps import Steps
from runner.benchmarks.sources import borrowed, checkout_files
from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.references import CHECKOUT, Reference, fetch, fetch_context, solution
from runner.benchmarks.sources.registries import reference
from runner.benchmarks.sources.rejections import RejectedError
from runner.errors import FetchError, TaskError
from runner.resources import ROOT
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support import checkout_tools as tools
from tests.support.module_proxy import publish, served
from tests.support.package_index import publish_wheel
from tests.support.tool_task_factory import furnished, tool_dataset

PLAIN = {
    "pyproject.toml": '[project]\nname = "plain"\nversion = "1.0"\nlicense = "MIT"\n'
    '[project.scripts]\np = "plain:main"\n',
    "plain.py": "def main():\n    print('plain')\n",
}
GO = {
    "go.mod": "module plain.example/plain\n\ngo 1.21\n",
    "main.go": "package main\n\nfunc main() {}\n",
}


def make_recipe(**fields: Any) -> Recipe:
    wanted = {"tool": "tallyho", "source": "checkout", "folder": "../own", "category": "Testing"}
    return Recipe.model_validate(wanted | fields)


def take(folder: Path, files: Mapping[str, str], **fields: Any) -> tuple[Recipe, Path]:
    """Pack a checkout of these files; return its recipe and the tar file."""
    tools.write_files(folder / "own", files)
    return checkout.take(
        make_recipe(**fields), folder / "making", folder / "work" / CHECKOUT
    ), folder / "work" / CHECKOUT


def look_up(folder: Path, files: Mapping[str, str], client: Any = None, **fields: Any) -> Package:
    """Return what a checkout of these files says of itself."""
    recipe, packed = take(folder, files, **fields)
    return checkout.look_up(recipe, packed, client, Steps(folder / "steps"))


def taken(folder: Path) -> set[str]:
    checkout_files.copy_checkout(folder, folder.parent / "taken")
    found = {path for path in (folder.parent / "taken").rglob("*") if not path.is_dir()}
    return {path.relative_to(folder.parent / "taken").as_posix() for path in found}


@pytest.fixture
def cache(tmp_path: Path, common: Path) -> Path:
    return furnished(tmp_path / "cache", common)


@pytest.fixture
def client(cache: Path) -> Callable[[str], Path]:
    images = ROOT / "tasks" / "cli_tool_bench" / "images"
    return partial(fetch_context, images, cache=cache, say=print)


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    root = tmp_path / "proxy"
    root.mkdir()
    with served(root) as (address, _):
        monkeypatch.setenv("GOPROXY", address)
        yield root


# --- what is taken ----------------------------------------------------------------------------------------------------


def test_history_caches_environments_packages_and_keys_are_left_out(tmp_path: Path) -> None:
    kept = {*PLAIN, "plain/build/made.py", "build/__init__.py", "link", ".github/ci.yml", "data/x.bin"}
    left = {
        ".git/HEAD",
        ".hg/x",
        "a/__pycache__/x.pyc",
        "a/x.pyc",
        "env/pyvenv.cfg",
        "env/lib/x.py",
        "sub/node_modules/ms/index.js",
        "dist/plain-1.0.tar.gz",
        "plain.egg-info/PKG-INFO",
        ".env",
        "sub/.npmrc",
    }
    own = tools.write_files(tmp_path / "own", {**dict.fromkeys({*kept, *left} - {"link"}, ""), **PLAIN})
    shutil.rmtree(own / ".git")
    (own / "link").symlink_to("plain.py")
    assert taken(own) == kept


def test_a_build_of_a_javascript_tool_is_taken(tmp_path: Path) -> None:
    own = tools.write_files(tmp_path / "own", {"package.json": "{}", "dist/cli.js": ""})
    assert taken(own) == {"package.json", "dist/cli.js"}


def test_of_a_git_checkout_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    own = tools.write_files(
        tmp_path / "own", {**PLAIN, ".gitignore": "secret\n", "secret": "x", "new.py": ""}
    )
    subprocess.run(["git", "init", "--quiet", str(own)], check=True)
    assert taken(own) == {*PLAIN, ".gitignore", "new.py"}


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda own: (own / "link").symlink_to("/etc"), "link is a link that leads outside. Replace it"),
        (lambda own: (own / "link").symlink_to("../../x"), "link is a link that leads outside. Replace it"),
        (lambda own: os.mkfifo(own / "pipe"), "pipe is neither a file nor a folder nor a link. Remove it"),
        (lambda own: (own / "a\nb").touch(), "is not plain text. Rename the file"),
        (shutil.rmtree, "own is not a folder. Name the folder of the checkout"),
        (lambda own: [path.unlink() for path in own.iterdir()], "own holds no file that is taken"),
        (
            lambda own: (own / "large").write_bytes(bytes(2000)),
            "holds more than 20000 files or 0 MiB. Name the",
        ),
    ],
)
def test_what_cannot_be_taken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], object], reason: str
) -> None:
    monkeypatch.setattr(checkout_files, "MOST_BYTES", 1000)
    spoil(tools.write_files(tmp_path / "own", PLAIN))
    with pytest.raises(RejectedError, match=reason) as refused:
        checkout.take(make_recipe(), tmp_path / "making", tmp_path / "work" / CHECKOUT)
    assert refused.value.rejection.step == "candidate"


def test_the_packed_files_depend_on_nothing_but_their_content(tmp_path: Path) -> None:
    _, one = take(tmp_path / "one", PLAIN)
    _, same = take(tmp_path / "elsewhere", dict(reversed(PLAIN.items())))
    _, other = take(tmp_path / "other", {**PLAIN, "plain.py": "def main():\n    print('changed')\n"})
    assert one.read_bytes() == same.read_bytes() != other.read_bytes()
    with tarfile.open(one) as packed:
        assert packed.getnames() == sorted(PLAIN)


def test_a_changed_file_makes_the_step_anew_and_an_unchanged_checkout_does_not(tmp_path: Path) -> None:
    said: list[str] = []
    for text in ("print(1)\n", "print(1)\n", "print(2)\n"):
        recipe, packed = take(tmp_path, {**PLAIN, "other.py": text})
        checkout.look_up(recipe, packed, Path, Steps(tmp_path / "steps", said.append))
    assert said == ["package", "package"]


def test_a_finished_task_can_be_made_again_without_the_folder(tmp_path: Path) -> None:
    recipe, packed = take(tmp_path, PLAIN)
    shutil.copyfile(packed, tmp_path / CHECKOUT)
    again = tmp_path / "again" / CHECKOUT
    assert checkout.take(make_recipe(folder=""), tmp_path / "making", again) == recipe.model_copy(
        update={"folder": ""}
    )
    assert again.read_bytes() == packed.read_bytes()
    (tmp_path / CHECKOUT).unlink()
    with pytest.raises(RejectedError, match=r"folder: none is named, and no reference\.tar lies in the task"):
        checkout.take(make_recipe(folder=""), tmp_path / "making", again)


# --- what it says of itself -------------------------------------------------------------------------------------------


def test_a_python_checkout_says_what_it_is(tmp_path: Path) -> None:
    files = {**tools.PYTHON, "pyproject.toml": tools.PYTHON["pyproject.toml"].replace('"natsort==8.4.0"', "")}
    found = look_up(tmp_path, files)
    assert (found.registry, found.package, found.version, found.license) == (
        "pypi",
        "plain-sort",
        "1.4",
        "MIT",
    )
    assert found.commands == {"plainsort": "plain_sort.main:main"}
    assert (found.authors, found.emails) == (("Ada Example",), ("ada@host.example",))
    assert (found.lines, found.files, found.readme) == (20, 4, "# plain-sort\n")


def test_a_person_may_name_the_entry_of_a_checkout_that_declares_no_command(tmp_path: Path) -> None:
    found = look_up(tmp_path, pyproject(scripts=""), command="p", entry="plain:main")
    assert (found.commands, found.lines) == ({}, 2)


def test_a_setup_cfg_says_what_a_python_checkout_is(tmp_path: Path) -> None:
    said = (
        "[metadata]\nname = Plain_Sort\nversion = attr: plain.VERSION\nlicense = MIT\nauthor = Ada\n"
        "url = https://x.example/a/b\n[options]\npackage_dir =\n    = lib\n"
        "[options.entry_points]\nconsole_scripts =\n    # two\n    p = plain:main\n    q=plain:q [x]\n"
    )
    found = look_up(tmp_path, {"setup.cfg": said, "lib/plain.py": "x = 1\n"}, version="3")
    assert (found.package, found.version, found.license) == ("plain-sort", "3", "MIT")
    assert found.commands == {"p": "plain:main", "q": "plain:q"}
    assert (found.authors, found.addresses) == (("Ada",), ("https://x.example/a/b",))


def pyproject(**changes: str) -> dict[str, str]:
    fields = {
        "name": '"plain"',
        "version": '"1.0"',
        "license": '"MIT"',
        "scripts": '{ p = "plain:main" }',
        **changes,
    }
    text = "".join(f"{key} = {value}\n" for key, value in fields.items() if value)
    return {**PLAIN, "pyproject.toml": f"[project]\n{text}"}


@pytest.mark.parametrize(
    ("files", "fields", "reason"),
    [
        ({"README.md": ""}, {}, r"it has no build file at its top .* Name the folder that has one"),
        ({"pyproject.toml": "[tool.poetry]\nname = 'x'\n"}, {}, "it has no build file at its top"),
        ({"setup.py": "raise SystemExit"}, {}, r"its setup\.py is a program, which is not run here"),
        ({"pyproject.toml": "[project"}, {}, r"its pyproject\.toml or setup\.cfg cannot be read"),
        ({"pyproject.toml": "project = 1"}, {}, r"its \[project\] table"),
        ({**PLAIN, **GO}, {}, "it has build files of python, go. Set `written_in` in the recipe"),
        (PLAIN, {"written_in": "go"}, "it has build files of python. Set `written_in`"),
        (pyproject(name=""), {}, "it does not declare its name"),
        (pyproject(name='"../x"'), {}, "is not the name of a Python package"),
        (pyproject(scripts=""), {}, r"it declares no command: name one in \[project\.scripts\]"),
        (
            pyproject(scripts='{ p = "other:main" }'),
            {},
            "its command starts 'other:main', and no folder of it has",
        ),
        (pyproject(scripts='{ p = "x; import os" }'), {}, "is not a MODULE:FUNCTION"),
        (
            pyproject(version="", dynamic='["version"]'),
            {},
            "does not state its version. Add `version` to the recipe",
        ),
        (
            pyproject(version="", dynamic='["version"]'),
            {"version": "one"},
            "'one' is not a version of a Python",
        ),
        (PLAIN, {"version": "2.0"}, "the checkout says 1.0 and the recipe 2.0. Correct the recipe"),
        (
            pyproject(license='{ file = "COPYING" }'),
            {},
            "does not state its licence. Add `license` to the recipe",
        ),
        (pyproject(dynamic='["dependencies"]'), {}, "only a build can tell what it requires"),
        (
            pyproject(dependencies='["x @ file:///etc"]'),
            {},
            "names an address, and only packages of the index",
        ),
        (
            {"setup.cfg": "[options]\ninstall_requires = file: x.txt\n"},
            {},
            "only a build can tell what it requires",
        ),
    ],
)
def test_a_checkout_that_says_too_little_is_rejected_with_what_to_do(
    tmp_path: Path, files: Mapping[str, str], fields: Mapping[str, Any], reason: str
) -> None:
    with pytest.raises(RejectedError, match=reason) as refused:
        look_up(tmp_path, files, **fields)
    assert refused.value.rejection.step == "candidate"


@pytest.mark.parametrize(
    ("about", "reason"),
    [
        ({"bin": {"p": "cli.js"}}, "it does not declare its name"),
        ({"name": "p", "version": "1.0.0"}, "it declares no command: name one in the field `bin`"),
        ({"name": "p", "bin": ["cli.js"]}, "it declares no command"),
        (
            {"name": "p", "bin": "dist/cli.js"},
            r"its command starts dist/cli\.js, which is not there. If a build",
        ),
        ({"name": "p", "bin": "../../x"}, "is not a relative path without"),
        (
            {"name": "p", "bin": "cli.js", "scripts": {"postinstall": "x"}},
            "needs a script at its installation",
        ),
    ],
)
def test_a_javascript_checkout_that_cannot_be_taken_is_rejected(
    tmp_path: Path, client: Callable[[str], Path], about: Mapping[str, Any], reason: str
) -> None:
    with pytest.raises(RejectedError, match=reason):
        look_up(tmp_path, {"package.json": json.dumps(about), "cli.js": ""}, client)


@pytest.mark.docker
def test_the_lock_of_a_javascript_checkout_is_respected(
    tmp_path: Path, client: Callable[[str], Path]
) -> None:
    """Without it, the newest version would be taken."""
    about = {"name": "p", "version": "1.0.0", "license": "MIT", "bin": "cli.js"}
    exact = {"package.json": json.dumps({**about, "dependencies": {"ms": "2.1.2"}}), "cli.js": ""}
    (line,) = look_up(tmp_path / "exact", exact, client).requires
    free = {**about, "dependencies": {"ms": "^2.1.0"}, "devDependencies": {"x": "file:../x"}}
    placed = {"node_modules/ms": {"version": "2.1.2", "integrity": line.partition(" ")[2]}}
    lock = {"name": "p", "version": "1.0.0", "lockfileVersion": 3, "packages": {"": free, **placed}}
    files = {"package.json": json.dumps(free), "cli.js": "", "package-lock.json": json.dumps(lock)}
    assert look_up(tmp_path / "free", files, client).requires == (line,)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"main.go": "package plain\n"}, "has no command, so it is not a command-line tool"),
        ({"go.mod": "go 1.21\n"}, r"has no go\.mod with its module's path"),
        (
            {"go.mod": "module plain.example/plain\nreplace a.example/b => ../b\n"},
            "by a folder, which it cannot here",
        ),
    ],
)
def test_a_go_checkout_that_cannot_be_taken_is_rejected(
    tmp_path: Path, client: Callable[[str], Path], changes: Mapping[str, str], reason: str
) -> None:
    with pytest.raises(RejectedError, match=reason):
        look_up(tmp_path, {**GO, **changes}, client, version="1.0", license="MIT")


def test_of_several_commands_one_must_be_named_unless_one_matches(tmp_path: Path) -> None:
    sandboxes, dataset = DockerSandboxes(), tool_dataset(tmp_path, tmp_path)
    tie = look_up(tmp_path / "a", pyproject(scripts='{ plaina = "plain:main", plainb = "plain:main" }'))
    with pytest.raises(RejectedError, match=r"plaina, plainb match 'plain' equally well .* name the command"):
        find_entry(tie, dataset, sandboxes, print)
    one = look_up(tmp_path / "b", pyproject(scripts='{ plain = "plain:main", other = "plain:main" }'))
    assert find_entry(one, dataset, sandboxes, print).command == "plain"


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "pypi", "package": "x"},
        {"source": "pypi", "package": "x", "version": "1", "folder": "y"},
        {"package": "x"},
    ],
)
def test_a_recipe_names_a_package_or_a_folder(fields: Mapping[str, str]) -> None:
    wanted = {"folder": ""} if fields.get("source") and "folder" not in fields else {}
    with pytest.raises(ValidationError, match=r"name both|these are for|declares its own name"):
        make_recipe(**{**wanted, **fields})


# --- its reference ----------------------------------------------------------------------------------------------------


def made(folder: Path, package: Package, command: str, client: Any = None, **changes: Any) -> Path:
    """Return the source of the reference that is made of a checkout, which `take` has packed."""
    found = Reference.model_validate({**reference(package, command, "tallyho").model_dump(), **changes})
    fetch(found, "tallyho", folder / "work", client, print, folder / "cache")
    return solution(found, "tallyho", folder / "cache") / "source"


def test_a_python_checkout_installs_its_modules_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_wheel(
        tmp_path / "index", "words", "1.0", {"words/__init__.py": "A = 1\n", "words/b.py": "B = 2\n"}
    )
    files = {
        **pyproject(dependencies='["words>=1"]', scripts='{ p = "plain.cli:main" }'),
        "plain.py": "",
        "src/plain/__init__.py": "",
        "src/plain/cli.py": "def main():\n    print('usage: plain')\n",
        "tests/test_it.py": "",
        "setup.py": "raise SystemExit",
        "setup.cfg": "[options]\n",
    }
    with served(tmp_path / "index") as (address, _):
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        found = look_up(tmp_path, files)
        assert [line.split()[0] for line in found.requires] == ["words==1.0"]
        source = made(tmp_path, found, "p", renamed=("src/plain/*.py",), names=("plain",))
    code = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    own = {"pyproject.toml", "src/plain/__init__.py", "src/plain/cli.py"}
    assert code == own | {"src/words/__init__.py", "src/words/b.py"}
    assert 'tallyho = "plain.cli:main"' in (source / "pyproject.toml").read_text()
    assert "usage: tallyho" in (source / "src" / "plain" / "cli.py").read_text()
    listed = (source.parent / borrowed.FILE).read_text().split()
    assert listed == ["src/words/__init__.py", "src/words/b.py"]


def test_a_go_checkout_vendors_what_it_requires(
    tmp_path: Path, proxy: Path, client: Callable[[str], Path]
) -> None:
    needed = {"go.mod": "module words.example/split\n", "split.go": "package split\n\nfunc Do() {}\n"}
    sums = publish(proxy, "words.example/split", "v1.0.0", needed)
    main = 'package main\n\nimport "words.example/split"\n\nfunc main() { split.Do() }\n'
    files = {
        "go.mod": "module plain.example/plain\n\ngo 1.21\n\nrequire words.example/split v1.0.0\n",
        "go.sum": sums,
        "cmd/one/main.go": main,
        "cmd/two/main.go": main,
    }
    found = look_up(tmp_path, files, client, version="1.0", license="MIT")
    assert (found.commands, found.addresses) == (
        {"one": "cmd/one", "two": "cmd/two"},
        ("https://plain.example/plain",),
    )
    source = made(tmp_path, found, "two", client)
    assert sorted(path.name for path in (source / "cmd").iterdir()) == ["one", "tallyho"]
    assert (source.parent / borrowed.FILE).read_text().split() == [
        "vendor/modules.txt",
        "vendor/words.example/split/split.go",
    ]


def test_files_that_are_not_those_of_the_task_are_refused(tmp_path: Path) -> None:
    found = look_up(tmp_path, PLAIN)
    with pytest.raises(FetchError, match=r"reference\.tar: its digest is"):
        made(tmp_path, found.model_copy(update={"digest": "sha256:0"}), "p")
    (tmp_path / "work" / CHECKOUT).unlink()
    with pytest.raises(TaskError, match=r"reference\.tar: the task's folder has no such file"):
        made(tmp_path, found, "p")


def test_only_a_checkout_has_a_registry_of_its_own(tmp_path: Path) -> None:
    found = reference(look_up(tmp_path, PLAIN), "p", "tallyho")
    assert found.packages == {"pypi": ("plain",)}
    for changes in ({"registry": ""}, {"source": "archive"}):
        with pytest.raises(ValidationError, match="`registry` is for a checkout"):
            Reference.model_validate({**found.model_dump(), **changes})
