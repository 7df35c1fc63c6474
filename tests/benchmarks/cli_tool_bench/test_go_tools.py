"""Tools in Go: references come from a module proxy, and tools are installed without a network."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.sources.clients import GO, run_client
from runner.benchmarks.sources.go_modules import GOCODE, needs_libraries, rename_command, vendor
from runner.benchmarks.sources.references import Reference, fetch, fetch_context, solution, vendor_others
from runner.benchmarks.sources.registries import look_up, reference
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import ConfigError, FetchError, TaskError
from runner.protocols import Submission
from runner.records import ExecSpec, SandboxSpec, Verdict
from runner.resources import ROOT
from runner.sandbox.docker import base_image, debian_pool
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.module_proxy import publish, served
from tests.support.tool_task_factory import SCORES, furnished, make_tool_task, tool_dataset

SHIPPED = ROOT / "tasks" / "cli_tool_bench"
BUSY_SECONDS = 900
"""Limit on a busy machine that must first build the image with the toolchain."""
MODULE, VERSION = "tools.example/wordcount/v2", "v2.1.0"
NEEDED = {
    "go.mod": "module words.example/split\n\ngo 1.21\n",
    "split.go": 'package split\n\nimport "strings"\n\nfunc Words(s string) []string { return strings.Fields(s) }\n',
}
MAIN = """\
package main

import (
	"fmt"
	"os"
	"sort"

	"words.example/split"
)

func main() {
	if len(os.Args) != 3 {
		os.Exit(1)
	}
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		os.Exit(1)
	}
	words := split.Words(string(text))
	if os.Args[1] == "log" {
		os.Mkdir("log", 0o755)
		os.WriteFile("log/total.txt", []byte(fmt.Sprintln(len(words))), 0o644)
		os.Remove(os.Args[2])
		return
	}
	count := map[string]int{}
	for _, word := range words {
		count[word]++
	}
	sorted := []string{}
	for word := range count {
		sorted = append(sorted, word)
	}
	sort.Strings(sorted)
	for _, word := range sorted {
		fmt.Println(word, count[word])
	}
}
"""
TOML = """\
tool = "tally"
language = "go"
category = "Utility Libraries"

[reference]
source = "go"
package = "{package}"
version = "{version}"
digest = "{digest}"
license = "MIT"
lines = 39

[classes]
COUNT = "how often each word occurs"
LOG = "how many words there are"
"""


def tool(root: Path, *, place: str = "main.go", version: str = VERSION) -> Reference:
    """Publish the tool, with its source at `place`, and the module that it requires."""
    sums = publish(root, "words.example/split", "v0.1.0", NEEDED)
    needs = f"module {MODULE}\n\ngo 1.21\n\nrequire words.example/split v0.1.0\n"
    own = publish(root, MODULE, version, {"go.mod": needs, "go.sum": sums, place: MAIN, "LICENSE": "MIT\n"})
    entry = str(Path(place).parent) if "/" in place else ""
    digest = own.split()[2]
    return Reference(
        source="go", package=MODULE, version=version, digest=digest, license="MIT", entry=entry, lines=39
    )


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory, common: Path) -> Path:
    return furnished(tmp_path_factory.mktemp("go") / "cache", common)


@pytest.fixture
def client(cache: Path) -> Callable[[str], Path]:
    """Return a function from a language to its build context, which has the go command that fetches."""
    images = tool_dataset(cache, cache).images
    return partial(fetch_context, images, cache=cache, say=print)


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, list[str]]]:
    """Serve a module proxy. Yields its folder and the list of requested paths."""
    root = tmp_path / "proxy"
    root.mkdir()
    with served(root) as (address, asked):
        monkeypatch.setenv("GOPROXY", address)
        yield root, asked


def test_a_module_comes_from_the_proxy_with_its_requirements(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    root, asked = proxy
    reference = tool(root)
    fetch(reference, "tally", tmp_path, client, print, tmp_path)
    source = solution(reference, "tally", tmp_path) / "source"
    assert (source / "tally" / "main.go").read_text() == MAIN
    assert (source / "vendor" / "words.example" / "split" / "split.go").read_text() == NEEDED["split.go"]
    assert not list(source.glob("*.go"))
    assert any(f"/{MODULE}/@v/{VERSION}.zip" in path for path in asked)


def test_a_command_in_a_folder_of_its_module_gets_the_tasks_name(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    reference = tool(proxy[0], place="cmd/wordcount/main.go")
    fetch(reference, "tally", tmp_path, client, print, tmp_path)
    source = solution(reference, "tally", tmp_path) / "source"
    assert [str(path.relative_to(source)) for path in source.rglob("main.go")] == ["cmd/tally/main.go"]


def test_a_module_with_a_folder_of_the_tools_name_is_refused(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    """This once raised Python's `FileExistsError`. `go mod vendor` always makes a folder `vendor`."""
    reference = tool(proxy[0])
    with pytest.raises(
        TaskError, match="has a vendor of its own beside its command: give the task's tool another"
    ):
        fetch(reference, "vendor", tmp_path, client, print, tmp_path)
    assert not solution(reference, "vendor", tmp_path).exists()


