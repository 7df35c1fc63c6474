"""Try the reference of a task before it is imported: it must install as in a trial, and its command must run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.dataset import ToolTask
from runner.benchmarks.cli_tool_bench.installation import Installed, install
from runner.benchmarks.cli_tool_bench.verifier import payload
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import TaskError, VerifierError
from runner.records.cases import Case, CaseResult

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.protocols import SandboxProvider
    from runner.records import Image, Task

TRIED = 10
"""Largest number of command classes whose first case is tried, beside `--help`."""
MAX_QUOTE = 1000
WAYS_OUT = (
    "job.vendor=true makes what it requires a part of it, dataset.profile=online lets installations reach the package "
    "index, and job.check=false imports it nevertheless."
)


def check_reference(root: Path, dataset: CliToolBench, sandboxes: SandboxProvider) -> None:
    """Install the reference of the one task below `root`, and run its command.

    Raises `TaskError` if it cannot be installed, or if its command succeeds in none of the cases tried.
    """
    tried = dataset.model_copy(update={"root": root, "include": (), "check_names": False})
    tried.prepare(lambda _: None)
    (task,) = tried.tasks()
    if task.refused:
        raise TaskError(task.refused)
    tool = read_toml(task.directory / "task.toml", ToolTask).tool
    with ExitStack() as stack:
        image = _install(task, tried, sandboxes, stack)
        cases = [Case(command_class="-", command=f"{tool} --help"), *_first_cases(task.directory)]
        _check_results(tool, cases, tried.verifier.run(task, image, cases, sandboxes))


def _install(task: Task, dataset: CliToolBench, sandboxes: SandboxProvider, stack: ExitStack) -> Image:
    def installer(source: tuple[Path, str], _: str) -> Installed:
        return stack.enter_context(install(task, payload(task).install, source, sandboxes, []))

    try:
        return dataset.verifier.reference_image(task, installer)()
    except VerifierError as error:
        raise TaskError(f"{error} {WAYS_OUT}") from error


def _first_cases(folder: Path) -> list[Case]:
    """Return the first case of each of the first `TRIED` classes."""
    first: dict[str, Case] = {}
    for case in read_cases(folder / "cases.jsonl"):
        first.setdefault(case.command_class, case)
    return list(first.values())[:TRIED]


def _check_results(tool: str, cases: list[Case], results: list[CaseResult]) -> None:
    if any(result.exit_code == 0 for result in results):
        return
    ending = f"exit code {results[0].exit_code}" if results[0].ended == "exited" else results[0].ended
    output = (results[0].stderr or results[0].stdout).strip()[-MAX_QUOTE:] or "nothing"
    raise TaskError(
        f"its reference is installed, but its command {tool!r} succeeds in none of {len(cases)} tries. "
        f"`{cases[0].command}` ended with {ending} and printed: {output}. Is that the tool's name (job.names)? "
        f"{WAYS_OUT}"
    )
