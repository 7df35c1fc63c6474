"""CLI-Tool-Bench: write a command-line tool from its description, in an empty folder (section 2).

A task is a folder with `task.toml`, `instruction.md` (the prompt) and `cases.jsonl`; examples are in
`tasks/cli_tool_bench`. `prepare` fetches everything else, above all the source of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from runner.benchmarks.cli_tool_bench.case_file import check_prompt, read_cases
from runner.benchmarks.cli_tool_bench.construction.made import Made, is_reviewed
from runner.benchmarks.cli_tool_bench.construction.recipe import INSTALL, Language
from runner.benchmarks.cli_tool_bench.indexes import find, note, opened
from runner.benchmarks.cli_tool_bench.normalizers import MOST, Normalizer
from runner.benchmarks.cli_tool_bench.verifier import DifferentialTest, DifferentialVerifier
from runner.benchmarks.sources import borrowed
from runner.benchmarks.sources.references import Reference, context, fetch, fetch_context, identity, solution
from runner.benchmarks.sources.reviews import UNREVIEWED
from runner.benchmarks.sources.task_files import (
    check_links,
    chosen_folders,
    digest,
    read_instruction,
    tree_digest,
)
from runner.benchmarks.sources.task_toml import read_toml
from runner.errors import ConfigError, TaskError
from runner.records import Answer, Environment, Record, Task, VerifierSpec

if TYPE_CHECKING:
    from runner.report.blocks import Sections

TOOL = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"
"""Name of a command."""
PARTS = ("task.toml", "instruction.md", "cases.jsonl")
INSTALL_ONLINE = INSTALL | {"javascript": "npm install && npm install -g ."}
"""`INSTALL` for machines with an index: npm links a folder into the system, and fetches its requirements only if
told."""
ONLINE = "_online"
"""Suffix of the name of a dataset with the profile `online`."""
EASY, MEDIUM = 1500, 4000
"""Lines of reference code up to which a task is easy, and below which it is medium (section 2.4, Table 1)."""


class ToolTask(Record):
    """`task.toml`."""

    tool: str = Field(pattern=TOOL)
    """Name of the command. If it is the reference's published name, the task may measure memory."""
    language: Literal["python", "javascript", "go"]
    category: str
    """Domain of the tool, one of the paper's nine (Table 1)."""
    install: str = ""
    """Shell command, run in the workspace as root; empty: `INSTALL` of the language."""
    agent_timeout_seconds: float | None = None
    classes: dict[str, str] = Field(min_length=1)
    """Command class -> its description."""
    reference: Reference
    normalize: tuple[Normalizer, ...] = Field(default=(), max_length=MOST)
    """Replacements in the stdout of both sides before outputs are compared, in their order."""
    made: Made | None = None
    """Record of how the task was made; None if it was written entirely by hand, or imported."""

    @property
    def tier(self) -> str:
        """Difficulty, by lines of the reference's code."""
        lines = self.reference.lines
        return "easy" if lines <= EASY else "medium" if lines < MEDIUM else "hard"