def test_a_workspace_and_a_cache_of_the_users_change_nothing(
    tmp_path: Path,
    proxy: tuple[Path, list[str]],
    client: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing can be vendored in a Go workspace, and the files of a cache are read-only."""
    (tmp_path / "go.work").write_text("go 1.21\n")
    monkeypatch.setenv("GOWORK", str(tmp_path / "go.work"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "users"))
    reference = tool(proxy[0])
    fetch(reference, "tally", tmp_path, client, print, tmp_path)
    assert (solution(reference, "tally", tmp_path) / "source" / "vendor" / "modules.txt").is_file()
    assert not (tmp_path / "users").exists()


def test_a_module_with_another_digest_is_an_error(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    reference = tool(proxy[0]).model_copy(update={"digest": "h1:other"})
    with pytest.raises(ConfigError, match=r"its digest is h1:.* but the task says h1:other"):
        fetch(reference, "tally", tmp_path, client, print, tmp_path)


def test_a_requirement_with_another_checksum_is_refused(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    """Otherwise the server of a dependency could change the tool with which every candidate is compared."""
    reference = tool(proxy[0])
    publish(proxy[0], "words.example/split", "v0.1.0", NEEDED | {"more.go": "package split\n"})
    with pytest.raises(ConfigError, match=r"go mod vendor .*failed[\s\S]*checksum mismatch"):
        fetch(reference, "tally", tmp_path, client, print, tmp_path)


def test_a_version_that_the_proxy_lacks_is_an_error(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    reference = tool(proxy[0]).model_copy(update={"version": "v2.2.0"})
    with pytest.raises(ConfigError, match=r"go mod download[\s\S]*404"):
        fetch(reference, "tally", tmp_path, client, print, tmp_path)


def test_a_module_is_looked_up_at_the_proxy(
    tmp_path: Path, proxy: tuple[Path, list[str]], client: Callable[[str], Path]
) -> None:
    published = tool(proxy[0], place="cmd/wordcount/main.go")
    package = look_up("go", MODULE, VERSION, client, print)
    assert (package.digest, package.commands) == (published.digest, {"wordcount": "cmd/wordcount"})
    assert (package.license, package.requires, package.build_files) == ("", (), ("go.mod",))
    made = reference(package, "wordcount", "tally")
    assert (made.entry, made.lines) == ("cmd/wordcount", len([line for line in MAIN.splitlines() if line]))
    fetch(made, "tally", tmp_path, client, print, tmp_path)
    assert (solution(made, "tally", tmp_path) / "source" / "cmd" / "tally" / "main.go").is_file()


def deb(place: Path, name: str, files: dict[str, str]) -> Path:
    """Make a package of Debian with these files of Go source; a value that begins with `->` is a link's target."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"./{GOCODE}{path}")
            if text.startswith("->"):
                entry.type, entry.linkname = tarfile.SYMTYPE, text[2:]
            else:
                entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        doc = tarfile.TarInfo("./usr/share/doc/link")
        doc.type, doc.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(doc)
    members = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": packed.getvalue()}
    with (place / f"{name}_1.0-1_all.deb").open("wb") as file:
        file.write(b"!<arch>\n")
        for member, content in members.items():
            file.write(f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
            file.write(content + b"\n" * (len(content) % 2))
    return Path(file.name)


IMPORTING = """\
package main

import (
	_ "embed"
	"a.example/two/v2/deep"
	"b.example/plain"
	"c.example/linked.v3"
)

//go:embed words.txt
var words string

func main() { println(words, deep.X, plain.X, linked.X) }
"""
LIBRARIES = {
    "a.example/two/go.mod": "module a.example/two/v2\n\ngo 1.18\n",
    "a.example/two/deep/deep.go": 'package deep\n\nimport "a.example/two/v2/other"\n\nvar X = other.X\n',
    "a.example/two/deep/deep_windows.go": 'package deep\n\nimport _ "z.example/absent"\n',
    "a.example/two/other/other.go": "package other\n\nvar X = 1\n",
    "a.example/two/unused/unused.go": 'package unused\n\nimport _ "z.example/absent"\n',
}
OTHERS = {
    "b.example/plain/plain.go": "package plain\n\nvar X = 2\n",
    "c.example/real/go.mod": "module c.example/linked.v3\n",
    "c.example/real/real.go": "package linked\n\nvar X = 3\n",
    "c.example/linked.v3": "->real",
}


def test_libraries_of_debian_are_vendored_as_far_as_a_command_imports_them(
    tmp_path: Path, client: Callable[[str], Path]
) -> None:
    """Go compares `vendor/modules.txt` with `go.mod`, and asks for no network when both agree."""
    debs = [deb(tmp_path, "golang-a-dev", LIBRARIES), deb(tmp_path, "golang-b-dev", OTHERS)]
    source = tmp_path / "source"
    for name, text in {
        "go.mod": "module t.example/tool\n\ngo 1.12\n\nrequire (\n\ta.example/two/v2 v2.7.1\n)\n",
        "go.sum": "",
        "main.go": IMPORTING,
        "words.txt": "words",
        "hack/other.go": 'package main\n\nimport _ "z.example/absent"\n\nfunc main() {}\n',
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    assert needs_libraries(source)
    vendor(debs, "", source, client("go"))
    rename_command("tally", "", source)
    assert (source / "tally" / "words.txt").read_text() == "words"
    assert sorted(path.name for path in source.rglob("*.go")) == [
        "deep.go",
        "main.go",
        "other.go",
        "plain.go",
        "real.go",
    ]
    assert (source / "vendor" / "modules.txt").read_text() == (
        "# a.example/two/v2 v2.0.0\n## explicit; go 1.18\na.example/two/v2/deep\na.example/two/v2/other\n"
        "# b.example/plain v0.0.0\n## explicit\nb.example/plain\n"
        "# c.example/linked.v3 v0.0.0\n## explicit\nc.example/linked.v3\n"
    )
    offline = {
        "GOPROXY": "off",
        "GOFLAGS": "-mod=vendor",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(tmp_path / "built"),
    }
    listed = run_client([str(client("go") / GO), "list", "-deps", "./..."], str(source), offline).split()
    assert listed[-1] == "t.example/tool/tally"


def test_own_code_that_is_imported_through_a_link_of_a_library_is_not_borrowed(
    tmp_path: Path, client: Callable[[str], Path]
) -> None:
    """A module whose path has changed is still known to Debian by both, so its own code is vendored too."""
    source = tmp_path / "source"
    library = "package {}\n\nvar X = {}\n"
    for name, text in {
        "go.mod": "module t.example/tool\n",
        "main.go": 'package main\n\nimport _ "b.example/plain"\nimport _ "old.example/tool/inner"\n\nfunc main() {}\n',
        "inner/inner.go": library.format("inner", 7),
    }.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    linked = {"old.example/tool": "->../t.example/tool"}
    debs = [deb(tmp_path, "golang-t-dev", linked), deb(tmp_path, "golang-b-dev", OTHERS)]
    others = vendor_others(debs, "", source, client("go"))
    assert (source / "vendor" / "old.example" / "tool" / "inner" / "inner.go").is_file()
    assert not (source / "inner" / "inner.go").exists()
    assert others == ["vendor/b.example/plain/plain.go", "vendor/modules.txt"]


def test_a_library_that_is_missing_is_an_error(tmp_path: Path, client: Callable[[str], Path]) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "go.mod").write_text("module t.example/tool\n")
    (source / "main.go").write_text(IMPORTING)
    (source / "words.txt").write_text("")
    with pytest.raises(ConfigError, match=r"b\.example/plain cannot be vendored: .*b\.example/plain"):
        vendor([deb(tmp_path, "golang-a-dev", LIBRARIES)], "", source, client("go"))
    (tmp_path / "odd.deb").write_bytes(b"!<arch>\nodd")
    with pytest.raises(ConfigError, match=r"odd\.deb is not a Debian package"):
        vendor([tmp_path / "odd.deb"], "", source, client("go"))


@pytest.fixture
def judge(tmp_path: Path, cache: Path, proxy: tuple[Path, list[str]]) -> Callable[[str], Verdict]:
    """Return a function that judges the workspace that an agent's shell script leaves."""
    base_image.ensure(connect(), print)
    folder = make_tool_task(tmp_path / "tasks")
    reference = tool(proxy[0])
    (folder / "task.toml").write_text(TOML.format(**reference.model_dump()))
    dataset = tool_dataset(tmp_path / "tasks", cache)
    dataset.prepare(print)
    (task,) = dataset.tasks()
    assert (task.refused, task.language) == (None, "go")
    sandboxes = DockerSandboxes()

    def judge(script: str) -> Verdict:
        spec = SandboxSpec(name="agent", image=sandboxes.image(task.environment), user="agent")
        assert task.solution
        with sandboxes.open(spec) as agent:
            command = ExecSpec(argv=("bash", "-ec", script), uploads={"/solution": task.solution})
            result = agent.exec(command)
            assert result.exit_code == 0, result
            agent.kill()
            return dataset.verifier.verify(Submission(task, agent, sandboxes, tmp_path))

    return judge


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
def test_the_reference_gets_one_and_a_tool_that_cannot_be_installed_zero(
    judge: Callable[[str], Verdict],
) -> None:
    """The agent must be able to install the tool itself, and a git repository must not hinder root."""
    install = "git init -q . && go install ./... && test -x /usr/local/bin/tally"
    same = judge(f"bash /solution/solve.sh && {install}")
    assert (same.error, same.reward) == (None, 1.0)
    assert {name: same.components[name] for name in SCORES} == dict.fromkeys(SCORES, 1.0)
    broken = judge("printf 'module tally\\n' > go.mod && echo 'package main; func main() { x }' > main.go")
    assert (broken.reward, broken.components["build"]) == (0.0, 0.0)
    assert "undefined: x" in broken.output
    nothing = judge("true")
    assert (nothing.reward, nothing.components["build"]) == (0.0, 0.0)


@pytest.mark.docker
def test_a_file_of_the_debian_pool_with_another_digest_is_refused(tmp_path: Path) -> None:
    shipped = read_toml(SHIPPED / "colwise" / "task.toml", ToolTask).reference
    with pytest.raises(FetchError, match=r"could not be fetched:[\s\S]*Hash Sum mismatch"):
        debian_pool.fetch(shipped.package, "sha256:" + "0" * 64, tmp_path, print)
    assert not list(tmp_path.iterdir())
