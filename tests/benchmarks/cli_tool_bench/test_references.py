"""References with requirements, looked up at the real registries, fetched, and installed without a network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.construction.recipe import INSTALL, Language
from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.sources import borrowed, packages
from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.references import Reference, fetch, fetch_context, identity, solution
from runner.benchmarks.sources.registries import look_up, reference
from runner.benchmarks.sources.renaming import rename
from runner.benchmarks.sources.sdists import lock_requirements
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import ConfigError, TaskError
from runner.records import Answer, ExecSpec, SandboxSpec
from runner.resources import ROOT
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps import answers_in_reach
from tests.support.module_proxy import served
from tests.support.package_index import publish_wheel, tool_files
from tests.support.tool_task_factory import furnished, tool_dataset

SHIPPED = ROOT / "tasks" / "cli_tool_bench"
TOOL = "tallyho"
BUSY_SECONDS = 900
"""Limit on a busy machine that must first build an image of a language."""


@pytest.fixture
def cache(tmp_path: Path, common: Path) -> Path:
    return furnished(tmp_path / "cache", common)


@pytest.fixture
def client(cache: Path) -> Callable[[str], Path]:
    return partial(fetch_context, SHIPPED / "images", cache=cache, say=print)


@pytest.fixture
def installed(cache: Path, client: Callable[[str], Path]) -> Callable[[Reference, Language, str], str]:
    """Return a function that installs a reference in its language's image, and returns what a script prints there."""
    base_image.ensure(connect(), print)

    def installed(found: Reference, language: Language, script: str) -> str:
        client(language)
        fetch(found, TOOL, Path(), client, print, cache)
        environment = tool_dataset(SHIPPED, cache).environment(language)
        sandboxes = DockerSandboxes()
        spec = SandboxSpec(name="reference", image=sandboxes.image(environment), user="agent")
        with sandboxes.open(spec) as sandbox:
            whole = f"bash /solution/solve.sh && {INSTALL[language]} >&2 && cd /tmp && {script}"
            uploads = {"/solution": solution(found, TOOL, cache)}
            result = sandbox.exec(ExecSpec(argv=("bash", "-ec", whole), uploads=uploads))
        assert result.exit_code == 0, result
        return result.stdout

    return installed


def own_code(found: Reference, cache: Path) -> set[str]:
    """Return the files of a fetched reference's code that are searched for in the installations of agents."""
    place = solution(found, TOOL, cache)
    answer = Answer(source=place / "source", borrowed=place / borrowed.FILE)
    return {name for name, *_ in answers_in_reach.files(answer.source, answers_in_reach._borrowed(answer))}


# --- the identity of a reference --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("colwise", "sha256:2e6c4068b05390cb3045dc85c1d7718712e2d99fa8f03c7e2e12f6ad54d9958b"),
        ("rowline", "sha256:a8bf6cdfba5b5ef596718414b1e7dff84136c0b12191b1dd28622ee384798d90"),
        ("verkit", "sha256:1fc513e25b09fa99da63c88ae3b58c623aa6a7eb02451f3ff4a4468abca61857"),
    ],
)
def test_the_identity_of_shipped_references_is_what_it_was_before_they_could_rename(
    name: str, known: str
) -> None:
    tool = read_toml(SHIPPED / name / "task.toml", ToolTask)
    assert identity(tool.reference, tool.tool) == known
    renamed = tool.reference.model_copy(update={"renamed": ("README.md",), "names": ("x",)})
    assert identity(renamed, tool.tool) != known


# --- names in a reference's own files ---------------------------------------------------------------------------------

PYTHON = '''\
"""grog: counts. Made by Grog Ltd."""
import grog
from grog import main  # grog
usage = "Usage: grog [OPTIONS]\\\\ngrog: error" + grog.__name__ + f"{grog.x} x/grog grogs --grog"
'''
GO = """\
import (
	"grog"
	"x/grog"
)
func grog() { fmt.Println("grog: it's", `grog FILE`, 'g') } // grog
"""
SCRIPT = """\
#!/usr/bin/env node
const grog = require('grog'); /* grog */
import x from "grog"
console.log('grog -x', grog)
"""


