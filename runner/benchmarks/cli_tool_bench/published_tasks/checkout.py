"""Read a checkout of CLI-Tool-Bench as its authors publish it, and write it as task folders.

    <checkout>/agent_prompt/<owner>/<repository>/agent_prompt.txt           the prompt
    <checkout>/run_differential_test/full_name.txt                          one `owner/repository` per line
    <checkout>/run_differential_test/BaseRepoAdapter.py                     base class of the generators
    <checkout>/run_differential_test/repo/<owner>/<repository>/start.py     image, installation, case generator

A generator is a foreign program. It runs in a sandbox without a network, as an unprivileged user, and its output is
checked like any other file of cases.
"""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench.case_file import find_names, mentions, read_cases
from runner.benchmarks.cli_tool_bench.published_tasks.cases import CasePolicy, Generated
from runner.benchmarks.cli_tool_bench.published_tasks.masks import Masks, read_masks
from runner.benchmarks.cli_tool_bench.published_tasks.texts import NAME
from runner.benchmarks.sources.task_toml import table
from runner.errors import ConfigError, TaskError, WorkspaceTooLarge
from runner.files import replace_folder
from runner.locks import exclusive
from runner.records import Environment, ExecResult, ExecSpec, Image, Record, SandboxSpec
from runner.records.base import first_fault

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider

DRIVER = Path(__file__).with_name("drive_generator.py")
CHECKOUT = "/authors"
"""Folder of the generator and its modules in the sandbox, where it is read-only."""
PACKAGES = "/packages"
"""Folder of the packages that generators may import, in the sandbox."""
OUTPUT = "/tmp/generated.json"  # noqa: S108 - a path in the sandbox
UNKNOWN_MODULE = re.compile(r"No module named '([\w.]+)'")
MAX_QUOTE = 2000
"""Longest excerpt of a generator's output in an error message, in characters."""


class Published(NamedTuple):
    """One task as the authors publish it."""

    prompt: str
    generated: Generated
    masks: Masks
    remarks: tuple[str, ...]
    """Remarks for the user about the task's cases."""


def repositories(root: Path) -> list[str]:
    """Return `owner/repository` of everything that a checkout lists or has a generator for, sorted.

    Raises `ConfigError` if `root` is not a checkout.
    """
    base = root / "run_differential_test"
    try:
        listed = (base / "full_name.txt").read_text("utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"job.root: {root} is not a checkout of CLI-Tool-Bench: {error}.") from error
    scripts = base.glob("repo/*/*/start.py")
    names = sorted({*listed, *(path.parent.relative_to(base / "repo").as_posix() for path in scripts)})
    if wrong := [name for name in names if not NAME.fullmatch(name)]:
        raise ConfigError(f"job.root: full_name.txt: {wrong[0]!r} is not OWNER/REPOSITORY.")
    return names


class Generator(Record):
    """Runs the generators of a checkout."""

    root: Path
    """The checkout."""
    seed: int
    seconds: float
    policy: CasePolicy
    packages: Path | None = None
    """Folder of packages that the generators may import."""

    def prompt(self, repository: str) -> str:
        """Read a prompt. Raises `TaskError` if it is absent, lies behind a link or is not text."""
        return self._text(f"agent_prompt/{repository}/agent_prompt.txt")

    def generate(self, repository: str, image: Image, sandboxes: SandboxProvider) -> Published:
        """Return the generator's output for this seed, which must be the same in two sandboxes, with complete classes.

        Raises `TaskError` with the class, if it is known, and the generator's messages; `EngineError`.
        """
        first, messages = self._run(repository, image, sandboxes)
        second, _ = self._run(repository, image, sandboxes)
        if first != second:
            raise TaskError(
                f"{_difference(first, second)} The seed does not fix it: does it use the clock or entropy?"
            )
        if not first.cases:
            raise TaskError(f"its generator yields no case. {messages}")
        generated, remarks = self.policy.apply(first, messages)
        masks = read_masks(
            self._text(f"run_differential_test/repo/{repository}/start.py"),
            self._text("run_differential_test/BaseRepoAdapter.py"),
        )
        return Published(self.prompt(repository), generated, masks, (*remarks, *masks.remarks))

    def _run(self, repository: str, image: Image, sandboxes: SandboxProvider) -> tuple[Generated, str]:
        place = f"{CHECKOUT}/run_differential_test"
        start = f"{place}/repo/{repository}/start.py"
        spec = SandboxSpec(
            name="import-generator",
            image=image,
            environment=Environment(network="no-network"),
            user="agent",
        )
        with tempfile.TemporaryDirectory() as scratch:
            staged, packed = Path(scratch, "staged"), Path(scratch, "out.tar")
            self._stage(repository, staged)
            command = ExecSpec(
                argv=("python3", "-B", "/driver.py", start, str(self.seed), OUTPUT),
                env={
                    "PYTHONHASHSEED": str(self.seed),
                    "PYTHONIOENCODING": "utf-8:backslashreplace",
                    **({"PYTHONPATH": PACKAGES} if self.packages else {}),
                },
                cwd=str(Path(start).parent),
                files={"/driver.py": DRIVER.read_text("utf-8")},
                uploads={place: staged, **({PACKAGES: self.packages} if self.packages else {})},
                timeout_seconds=self.seconds,
            )
            with sandboxes.open(spec) as sandbox:
                result = sandbox.exec(command)
                sandbox.kill()
                try:
                    sandbox.get(OUTPUT, packed)
                    text = _read_first_file(packed)
                except (FileNotFoundError, WorkspaceTooLarge) as error:
                    raise TaskError(f"its generator left nothing readable. {_quote(result)}") from error
        return _read_output(text, result), _quote(result)

    def _stage(self, repository: str, into: Path) -> None:
        """Copy the scripts that the generator may see: its own, and those beside `repo/`. Links are not followed."""
        base = self.root / "run_differential_test"
        own = [f"repo/{repository}/start.py"]
        for name in [*own, *sorted(path.name for path in base.glob("*.py"))]:
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(self._text(f"run_differential_test/{name}"), "utf-8")

    def _text(self, name: str) -> str:
        """Read a file of the checkout. Raises `TaskError` if any part of its path below the root is a link."""
        path = self.root / name
        try:
            if path.resolve(strict=True) != self.root.resolve() / name:
                raise TaskError(f"{name} lies behind a link: replace it by what it points to.")
            return path.read_text("utf-8")
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            raise TaskError(f"{path.parent.name}/{path.name} cannot be read: {error}.") from error


def write_task(
    into: Path, published: Published, head: dict[str, Any], reference: Path, check: Callable[[Path], None]
) -> list[str]:
    """Write a task folder at `into`, completely or not at all. An earlier task there is replaced.

    `head` holds `repository`, `tool`, `install`, `category`, and `[reference]` of `task.toml` without its package.
    `reference` is the archive of the package. `check` raises `TaskError` for a folder whose task cannot be used.
    Returns remarks for the user. Raises `TaskError` with file, line and reason.
    """
    prompt, generated, tool = published.prompt, published.generated, head["tool"]
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".importing-") as folder:
        place = Path(folder, into.name)
        place.mkdir()
        (place / "instruction.md").write_text(prompt, "utf-8")
        (place / "cases.jsonl").write_text(generated.lines, "utf-8")
        cases = read_cases(place / "cases.jsonl", generated.classes)
        shutil.copyfile(reference, place / "reference.tar")
        (place / "task.toml").write_text(_task_toml(published, head), "utf-8")
        check(place.parent)
        with exclusive(into.parent):
            if into.exists() and not (into / "task.toml").is_file():
                raise TaskError(f"{into} exists and is not a task: remove it, or choose another job.path.")
            replace_folder(place, into)
    remarks = [*published.remarks]
    refused = "refused unless dataset.check_names=false"
    named = find_names(prompt)
    if named and tool not in named:
        remarks.append(f"the prompt names {named[0]!r}, and not {tool!r}: {refused}")
    elif not named and not mentions(prompt, tool):
        remarks.append(f"the prompt never names {tool!r}: {refused}")
    if not all(mentions(case.command, tool) for case in cases):
        remarks.append(f"the tool is {tool!r} and not all cases call it: {refused}")
    return remarks


