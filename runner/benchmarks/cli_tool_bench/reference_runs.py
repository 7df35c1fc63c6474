"""What references did in their cases: looked at twice, kept by content, looked at again where candidates differ.

A reference may print the time, or draw lots. What it did otherwise at another time *moves*: it is then looked at beside
each candidate (`cli_tool_bench.beside`). What it does otherwise within a moment, too, *varies*, and decides nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from metrics.differential import LEVELS, Change, Level, Observation, Rules, unlike
from runner.errors import VerifierError
from runner.files import write_atomically
from runner.locks import exclusive
from runner.records import Record
from runner.records.cases import FILES_ROOT, Case, CaseResult, How
from runner.records.cases import Change as CaseChange

Run = Callable[[Sequence[Case]], list[CaseResult]]
"""Runs cases on one side; a result a case, in their order."""
Varying = Mapping[int, tuple[Level, ...]]
"""Index of a case -> what the reference does not do the same each time."""

_FORMAT = 2
"""Of what is kept: another version looks again."""
_MINUTES = 60
"""Of an hour."""
_AT_ONCE = 3
"""Runs of a case that show what varies within a moment."""
_HURRIED = "diff_seconds"
"""In `CaseResult.truncated`: there was no time to look at all of ΔS."""
_CUT = ("entries", _HURRIED)
"""Reasons in `CaseResult.truncated` that are ΔS's."""


class ReferenceRun(Record):
    """What a reference did."""

    results: tuple[CaseResult, ...]
    """In the order of the cases."""
    varying: dict[int, tuple[Level, ...]] = {}
    """Index of a case -> what it does not do the same each time, which decides nothing."""
    moving: tuple[int, ...] = ()
    """Indices of the cases in which it did something else at another time, so that it is looked at beside each
    candidate."""
    whole: bool = True
    """Whether all of it is kept. What was stopped or lost says nothing of the task."""


class Seen(Record):
    """What a reference did in one case."""

    result: CaseResult
    """Of the first time."""
    first: int
    """Minutes since 1970 when it was looked at first."""
    last: int
    """Minutes since 1970 when it was last seen to do the same."""
    moves: tuple[Level, ...] = ()
    """What it did otherwise at another time."""
    varies: tuple[Level, ...] = ()
    """What it does otherwise within a moment, too."""

    @property
    def open(self) -> bool:
        """Whether it must be looked at beside each candidate."""
        return not {*self.moves} <= {*self.varies}

    def due(self, now: int) -> bool:
        """Whether the clock may have moved what it does: it was not yet seen in two minutes, or not in this hour."""
        return self.first == self.last or self.last // _MINUTES != now // _MINUTES


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
        return ReferenceRun(
            results=tuple(one.result for one in seen),
            varying={index: one.varies for index, one in enumerate(seen) if one.varies},
            moving=tuple(index for index, one in enumerate(seen) if one.open),
        )


