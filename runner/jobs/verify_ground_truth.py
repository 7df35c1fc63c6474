"""`job=verify_ground_truth`: upstream's code must pass its own tests, twice, and an empty workspace none of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from runner.errors import ConfigError, TaskError
from runner.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runner.config import Sweep
    from runner.datasets.nl2repo import Nl2RepoBench
    from runner.protocols import SandboxProvider


class VerifyGroundTruth(Record):
    """Runs each task's upstream twice, and nothing once, in the sandbox that judges, and writes `truth.json`."""

    needs_keys: ClassVar[bool] = False
    several_scorings: ClassVar[bool] = False
    tasks: tuple[str, ...] = ()
    """Names; empty: every task that has a source."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0 when every task has a truth of as many tests as are published.

        Raises `ConfigError` naming every other one, with the reason, after all were tried; `EngineError`.
        """
        dataset, sandboxes = only_dataset(sweep), sweep.settings.sandbox
        say = partial(print, flush=True)
        sandboxes.prepare([], say)
        failures: list[str] = []
        chosen = self._chosen(dataset)
        for number, folder in enumerate(chosen, start=1):
            said = check(dataset, folder, sandboxes, say, failures)
            say(f"[{number}/{len(chosen)}] {folder.name}: {said}")
        if failures:
            raise ConfigError(f"{len(failures)} tasks have no ground truth:\n" + "\n".join(failures))
        return 0

    def _chosen(self, dataset: Nl2RepoBench) -> list[Path]:
        from runner.datasets import nl2repo_folder  # noqa: PLC0415 - as below

        folders = {folder.name: folder for folder in nl2repo_folder.folders(dataset.root)}
        wanted = self.tasks or dataset.include
        if absent := sorted({*wanted} - folders.keys()):
            raise ConfigError(f"job.tasks: {dataset.root} has no task {absent[0]!r}.")
        return [
            folder
            for name, folder in folders.items()
            if name in wanted or (not wanted and _has(dataset, folder))
        ]


def check(
    dataset: Nl2RepoBench,
    folder: Path,
    sandboxes: SandboxProvider,
    say: Callable[[str], None],
    failures: list[str],
    count: Path | None = None,
) -> str:
    """The outcome of one task for people; why it failed is added to `failures`. `count` names a file for the number of
    tests that pass, where none is published yet.
    """
    from runner.datasets import nl2repo_folder, nl2repo_truth  # noqa: PLC0415 - as below

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


def only_dataset(sweep: Sweep) -> Nl2RepoBench:
    """The sweep's dataset. Raises `ConfigError` if that is no NL2Repo-Bench."""
    from runner.datasets.nl2repo import Nl2RepoBench  # noqa: PLC0415 - only these jobs need it

    dataset = sweep.cells[0].dataset
    if not isinstance(dataset, Nl2RepoBench):
        raise ConfigError(
            f"dataset {dataset.name} has no hidden suites: choose dataset=nl2repo dataset.root=DIR."
        )
    return dataset


def _has(dataset: Nl2RepoBench, folder: Path) -> bool:
    try:
        return dataset.source(folder)[0].kind != "none"
    except TaskError:
        return False
