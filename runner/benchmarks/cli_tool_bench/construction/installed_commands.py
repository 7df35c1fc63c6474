"""Install a published package by its standard command and see which executables it adds (section 2.1.2).

This happens in a sandbox that reaches the package index alone, through the logged proxy: a package may run code as it
is installed. A Go module is compiled from its source instead, and adds what its main packages are called.
"""

from __future__ import annotations

import shlex
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from runner.benchmarks.cli_tool_bench.construction.entry import match
from runner.benchmarks.cli_tool_bench.construction.help.pages import is_help
from runner.benchmarks.cli_tool_bench.construction.recipe import LANGUAGES
from runner.benchmarks.cli_tool_bench.construction.rejections import rejected
from runner.benchmarks.cli_tool_bench.indexes import find, opened
from runner.benchmarks.cli_tool_bench.installation import install
from runner.benchmarks.sources.references import context
from runner.records import EgressAttempt, Image, Record, Task, VerifierSpec
from runner.records.cases import Case, CaseSide

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.benchmarks.sources.published_package import Package
    from runner.protocols import SandboxProvider

INSTALL = {"pypi": "pip install {}", "npm": "npm install -g {}"}
_LIST = 'IFS=:; for folder in $PATH; do ls -1 "$folder" 2>/dev/null; done'
_QUOTED = 600


class Entry(Record):
    """The command of a published package."""

    command: str
    added: tuple[str, ...]
    """Every executable that the installation added, sorted."""
    egress: tuple[EgressAttempt, ...] = ()
    """Attempts of the installation to use a network."""


def find_entry(
    package: Package, dataset: CliToolBench, sandboxes: SandboxProvider, command: str = ""
) -> Entry:
    """Return the command that belongs to a package, and that prints its usage for `--help`; `command` overrides it.

    Raises `RejectedError` if the package cannot be installed or no command fits, `ConfigError`, and `EngineError`.
    """
    if not package.commands:
        reason = f"{package.package} {package.version} declares no command, so it is no command-line tool."
        raise rejected("entry", f"{reason} If one of its modules is a command, name it (entry=).")
    name = package.package.rpartition("/")[2]
    if package.source not in INSTALL:
        return Entry(command=command or match(package.commands, name), added=tuple(sorted(package.commands)))
    task, attempts = _task(package, dataset), list[EgressAttempt]()
    pinned = {"pypi": f"{package.package}=={package.version}", "npm": f"{package.package}@{package.version}"}
    words = INSTALL[package.source].format(shlex.quote(pinned[package.source]))
    with ExitStack() as stack:
        empty = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        side = stack.enter_context(install(task, words, (empty, "/workspace"), sandboxes, attempts))
        if side.image is None:
            raise rejected("entry", f"it cannot be installed: {side.output.strip()[-_QUOTED:]}")
        before = _commands(sandboxes.image(task.environment), sandboxes, dataset)
        added = sorted(_commands(side.image, sandboxes, dataset) - before)
        found = command or match(added, name)
        _check_help(found, side.image, sandboxes, dataset)
    return Entry(command=found, added=tuple(added), egress=tuple(attempts))


def _task(package: Package, dataset: CliToolBench) -> Task:
    """Return a task in whose image the package is installed, with its index in reach."""
    language = LANGUAGES[package.source]
    place = context(dataset.images, language, dataset.verifier.cache)
    index = find(language, dataset.indexes.get(language, ()), place)
    environment = opened(dataset.environment(language), language, index)
    return Task(
        name="entry",
        dataset=dataset.name,
        directory=dataset.root,
        environment=environment,
        verifier=VerifierSpec(timeout_seconds=dataset.verifier.install_seconds),
    )


def _commands(image: Image, sandboxes: SandboxProvider, dataset: CliToolBench) -> set[str]:
    """Return the names in all folders on an image's PATH. An installation may forge them, and only harms itself."""
    with sandboxes.cases(CaseSide(name="entry", image=image, limits=dataset.verifier.limits)) as box:
        return {*box.run(Case(command_class="ENTRY", command=_LIST)).stdout.split("\n")} - {""}


def _check_help(command: str, image: Image, sandboxes: SandboxProvider, dataset: CliToolBench) -> None:
    with sandboxes.cases(CaseSide(name="entry-help", image=image, limits=dataset.verifier.limits)) as box:
        result = box.run(Case(command_class="ENTRY", command=f"{shlex.quote(command)} --help"))
    if not is_help(result):
        ending = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
        shown = (result.stdout or result.stderr).strip()[:_QUOTED]
        raise rejected("entry", f"`{command} --help` prints no usage ({ending}): {shown}")
