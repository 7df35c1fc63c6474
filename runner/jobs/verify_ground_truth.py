"""`job=verify_ground_truth`: what is known to work is run twice; what its tests do is stored with the task.

dataset=nl2repo: upstream's code against its own tests, and an empty workspace, which must pass none of them.
dataset=execution: the recorded scripts of a project.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.errors import ConfigError, TaskError
from runner.sweeps.cells import Job, Sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runner.benchmarks.nl2repo.dataset import Nl2RepoBench
    from runner.benchmarks.project_setup.dataset import ExecutionBench
    from runner.protocols import SandboxProvider
    from runner.terminal.escaping import Say

    Check = Callable[[Path, SandboxProvider, Say, list[str]], str]
    """The outcome of the task in a folder for people; why it failed is added to the list."""


class VerifyGroundTruth(Job):
    """Runs each task's known solution twice in the sandbox that judges, and writes `truth.json`."""

    tasks: tuple[str, ...] = ()
    """Names; empty: every task that has a source."""
    scripts: Path | None = None
    """dataset=execution, and one task: folder with a Dockerfile and a run_tests.sh, as job=environment leaves it, which
    become the task's recorded ones."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0 when every task has a truth; of NL2Repo-Bench, of as many tests as are published.

        Raises `ConfigError` naming every other one, with the reason, after all were tried; `EngineError`.
        """
        chosen, checked = self._work(sweep)
        if not chosen:
            raise ConfigError("no task has a source to verify: choose dataset.root=DIR, or tasks=[NAME].")
        sandboxes, say = sweep.settings.sandbox, partial(print, flush=True)
        sandboxes.prepare([], say)
        failures: list[str] = []
        for number, folder in enumerate(chosen, start=1):
            said = checked(folder, sandboxes, say, failures)
            say(f"[{number}/{len(chosen)}] {folder.name}: {said}")
        if failures:
            raise ConfigError(f"{len(failures)} tasks have no ground truth:\n" + "\n".join(failures))
        return 0

    def _work(self, sweep: Sweep) -> tuple[list[Path], Check]:
        """Folders of tasks, and what is done with each."""
        from runner.benchmarks.project_setup.dataset import ExecutionBench  # noqa: PLC0415 - only some jobs need it

        dataset = sweep.cells[0].dataset
        if isinstance(dataset, ExecutionBench):
            chosen = self._chosen(dataset.root, dataset.folders())
            if self.scripts and len(chosen) != 1:
                raise ConfigError(
                    f"job.scripts are of one task, and {len(chosen)} are chosen: add tasks=[NAME]."
                )
            return chosen, partial(_check_scripts, dataset, self.scripts)
        if self.scripts:
            raise ConfigError("job.scripts is for dataset=execution.")
        return self._with_source(only_dataset(sweep)), partial(check, only_dataset(sweep))

    def _with_source(self, dataset: Nl2RepoBench) -> list[Path]:
        from runner.benchmarks.nl2repo import published as nl2repo_folder  # noqa: PLC0415 - as below

        folders = nl2repo_folder.folders(dataset.root)
        if self.tasks:
            return self._chosen(dataset.root, folders)
        return [f for f in folders if (f.name in dataset.include if dataset.include else _has(dataset, f))]

    def _chosen(self, root: Path, folders: Iterable[Path]) -> list[Path]:
        named = {folder.name: folder for folder in folders}
        if absent := sorted({*self.tasks} - named.keys()):
            raise ConfigError(f"job.tasks: {root} has no task {absent[0]!r}.")
        return [folder for name, folder in named.items() if not self.tasks or name in self.tasks]


def check(
    dataset: Nl2RepoBench,
    folder: Path,
    sandboxes: SandboxProvider,
    say: Say,
    failures: list[str],
    count: Path | None = None,
) -> str:
    """The outcome of one task for people; why it failed is added to `failures`. `count` names a file for the number of
    tests that pass, where none is published yet.
    """
    from runner.benchmarks.nl2repo import published as nl2repo_folder  # noqa: PLC0415 - as below
    from runner.benchmarks.nl2repo import truth as nl2repo_truth  # noqa: PLC0415 - as below

    try:
        truth = nl2repo_truth.ground_truth(dataset, folder, sandboxes, say)
        if count:
            count.write_text(str(len(truth.passed)))
        published = nl2repo_folder.read(folder).count
    except TaskError as error:
        failures.append(f"{folder.name}: {error}")
        return "FAILED"
    others = f"{len(truth.skipped)} skipped, {len(truth.xfailed)} xfailed, {len(truth.failed)} failed"
    if len(truth.passed) != published:
        failures.append(
            f"{folder.name}: {len(truth.passed)} tests pass, and {published} are published ({others})."
        )
        return "FAILED"
    return f"{published} tests pass, twice; none in an empty workspace ({others})"


def _check_scripts(
    dataset: ExecutionBench,
    scripts: Path | None,
    folder: Path,
    sandboxes: SandboxProvider,
    say: Say,
    failures: list[str],
) -> str:
    from runner.benchmarks.project_setup.truth import ground_truth  # noqa: PLC0415 - as below

    try:
        found = ground_truth(dataset, folder, scripts, sandboxes, say).outcomes
    except TaskError as error:
        failures.append(f"{folder.name}: {error}")
        return "FAILED"
    return f"{found.words}, twice"


def only_dataset(sweep: Sweep) -> Nl2RepoBench:
    """The sweep's dataset. Raises `ConfigError` if that is no NL2Repo-Bench."""
    from runner.benchmarks.nl2repo.dataset import Nl2RepoBench  # noqa: PLC0415 - only these jobs need it

    dataset = sweep.cells[0].dataset
    if not isinstance(dataset, Nl2RepoBench):
        raise ConfigError(
            f"dataset {dataset.name} has no hidden suites: choose dataset=nl2repo dataset.root=DIR, or projects to set "
            "up: dataset=execution."
        )
    return dataset


def _has(dataset: Nl2RepoBench, folder: Path) -> bool:
    try:
        return dataset.source(folder)[0].kind != "none"
    except TaskError:
        return False
