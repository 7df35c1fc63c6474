"""`job=make_cli_task`: make tasks from command-line tools, published or in a checkout (sections 2.1 and 2.2)."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from runner.benchmarks.cli_tool_bench.construction import checkout
from runner.benchmarks.cli_tool_bench.construction.making import MadeTask, Making, Workshop
from runner.benchmarks.cli_tool_bench.construction.recipe import (
    FILE,
    FOLDER,
    Recipe,
    read_recipe,
    write_recipe,
)
from runner.benchmarks.cli_tool_bench.construction.steps import Steps
from runner.benchmarks.sources.answering_model import ConstructionModel, most_usd
from runner.benchmarks.sources.answers import Answers
from runner.benchmarks.sources.references import CHECKOUT
from runner.errors import ConfigError, FetchError, TaskError
from runner.locks import exclusive
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import printable
from runner.trials.scratch_folder import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.gateway import Gateway
    from runner.records import Model


LONGEST_QUESTION_TOKENS = 30_000
"""Length of the longest question (README, help and library) in tokens of three characters."""


class MakeCliTask(Job):
    """Makes a task from each recipe, `PATH/<tool>/making/tool.yaml`. Finished tasks and written answers are kept."""

    plans: ClassVar[bool] = True
    path: Path
    """Folder of the tasks."""
    tools: tuple[str, ...] = ()
    """Names of the tasks to make; empty: all that have a recipe."""
    recipe: Recipe | None = None
    """Recipe of one tool to make instead, which is written to its file first; null if the recipe files exist. A
    checkout's folder is relative to the working directory here, and to the recipe's file there."""
    written_by: Literal["hand", "model"] = "hand"
    """Author of missing schemas, contexts and generators. hand: nobody writes them, and a tool without them is
    rejected. model: `model=` writes them, through the gateway."""
    usd: float = Field(default=5.0, gt=0)
    """Limit on the cost of all tools of this command together, in USD."""
    tries: int = Field(default=4, ge=1)
    """Attempts of a model at one answer. In each further attempt the model is told the fault of the previous one."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the generators; the same seed and the same answers give the same bytes."""
    covers: Path | None = None
    """Folder of hand-written tasks. `report.json` then lists what tasks of the same name use and no class exercises."""

    def run(self, sweep: Sweep) -> int:
        """Make all chosen tasks and return 0.

        Raises `ConfigError` with every tool that was rejected and the reason, after the others were made;
        `EngineError`.
        """
        recipe = _placed(self.recipe, self.path) if self.recipe else None
        recipes = [recipe] if recipe else self._recipes()
        if sweep.settings.dry_run:
            print(self._estimate(recipes, sweep.cells[0].model))
            return 0
        if recipe:
            write_recipe(self.path / recipe.tool, recipe)
        makers = Makers(self, sweep)
        failures = []
        with makers:
            for number, recipe in enumerate(recipes, start=1):
                began = time.monotonic()
                try:
                    outcome = _words(makers.make(recipe))
                except (TaskError, FetchError) as error:
                    failures.append(printable(f"{recipe.tool}: {error}"))
                    outcome = printable(f"REJECTED: {error}")
                seconds = time.monotonic() - began
                print(f"[{number}/{len(recipes)}] {recipe.tool}: {outcome} ({seconds:.0f} s)", flush=True)
        print(f"{len(recipes) - len(failures)} of {len(recipes)} tools are tasks in {self.path}{makers.bill}")
        if failures:
            raise ConfigError(f"{len(failures)} were rejected:\n" + "\n".join(failures))
        return 0

    def _recipes(self) -> list[Recipe]:
        """Return the chosen recipes in the order of their names. Raises `ConfigError` if one is missing or wrong."""
        names = self.tools or sorted(path.parents[1].name for path in self.path.glob(f"*/{FOLDER}/{FILE}"))
        if not names:
            raise ConfigError(
                f"job.path: no folder in {self.path} has a {FOLDER}/{FILE}. Write one, or set job.recipe."
            )
        return [read_recipe(self.path / name) for name in names]

    def _estimate(self, recipes: Sequence[Recipe], model: Model) -> str:
        """Return a text about the most that would be asked, and what that may cost."""
        lines, usd = [], 0.0
        for recipe in recipes:
            written = sum(path.is_file() for path in (self.path / recipe.tool / FOLDER).rglob("*.py"))
            questions = 0 if self.written_by == "hand" else 2 + recipe.cap
            cost = questions * self.tries * most_usd(model, LONGEST_QUESTION_TOKENS) if questions else 0.0
            usd += cost
            lines.append(
                f"{recipe.tool}: {written} generators lie there; at most {questions} answers are asked for"
            )
        cap = min(usd, self.usd)
        lines.append(f"All together ({len(recipes)}): at most {cap:.2f} USD (job.usd={self.usd:g}).")
        return "\n".join(lines)


