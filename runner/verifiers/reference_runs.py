"""What references did in their cases: looked at twice, kept by content, paid for once by all candidates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from metrics.differential import Change, Observation, Rules, effective, exact
from runner.cases import FILES_ROOT, Case, CaseResult, How
from runner.cases import Change as CaseChange
from runner.errors import VerifierError
from runner.locks import exclusive
from runner.records import Record
from runner.store import write_atomically

Run = Callable[[Sequence[Case]], list[CaseResult]]
"""Runs cases on one side; a result a case, in their order."""

_HURRIED = "diff_seconds"
"""In `CaseResult.truncated`: there was no time to look at all of ΔS."""
_CUT = ("entries", _HURRIED)
"""Reasons in `CaseResult.truncated` that are ΔS's."""


class ReferenceRun(Record):
    """What a reference did."""

    results: tuple[CaseResult, ...]
    """Of the first time, in the order of the cases."""
    unstable: tuple[int, ...]
    """Indices of the cases in which it did something else the second time; they count nowhere."""


class Seen(Record):
    """What a reference did in one case."""

    result: CaseResult
    """Of the first time."""
    stable: bool
    """Whether it did the same the second time."""


class Shelf(Record):
    """All that is kept of one reference."""

    cases: dict[str, Seen] = {}
    """By the way that was taken and the case's digest."""

    def find(self, case: Case, how: How | None) -> Seen | None:
        """What is kept of a case, looked at in this way; None: in whichever."""
        keys = (_key(case, way) for way in ([how] if how else get_args(How)))
        return next((self.cases[key] for key in keys if key in self.cases), None)

    def of(self, cases: Sequence[Case], how: How | None = None) -> ReferenceRun:
        """What is kept of all these cases. Raises `LookupError` if that is not all of them."""
        found = [self.find(case, how) for case in cases]
        seen = [one for one in found if one]
        if len(seen) < len(cases):
            raise LookupError(f"{len(cases) - len(seen)} of {len(cases)} cases are not kept")
        unstable = tuple(index for index, one in enumerate(seen) if not one.stable)
        return ReferenceRun(results=tuple(one.result for one in seen), unstable=unstable)


def reference_run(
    folder: Path, shaping: Sequence[Any], cases: Sequence[Case], rules: Rules, run: Run, how: How | None
) -> ReferenceRun:
    """What exactly this reference did in these cases: of each what is kept, or what two new runs of it show.

    `shaping` is what else makes the reference what it is; `how` the way in which the candidate's cases were run, so
    that both sides' are the same, None if there are none. Classes and signs are no part of what is run, and equal cases
    are one. What did not end by itself, or was not looked at to its end, is not kept: the hour may have been a busy
    one. Trials that need the same reference at once wait for the first. Raises `VerifierError` for a case that does not
    end as its file says, or whose output is no text.
    """
    content = json.dumps([list(shaping), rules.semantics, rules.compare_modes], sort_keys=True)
    path = folder / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"
    with exclusive(path.with_suffix(".lock")):
        shelf = Shelf.model_validate_json(path.read_bytes()) if path.is_file() else Shelf()
        missing = list({_digest(case): case for case in cases if not shelf.find(case, how)}.values())
        if missing:
            twice = run([*missing, *missing])
            seen = _compared(twice[: len(missing)], twice[len(missing) :], rules)
            new = {_key(case, one.result.how): one for case, one in zip(missing, seen, strict=True)}
            stopped = {
                key for key, *looks in zip(new, twice[: len(missing)], twice[len(missing) :], strict=True)
                if any(look.ended != "exited" or _HURRIED in look.truncated for look in looks)
            }  # fmt: skip
            lasting = {key: one for key, one in new.items() if key not in stopped}
            write_atomically(path, Shelf(cases=shelf.cases | lasting).model_dump_json().encode())
            shelf = Shelf(cases=shelf.cases | new)
    found = shelf.of(cases, how)
    _as_promised(cases, found)
    return found


def _key(case: Case, how: How) -> str:
    return f"{how}-{_digest(case)}"


def _digest(case: Case) -> str:
    content = json.dumps(case.model_dump(exclude={"command_class", "negative"}), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def observed(result: CaseResult) -> Observation:
    """What the metrics see of a result; of output that was cut or is no UTF-8, also that.

    Outputs that were cut are the same only if they are so to their last byte.
    ΔS that was cut holds a change more for each reason, at a path that no file can have. So it is never equal to one
    that is complete; two that were cut for the same reasons are compared as far as they are kept, and files that there
    was no time to read by their sizes.
    """
    whole = f"{result.stdout_bytes} bytes, SHA-256 {result.stdout_digest}"
    notes = [whole] if "stdout" in result.truncated else []
    notes += ["not UTF-8"] if "stdout" in result.binary else []
    changes = {
        change.path: Change("deleted", was=change.was or change.kind)
        if change.change == "deleted"
        else Change(
            change.kind,
            _content(change),
            change.mode,
            change.was or "",
            change.head_digest or "",
            change.mode_only,
        )
        for change in result.changes
    }
    cut = {f"{FILES_ROOT}/\0{reason}": Change("file") for reason in result.truncated if reason in _CUT}
    return Observation(result.exit_code, result.stdout, changes | cut, result.seconds, ", ".join(notes))


def _content(change: CaseChange) -> str:
    return change.digest or ("" if change.size is None else f"{change.size} bytes")


def _compared(first: Sequence[CaseResult], second: Sequence[CaseResult], rules: Rules) -> Iterator[Seen]:
    for result, again in zip(first, second, strict=True):
        one, other = observed(result), observed(again)
        stable = (
            (one.exit_code, one.note) == (other.exit_code, other.note)
            and exact(one.stdout, other.stdout)
            and effective(one.changes, rules) == effective(other.changes, rules)
        )
        yield Seen(result=result, stable=stable)


def _as_promised(cases: Sequence[Case], found: ReferenceRun) -> None:
    """Raises `VerifierError` for a case that could not be run, prints no text, or is not of its file's sign."""
    for number, (case, result) in enumerate(zip(cases, found.results, strict=True), start=1):
        where = f"cases.jsonl, line {number}"
        said = (result.stderr or result.stdout)[-500:]
        if result.ended in ("prep", "lost"):
            raise VerifierError(f"{where}: its files or its prep script fail ({result.ended}): {said}")
        if "stdout" in result.binary:
            raise VerifierError(
                f"{where}: the reference's stdout is not UTF-8 text, so nothing could equal it: {said}"
            )
        promised = "negative" in case.model_fields_set  # the authors' files do not say
        if promised and case.negative is (result.exit_code == 0):
            kind = "negative" if case.negative else "positive"
            ending = f"exit code {result.exit_code} ({result.ended})"
            raise VerifierError(f"{where}: the reference ends with {ending} in a {kind} case: {said}")
