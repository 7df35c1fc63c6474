"""Lay the agent's work over the task's own image, for a machine whose programs the agent never touched."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from posixpath import dirname
from typing import TYPE_CHECKING

from runner.benchmarks.harbor.artifacts import carry, lies_in
from runner.benchmarks.harbor.machine_changes import Places, leaves
from runner.errors import VerifierError, WorkspaceTooLarge
from runner.records import ExecSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from runner.protocols import Sandbox
    from runner.records import Changes

MOST_PARTS = 32
"""Largest number of parts in which a place is copied that is too large to be copied as a whole."""
DELETED_AT_ONCE = 100
"""Largest number of paths in one `rm` command."""
MOST_DELETED = 2000
"""Largest number of paths that are deleted. A deleted folder counts as one path."""
DELETE_SECONDS = 60.0
"""Time limit of one `rm` command."""


def overlay_work(changes: Changes | None, sandbox: Sandbox, judge: Sandbox, into: Path) -> tuple[str, ...]:
    """Repeat in `judge`, a new machine of the task's image, what the agent did in its own places of `sandbox`.

    Files travel by the rules of `artifacts`. Returns the paths that were left out. Raises `VerifierError` if the
    changes are unknown or too many, `WorkspaceTooLarge` if they are too large.
    """
    if changes is None:
        raise VerifierError(
            "The agent's changes could not be listed, so none of its work can be laid over the image."
        )
    places = Places.of(changes, sandbox.workdir)
    _delete([path for path in sorted(changes.deleted) if places.is_work(path)], judge)
    new = [path for path in leaves(changes.added | changes.changed) if places.is_work(path)]
    left_out: list[str] = []
    for root in places.roots:
        wanted = frozenset(path for path in new if lies_in(path, root))
        try:
            left_out += _lay([root] if wanted else [], wanted, sandbox, judge, into)
        except WorkspaceTooLarge:  # the tar also has the image's files, which may be most of it
            left_out += _lay(_parts(wanted), wanted, sandbox, judge, into)
    return tuple(left_out)


def _lay(
    parts: Iterable[str], wanted: AbstractSet[str], sandbox: Sandbox, judge: Sandbox, into: Path
) -> list[str]:
    """Carry the wanted paths that lie in these parts of the agent's machine."""
    left_out: list[str] = []
    with tempfile.TemporaryDirectory(dir=into) as folder:
        fetched, carried = Path(folder, "fetched.tar"), Path(folder, "carried.tar")
        for part in parts:
            with suppress(FileNotFoundError):  # it lies on a mount, or its name is not text
                sandbox.get(part, fetched)
                left_out += carry(fetched, part, carried, None, only=wanted)
                judge.put(carried, "/")
    return left_out


def _parts(paths: AbstractSet[str]) -> set[str]:
    """Return at most `MOST_PARTS` paths, as deep as possible, in which all of these lie."""
    parts = set(paths)
    while len(parts) > MOST_PARTS:
        deepest = max(path.count("/") for path in parts)
        parts = {dirname(path) if path.count("/") == deepest else path for path in parts}
    return {path for path in parts if not any(path != one and lies_in(path, one) for one in parts)}


def _delete(paths: Sequence[str], judge: Sandbox) -> None:
    if len(paths) > MOST_DELETED:
        raise VerifierError(
            f"The agent deleted {len(paths)} files and folders; at most {MOST_DELETED} are repeated."
        )
    for at in range(0, len(paths), DELETED_AT_ONCE):
        command = ("rm", "-rf", "--", *paths[at : at + DELETED_AT_ONCE])
        judge.exec(ExecSpec(argv=command, user="root", timeout_seconds=DELETE_SECONDS))
