"""What references did in their cases: looked at twice, kept by content, paid for once by all candidates."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metrics.differential import Change, Observation, Rules, effective, exact
from runner.cases import FILES_ROOT, Case, CaseResult
from runner.cases import Change as CaseChange
from runner.errors import VerifierError
from runner.records import Record
from runner.store import write_atomically

Run = Callable[[Sequence[Case]], list[CaseResult]]
"""Runs cases on one side; a result a case, in their order."""

_CUT = ("entries", "diff_seconds")
"""Reasons in `CaseResult.truncated` that are ΔS's."""


class ReferenceRun(Record):
    """What a reference did."""

    results: tuple[CaseResult, ...]
    """Of the first time, in the order of the cases."""
    unstable: tuple[int, ...]
    """Indices of the cases in which it did something else the second time; they count nowhere."""


def reference_run(
    folder: Path, shaping: Sequence[Any], cases: Sequence[Case], rules: Rules, run: Run
) -> ReferenceRun:
    """The stored run of exactly this reference on exactly these cases, or a new one, which is stored.

    `shaping` is what else makes the reference what it is. Classes are no part of what is run. Trials that need the same
    run at once wait for the first. Raises `VerifierError` for a case that does not end as its file says.
    """
    commands = [case.model_dump(exclude={"command_class", "negative"}) for case in cases]
    content = json.dumps([list(shaping), rules.semantics, rules.compare_modes, commands], sort_keys=True)
    path = folder / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"
    with exclusive(path.with_suffix(".lock")):
        if not path.is_file():
            twice = run([*cases, *cases])
            made = _compared(twice[: len(cases)], twice[len(cases) :], rules)
            write_atomically(path, made.model_dump_json().encode())
        found = ReferenceRun.model_validate_json(path.read_bytes())
    _as_promised(cases, found)
    return found


def observed(result: CaseResult) -> Observation:
    """What the metrics see of a result; of output that was cut or is no UTF-8, also that.

    ΔS that was cut holds a change more for each reason, at a path that no file can have. So it is never equal to one
    that is complete; two that were cut for the same reasons are compared as far as they are kept, and files that there
    was no time to read by their sizes.
    """
    notes = [f"\n[{result.stdout_bytes} bytes]"] if "stdout" in result.truncated else []
    notes += ["\n[not UTF-8]"] if "stdout" in result.binary else []
    changes = {
        change.path: Change("deleted")
        if change.change == "deleted"
        else Change(change.kind, _content(change), change.mode)
        for change in result.changes
    }
    cut = {f"{FILES_ROOT}/\0{reason}": Change("file") for reason in result.truncated if reason in _CUT}
    return Observation(result.exit_code, "".join([result.stdout, *notes]), changes | cut, result.seconds)


def _content(change: CaseChange) -> str:
    return change.digest or ("" if change.size is None else f"{change.size} bytes")


def _compared(first: Sequence[CaseResult], second: Sequence[CaseResult], rules: Rules) -> ReferenceRun:
    pairs = [(observed(one), observed(other)) for one, other in zip(first, second, strict=True)]
    unstable = [
        index
        for index, (one, other) in enumerate(pairs)
        if one.exit_code != other.exit_code
        or not exact(one.stdout, other.stdout)
        or effective(one.changes, rules) != effective(other.changes, rules)
    ]
    return ReferenceRun(results=tuple(first), unstable=tuple(unstable))


def _as_promised(cases: Sequence[Case], found: ReferenceRun) -> None:
    """Raises `VerifierError` for a case that could not be run, or is not of the sign that its file says."""
    for number, (case, result) in enumerate(zip(cases, found.results, strict=True), start=1):
        where = f"cases.jsonl, line {number}"
        said = (result.stderr or result.stdout)[-500:]
        if result.ended in ("prep", "lost"):
            raise VerifierError(f"{where}: its files or its prep script fail ({result.ended}): {said}")
        promised = "negative" in case.model_fields_set  # the authors' files do not say
        if promised and case.negative is (result.exit_code == 0):
            kind = "negative" if case.negative else "positive"
            ending = f"exit code {result.exit_code} ({result.ended})"
            raise VerifierError(f"{where}: the reference ends with {ending} in a {kind} case: {said}")


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock of this file, which is made, against other threads and processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
