"""Write the chosen tasks of a checkout as folders in Harbor's format."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from runner.errors import ConfigError, TaskError
from runner.files import replace_folder
from runner.locks import exclusive
from runner.terminal.escaping import printable

S = TypeVar("S")


def import_tasks(sources: Mapping[str, S], path: Path, write: Callable[[S, Path], None]) -> None:
    """Write a folder for each task, by name, into `path`. `write` makes the folder of one source.

    Raises `ConfigError` with every task that was left out and the reason, after the others were written.
    """
    failures = []
    for name, source in sources.items():
        try:
            _import(partial(write, source), path / name)
        except TaskError as error:
            failures.append(printable(f"{name}: {error}"))
    print(f"{len(sources) - len(failures)} tasks are in {path}: dataset=harbor dataset.root={path}")
    if failures:
        raise ConfigError(f"{len(failures)} tasks were left out:\n" + "\n".join(failures))


def choose(found: Mapping[str, S], names: Collection[str], root: Path) -> dict[str, S]:
    """Return the tasks of these names, or all if there are no names. Raises `ConfigError` if one is not in `root`."""
    if absent := sorted({*names} - found.keys()):
        raise ConfigError(f"job.tasks: there is no task {absent[0]!r} in {root}.")
    return {name: source for name, source in found.items() if not names or name in names}


def check_root(root: Path) -> None:
    """Raise `ConfigError` unless the checkout is a folder."""
    if not root.is_dir():
        raise ConfigError(f"job.root: {root} is not a folder.")


def _import(write: Callable[[Path], None], target: Path) -> None:
    """Write one task, whole or not at all, in the place of an earlier one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as place:
        made = Path(place, "task")
        write(made)
        with exclusive(target.parent):
            replace_folder(made, target)
