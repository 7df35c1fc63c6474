"""Make one task from a tool: a straight line of steps, each stored, from a recipe to a task folder.

recipe -> package -> entry -> help -> schema -> classes -> cases -> golden outputs -> prompt -> task
"""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.construction import acceptance, checkout, golden, prompt, scrubbing
from runner.benchmarks.cli_tool_bench.construction.classes import CommandClass, Unrolled, unroll
from runner.benchmarks.cli_tool_bench.construction.coverage import uncovered
from runner.benchmarks.cli_tool_bench.construction.drawing import LIBRARY, Draws, Generators, check_source
from runner.benchmarks.cli_tool_bench.construction.golden import GoldenClass, golden_class
from runner.benchmarks.cli_tool_bench.construction.help.pages import (
    HelpLimits,
    HelpPage,
    HelpTree,
    explore,
    page_text,
    read_pages,
)
from runner.benchmarks.cli_tool_bench.construction.installed_commands import Entry, find_entry
from runner.benchmarks.cli_tool_bench.construction.machine import ReferenceMachine
from runner.benchmarks.cli_tool_bench.construction.made import Made
from runner.benchmarks.cli_tool_bench.construction.moved_clock import AHEAD_SECONDS
from runner.benchmarks.cli_tool_bench.construction.questions import (
    context_question,
    generator_question,
    schema_question,
)
from runner.benchmarks.cli_tool_bench.construction.recipe import FOLDER, Recipe
from runner.benchmarks.cli_tool_bench.construction.schema import (
    CheckedSchema,
    Schema,
    checked,
    merged,
    read_schema,
)
from runner.benchmarks.cli_tool_bench.construction.scrubbing import Brand
from runner.benchmarks.sources.answers import BY_HAND, Answers, fenced
from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.references import CHECKOUT, fetch_context
from runner.benchmarks.sources.registries import look_up, reference
from runner.benchmarks.sources.rejections import rejected
from runner.benchmarks.sources.task_toml import table
from runner.files import write_atomically
from runner.records import Record

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.construction.steps import Steps
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.benchmarks.sources.references import Reference
    from runner.protocols import SandboxProvider
    from runner.records.cases import Case
    from runner.terminal.escaping import Say


FEWEST_WORDS, MOST_WORDS = 40, 600
"""Fewest and most words of a prompt's context."""
AGENT_SECONDS = 3600.0
"""Time limit of a rollout in the tasks that are made here."""


class MadeTask(Record):
    """A finished task."""

    folder: Path
    classes: int
    cases: int
    oracle: float
    nop: float


class Description(Record):
    """A description of the tool: its help pages, and the schema and classes that a model or a person completed."""

    readme: str
    """README of the package, scrubbed."""
    pages: dict[str, str]
    """Command line -> help page, scrubbed."""
    published: dict[str, str]
    """Command line -> help page as the tool prints it."""
    checked: CheckedSchema
    unrolled: Unrolled


@dataclass(frozen=True)
class Workshop:
    """Settings and machines that the construction of all tools shares."""

    dataset: CliToolBench
    """The dataset whose images, limits and rules the tasks are made for."""
    sandboxes: SandboxProvider
    path: Path
    """Folder of the tasks."""
    seed: int
    say: Say
    covers: Path | None = None
    """Folder of hand-written tasks with the same names, whose classes are to be covered."""