def test_names_change_in_literals_of_code_and_everywhere_else(tmp_path: Path) -> None:
    for name, text in {"a.py": PYTHON, "b.go": GO, "bin/grog": SCRIPT, "README": "grog, Grog!\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    rename(("grog", "Grog"), "new-name", ("*.py", "b.go", "bin/*", "README"), tmp_path)
    assert (tmp_path / "a.py").read_text() == (
        PYTHON.replace('"""grog', '"""new-name')
        .replace("Grog", "new-name")
        .replace("Usage: grog", "Usage: new-name")
        .replace("ngrog:", "nnew-name:")
    )
    assert (tmp_path / "b.go").read_text() == GO.replace('"grog: ', '"new-name: ').replace(
        "`grog", "`new-name"
    )
    assert (tmp_path / "bin" / "grog").read_text() == SCRIPT.replace("'grog -x", "'new-name -x")
    assert (tmp_path / "README").read_text() == "new-name, new-name!\n"


@pytest.mark.parametrize("glob", ["absent.py", "node_modules/x/index.js", "link"])
def test_only_own_files_change(tmp_path: Path, glob: str) -> None:
    (tmp_path / "outside").write_text("grog")
    source = tmp_path / "source"
    (source / "node_modules" / "x").mkdir(parents=True)
    (source / "node_modules" / "x" / "index.js").write_text("'grog'")
    (source / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigError, match=f"{glob}' means none of the reference's own files"):
        rename(("grog",), "new", (glob,), source)
    assert (tmp_path / "outside").read_text() == "grog"


# --- packages of the registries ---------------------------------------------------------------------------------------


def test_a_package_of_pypi_is_looked_up_with_what_it_requires(client: Callable[[str], Path]) -> None:
    package = look_up("pypi", "files-to-prompt", "0.6", client, print)
    assert package.digest == "sha256:83d9a8b33246a10233218716a5c78034da4f5614748eda2f0ab94f1117801337"
    assert (package.license, package.commands) == (
        "Apache-2.0",
        {"files-to-prompt": "files_to_prompt.cli:cli"},
    )
    (requirement,) = package.requires
    assert requirement.startswith("click==")
    assert (package.build_files, package.languages) == (("pyproject.toml", "setup.cfg"), {"Python": 1.0})
    assert (package.files, package.depth) == (3, 1)
    made = reference(package, "files-to-prompt", TOOL)
    assert (made.package, made.requires, made.lines) == ("files-to-prompt", package.requires, package.lines)
    with pytest.raises(TaskError, match="is the published name"):
        reference(package, "files-to-prompt", "files-to-prompt")
    with pytest.raises(TaskError, match="has no command 'x'"):
        reference(package, "x", TOOL)


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_a_package_of_npm_is_installed_with_what_it_requires(
    client: Callable[[str], Path],
    installed: Callable[[Reference, Language, str], str],
    cache: Path,
    tmp_path: Path,
) -> None:
    package = look_up("npm", "json-diff", "1.0.6", client, print)
    assert (package.license, package.commands) == ("MIT", {"json-diff": "bin/json-diff.js"})
    assert {line.partition("@0")[0].partition("@1")[0] for line in package.requires} == {
        f"node_modules/{name}" for name in ("@ewoudenberg/difflib", "colors", "dreamopt", "heap", "wordwrap")
    }
    made = reference(package, "json-diff", TOOL)
    assert made.packages == {"npm": ("json-diff",)}
    script = f"echo '{{\"a\":1}}' > x && echo '{{\"a\":2}}' > y && ({TOOL} x y || true)"
    assert installed(made, "javascript", script) == ' {\n-  "a": 1\n+  "a": 2\n }\n'.replace('"', "")
    assert own_code(made, cache) == {
        *(f"lib/{name}.js" for name in ("cli", "colorize", "index", "util")),
        ".eslintrc.js",
        "bin/json-diff.js",
    }
    lacking = made.model_copy(update={"requires": made.requires[1:]})
    with pytest.raises(ConfigError, match="json-diff needs @ewoudenberg/difflib, and no line"):
        fetch(lacking, TOOL, Path(), client, print, tmp_path)


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_a_source_of_debian_is_installed_with_the_libraries_that_it_imports(
    client: Callable[[str], Path], installed: Callable[[Reference, Language, str], str], cache: Path
) -> None:
    package = look_up("debian", "gron", "0.7.1-2", client, print)
    assert (package.path, package.commands) == ("pool/main/g/gron/gron_0.7.1.orig.tar.xz", {"gron": ""})
    assert package.addresses[0] == "https://github.com/tomnomnom/gron"
    made = reference(package, "gron", TOOL)
    assert {packages.deb(line).name for line in made.requires} == {
        *(f"golang-github-{name}-dev" for name in ("fatih-color", "mattn-go-colorable", "mattn-go-isatty")),
        *(f"golang-{name}-dev" for name in ("github-nwidger-jsoncolor", "github-pkg-errors", "golang-x-sys")),
    }
    assert made.packages == {"debian": ("gron",)}
    made = made.model_copy(update={"renamed": ("*/main.go",), "names": ("gron",)})
    script = f"echo '[1]' | {TOOL} && {TOOL} --version"
    assert installed(made, "go", script) == f"json = [];\njson[0] = 1;\n{TOOL} version dev\n"
    own = own_code(made, cache)
    assert {
        f"{TOOL}/{name}.go" for name in ("main", "identifier", "statements", "token", "ungron", "url")
    } <= own
    assert [name for name in own if name.startswith("vendor/")] == []


@pytest.mark.parametrize(
    ("source", "name", "version", "reason"),
    [
        ("pypi", "markupsafe", "3.0.2", "has no wheel for every machine"),
        ("pypi", "../x", "1.0", "is not the name of a Python package"),
        ("npm", "--x", "1.0.0", "is not the name of an npm package"),
        ("debian", "x;y", "1.0", "is not the name of a source package of Debian"),
        ("debian", "gron", "$(id)", "is not a version of a package of Debian"),
    ],
)
def test_a_package_that_cannot_be_a_reference_is_refused_with_a_sentence(
    client: Callable[[str], Path], source: str, name: str, version: str, reason: str
) -> None:
    with pytest.raises(TaskError, match=reason):
        look_up(source, name, version, client, print)  # type: ignore[arg-type]


@pytest.mark.docker
def test_a_package_of_npm_that_runs_a_script_at_its_installation_is_refused(
    client: Callable[[str], Path],
) -> None:
    with pytest.raises(TaskError, match="esbuild needs a script at its installation"):
        look_up("npm", "esbuild", "0.25.0", client, print)


def test_what_a_registry_does_not_say_is_empty() -> None:
    found = Package(
        source="go", package="a.b/c", version="v1.0.0", digest="h1:x", commands={"c": ""}, lines=1
    )
    assert (found.license, found.authors, found.requires, found.languages) == ("", (), (), {})
    assert (found.files, reference(found, "c", TOOL).license) == (None, "NOASSERTION")


def test_no_interpreter_is_fetched_to_resolve_for_another_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look-up once tried to download the Python of the tools, and gave up only after ten seconds."""
    needs = ("more==1.0; python_version >= '3.14'", "none==1.0; python_version < '3.14'")
    publish_wheel(tmp_path, "odd", "1.0", tool_files("odd", "1.0", "", {}, needs))
    publish_wheel(tmp_path, "more", "1.0", {"more.py": ""})
    with served(tmp_path) as (address, asked):
        for name, value in {
            "PATH": "",
            "UV_DEFAULT_INDEX": f"{address}/",
            "UV_PYTHON_INSTALL_DIR": str(tmp_path / "none"),
            "UV_PYTHON_INSTALL_MIRROR": f"{address}/pythons",
        }.items():
            monkeypatch.setenv(name, value)
        lines = lock_requirements(("odd==1.0",), python="3.14")
    assert [line.partition(" --hash=sha256:")[0] for line in lines] == ["more==1.0", "odd==1.0"]
    assert [path for path in asked if "/pythons" in path] == []
    assert any("/odd/" in path for path in asked)
