"""The dataset CLI-Tool-Bench: reading, refusing and fetching tasks."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.case_file import mentions, read_cases
from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
from runner.benchmarks.cli_tool_bench.verifier import DifferentialTest
from runner.benchmarks.sources.references import Reference, fetch, solution
from runner.errors import ConfigError, TaskError
from runner.records import Task
from runner.resources import ROOT
from tests.support.tool_task_factory import cases, make_tool_task, seal, tool_dataset, write_cases

SHIPPED = ROOT / "tasks" / "cli_tool_bench"
NAMES = ("colwise", "hunkr", "rowline", "sqltidy", "stencil", "verkit", "verstamp")
PUBLISHED = {
    "semver",
    "pysemver",
    "sqlparse",
    "sqlformat",
    "bump2version",
    "bumpversion",
    "patch-ng",
    "patch_ng",
    "csv-parser",
    "mustache",
    "goawk",
    "awk",
}
"""Published names of the references. Prompts may contain those that are formats or languages, too (`FORMATS`)."""
FORMATS = {"verstamp": {"bumpversion"}, "stencil": {"mustache"}, "colwise": {"awk"}}


def shipped(cache: Path) -> CliToolBench:
    return tool_dataset(SHIPPED, cache)


def only(dataset: CliToolBench) -> Task:
    (task,) = dataset.tasks()
    return task


def test_no_shipped_task_is_refused(tmp_path: Path) -> None:
    refused = {task.name: task.refused for task in shipped(tmp_path).tasks()}
    assert refused.keys() > {*NAMES}
    assert not any(refused.values()), refused


def test_seven_tasks_are_written_by_hand(tmp_path: Path) -> None:
    tasks = shipped(tmp_path).model_copy(update={"include": tuple(NAMES)}).tasks()
    assert [(task.name, task.refused) for task in tasks] == [(name, None) for name in NAMES]
    assert Counter(task.language for task in tasks) == {"python": 4, "javascript": 2, "go": 1}
    assert {task.tier for task in tasks} == {"easy", "medium", "hard"}
    assert {task.environment.network for task in tasks} == {"no-network"}
    payload = tasks[1].payload
    assert isinstance(payload, DifferentialTest)
    assert payload.reference == {
        "reference_lines": 1466,
        "reference_files": 1,
        "reference_depth": 0,
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_class_has_fifty_distinct_cases_good_and_bad(name: str) -> None:
    read = read_cases(SHIPPED / name / "cases.jsonl")
    classes = Counter(case.command_class for case in read)
    assert len(classes) >= 3
    assert set(classes.values()) == {50}
    assert len({case.model_dump_json() for case in read}) == len(read)
    negative = Counter(case.command_class for case in read if case.negative)
    assert set(negative) == set(classes)
    assert max(negative.values()) < 25


@pytest.mark.parametrize("name", NAMES)
def test_no_prompt_or_case_contains_the_published_name(name: str) -> None:
    text = (SHIPPED / name / "instruction.md").read_text() + (SHIPPED / name / "cases.jsonl").read_text()
    assert not [
        published for published in PUBLISHED - FORMATS.get(name, set()) if mentions(text.lower(), published)
    ]


def test_the_generator_reproduces_the_shipped_cases(tmp_path: Path) -> None:
    import runpy  # noqa: PLC0415

    generator = runpy.run_path(str(SHIPPED / "generate.py"))
    for name in NAMES:
        (tmp_path / name).mkdir()
    generator["main"].__globals__["__file__"] = str(tmp_path / "generate.py")
    generator["main"]([])
    for name in NAMES:
        assert (tmp_path / name / "cases.jsonl").read_bytes() == (SHIPPED / name / "cases.jsonl").read_bytes()


def test_lines_of_the_authors_are_read_unchanged(tmp_path: Path) -> None:
    """They have four keys, and none says which cases are negative."""
    line = {
        "class": "STDIN",
        "command": "cat /tmp/paths.txt | files-to-prompt",
        "prep": "printf '%s\\n' '/test_data/dir/file with spaces.txt' > /tmp/paths.txt",
        "files": {"dir/file with spaces.txt": "x\u2028y\n", ".gitignore": "*.log\n", "empty.txt": ""},
    }
    (tmp_path / "cases.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\n")
    (case,) = read_cases(tmp_path / "cases.jsonl", {"STDIN"}, "files-to-prompt")
    assert case.files == line["files"]
    assert "negative" not in case.model_fields_set


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"class": "OTHER"}, "unknown class 'OTHER'; task.toml has COUNT, LOG."),
        ({"files": {"/etc/passwd": "x"}}, "files: file '/etc/passwd' is not a path below /test_data."),
        ({"files": {"../words.txt": "x"}}, "files: file '../words.txt' is not a path below /test_data."),
        ({"files": {"a\0b": "x"}}, r"files: file 'a\x00b' holds a NUL byte."),
        ({"command": "tally count a\0b"}, "command: a NUL byte cannot be given to a shell."),
        (
            {"command": "wordcount count a"},
            "its command does not name 'tally', as the prompt calls the tool.",
        ),
        (
            {"command": "/opt/tally count a"},
            "its command does not name 'tally', as the prompt calls the tool.",
        ),
        ({"command": "tally.py count a"}, "its command does not name 'tally', as the prompt calls the tool."),
        ({"negativ": True}, "negativ: Extra inputs are not permitted."),
    ],
)
def test_a_bad_case_is_refused_with_file_line_and_reason(
    tmp_path: Path, changed: dict[str, object], reason: str
) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    lines = cases()
    lines[2] |= changed
    write_cases(folder, lines)
    assert only(tool_dataset(tmp_path / "tasks", tmp_path)).refused == f"cases.jsonl, line 3: {reason}"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cases.jsonl is missing"),
        (b"", "cases.jsonl, line 1: it is not JSON"),
        (b"\xff\n", "cases.jsonl is not UTF-8 text (byte 0)"),
        (b'{"class": "COUNT", "command": "tally count a"}\n', "cases.jsonl has no case of class LOG"),
        (b'{"class": "COUNT", "command": "tally count a"}\n{"cl', "cases.jsonl, line 2: it is not JSON"),
    ],
)
def test_a_bad_file_of_cases_is_refused(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = make_tool_task(tmp_path / "tasks") / "cases.jsonl"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    refused = only(tool_dataset(tmp_path / "tasks", tmp_path)).refused
    assert refused
    assert refused.startswith(reason)


def test_a_task_with_an_invalid_task_toml_is_refused(tmp_path: Path) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    toml = folder / "task.toml"
    toml.write_text(toml.read_text().replace('language = "python"', 'language = "cobol"'))
    assert "task.toml: language: " in str(only(tool_dataset(tmp_path / "tasks", tmp_path)).refused)


def test_a_task_of_a_language_without_an_image_is_refused(tmp_path: Path) -> None:
    make_tool_task(tmp_path / "tasks")
    dataset = tool_dataset(tmp_path / "tasks", tmp_path, images=tmp_path)
    assert "There is no python/Dockerfile" in str(only(dataset).refused)


def test_a_folder_without_tasks_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no folder with a task\.toml"):
        tool_dataset(tmp_path, tmp_path).tasks()


def test_include_selects_tasks(
    tmp_path: Path,
) -> None:
    for name in ("one", "other", "third"):
        make_tool_task(tmp_path / "tasks", name)
    dataset = tool_dataset(tmp_path / "tasks", tmp_path)
    chosen = dataset.model_copy(update={"include": ("third", "one")})
    assert [task.name for task in chosen.tasks()] == ["one", "third"]
    assert chosen.tasks()[0] == dataset.tasks()[0], "`include` does not affect a trial's key"
    with pytest.raises(ConfigError, match="has no task 'on'"):
        dataset.model_copy(update={"include": ("on",)}).tasks()


def test_only_settings_that_can_change_a_result_change_the_digest(tmp_path: Path) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    dataset = tool_dataset(tmp_path / "tasks", tmp_path)
    digest = only(dataset).digest
    assert only(tool_dataset(tmp_path / "tasks", tmp_path / "elsewhere", lanes=1)).digest == digest
    assert only(tool_dataset(tmp_path / "tasks", tmp_path, tau=0.9)).digest != digest
    write_cases(folder, cases()[:-1])
    assert only(dataset).digest != digest


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Folder of build contexts for Python tools that need nothing from the network: the lock is empty."""
    folder = tmp_path / "images" / "python"
    folder.mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / "wheels.lock").write_text("")
    return folder.parent