@dataclass(frozen=True)
class Making:
    """The construction of one tool."""

    recipe: Recipe
    answers: Answers
    steps: Steps
    work: Path
    """Folder for files that can be made again. It already holds the packed files of a checkout."""
    shop: Workshop

    def run(self) -> MadeTask:
        """Carry out every step that is not stored, and write the task. Raises `RejectedError`, `AssayError`."""
        package = self._package()
        command = self._command(package)
        source = self._reference(package, command)
        brand = _brand(self.recipe, package, command)
        with ExitStack() as stack:
            machine = stack.enter_context(
                ReferenceMachine(self.recipe, source, self.shop.dataset, self.shop.sandboxes, self.work)
            )
            generators = stack.enter_context(Generators(self.shop.sandboxes, self.shop.seed))
            machine.fetch(self.shop.say)
            described = self._describe(machine, package, brand)
            classes = [
                self._class(one, described, machine, generators, brand) for one in described.unrolled.classes
            ]
            context = self._context(described)
        return self._write(described, classes, context, source, brand)

    def _package(self) -> Package:
        recipe, dataset = self.recipe, self.shop.dataset
        client = partial(fetch_context, dataset.images, cache=dataset.verifier.cache, say=self.shop.say)
        if recipe.source == "checkout":
            return checkout.look_up(recipe, self.work / CHECKOUT, client, self.steps)
        look = partial(look_up, recipe.source, recipe.package, recipe.version, client, self.shop.say)
        return self.steps.get("package", [recipe.source, recipe.package, recipe.version], Package, look)

    def _command(self, package: Package) -> str:
        """Return the published command. Raises `RejectedError` if none is found."""
        recipe, shop = self.recipe, self.shop
        if not recipe.command:
            look = partial(find_entry, package, shop.dataset, shop.sandboxes, shop.say)
            return self.steps.get("entry", [package.digest, package.requires], Entry, look).command
        if recipe.command not in package.commands and not recipe.entry:
            known = ", ".join(sorted(package.commands)) or "none"
            raise rejected("entry", f"{package.package} has no command {recipe.command!r}; it has {known}.")
        return recipe.command

    def _reference(self, package: Package, command: str) -> Reference:
        recipe = self.recipe
        if recipe.entry and command not in package.commands:
            package = package.model_copy(update={"commands": package.commands | {command: recipe.entry}})
        found = reference(package, command, recipe.tool)
        name = package.package.rpartition("/")[2]
        names = tuple(dict.fromkeys([command, name, *recipe.brand])) if recipe.renamed else ()
        changes = {"entry": recipe.entry or found.entry, "license": recipe.license or found.license}
        return found.model_copy(update={**changes, "renamed": recipe.renamed, "names": names})

    def _describe(self, machine: ReferenceMachine, package: Package, brand: Brand) -> Description:
        """Read the help, complete the schema and derive the classes. Raises `RejectedError`."""
        recipe = self.recipe
        key = [*machine.identity, recipe.tool, recipe.help]
        tree = self.steps.get("help", key, HelpTree, partial(self._help, machine))
        if not tree.pages:
            why = tree.rejected[0].reason if tree.rejected else "it prints none"
            raise rejected("entry", f"help: {recipe.tool} has no page: {why}")
        if long := next((page for page in tree.pages if page.cut), None):
            kib = HelpLimits().page_bytes >> 10
            raise rejected("entry", f"help: `{long.command(recipe.tool)}` prints more than {kib} KiB.")
        published = {page.command(recipe.tool): page.text for page in tree.pages}
        pages = {command: brand.scrub(page) for command, page in published.items()}
        readme = brand.scrub(package.readme)
        found = checked(self._schema(tree, readme, pages), tree.texts())
        unrolled = unroll(found.schema_checked, recipe.cap, recipe.exclude)
        return Description(readme=readme, pages=pages, published=published, checked=found, unrolled=unrolled)

    def _help(self, machine: ReferenceMachine) -> HelpTree:
        tool, asked = self.recipe.tool, self.recipe.help
        if not asked:
            return explore(machine.run, tool)
        text, cut = page_text(machine.run(f"{tool} {asked}"), HelpLimits().page_bytes)
        return HelpTree(tool=tool, pages=(HelpPage(path=(), text=text, how="--help", cut=cut),))

    def _schema(self, tree: HelpTree, readme: str, pages: dict[str, str]) -> Schema:
        """Return the schema: a person's as it is, or a model's merged with the schema that is read without a model."""
        question = schema_question(readme, pages)
        read = read_pages(tree).schema_read

        def check(text: str) -> str:
            answered = read_schema(text, self.answers.author_of(question))
            named = answered.command.model_copy(update={"name": self.recipe.tool})
            answered = answered.model_copy(update={"command": named})
            if read is None or answered.written_by == BY_HAND:
                return answered.to_json()
            return merged(read, answered).to_json()

        return read_schema(self.answers.get(question, check))

    def _class(
        self,
        one: CommandClass,
        described: Description,
        machine: ReferenceMachine,
        generators: Generators,
        brand: Brand,
    ) -> GoldenClass:
        """Draw cases of a class and run them until enough of them are usable. Raises `RejectedError`."""
        found: list[GoldenClass] = []
        shared = self.answers.shared()

        def check(text: str) -> str:
            source = check_source(text)
            drawn = partial(generators.draw, self.recipe.tool, one.name, source, shared)
            key = [self.recipe.tool, one.name, source, shared, LIBRARY, self.shop.seed]
            draws = self.steps.get(f"draws-{one.name}", key, Draws, drawn)
            look = partial(golden_class, one.name, draws, machine, brand, self.shop.dataset.verifier.rules)
            shaping = self.shop.dataset.verifier.shaping
            looks = [AHEAD_SECONDS, "without"]
            key = [*machine.identity, draws.model_dump(), brand.model_dump(), shaping, *looks]
            found.append(self.steps.get(f"golden-{one.name}", key, GoldenClass, look))
            return source

        question = generator_question(self.recipe.tool, one, described.readme, described.pages)
        self.answers.get(question, check)
        return found[-1]

    def _context(self, described: Description) -> str:
        question = context_question(self.recipe.tool, described.readme, described.pages)
        return self.answers.get(question, check_context)

    def _write(
        self,
        described: Description,
        classes: list[GoldenClass],
        context: str,
        source: Reference,
        brand: Brand,
    ) -> MadeTask:
        """Write the task's folder, once the finished task has been accepted. Raises `RejectedError`."""
        recipe = self.recipe
        text = prompt.compose(recipe.tool, recipe.language, brand.scrub(context), described.pages, classes)
        if shown := brand.find(text):
            raise rejected("prompt", f"the prompt still shows {', '.join(sorted({*shown}))}.")
        folder = self.work / "finished" / recipe.tool
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "task.toml").write_text(self._task_toml(described, classes, source), "utf-8")
        (folder / "instruction.md").write_text(text, "utf-8")
        cases = (case.line for one in classes for case in one.cases)
        (folder / "cases.jsonl").write_text("".join(f"{json.dumps(case)}\n" for case in cases), "utf-8")
        (folder / "golden.jsonl").write_text(golden.lines(classes), "utf-8")
        if source.source == "checkout":
            shutil.copyfile(self.work / CHECKOUT, folder / CHECKOUT)
        accepted = acceptance.accept(folder, self.steps, self.shop.dataset, self.shop.sandboxes)
        into = self.shop.path / recipe.tool
        for file in sorted(folder.iterdir()):
            write_atomically(into / file.name, file.read_bytes())
        self._note(into, described, classes, context, brand)
        return MadeTask(
            folder=into,
            classes=len(classes),
            cases=sum(len(one.cases) for one in classes),
            oracle=accepted.oracle,
            nop=accepted.nop,
        )

    def _task_toml(self, described: Description, classes: list[GoldenClass], source: Reference) -> str:
        recipe, about = self.recipe, {one.name: one.description for one in described.unrolled.classes}
        top = {
            "tool": recipe.tool,
            "language": recipe.language,
            "category": recipe.category,
            "agent_timeout_seconds": AGENT_SECONDS,
        }
        made = Made(
            written_by=self.answers.authors, seed=self.shop.seed, golden=golden.digest(golden.lines(classes))
        )
        tables = {
            "reference": source.model_dump(mode="json", exclude_defaults=True),
            "made": made.model_dump(mode="json"),
            "classes": {one.name: about[one.name] for one in classes},
        }
        return "\n".join([table(top), *(f"[{name}]\n{table(values)}" for name, values in tables.items())])

    def _covered(self) -> tuple[Case, ...]:
        """Return the cases of the hand-written task of this name; none if there is no such task."""
        file = self.shop.covers / self.recipe.tool / "cases.jsonl" if self.shop.covers else None
        return read_cases(file) if file and file.is_file() else ()

    def _note(
        self, into: Path, described: Description, classes: list[GoldenClass], context: str, brand: Brand
    ) -> None:
        """Write the files about the construction that people may want to see, beside the answers."""
        unrolled, found = described.unrolled, described.checked
        report: dict[str, Any] = {
            "classes": {one.name: {"cases": len(one.cases), "not kept": one.dropped} for one in classes},
            "dropped by the cap": unrolled.dropped,
            "excluded": {one.name: one.reason for one in unrolled.excluded},
            "invented by the schema": [" ".join((*word.command, word.name)) for word in found.invented],
            "shown by the help, absent from the schema": [
                " ".join((*word.command, word.name)) for word in found.unlisted
            ],
        }
        if by_hand := self._covered():
            report["not covered of the hand-written task"] = uncovered(
                by_hand, found.schema_checked, unrolled.classes
            )
        text = json.dumps(report, indent=1, ensure_ascii=False)
        write_atomically(into / FOLDER / "report.json", f"{text}\n".encode())
        texts = {**described.published, "context.md": context}
        changed = "".join(scrubbing.changes(name, text, brand.scrub(text)) for name, text in texts.items())
        write_atomically(into / FOLDER / "scrubbed.diff", changed.encode())


