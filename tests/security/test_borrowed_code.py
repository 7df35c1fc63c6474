"""Attacks by references on the search for them: none hides its own code among what it requires.

Packages come from registries of this test's own, over real HTTP.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from runner.benchmarks.sources import borrowed
from runner.benchmarks.sources.references import Reference, fetch, fetch_context, solution
from runner.records import Answer
from runner.sweeps import answers_in_reach
from tests.support.module_proxy import publish, served
from tests.support.package_index import publish_wheel
from tests.support.shipped_tools import SHIPPED
from tests.support.tool_task_factory import furnished

TOOL = "harbours"
OWN = "def harbours(text):\n    return [line for line in text.splitlines() if line]\n"
OTHER = "def other(text):\n    return text.partition(';')[0].strip()\n"

Fetched = Callable[[Reference], set[str]]


@pytest.fixture
def client(tmp_path: Path, common: Path) -> Callable[[str], Path]:
    cache = furnished(tmp_path / "clients", common)
    return partial(fetch_context, SHIPPED / "images", cache=cache, say=print)


@pytest.fixture
def searched_for(tmp_path: Path, client: Callable[[str], Path]) -> Fetched:
    """Return a function that fetches a reference and returns the files by which it is searched for."""

    def searched_for(reference: Reference) -> set[str]:
        fetch(reference, TOOL, tmp_path, client, print, tmp_path / "cache")
        place = solution(reference, TOOL, tmp_path / "cache")
        answer = Answer(source=place / "source", borrowed=place / borrowed.FILE)
        left_out = answers_in_reach._borrowed(answer)
        return {name for name, *_ in answers_in_reach.files(answer.source, left_out)}

    return searched_for


# --- wheels -----------------------------------------------------------------------------------------------------------

HONEST = {"tally/__init__.py": OWN}
DEPENDENCY = {"dep/__init__.py": OTHER, "dep/inner/more.py": OTHER, "single.py": OTHER}
ALL = {"src/tally/__init__.py", "src/dep/__init__.py", "src/dep/inner/more.py", "src/single.py"}
WHEELS: dict[str, tuple[Mapping[str, str], Mapping[str, str], set[str]]] = {
    "nothing hidden": (HONEST, DEPENDENCY, {"src/tally/__init__.py"}),
    "own code in the requirement's folder": (
        {**HONEST, "dep/mine.py": OWN},
        DEPENDENCY,
        ALL - {"src/single.py"} | {"src/dep/mine.py"},
    ),
    "own code below the requirement's folder": (
        {**HONEST, "dep/inner/deep/mine.py": OWN},
        DEPENDENCY,
        ALL - {"src/single.py"} | {"src/dep/inner/deep/mine.py"},
    ),
    "requirement lists the tool's files": (
        HONEST,
        {**DEPENDENCY, "dep-1.0.dist-info/RECORD": "tally/__init__.py,,\ntally/,,\n../tally,,\n"},
        {"src/tally/__init__.py"},
    ),
    "tool lists nothing, requirement lists all": (
        {**HONEST, "tally-1.0.dist-info/RECORD": "", "hidden.py": OWN},
        {**DEPENDENCY, "dep-1.0.dist-info/RECORD": "hidden.py,,\n"},
        {"src/tally/__init__.py", "src/hidden.py"},
    ),
    "tool brings a list in the requirement's name": (
        {**HONEST, "tally-1.0.data/purelib/dep-1.0.dist-info/RECORD": "tally/__init__.py,,\n"},
        DEPENDENCY,
        {"src/tally/__init__.py"},
    ),
    "requirement has a copy of the tool": (
        HONEST,
        {**DEPENDENCY, "dep/copy.py": OWN},
        {"src/tally/__init__.py", "src/dep/copy.py"},
    ),
    "own code where data belong": (
        {**HONEST, "tally-1.0.data/purelib/dep/mine.py": OWN},
        DEPENDENCY,
        ALL - {"src/single.py"} | {"src/dep/mine.py"},
    ),
}


@pytest.mark.parametrize("case", WHEELS.values(), ids=WHEELS)
def test_a_wheel_hides_nothing_among_its_requirements(
    searched_for: Fetched,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[Mapping[str, str], Mapping[str, str], set[str]],
) -> None:
    own, others, expected = case
    for name, files in (("tally", own), ("dep", others)):
        publish_wheel(tmp_path / "index", name, "1.0", files)
    digests = {
        path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in tmp_path.glob("index/*/*.whl")
    }
    reference = Reference(
        source="pypi",
        package="tally",
        version="1.0",
        digest=f"sha256:{digests['tally']}",
        license="MIT",
        requires=(f"dep==1.0 --hash=sha256:{digests['dep']}",),
        entry="tally:harbours",
        lines=2,
    )
    with served(tmp_path / "index") as (index, _):
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
        assert searched_for(reference) == expected


# --- packages of npm --------------------------------------------------------------------------------------------------


class Registry:
    """A registry of npm packages: a folder of documents, and of the files that they name."""

    def __init__(self, root: Path, address: str) -> None:
        self._root, self._address = root, address

    def publish(self, name: str, version: str, files: Mapping[str, str]) -> str:
        """Put a package into the registry, and return its integrity."""
        packed = io.BytesIO()
        about = {"name": name, "version": version}
        described = {"package.json": json.dumps(about), **files}
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, text in described.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(packed.getvalue()).digest()).decode()}"
        file = f"{name}-{version}.tgz"
        self._root.mkdir(exist_ok=True)
        (self._root / file).write_bytes(packed.getvalue())
        document = self._root / name
        versions = json.loads(document.read_text())["versions"] if document.exists() else {}
        versions[version] = {**about, "dist": {"tarball": f"{self._address}/{file}", "integrity": integrity}}
        document.write_text(
            json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": versions})
        )
        return integrity


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    (tmp_path / "registry").mkdir()
    with served(tmp_path / "registry") as (address, _):
        monkeypatch.setenv("npm_config_registry", address)
        monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
        yield Registry(tmp_path / "registry", address)


def of_npm(integrity: str, *requires: str) -> Reference:
    return Reference(
        source="npm",
        package="tally",
        version="1.0.0",
        digest=integrity,
        license="MIT",
        requires=requires,
        entry="cli.js",
        lines=2,
    )


def test_an_npm_package_hides_nothing_below_node_modules(searched_for: Fetched, registry: Registry) -> None:
    mine = {"cli.js": OWN, "node_modules/mine/index.js": OWN, "node_modules/dep2/index.js": "// own\n"}
    integrity = registry.publish("tally", "1.0.0", mine)
    dep = registry.publish("dep", "1.0.0", {"index.js": OTHER, "copy.js": OWN, "node_modules/d/x.js": OTHER})
    found = searched_for(of_npm(integrity, f"node_modules/dep@1.0.0 {dep}"))
    assert found == {*mine, "node_modules/dep/copy.js"}


def test_an_older_version_of_an_npm_package_is_its_own_code_under_any_alias(
    searched_for: Fetched, registry: Registry
) -> None:
    integrity = registry.publish("tally", "1.0.0", {"cli.js": OWN})
    older = registry.publish("tally", "0.9.0", {"cli.js": f"// older\n{OWN}"})
    dep = registry.publish("dep", "1.0.0", {"index.js": OTHER})
    found = searched_for(
        of_npm(
            integrity,
            f"node_modules/dep@1.0.0 {dep}",
            f"node_modules/dep/node_modules/alias=tally@0.9.0 {older}",
        )
    )
    assert found == {"cli.js", "node_modules/dep/node_modules/alias/cli.js"}


# --- modules of Go ----------------------------------------------------------------------------------------------------


def test_a_go_module_hides_nothing_in_its_vendor_folder(
    searched_for: Fetched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "package {}\n\nfunc Name() string {{ return {} }}\n"
    proxy, sums = tmp_path / "proxy", ""
    own = library.format("own", '"own"')
    for module, package, text in (
        ("words.example/other", "other", library.format("other", '"other"')),
        ("tools.example/tally/part", "part", library.format("part", '"part"')),
        ("words.example/copy", "own", own),
    ):
        files = {"go.mod": f"module {module}\n\ngo 1.21\n", f"{package}.go": text}
        sums += publish(proxy, module, "v1.0.0", files)
    modules = ("words.example/other", "tools.example/tally/part", "words.example/copy")
    files = {
        "go.mod": "module tools.example/tally/v2\n\ngo 1.21\n\n"
        + "".join(f"require {module} v1.0.0\n" for module in modules),
        "go.sum": sums,
        "main.go": "package main\n\nimport (\n"
        + "".join(f'\t_ "{module}"\n' for module in modules)
        + '\t_ "tools.example/tally/v2/own"\n)\n\nfunc main() {}\n',
        "own/own.go": own,
        "vendor/words.example/other/mine.go": own,
    }
    digest = publish(proxy, "tools.example/tally/v2", "v2.0.0", files).split()[2]
    reference = Reference(
        source="go",
        package="tools.example/tally/v2",
        version="v2.0.0",
        digest=digest,
        license="MIT",
        lines=2,
    )
    with served(proxy) as (address, _):
        monkeypatch.setenv("GOPROXY", address)
        assert searched_for(reference) == {
            f"{TOOL}/main.go",
            "own/own.go",
            "vendor/tools.example/tally/part/part.go",
            "vendor/words.example/copy/own.go",
        }


# --- the list itself --------------------------------------------------------------------------------------------------


def test_a_line_end_in_the_name_of_a_file_puts_no_other_file_on_the_list(tmp_path: Path) -> None:
    source, file = tmp_path / "source", tmp_path / borrowed.FILE
    names = ("own.py", "dep/x.py", "dep/x\nown.py", "dep/\n/own.py", "dep/\u2028own.py", "dep/\udcff.py")
    for name in names:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(f"# {names.index(name)}")
    (source / "dep" / "link.py").symlink_to(source / "own.py")
    borrowed.write(borrowed.others(source, ["dep"], set()), file)
    assert file.read_text() == "dep/x.py\n"


def test_there_is_no_list_without_borrowed_files(tmp_path: Path) -> None:
    borrowed.write([], tmp_path / borrowed.FILE)
    assert not (tmp_path / borrowed.FILE).exists()