class CliToolBench(Record):
    """A folder of CLI-Tool-Bench tasks."""

    name: str
    root: Path
    """Absolute folder. Its children with a `task.toml` are the tasks, in the order of their names."""
    images: Path
    """Folder with a build context for each language."""
    build_args: dict[str, str] = {}
    pass_threshold: float = Field(default=1.0, ge=0, le=1)
    """A trial passes when its reward reaches this."""
    check_names: bool = True
    """True to refuse tasks whose prompt and cases name the tool differently, because nobody could pass them."""
    include: tuple[str, ...] = ()
    """Names of the tasks to use; empty: all."""
    answers_in_reach: Literal["refuse", "flag"] = "refuse"
    """Treatment of a trial whose reference is in the agent's bundle, the runtime or the image
    (`runner.sweeps.answers_in_reach`)."""
    profile: Literal["sealed", "online"] = "sealed"
    """Network of the agent and of installations. online: they reach the package index of the task's language. Cases
    never have a network. `online` makes another dataset: its name ends in `_online`, and its trials have other keys."""
    indexes: dict[Language, tuple[str, ...]] = {}
    """Language -> its index: addresses, and names of other hosts that serve its files. A language without an entry has
    the index that this machine's own clients use."""
    verifier: DifferentialVerifier

    @model_validator(mode="before")
    @classmethod
    def _name_the_profile(cls, fields: Any) -> Any:
        """Add `_online` to the name, so that no cell of one profile is taken for a cell of the other."""
        if isinstance(fields, dict) and fields.get("profile") == "online":
            return fields | {"name": f"{str(fields.get('name')).removesuffix(ONLINE)}{ONLINE}"}
        return fields

    @classmethod
    def report_sections(cls) -> Sections:
        """Return the sections on tools, which the report of a sweep shows beside the general ones."""
        from runner.benchmarks.cli_tool_bench.report.scores import SECTIONS  # noqa: PLC0415 - brings pandas and matplotlib

        return SECTIONS

    def tasks(self) -> Sequence[Task]:
        """Return every task, sorted by folder; those that cannot be run here have `refused` set.

        Raises `ConfigError` if there is none, or if `include` names one that does not exist.
        """
        folders = sorted(path.parent for path in self.root.glob("*/task.toml"))
        if not folders:
            raise ConfigError(
                f"dataset {self.name}: no folder with a task.toml in {self.root}. Set dataset.root."
            )
        chosen = chosen_folders(folders, self.include, f"dataset {self.name}: {self.root}")
        return [self._task(folder) for folder in chosen]

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetch every task's reference and the contents of images. Raises `ConfigError` if a download fails.

        No index need be known: the contents of images are what tells the default ones.
        """
        cache = self.verifier.cache
        for task in self.model_copy(update={"profile": "sealed"}).tasks():
            if not task.refused:
                tool = read_toml(task.directory / "task.toml", ToolTask)
                fetch_context(self.images, tool.language, cache, say)
                client = partial(fetch_context, self.images, cache=cache, say=say)
                fetch(tool.reference, tool.tool, task.directory, client, say, cache)

    def _task(self, folder: Path) -> Task:
        task = Task(name=folder.name, dataset=self.name, directory=folder)
        try:
            check_links(folder, PARTS)
            task = task.model_copy(update={"digest": tree_digest(folder, PARTS)})
            tool = read_toml(folder / "task.toml", ToolTask)
            strata = {"tier": tool.tier, "category": tool.category, "language": tool.language}
            task = task.model_copy(update=strata)
            task = self._complete(task, tool)
            return task.model_copy(update={"refused": self.verifier.refusal(task)})
        except TaskError as error:
            return task.model_copy(update={"refused": str(error)})

    def _complete(self, task: Task, tool: ToolTask) -> Task:
        """Return the task with all other fields. Raises `TaskError` if it cannot be run."""
        folder, cache = task.directory, self.verifier.cache
        instruction = read_instruction(folder / "instruction.md")
        if self.check_names:
            check_prompt(instruction, tool.tool)
        read_cases(folder / "cases.jsonl", tool.classes, tool.tool if self.check_names else None)
        environment = self.environment(tool.language)
        is_online = self.profile == "online"
        install = tool.install or (INSTALL_ONLINE if is_online else INSTALL)[tool.language]
        shaping = [task.digest, identity(tool.reference, tool.tool), install, self.verifier.shaping]
        if is_online:
            instruction += (said := note(tool.language))
            # Not this machine's own index: a mirror has the same packages.
            shaping += [self.profile, self.indexes.get(tool.language, ()), said]
        return task.model_copy(
            update={
                "digest": digest(shaping),
                "instruction": instruction,
                "environment": environment,
                "agent_timeout_seconds": tool.agent_timeout_seconds,
                "agent_user": "agent",
                "flags": () if tool.made is None or is_reviewed(folder) else (UNREVIEWED,),
                "verifier": VerifierSpec(mode="separate", timeout_seconds=self.verifier.install_seconds),
                "payload": DifferentialTest(
                    cases=folder / "cases.jsonl",
                    install=install,
                    reference=tool.reference.size,
                    profile=self.profile,
                    normalize=tool.normalize,
                ),
                "solution": (there := solution(tool.reference, tool.tool, cache)),
                "answer": Answer(
                    packages=tool.reference.packages,
                    source=there / "source",
                    borrowed=there / borrowed.FILE,
                    tolerated=self.answers_in_reach == "flag",
                ),
            }
        )

    def environment(self, language: Language) -> Environment:
        """Return the environment in which tools of a language are written and installed, with this profile's network.

        Raises `TaskError` if there is none, other `ConfigError` if no index is known.
        """
        if not (self.images / language / "Dockerfile").is_file():
            raise TaskError(f"There is no {language}/Dockerfile in {self.images} for tools of this language.")
        parts = [tree_digest(self.images / language), self.build_args]
        place = context(self.images, language, self.verifier.cache)
        sealed = Environment(
            name=f"cli-{language}",
            context=place,
            build_args=self.build_args,
            network="no-network",
            digest=digest(parts),
        )
        if self.profile == "sealed":
            return sealed
        return opened(sealed, language, find(language, self.indexes.get(language, ()), place))
