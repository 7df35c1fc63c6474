"""`job=import_cli_tool_bench`: write a checkout of CLI-Tool-Bench's authors as task folders."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic import Field

from runner.benchmarks.cli_tool_bench.published import Generator, write_task
from runner.benchmarks.sources.clones import pack_head
from runner.errors import ConfigError, TaskError
from runner.records import Environment, Image
from runner.sweeps.cells import Job, Sweep
from runner.terminal.escaping import printable

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider


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
    categories: Path | None = None
    """YAML file with `OWNER/REPOSITORY: category`; a repository that it lacks is `unknown`."""
    cases_per_class: int = Field(default=50, ge=1)
    seconds: float = Field(default=120.0, gt=0)
    """Wall seconds of one run of a generator."""

    def run(self, sweep: Sweep) -> int:
        """Import all chosen repositories, and return exit code 0.

        Raises `ConfigError` with every repository that failed and the reason, after the others were written;
        `EngineError`.
        """
        generator = Generator(**self.model_dump(include=set(Generator.model_fields)))
        names = self._choose(generator.repositories())
        categories = self._read_categories()
        sandboxes = sweep.settings.sandbox
        image = _image(sandboxes)
        self.path.mkdir(parents=True, exist_ok=True)
        failures = []
        for number, name in enumerate(names, start=1):
            try:
                outcome = self._import(generator, name, categories.get(name, "unknown"), image, sandboxes)
            except TaskError as error:
                failures.append(printable(f"{name}: {error}"))
                outcome = "FAILED"
            print(f"[{number}/{len(names)}] {name}: {outcome}", flush=True)
        print(f"{len(names) - len(failures)} of {len(names)} repositories are tasks in {self.path}")
        if failures:
            raise ConfigError(f"{len(failures)} were not imported:\n" + "\n".join(failures))
        return 0

    def _import(
        self, generator: Generator, name: str, category: str, image: Image, sandboxes: SandboxProvider
    ) -> str:
        generated = generator.generate(name, image, sandboxes)
        clone = self.references / name
        if not (clone / ".git").exists():
            raise TaskError(f"its reference is missing: git clone {generated.address} {clone}")
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder, "reference.tar")
            head = {"category": category, "reference": pack_head(clone, generated.language, archive)}
            into = self.path / name.replace("/", "__")
            remarks = write_task(into, name, generator.prompt(name), generated, head, archive)
        counts = f"{len(generated.classes)} classes, {len(generated.cases)} cases"
        return "; ".join([counts, *remarks])

    def _choose(self, names: list[str]) -> list[str]:
        """Return the repositories to import. Raises `ConfigError` for one that the checkout lacks."""
        if absent := sorted({*self.repositories} - {*names}):
            raise ConfigError(f"job.repositories: {absent[0]} is not in {self.root}.")
        return [name for name in names if name in self.repositories] if self.repositories else names

    def _read_categories(self) -> dict[str, str]:
        """Read `categories`. Raises `ConfigError`."""
        if self.categories is None:
            return {}
        try:
            node = yaml.safe_load(self.categories.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"job.categories: {self.categories} cannot be read: {error}") from error
        if not isinstance(node, dict) or not all(
            isinstance(text, str) for pair in node.items() for text in pair
        ):
            raise ConfigError(f"job.categories: {self.categories} must hold `OWNER/REPOSITORY: category`.")
        return node


def _image(sandboxes: SandboxProvider) -> Image:
    """Return the base image, which has python3 and a user `agent`. Raises `ConfigError` without images."""
    from runner.sandbox.docker import base_image  # noqa: PLC0415 - loads docker

    sandboxes.prepare([], lambda message: print(message, flush=True))
    image = sandboxes.image(Environment(image=base_image.tag()))
    if image.origin == "none":
        raise ConfigError("sandbox=local would run the generators on this machine: use sandbox=docker.")
    return image