@dataclass(frozen=True)
class References:
    """What exactly one reference did: kept case by case in a file, and looked at where that does not suffice.

    Classes and signs are no part of what is run, and equal cases are one. What did not end by itself, or was not
    looked at to its end, is not kept: the hour may have been a busy one. Trials that need the same reference at once
    wait for the first.
    """

    path: Path
    rules: Rules
    run: Run
    """Runs cases of the reference."""
    minute: Callable[[], int] = lambda: int(time.time() // 60)
    """Minutes since 1970, now."""

    @classmethod
    def of(cls, folder: Path, shaping: Sequence[Any], rules: Rules, run: Run) -> References:
        """Those in a folder; `shaping` is what else makes the reference what it is."""
        content = json.dumps([_FORMAT, list(shaping), rules.semantics, rules.compare_modes], sort_keys=True)
        path = folder / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"
        return cls(path, rules, run)

    def seen(self, cases: Sequence[Case], how: How | None) -> ReferenceRun:
        """What is kept of each case, or what two new runs of it show.

        `how`: the way in which the candidate's cases were run, so that both sides' are the same; None if there are
        none. Raises `VerifierError` for a case that does not end as its file says, or whose output is no text.
        """
        with self._locked() as shelf:
            missing = list({_digest(case): case for case in cases if not shelf.find(case, how)}.values())
            new, lasting = self._first_looks(missing) if missing else ({}, {})
            if missing:
                self._write(shelf, lasting)
            found = Shelf(cases=shelf.cases | new).of(cases, how)
        _as_promised(cases, found)
        return found.model_copy(update={"whole": len(lasting) == len(new)})

    def _first_looks(self, cases: Sequence[Case]) -> tuple[dict[str, Seen], dict[str, Seen]]:
        """What two runs show, a while apart, by the key of each case; and as much of it as is to be kept."""
        count, twice, now = len(cases), self.run([*cases, *cases]), self.minute()
        keys = [_key(case, look.how) for case, look in zip(cases, twice[:count], strict=True)]
        new, lasting = {}, set()
        for key, one, other in zip(keys, twice[:count], twice[count:], strict=True):
            moves = unlike(observed(one), observed(other), self.rules)
            new[key] = Seen(result=one, first=now, last=now, moves=moves)
            if is_lasting(one) and is_lasting(other):
                lasting.add(key)
        new |= self._settled(new, dict(zip(keys, cases, strict=True)))
        return new, {key: new[key] for key in keys if key in lasting}

    def look_again(self, cases: Mapping[int, Case], how: How) -> list[int]:
        """Return which of these cases move, of which a candidate differs from what is kept.

        The reference runs them once more, all together: those that were not yet seen in two minutes, and those that
        were not seen in this hour. A run that was stopped says nothing.
        """
        with self._locked() as shelf:
            now = self.minute()
            due = {_digest(case): case for case in cases.values() if _is_due(shelf.find(case, how), now)}
            looks = dict(zip(due, self.run(list(due.values())) if due else [], strict=True))
            new = {}
            for digest, look in looks.items():
                seen = shelf.find(due[digest], how)
                if seen and is_lasting(look):
                    moves = unlike(observed(seen.result), observed(look), self.rules)
                    update = {"moves": _joined(seen.moves, moves)} if moves else {"last": now}
                    new[_key(due[digest], how)] = seen.model_copy(update=update)
            if new:
                new |= self._settled(new, {_key(case, how): case for case in due.values()})
                self._write(shelf, new)
            found = Shelf(cases=shelf.cases | new)
            return [index for index, case in cases.items() if (seen := found.find(case, how)) and seen.open]

    def note(self, cases: Sequence[Case], how: How, varying: Varying) -> None:
        """Keep what varies within a moment, of cases that are kept."""
        with self._locked() as shelf:
            new = {}
            for index, levels in varying.items():
                if seen := shelf.find(cases[index], how):
                    joined = {
                        "varies": _joined(seen.varies, levels),
                        "moves": _joined(seen.moves, levels),
                    }
                    new[_key(cases[index], how)] = seen.model_copy(update=joined)
            if new:
                self._write(shelf, new)

    def _settled(self, new: Mapping[str, Seen], cases: Mapping[str, Case]) -> dict[str, Seen]:
        """Those of what was seen to move that also vary within a moment. A minute may end in one, but not in two."""
        moved = [key for key, seen in new.items() if seen.open]
        once = dict(zip(moved, self._varying([cases[key] for key in moved]), strict=True))
        wild = [key for key in moved if once[key]]
        twice = zip(wild, self._varying([cases[key] for key in wild]), strict=True)
        both = {key: tuple(level for level in again if level in once[key]) for key, again in twice}
        return {
            key: new[key].model_copy(update={"varies": _joined(new[key].varies, levels)})
            for key, levels in both.items()
        }

    def _varying(self, cases: Sequence[Case]) -> list[tuple[Level, ...]]:
        """What differs among runs of each case that follow upon each other; nothing where one was stopped."""
        looks = iter(self.run([case for case in cases for _ in range(_AT_ONCE)]) if cases else ())
        found: list[tuple[Level, ...]] = []
        for _ in cases:
            first, *others = islice(looks, _AT_ONCE)
            levels: tuple[Level, ...] = ()
            if all(map(is_lasting, (first, *others))):
                for other in others:
                    levels = _joined(levels, unlike(observed(first), observed(other), self.rules))
            found.append(levels)
        return found

    @contextmanager
    def _locked(self) -> Iterator[Shelf]:
        with exclusive(self.path.with_suffix(".lock")):
            yield Shelf.model_validate_json(self.path.read_bytes()) if self.path.is_file() else Shelf()

    def _write(self, shelf: Shelf, new: Mapping[str, Seen]) -> None:
        write_atomically(self.path, Shelf(cases={**shelf.cases, **new}).model_dump_json().encode())


def _is_due(seen: Seen | None, now: int) -> bool:
    return seen is not None and not seen.open and seen.due(now)


def _joined(some: Sequence[Level], others: Sequence[Level]) -> tuple[Level, ...]:
    return tuple(level for level in LEVELS if level in some or level in others)


def is_lasting(look: CaseResult) -> bool:
    """Whether a look says what the reference does, and not what a busy machine did."""
    return look.ended == "exited" and _HURRIED not in look.truncated


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
