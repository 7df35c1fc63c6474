"""The command of a published tool among the executables that its installation added."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.benchmarks.cli_tool_bench.construction.entry import initials, match
from runner.benchmarks.cli_tool_bench.construction.installed_commands import find_entry
from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.rejections import RejectedError
from runner.errors import TaskError
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.tool_task_factory import tool_dataset


@pytest.mark.parametrize(
    ("added", "repository", "command"),
    [
        (["tool", "Tool", "t"], "tool", "tool"),
        (["httpie", "TOOL"], "Tool", "TOOL"),
        (["tss", "the-silver-searcherd"], "The-Silver_Searcher", "tss"),
        (["ctj", "csv"], "csvToJson", "ctj"),
        (["hs", "http"], "HTTPServer", "hs"),
        (["pip-audit", "wheel"], "pip-audit-tool", "pip-audit"),
        (["zzz"], "tool", "zzz"),
        (["tool", "tool"], "Tool", "tool"),
        (["a/tool", "-tool", "to ol", "tool\n", "", "x" * 256, "tools"], "tool", "tools"),
    ],
)
def test_the_first_level_that_finds_something_decides(
    added: list[str], repository: str, command: str
) -> None:
    assert match(added, repository) == command


@pytest.mark.parametrize(
    ("added", "repository", "reason"),
    [
        ([], "tool", "added no executable"),
        (["a b"], "tool", "added no executable"),
        (["TOOL", "Tool"], "tool", "equally well (but for case)"),
        (["TL", "tl"], "tool-list", "equally well (acronym)"),
        (["toola", "toolb"], "tool", "equally well (similarity)"),
        (["tool"], "x" * 1_000_000, "is not the name of a repository"),
    ],
)
def test_a_tie_is_refused(added: list[str], repository: str, reason: str) -> None:
    with pytest.raises(RejectedError) as caught:
        match(added, repository)
    assert caught.value.rejection.step == "entry"
    assert reason in caught.value.rejection.reason
    assert isinstance(caught.value, TaskError)


def _entry(tmp_path: Path, commands: list[str], wanted: str = "") -> str:
    """Return the entry of a Go module with these commands, which needs no machine."""
    package = Package(
        source="go",
        package="tools.example/prov",
        version="v1.0.0",
        digest="h1:x",
        commands=dict.fromkeys(commands, ""),
        lines=1,
    )
    dataset = tool_dataset(tmp_path, tmp_path / "cache")
    return find_entry(package, dataset, DockerSandboxes(), print, wanted).command


def test_the_command_may_be_named_and_must_be_one_that_the_package_adds(tmp_path: Path) -> None:
    tied = ["prov-compare", "prov-convert"]
    with pytest.raises(
        RejectedError, match="several commands: prov-compare, prov-convert match 'prov' equally"
    ):
        _entry(tmp_path, tied)
    assert _entry(tmp_path, tied, "prov-convert") == "prov-convert"
    for other in ("python3", "prov", "../prov-convert", "prov-convert; id"):
        with pytest.raises(RejectedError, match=r"other command: tools\.example/prov adds no"):
            _entry(tmp_path, tied, other)


def test_a_single_word_has_no_initials() -> None:
    assert (initials("ripgrep"), initials("rip-grep"), initials("--")) == ("", "rg", "")


@given(st.lists(st.text(max_size=8), max_size=6), st.text(max_size=8))
def test_the_order_of_the_executables_does_not_matter(added: list[str], repository: str) -> None:
    outcomes = []
    for names in (added, added[::-1]):
        try:
            outcomes.append(match(names, repository))
        except RejectedError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def _package(name: str, **fields: object) -> Package:
    return Package.model_validate(
        {"source": "go", "package": name, "version": "1.0", "digest": "sha256:0", "lines": 1, "files": 1}
        | fields
    )


def _found(package: Package, tmp_path: Path) -> str:
    return find_entry(package, tool_dataset(tmp_path, tmp_path), DockerSandboxes(), print).command


def test_a_package_without_a_command_is_refused_before_it_is_installed(tmp_path: Path) -> None:
    package = _package("six", source="pypi", commands={})
    with pytest.raises(RejectedError, match=r"no command: six 1\.0 declares none"):
        _found(package, tmp_path)


@pytest.mark.parametrize("name", ["example.test/owner/tally", "example.test/owner/tally/v2", "tally", "v2"])
def test_the_version_in_a_modules_path_is_not_its_name(name: str, tmp_path: Path) -> None:
    other = "v2" if name == "v2" else "tally"
    assert _found(_package(name, commands={other: ".", "unlike": "cmd/unlike"}), tmp_path) == other