def find_tool(prompt: str, given: str | None) -> str:
    """Return the name of a task's tool: `given`, else the first name in the prompt. Raises `TaskError`."""
    tool = given or next(iter(find_names(prompt)), None)
    if tool is None:
        raise TaskError(
            "agent_prompt.txt does not give its CLI Tool Name: set it with job.names (OWNER/REPOSITORY: name)."
        )
    return tool


def _task_toml(published: Published, head: dict[str, Any]) -> str:
    generated = published.generated
    reference = {"source": "archive", "package": "reference.tar", **head["reference"]}
    top = {
        "tool": head["tool"],
        "language": generated.language,
        "category": head["category"],
        "install": head["install"],
    }
    masks = "".join(f"\n[[normalize]]\n{table(rule.model_dump())}" for rule in published.masks.normalizers)
    return (
        f"# {head['repository']} of CLI-Tool-Bench, written by job=import_cli_tool_bench.\n"
        f"{table(top)}\n[reference]\n{table(reference)}\n[classes]\n{table(generated.classes)}{masks}"
    )


def _read_output(text: bytes, result: ExecResult) -> Generated:
    """Read the driver's output. Raises `TaskError`."""
    try:
        node = json.loads(text)
        if isinstance(node, dict) and "failed_class" in node:
            where = f"class {node['failed_class']}: " if node["failed_class"] else ""
            raise TaskError(f"{where}its generator failed. {_quote(result)}")
        return Generated.model_validate(node)
    except ValidationError as error:
        raise TaskError(f"its generator yielded {first_fault(error)}. {_quote(result)}") from error
    except (ValueError, RecursionError) as error:
        raise TaskError(f"its generator's output is not JSON ({error}). {_quote(result)}") from error


def _quote(result: ExecResult) -> str:
    """Return how a generator ended and the end of its output."""
    ending = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
    output = (result.stdout + result.stderr).strip()
    unknown = UNKNOWN_MODULE.search(output)
    hint = (
        f"{unknown[1]!r} may come with a package: name it in job.packages=['NAME==VERSION']. "
        if unknown
        else ""
    )
    return f"{hint}It ended with {ending} and printed: {output[-MAX_QUOTE:] or 'nothing'}"


def _difference(first: Generated, second: Generated) -> str:
    """Return the first difference of two runs with the same seed."""
    for number, (one, other) in enumerate(zip(first.cases, second.cases, strict=False), start=1):
        if one != other:
            keys = [key for key in one if one[key] != other.get(key)]
            return (
                f"cases.jsonl, line {number}: class {one.get('class')}: two runs differ in {', '.join(keys)}."
            )
    return "Two runs differ in number of cases, classes or installation."


def _read_first_file(packed: Path) -> bytes:
    """Return the content of the first file of an archive. Raises `FileNotFoundError` if there is none."""
    with tarfile.open(packed) as archive:
        for member in archive:
            if member.isreg() and (stream := archive.extractfile(member)):
                return stream.read()
    raise FileNotFoundError("no regular file")