def test_a_reference_is_fetched_once_and_completely(tmp_path: Path, images: Path) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    dataset = tool_dataset(tmp_path / "tasks", tmp_path / "cache", images=images)
    messages: list[str] = []
    dataset.prepare(messages.append)
    dataset.prepare(messages.append)
    assert messages == ["Fetching the image of python tools", "Fetching reference reference"]
    task = only(dataset)
    assert task.solution is not None
    assert (task.solution / "source" / "tally.py").read_bytes() == (
        folder / "reference" / "tally.py"
    ).read_bytes()
    assert (task.solution / "solve.sh").is_file()
    assert task.environment.context is not None
    assert (task.environment.context / "Dockerfile").is_file()
    assert not list((tmp_path / "cache").rglob(".making-*"))


def test_a_reference_with_another_digest_is_an_error(tmp_path: Path, images: Path) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    (folder / "reference" / "tally.py").write_text("print('other')")
    dataset = tool_dataset(tmp_path / "tasks", tmp_path / "cache", images=images)
    with pytest.raises(ConfigError, match=r"its digest is .* but the task says"):
        dataset.prepare(print)
    assert not list((tmp_path / "cache" / "sources").iterdir())
    seal(folder)
    dataset.prepare(print)


def archive_of(folder: Path, archive: Path) -> Reference:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, ".")
    digest = f"sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}"
    return Reference(source="archive", package=archive.name, digest=digest, license="MIT", lines=19)


