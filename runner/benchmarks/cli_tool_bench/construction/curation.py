"""Curate candidates: construct each as far as possible, then choose a balanced set of tasks (section 2.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench.construction.candidates import Candidate, Filters
from runner.benchmarks.cli_tool_bench.construction.funnel import Outcome, Stage
from runner.benchmarks.cli_tool_bench.construction.inside.fuzz import WORDS
from runner.benchmarks.cli_tool_bench.construction.installed_commands import Entry, find_entry
from runner.benchmarks.cli_tool_bench.construction.made import is_reviewed
from runner.benchmarks.cli_tool_bench.construction.recipe import FILE, FOLDER, LANGUAGES, Recipe, write_recipe
from runner.benchmarks.cli_tool_bench.construction.selection import Finished
from runner.benchmarks.cli_tool_bench.construction.steps import Steps
from runner.benchmarks.cli_tool_bench.dataset import CliToolBench, ToolTask
from runner.benchmarks.cli_tool_bench.indexes import CALLED
from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.references import fetch_context
from runner.benchmarks.sources.registries import look_up
from runner.benchmarks.sources.rejections import RejectedError, Rejection, rejected
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import FetchError, TaskError
from runner.records.base import first_fault

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.terminal.escaping import Say


@dataclass(frozen=True)
class Curation:
    """Settings and machines that all candidates of one command share."""

    filters: Filters
    dataset: CliToolBench
    sandboxes: SandboxProvider
    path: Path
    """Folder of the tasks."""
    work: Path
    """Folder for stored steps."""
    say: Say

    def outcome(self, candidate: Candidate) -> Outcome:
        """Take a candidate as far as possible without a model: to a recipe, or to its task if that exists already.

        Raises `ConfigError` and `EngineError` for failures that are not the candidate's.
        """
        reached: Stage = "candidates"
        try:
            found = self._completed(candidate)
            self.filters.check(found)
            if found.category is None:  # before anything is installed
                raise rejected(
                    "candidate", "category: none is given; fill in the column with one of the nine domains."
                )
            reached = "metadata"
            command = self._entry(found)
            reached = "entry"
            folder = self._recipe(found, command)
        except RejectedError as error:
            return Outcome(name=candidate.name, reached=reached, rejection=error.rejection)
        except (TaskError, FetchError) as error:  # no such package, or one that no reference can be made of
            rejection = Rejection(step="candidate", reason=f"package: {error}"[:2000])
            return Outcome(name=candidate.name, reached=reached, rejection=rejection)
        if not (folder / "task.toml").is_file():
            return Outcome(name=candidate.name, reached="entry", task=folder.name)
        reviewed: Stage = "reviewed" if is_reviewed(folder) else "task"
        return Outcome(name=candidate.name, reached=reviewed, task=folder.name)

    def _completed(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the registry's values wherever the table has none."""
        if not candidate.version:
            raise rejected("candidate", "version: none is given.")
        package = self._package(candidate)
        language = LANGUAGES[candidate.source]
        said = {
            "description": package.description,
            "license": package.license,
            "build_files": package.build_files,
            "purity": package.languages.get(CALLED[language], 0.0) if package.languages else None,
        }
        missing = {key: value for key, value in said.items() if getattr(candidate, key) in ("", None, ())}
        return candidate.model_copy(update=missing)

    def _package(self, candidate: Candidate) -> Package:
        """Return the candidate's package, as its registry describes it. Raises what `look_up` does."""
        client = partial(fetch_context, self.dataset.images, cache=self.dataset.verifier.cache, say=self.say)
        source, name, version = candidate.source, candidate.package, candidate.version
        look = partial(look_up, source, name, version, client, self.say)
        return self._steps(candidate).get("package", [source, name, version], Package, look)

    def _entry(self, candidate: Candidate) -> str:
        package = self._package(candidate)
        look = partial(find_entry, package, self.dataset, self.sandboxes, self.say, candidate.command)
        key = [package.digest, package.requires, candidate.command]
        return self._steps(candidate).get("entry", key, Entry, look).command

    def _recipe(self, candidate: Candidate, command: str) -> Path:
        """Return the folder of the candidate's task, whose recipe is written if it is new. Raises `RejectedError`."""
        folder = self.path / (candidate.tool or made_up_name(candidate.name))
        if not (folder / FOLDER / FILE).is_file():
            wanted = candidate.model_dump(include={"source", "package", "version", "license", "category"})
            try:
                recipe = Recipe.model_validate({**wanted, "tool": folder.name, "command": command})
            except ValidationError as error:
                raise rejected("entry", f"recipe: {first_fault(error, 'its names')}.") from error
            write_recipe(folder, recipe)
        return folder

    def _steps(self, candidate: Candidate) -> Steps:
        folder = hashlib.sha256(candidate.name.encode()).hexdigest()[:24]
        return Steps(self.work / folder, lambda step: self.say(f"  {candidate.name}: {step}"))


def finished(outcomes: Sequence[Outcome], path: Path, *, unreviewed: bool) -> list[Finished]:
    """Return the properties of the tasks that may be chosen: the reviewed tasks, or all if `unreviewed`."""
    stages: tuple[Stage, ...] = ("task", "reviewed") if unreviewed else ("reviewed",)
    tools = {
        one.task: read_toml(path / one.task / "task.toml", ToolTask)
        for one in outcomes
        if one.reached in stages
    }
    return [
        Finished(
            name=name,
            tier=tool.tier,
            language=tool.language,
            category=tool.category,
            lines=tool.reference.lines,
        )
        for name, tool in tools.items()
    ]


def made_up_name(name: str) -> str:
    """Return a neutral name for a candidate's tool: two words, always the same for the same candidate."""
    digest = hashlib.sha256(name.encode()).digest()
    one, other = WORDS[digest[0] % len(WORDS)], WORDS[digest[1] % len(WORDS)]
    return f"{one}{other}{digest[2] % 100:02}"
