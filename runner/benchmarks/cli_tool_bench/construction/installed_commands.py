"""Install a published package by its standard command and see which executables it adds (section 2.1.2).

This happens in a sandbox that reaches nothing but the package index, through the logged proxy, because a package may
run code during its installation. A Go module is compiled from its source instead, and adds commands named after its
main packages.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from runner.benchmarks.cli_tool_bench.construction.entry import match
from runner.benchmarks.cli_tool_bench.construction.help.pages import is_help
from runner.benchmarks.cli_tool_bench.construction.recipe import LANGUAGES
from runner.benchmarks.cli_tool_bench.indexes import find, opened
from runner.benchmarks.cli_tool_bench.installation import install
from runner.benchmarks.sources.references import fetch_context
from runner.benchmarks.sources.rejections import breaking, rejected
from runner.records import EgressAttempt, Image, Record, Task, VerifierSpec
from runner.records.cases import Case, CaseSide

if TYPE_CHECKING:
    from collections.abc import Collection

    from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
    from runner.benchmarks.sources.published_package import Package
    from runner.protocols import SandboxProvider
    from runner.terminal.escaping import Say

INSTALL = {"pypi": "pip install {}", "npm": "npm install -g {}"}
_LIST = """IFS=:; for folder in $PATH; do for file in "$folder"/*; do
  [ -f "$file" ] && [ -x "$file" ] && printf '%s\\n' "${file##*/}"
done; done; true"""
_QUOTED = 600


class Entry(Record):
    """The command of a published package."""

    command: str
    added: tuple[str, ...]
    """Names of all executables that the installation added, sorted."""
    egress: tuple[EgressAttempt, ...] = ()
    """Attempts of the installation to use a network."""


def find_entry(
    package: Package, dataset: CliToolBench, sandboxes: SandboxProvider, say: Say, command: str = ""
) -> Entry:
    """Return a package's own command, which must print its usage for `--help`; `command` overrides the choice.

    Raises `RejectedError` if the package cannot be installed or no command fits, `ConfigError`, and `EngineError`.
    """
    if not package.commands:
        reason = f"no command: {package.package} {package.version} declares none, so it is not a command-line tool."
        raise rejected("entry", f"{reason} If one of its modules is a command, name it (entry=).")
    if package.source not in INSTALL:
        return Entry(
            command=_chosen(package, package.commands, command), added=tuple(sorted(package.commands))
        )
    task, attempts = _task(package, dataset, say), list[EgressAttempt]()
    before = _commands(sandboxes.image(task.environment), sandboxes, dataset)
    pinned = {"pypi": f"{package.package}=={package.version}", "npm": f"{package.package}@{package.version}"}
    words = INSTALL[package.source].format(shlex.quote(pinned[package.source]))
    with ExitStack() as stack:
        stack.enter_context(breaking("entry"))
        empty = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        side = stack.enter_context(install(task, words, (empty, "/workspace"), sandboxes, attempts))
        if side.image is None:
            raise rejected("entry", f"installation: it failed: {side.output.strip()[-_QUOTED:]}")
        added = sorted(_commands(side.image, sandboxes, dataset) - before)
        found = _chosen(package, added, command)
        _check_help(found, side.image, sandboxes, dataset)
    return Entry(command=found, added=tuple(added), egress=tuple(attempts))


def _chosen(package: Package, added: Collection[str], wanted: str) -> str:
    """Return the wanted command, or the one that matches the package's name.

    Only the package's own commands count: other added commands belong to packages that it requires. Raises
    `RejectedError`.
    """
    own = sorted({*added} & {*package.commands})
    if wanted and wanted not in own:
        raise rejected(
            "entry",
            f"other command: {package.package} adds no {wanted!r}; it adds {', '.join(own) or 'none'}.",
        )
    return wanted or match(own, _repository(package.package))


def _repository(package: str) -> str:
    """Return the last part of a package's path that is a name. The last part of a Go module's path may be a version."""
    *_, owner, name = ["", *package.split("/")]
    return owner if owner and re.fullmatch(r"v[0-9]+", name) else name


def _task(package: Package, dataset: CliToolBench, say: Say) -> Task:
    """Return a task in whose image the package is installed, with its index in reach."""
    language = LANGUAGES[package.source]
    # On a machine that names no index, the image's own client does, and this may be the first use of it.
    place = fetch_context(dataset.images, language, dataset.verifier.cache, say)
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
    """Return the names in all folders on an image's PATH. An installation that forges them only harms itself."""
    with sandboxes.cases(CaseSide(name="entry", image=image, limits=dataset.verifier.limits)) as box:
        return {*box.run(Case(command_class="ENTRY", command=_LIST)).stdout.split("\n")} - {""}


def _check_help(command: str, image: Image, sandboxes: SandboxProvider, dataset: CliToolBench) -> None:
    with sandboxes.cases(CaseSide(name="entry-help", image=image, limits=dataset.verifier.limits)) as box:
        result = box.run(Case(command_class="ENTRY", command=f"{shlex.quote(command)} --help"))
    if not is_help(result):
        ending = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
        shown = (result.stdout or result.stderr).strip()[:_QUOTED]
        raise rejected("entry", f"help: `{command} --help` prints no usage ({ending}): {shown}")
