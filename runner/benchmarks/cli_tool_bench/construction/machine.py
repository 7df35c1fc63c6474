"""The reference of a task under construction, installed once and run on clean machines like any reference.

The work folder holds a draft of the task, so that the draft is treated exactly like a finished task: the dataset reads
it, fetches the reference and installs it, and the verifier stores the reference's results. The first trial of the
finished task finds these results.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from runner.benchmarks.cli_tool_bench.construction import moved_clock
from runner.benchmarks.cli_tool_bench.construction.recipe import INSTALL
from runner.benchmarks.cli_tool_bench.installation import Installed, install
from runner.benchmarks.sources.references import CHECKOUT, identity
from runner.benchmarks.sources.rejections import breaking, rejected
from runner.benchmarks.sources.task_toml import table
from runner.errors import ConfigError, FetchError, TaskError
from runner.records import Image
from runner.records.cases import Case, CaseResult, CaseSide

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.construction.recipe import Recipe
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun
    from runner.benchmarks.sources.references import Reference
    from runner.protocols import CaseBox, SandboxProvider
    from runner.records import Task
    from runner.terminal.escaping import Say


class ReferenceMachine:
    """Runs commands of one reference. A context manager that starts nothing before it is needed."""

    def __init__(
        self,
        recipe: Recipe,
        reference: Reference,
        dataset: CliToolBench,
        sandboxes: SandboxProvider,
        work: Path,
    ) -> None:
        """`work` is the folder of the draft, and of the packed files of a checkout."""
        self._recipe, self._reference, self._sandboxes, self._work = recipe, reference, sandboxes, work
        self._dataset = dataset.model_copy(update={"root": work / "draft", "include": ()})
        self._stack = ExitStack()

    def fetch(self, say: Say) -> None:
        """Write the draft, and fetch the reference and what its image needs.

        Raises `FetchError`, and `TaskError` for a reference that cannot be fetched whole or become the task's.
        """
        recipe, folder = self._recipe, self._dataset.root / self._recipe.tool
        folder.mkdir(parents=True, exist_ok=True)
        top = {"tool": recipe.tool, "language": recipe.language, "category": recipe.category}
        reference = self._reference.model_dump(mode="json", exclude_defaults=True)
        (folder / "task.toml").write_text(
            f'{table(top)}\n[reference]\n{table(reference)}\n[classes]\nDRAFT = ""\n', "utf-8"
        )
        (folder / "instruction.md").write_text(f"The command-line tool `{recipe.tool}`.\n", "utf-8")
        draft = {"class": "DRAFT", "command": f"{recipe.tool} --help"}
        (folder / "cases.jsonl").write_text(json.dumps(draft) + "\n", "utf-8")
        if self._reference.source == "checkout":
            shutil.copyfile(self._work / CHECKOUT, folder / CHECKOUT)
        try:
            self._dataset.prepare(say)
        except (TaskError, FetchError):
            raise
        except ConfigError as error:  # such as an archive with a link that leaves it
            raise rejected("candidate", f"its source cannot be taken: {error}") from error

    @property
    def identity(self) -> list[str]:
        """Everything that can change the behaviour of the reference, for the keys of steps."""
        return [identity(self._reference, self._recipe.tool), self.task.environment.digest]

    @cached_property
    def task(self) -> Task:
        """The draft as a task. Raises `RejectedError` if it cannot be run."""
        (task,) = self._dataset.tasks()
        if task.refused:
            raise rejected("candidate", task.refused)
        return task

    @property
    def image(self) -> Image:
        """The image in which the reference is installed. Raises `RejectedError`, `EngineError`."""
        return self._installed()

    def run(self, command: str) -> CaseResult:
        """Run one command in an empty folder. Raises `EngineError`."""
        return self._box.run(Case(command_class="DRAFT", command=command))

    def look_up(self, cases: Sequence[Case]) -> ReferenceRun:
        """Return the results of two runs of each case, which are stored for later trials. Raises `EngineError`."""
        verifier = self._dataset.verifier
        return verifier.references(self.task, self._sandboxes, partial(_run_all, self._box)).find(cases, None)

    def run_elsewhere(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run cases with the clock a day ahead, on a machine with another name. Raises `EngineError`."""
        return _run_all(self._elsewhere, cases)

    def run_without(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run cases on a machine without the tool: that of an empty workspace. Raises `EngineError`."""
        return _run_all(self._bare, cases)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @cached_property
    def _installed(self) -> Callable[[], Image]:
        task = self.task

        def installer(source: tuple[Path, str], _: str) -> Installed:
            command = INSTALL[self._recipe.language]
            return self._stack.enter_context(install(task, command, source, self._sandboxes, []))

        image = self._dataset.verifier.reference_image(task, installer)

        def installed() -> Image:
            with breaking("entry"):
                return image()

        return installed

    @cached_property
    def _box(self) -> CaseBox:
        return self._open(self._installed(), "help")

    @cached_property
    def _elsewhere(self) -> CaseBox:
        recipe = self._recipe
        image = self._stack.enter_context(
            moved_clock.image(
                self._installed(), recipe.language, self.task, self._sandboxes, self._dataset.verifier.cache
            )
        )
        return self._open(
            image, "elsewhere", env=moved_clock.ENV[recipe.language], hostname=moved_clock.HOSTNAME
        )

    @cached_property
    def _bare(self) -> CaseBox:
        return self._open(self._sandboxes.image(self.task.environment), "bare")

    def _open(self, image: Image, name: str, **settings: Any) -> CaseBox:
        """Open the machines of one side, until the context ends. `settings` are further fields of `CaseSide`."""
        verifier = self._dataset.verifier
        side = CaseSide(
            name=f"{self._recipe.tool}-{name}",
            image=image,
            limits=verifier.limits,
            lanes=verifier.lanes,
            **settings,
        )
        with breaking("entry"):
            return self._stack.enter_context(self._sandboxes.cases(side))


def _run_all(box: CaseBox, cases: Sequence[Case]) -> list[CaseResult]:
    from runner.sandbox.cases.box import stream  # noqa: PLC0415 - a plan that starts nothing needs no engine

    results = dict(stream(box, cases))
    return [results[index] for index in range(len(cases))]
