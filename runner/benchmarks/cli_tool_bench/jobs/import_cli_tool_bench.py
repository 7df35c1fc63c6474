"""`job=import_cli_tool_bench`: write a checkout of CLI-Tool-Bench's authors as task folders."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field, field_validator

from runner.benchmarks.cli_tool_bench.dataset import TOOL
from runner.benchmarks.cli_tool_bench.jobs.make_cli_task import dataset_of
from runner.benchmarks.cli_tool_bench.published_tasks.cases import CasePolicy
from runner.benchmarks.cli_tool_bench.published_tasks.checkout import (
    Generator,
    find_tool,
    repositories,
    write_task,
)
from runner.benchmarks.cli_tool_bench.published_tasks.references import check_reference
from runner.benchmarks.cli_tool_bench.published_tasks.texts import read_categories, read_texts
from runner.benchmarks.cli_tool_bench.published_tasks.vendoring import vendor
from runner.benchmarks.sources.clients import file_digest, install_wheels
from runner.benchmarks.sources.clones import pack_head
from runner.benchmarks.sources.packages import exact
from runner.benchmarks.sources.sdists import lock_requirements
from runner.errors import ConfigError, TaskError
from runner.records import Environment, Image
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import printable

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.protocols import SandboxProvider


class Texts(NamedTuple):
    """Texts of the imported tasks by `OWNER/REPOSITORY`."""

    categories: dict[str, str]
    tools: dict[str, str]
    """Names of tools, which replace those in the prompts."""


class Shop(NamedTuple):
    """Everything that the import of each repository needs."""

    generator: Generator
    image: Image
    """Image of the generators."""
    dataset: CliToolBench
    """Dataset with which references are tried."""
    sandboxes: SandboxProvider


class ImportCliToolBench(Job):
    """Runs each repository's generator twice, in sandboxes without a network, and writes the complete tasks."""

    root: Path
    """The checkout."""
    references: Path
    """Folder with a git clone of each human-written tool, as `OWNER/REPOSITORY`."""
    path: Path
    """Folder for the tasks, `OWNER__REPOSITORY` each. Imported tasks of the same name are replaced."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """Seed of the generators' random numbers and of Python's hashes; the same seed gives the same bytes."""
    repositories: tuple[str, ...] = ()
    """Repositories to import, as `OWNER/REPOSITORY`; empty: all."""
    categories: dict[str, str] | Path | None = None
    """`OWNER/REPOSITORY: category`, or a YAML file of it, which overrides the checkout's own `category.json`. A
    repository that neither lists is `unknown`."""
    names: dict[str, str] | Path | None = None
    """`OWNER/REPOSITORY: name of the tool`, or a YAML file of it, for prompts with no name or a wrong one."""
    packages: tuple[str, ...] = ()
    """Packages that generators may import, as `NAME==VERSION`. Their requirements are found and pinned too."""
    cases_per_class: int = Field(default=50, ge=1)
    short_classes: Literal["refuse", "keep"] = "refuse"
    """Treatment of a class with too few cases. Too many cases are always an error."""
    bad_cases: Literal["refuse", "drop"] = "refuse"
    """Treatment of a case that cannot be run: a command with a NUL byte, a file outside of `/test_data`."""
    vendor: bool = False
    """True to add to each reference the packages that it requires, fetched from the language's package index
    (`dataset.indexes`, else that of this machine's own clients)."""
    check: bool = True
    """True to install each reference, as in a trial of `dataset`, and to run its command."""
    seconds: float = Field(default=120.0, gt=0)
    """Time limit of one run of a generator, in wall seconds."""

    @field_validator("packages")
    @classmethod
    def _check_packages(cls, pins: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(exact, pins))

    def run(self, sweep: Sweep) -> int:
        """Import all chosen repositories, and return exit code 0.

        Raises `ConfigError` with every repository that failed and the reason, after the others were written;
        `EngineError`.
        """
        listed = repositories(self.root)
        names = self._choose(listed)
        texts = Texts(
            {**read_categories(self.root), **read_texts(self.categories, "job.categories")},
            self._tools(listed),
        )
        sandboxes = sweep.settings.sandbox
        image = _image(sandboxes)
        self.path.mkdir(parents=True, exist_ok=True)
        failures = []
        with self._generator() as generator:
            shop = Shop(generator, image, dataset_of(sweep), sandboxes)
            for number, name in enumerate(names, start=1):
                try:
                    outcome = printable(self._import(name, texts, shop))
                except TaskError as error:
                    failures.append(printable(f"{name}: {error}"))
                    outcome = "FAILED"
                print(f"[{number}/{len(names)}] {name}: {outcome}", flush=True)
        print(f"{len(names) - len(failures)} of {len(names)} repositories are tasks in {self.path}")
        if failures:
            raise ConfigError(f"{len(failures)} were not imported:\n" + "\n".join(failures))
        return 0

    def _import(self, name: str, texts: Texts, shop: Shop) -> str:
        published = shop.generator.generate(name, shop.image, shop.sandboxes)
        generated = published.generated
        clone = self.references / name
        if not (clone / ".git").exists():
            raise TaskError(f"its reference is missing: git clone {generated.address} {clone}")
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder, "reference.tar")
            reference = pack_head(clone, generated.language, archive)
            install = generated.install
            if self.vendor:
                vendored = vendor(archive, generated.language, install, shop.dataset, shop.sandboxes)
                install = vendored.install
                reference |= {"digest": file_digest(archive), "requires": vendored.requires}
            head = {
                "repository": name,
                "tool": find_tool(published.prompt, texts.tools.get(name)),
                "install": install,
                "category": texts.categories.get(name, "unknown"),
                "reference": reference,
            }
            into = self.path / name.replace("/", "__")
            remarks = write_task(into, published, head, archive, partial(self._check, shop=shop))
        remarks += ["what its reference requires is part of it"] * self.vendor
        counts = f"{len(generated.classes)} classes, {len(generated.cases)} cases"
        return "; ".join([counts, *remarks])

    def _check(self, folder: Path, shop: Shop) -> None:
        """Raise `TaskError` if the reference of the task in a folder cannot be used."""
        if self.check:
            check_reference(folder, shop.dataset, shop.sandboxes)

    @contextmanager
    def _generator(self) -> Iterator[Generator]:
        """Yield the runner of generators, with `packages` installed. Raises `ConfigError`."""
        policy = CasePolicy(**self.model_dump(include=set(CasePolicy.model_fields)))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "packages") if self.packages else None
            if place:
                print(f"Fetching {', '.join(self.packages)}, which generators may import", flush=True)
                install_wheels(lock_requirements(self.packages), place)
            yield Generator(
                root=self.root, seed=self.seed, seconds=self.seconds, policy=policy, packages=place
            )

    def _tools(self, listed: list[str]) -> dict[str, str]:
        """Read `names`. Raises `ConfigError`."""
        tools = read_texts(self.names, "job.names")
        if absent := sorted({*tools} - {*listed}):
            raise ConfigError(f"job.names: {absent[0]} is not in {self.root}.")
        if wrong := [tool for tool in tools.values() if not re.fullmatch(TOOL, tool)]:
            raise ConfigError(
                f"job.names: {wrong[0]!r} is not the name of a command: letters, digits, `-` and `_`."
            )
        return tools

    def _choose(self, names: list[str]) -> list[str]:
        """Return the repositories to import. Raises `ConfigError` for one that the checkout lacks."""
        if absent := sorted({*self.repositories} - {*names}):
            raise ConfigError(f"job.repositories: {absent[0]} is not in {self.root}.")
        return [name for name in names if name in self.repositories] if self.repositories else names


def _image(sandboxes: SandboxProvider) -> Image:
    """Return the base image, which has python3 and a user `agent`. Raises `ConfigError` without images."""
    from runner.sandbox.docker import base_image  # noqa: PLC0415 - loads docker

    sandboxes.prepare([], lambda message: print(message, flush=True))
    image = sandboxes.image(Environment(image=base_image.tag()))
    if image.origin == "none":
        raise ConfigError("sandbox=local would run the generators on this machine: use sandbox=docker.")
    return image
