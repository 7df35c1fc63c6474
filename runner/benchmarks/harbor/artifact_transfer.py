"""Copy artifacts out of the agent's machine, into that of a separate verifier and into the trial's folder."""

from __future__ import annotations

import tempfile
from collections import deque
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from runner.benchmarks.harbor.artifacts import MOST_FETCHED, PUBLISHED, Fetch, carry, paths_of
from runner.errors import WorkspaceTooLarge

if TYPE_CHECKING:
    from runner.protocols import Sandbox
    from runner.records import Task

PUBLISHED_TAR = "artifacts.tar"
"""File of a trial's folder that holds what the rollout left in `/logs/artifacts`."""


def save_published(sandbox: Sandbox, folder: Path) -> bool:
    """Save `/logs/artifacts` in the trial's folder, for people to read. Return whether everything could be saved.

    By the rules of artifacts, only files, folders and links between them are saved.
    """
    with tempfile.TemporaryDirectory(dir=folder) as place:
        fetched = Path(place, PUBLISHED_TAR)
        try:
            if not sandbox.get(PUBLISHED, fetched):
                return True
        except FileNotFoundError:
            return True
        except WorkspaceTooLarge:
            return False
        return not carry(fetched, PUBLISHED, folder / PUBLISHED_TAR, lambda _: None)


def carry_artifacts(task: Task, sandbox: Sandbox, judge: Sandbox, into: Path) -> tuple[str, ...]:
    """Copy each declared artifact, and `/logs/artifacts`, to the same path in the judge's sandbox.

    Returns the paths that were left out. Raises `WorkspaceTooLarge`.
    """
    left_out: list[str] = []
    for number, path in enumerate(dict.fromkeys((*task.artifacts, PUBLISHED))):
        tar = into / f"artifact-{number}.tar"
        with suppress(FileNotFoundError), tempfile.TemporaryDirectory(dir=into) as folder:
            sandbox.get(path, tar)  # if the agent did not make it, the tests will miss it
            carried, fetch = Path(folder, "carried.tar"), _fetcher(sandbox, Path(folder))
            left_out += carry(tar, path, carried, fetch, partial(_present, judge, path, Path(folder)))
            judge.put(carried, "/")
    return tuple(left_out)


def _fetcher(sandbox: Sandbox, folder: Path) -> Fetch:
    """Return a function that fetches the targets of an artifact's links, until one of them is too large."""
    names = iter([f"fetched-{number}.tar" for number in range(MOST_FETCHED)])

    def fetch(path: str) -> Path | None:
        if (name := next(names, None)) is None:
            return None
        try:
            sandbox.get(path, folder / name)
        except FileNotFoundError:
            return None
        except WorkspaceTooLarge:
            deque(names, maxlen=0)
            return None
        return folder / name

    return fetch


def _present(judge: Sandbox, path: str, folder: Path) -> frozenset[str] | None:
    """Return the paths that the judge's machine has at an artifact's path; None if there are too many to read."""
    try:
        judge.get(path, folder / "present.tar")
    except FileNotFoundError:
        return frozenset()
    except WorkspaceTooLarge:
        return None
    return paths_of(folder / "present.tar", path)