def test_a_reference_may_be_an_archive(tmp_path: Path) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    reference = archive_of(folder / "reference", folder / "reference.tar.gz")
    fetch(reference, "tally", folder, lambda _: tmp_path, print, tmp_path / "cache")
    assert (solution(reference, "tally", tmp_path / "cache") / "source" / "tally.py").is_file()


@pytest.mark.parametrize(
    ("package", "digest"),
    [("semver", "sha256:" + "0" * 64), ("no-such-package-as-this-one", "sha256:" + "0" * 64)],
)
def test_a_package_with_another_digest_is_an_error(tmp_path: Path, package: str, digest: str) -> None:
    reference = Reference(
        source="pypi", package=package, version="3.1.1", digest=digest, license="MIT", entry="m:f", lines=1
    )
    with pytest.raises(ConfigError, match="uv pip install"):
        fetch(reference, "tally", tmp_path, lambda _: tmp_path, print, tmp_path / "cache")


def test_a_name_is_a_word_of_its_own() -> None:
    assert mentions("cat x|tally count; echo", "tally")
    assert mentions("Use `tally`.", "tally")
    assert not mentions("tally-ho /usr/bin/tally tally.py tally/x mytally", "tally")


@pytest.mark.parametrize(
    "command",
    [
        "tally count a",
        "cat x|tally count; echo",
        "cd sub && A=1 B='x y' tally count a",
        "ls\ntally count a",
        "echo $(tally count a)",
        "sh -c 'tally count a'",
        'bash -c "tally count a | sort"',
        "env -i PATH=$PATH tally count a",
        "timeout 5 tally count a",
        "ls | xargs -n1 tally count",
    ],
)
def test_a_tool_that_a_wrapper_runs_is_mentioned_too(command: str) -> None:
    assert mentions(command, "tally")


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("Write `counter`, which counts words (no `tally-ho`).\n", "never names 'tally'"),
        (
            "**CLI Tool Name**: counter\nIt does what tally does.\n",
            "calls the tool 'counter', and the cases 'tally'",
        ),
        ("CLI Tool Name: `counter`\n    tally count a\n", "calls the tool 'counter', and the cases 'tally'"),
        ("Write the command-line tool `counter`, as good as tally.\n", "calls the tool 'counter'"),
        ("**CLI Tool Name**: tally\nThe command-line tool `counter` counts.\n", "calls the tool 'counter'"),
    ],
)
def test_a_prompt_that_names_another_tool_is_refused_unless_check_names_is_false(
    tmp_path: Path, prompt: str, reason: str
) -> None:
    folder = make_tool_task(tmp_path / "tasks")
    (folder / "instruction.md").write_text(prompt)
    dataset = tool_dataset(tmp_path / "tasks", tmp_path)
    assert reason in str(only(dataset).refused)
    assert only(dataset.model_copy(update={"check_names": False})).refused is None


def test_cases_are_read_without_classes_and_tool(tmp_path: Path) -> None:
    write_cases(tmp_path, cases())
    assert len(read_cases(tmp_path / "cases.jsonl")) == 10
    with pytest.raises(TaskError, match="is missing"):
        read_cases(tmp_path / "absent.jsonl")