class Makers:
    """Settings and resources that all tools of one command share: machines, and the gateway if a model writes."""

    def __init__(self, job: MakeCliTask, sweep: Sweep) -> None:
        self._job, self._sweep = job, sweep
        self._stack = ExitStack()
        self._models: list[ConstructionModel] = []
        settings = sweep.settings
        self._shop = Workshop(
            dataset=dataset_of(sweep),
            sandboxes=settings.sandbox,
            path=job.path,
            seed=job.seed,
            covers=job.covers,
            say=partial(print, flush=True),
        )

    def make(self, recipe: Recipe) -> MadeTask:
        """Make one task. Raises `RejectedError`, other `TaskError`, `EngineError`.

        Of two commands that make the same task, the second one waits, and finds what the first one made.
        """
        work = self._sweep.settings.outputs / "cache" / "construction" / recipe.tool
        with exclusive(work.with_name(f"{recipe.tool}.lock")):
            return self._make(recipe, work)

    def _make(self, recipe: Recipe, work: Path) -> MadeTask:
        making = self._job.path / recipe.tool / FOLDER
        if recipe.source == "checkout":
            recipe = checkout.take(recipe, making, work / CHECKOUT)
        model = self._model(recipe) if self._job.written_by == "model" else None
        answers = Answers(making, model, self._job.tries)
        return Making(recipe, answers, Steps(work / "steps", self._step), work, self._shop).run()

    @property
    def bill(self) -> str:
        """Cost of the models, in words; empty if no model was asked."""
        if not self._models:
            return ""
        costs = [model.cost_usd for model in self._models]
        known = sum(cost for cost in costs if cost is not None)
        return f"; {known:.4f} USD" + (" and answers without a price" if None in costs else "")

    def __enter__(self) -> Self:
        self._shop.sandboxes.prepare([], self._shop.say)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @cached_property
    def _gateway(self) -> Gateway:
        from runner.gateway import Gateway  # noqa: PLC0415 - its libraries take seconds, and help needs none

        scratch = self._stack.enter_context(scratch_folder())
        return self._stack.enter_context(Gateway(scratch, self._sweep.settings.gateway))

    def _model(self, recipe: Recipe) -> ConstructionModel:
        """Return the model that writes one tool's answers. It may spend what earlier tools of the command left."""
        settings = self._sweep.settings
        spent = sum(model.cost_usd or 0.0 for model in self._models)
        model = ConstructionModel(
            self._gateway,
            self._sweep.cells[0].model,
            recipe.tool,
            settings.folder / "construction" / recipe.tool,
            self._job.usd - spent,
            settings.record,
        )
        self._models.append(model)
        return model

    def _step(self, name: str) -> None:
        print(f"  {name}", flush=True)


def _placed(recipe: Recipe, path: Path) -> Recipe:
    """Return a typed recipe in the form for its file: with a checkout's folder relative to that file."""
    if not recipe.folder:
        return recipe
    making = path.absolute() / recipe.tool / FOLDER
    return recipe.model_copy(update={"folder": os.path.relpath(Path(recipe.folder).absolute(), making)})


def _words(made: MadeTask) -> str:
    return f"{made.classes} classes, {made.cases} cases; oracle {made.oracle:g}, nop {made.nop:g}"


def dataset_of(sweep: Sweep) -> CliToolBench:
    """Return the sweep's dataset. Raises `ConfigError` if it is another benchmark's."""
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench  # noqa: PLC0415 - only this job needs it

    dataset = sweep.cells[0].dataset
    if not isinstance(dataset, CliToolBench):
        raise ConfigError(f"dataset {dataset.name} has no command-line tools: add dataset=cli_tool_bench.")
    return dataset