def check_context(text: str) -> str:
    """Return the description of a tool, which may be a fenced block of Markdown.

    Raises `ValueError` for one that is empty, too long, or has a heading.
    """
    label, block = fenced(text)
    text = block if label in ("markdown", "md") else text
    words = len(text.split())
    if not FEWEST_WORDS <= words <= MOST_WORDS:
        raise ValueError(f"it has {words} words; {FEWEST_WORDS} to {MOST_WORDS} are wanted")
    if any(line.startswith("#") for line in text.splitlines()):
        raise ValueError("it has a heading, and the prompt has its own")
    return text.strip() + "\n"


def _brand(recipe: Recipe, package: Package, command: str) -> Brand:
    """Return everything that identifies the published tool."""
    owners = [part for address in package.addresses for part in _owners(address)]
    words = [package.package, command, *recipe.brand, *package.authors, *owners]
    return Brand.of(recipe.tool, words, package.emails, package.addresses)


def _owners(address: str) -> list[str]:
    """Return the owner and the name of a repository in an address, `https://HOST/OWNER/NAME`."""
    parts = address.partition("://")[2].partition("?")[0].strip("/").split("/")[1:3]
    return [part.removesuffix(".git") for part in parts] if len(parts) == 2 else []  # noqa: PLR2004 - owner and name
