"""Results of references. Each case runs twice and is stored; it runs again if a candidate's result differs.

A reference may print the time, or random values. A case whose result was different at another time is *moving*: the
reference then runs side by side with each candidate (`cli_tool_bench.side_by_side`). Results that differ even within a
moment are *varying*, and are not judged.
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
"""Function that runs cases on one side and returns their results in the same order."""
Varying = Mapping[int, tuple[Level, ...]]
"""Index of a case -> levels on which the reference varies."""

_FORMAT = 2
"""Version of the stored format. Results of another version are not used."""
_HOUR = 60
"""Length of an hour, in minutes."""
_RUNS_AT_ONCE = 3
"""Number of runs of a case that show whether it varies within a moment."""
_HURRIED = "diff_seconds"
"""Value in `CaseResult.truncated`: the time for finding changes ran out."""
_CUT_CHANGES = ("entries", _HURRIED)
"""Values in `CaseResult.truncated` that concern the changes."""


class ReferenceRun(Record):
    """The reference's results in the cases of a task."""

    results: tuple[CaseResult, ...]
    """Results, in the order of the cases."""
    varying: dict[int, tuple[Level, ...]] = {}
    """Index of a case -> levels that vary from run to run, and are not judged."""
    moving: tuple[int, ...] = ()
    """Indices of the cases whose result was different at another time, so that both sides run side by side."""
    whole: bool = True
    """True if all results are stored. Runs that were stopped or lost are not, since they say nothing about the task."""


class StoredCase(Record):
    """A reference's stored result in one case, and how it changed in later runs."""

    result: CaseResult
    """Result of the first run."""
    first: int
    """Time of the first run, in minutes since 1970."""
    last: int
    """Time of the last run with the same result, in minutes since 1970."""
    moves: tuple[Level, ...] = ()
    """Levels that were different at another time."""
    varies: tuple[Level, ...] = ()
    """Levels that vary even within a moment."""

    @property
    def is_moving(self) -> bool:
        """Return whether the reference must run side by side with each candidate."""
        return not {*self.moves} <= {*self.varies}

    def is_due(self, now: int) -> bool:
        """Return whether the clock may have changed the result: no run confirmed it in another minute, or this hour."""
        return not self.is_moving and (self.first == self.last or self.last // _HOUR != now // _HOUR)


class StoredCases(Record):
    """The content of one reference's file."""

    cases: dict[str, StoredCase] = {}
    """Stored cases by `_key`."""

    def find(self, case: Case, how: How | None) -> StoredCase | None:
        """Return the stored result of a case under the isolation `how`; under any isolation if that is None."""
        keys = (_key(case, way) for way in ([how] if how else get_args(How)))
        return next((self.cases[key] for key in keys if key in self.cases), None)

    def of(self, cases: Sequence[Case], how: How | None = None) -> ReferenceRun:
        """Return the stored results of these cases. Raises `LookupError` if some are missing."""
        found = [stored for case in cases if (stored := self.find(case, how))]
        if len(found) < len(cases):
            raise LookupError(f"{len(cases) - len(found)} of {len(cases)} cases are not stored")
        return ReferenceRun(
            results=tuple(stored.result for stored in found),
            varying={index: stored.varies for index, stored in enumerate(found) if stored.varies},
            moving=tuple(index for index, stored in enumerate(found) if stored.is_moving),
        )


@dataclass(frozen=True)
class References:
    """The results of one reference, stored in a file case by case. Missing results are produced on demand.

    Classes and signs do not affect what is run, and equal cases are one. A run that did not end by itself, or whose
    changes were not read completely, is not stored: the machine may have been busy. Trials that need the same
    reference at once wait for the first.
    """

    path: Path
    rules: Rules
    run: Run
    """Runs cases of the reference."""
    minute: Callable[[], int] = lambda: int(time.time() // 60)
    """Returns the time, in minutes since 1970."""

    @classmethod
    def of(cls, folder: Path, shaping: Sequence[Any], rules: Rules, run: Run) -> References:
        """Return the results stored in a folder; `shaping` is everything else that can change them."""
        content = json.dumps([_FORMAT, list(shaping), rules.semantics, rules.compare_modes], sort_keys=True)
        path = folder / f"{hashlib.sha256(content.encode()).hexdigest()[:32]}.json"
        return cls(path, rules, run)

    def look_up(self, cases: Sequence[Case], how: How | None) -> ReferenceRun:
        """Return `find`, after checking that the cases are sound.

        Raises `VerifierError` for a case that does not end as its file says, or whose output is not text.
        """
        run = self.find(cases, how)
        _check_promises(cases, run)
        return run

    def find(self, cases: Sequence[Case], how: How | None) -> ReferenceRun:
        """Return the stored results of all cases. A case that is not stored runs twice first.

        `how` is the isolation of the candidate's cases, so that both sides have the same; None if none of its cases
        ran.
        """
        with self._locked() as stored:
            missing = list({_digest(case): case for case in cases if not stored.find(case, how)}.values())
            new, lasting = self._run_twice(missing) if missing else ({}, {})
            if missing:
                self._write(stored, lasting)
            run = StoredCases(cases=stored.cases | new).of(cases, how)
        return run.model_copy(update={"whole": len(lasting) == len(new)})

    def _run_twice(self, cases: Sequence[Case]) -> tuple[dict[str, StoredCase], dict[str, StoredCase]]:
        """Run all cases twice. Return all results by key, and the results that are to be stored."""
        count, results, now = len(cases), self.run([*cases, *cases]), self.minute()
        keys = [_key(case, result.how) for case, result in zip(cases, results[:count], strict=True)]
        new, lasting = {}, set()
        for key, first, second in zip(keys, results[:count], results[count:], strict=True):
            moves = unlike(observe(first), observe(second), self.rules)
            new[key] = StoredCase(result=first, first=now, last=now, moves=moves)
            if is_lasting(first) and is_lasting(second):
                lasting.add(key)
        new |= self._find_varying(new, dict(zip(keys, cases, strict=True)))
        return new, {key: new[key] for key in keys if key in lasting}

    def look_again(self, cases: Mapping[int, Case], how: How) -> list[int]:
        """Return which of these cases move, given that a candidate's results differ from the stored ones.

        The reference runs the cases that are due once more, all together. A run that was stopped says nothing.
        """
        with self._locked() as stored:
            now = self.minute()
            due = {
                _key(case, how): (case, old)
                for case in cases.values()
                if (old := stored.find(case, how)) and old.is_due(now)
            }
            results = self.run([case for case, _ in due.values()]) if due else []
            new = {}
            for (key, (_, old)), result in zip(due.items(), results, strict=True):
                if is_lasting(result):
                    moves = unlike(observe(old.result), observe(result), self.rules)
                    update = {"moves": _union(old.moves, moves)} if moves else {"last": now}
                    new[key] = old.model_copy(update=update)
            if new:
                new |= self._find_varying(new, {key: case for key, (case, _) in due.items()})
                self._write(stored, new)
            both = StoredCases(cases=stored.cases | new)
            return [index for index, case in cases.items() if (one := both.find(case, how)) and one.is_moving]

    def record_varying(self, cases: Sequence[Case], how: How, varying: Varying) -> None:
        """Store which levels vary within a moment, for cases that are stored."""
        with self._locked() as stored:
            new = {}
            for index, levels in varying.items():
                if old := stored.find(cases[index], how):
                    update = {"varies": _union(old.varies, levels), "moves": _union(old.moves, levels)}
                    new[_key(cases[index], how)] = old.model_copy(update=update)
            if new:
                self._write(stored, new)

    def _find_varying(
        self, new: Mapping[str, StoredCase], cases: Mapping[str, Case]
    ) -> dict[str, StoredCase]:
        """Return those moving cases that also vary within a moment.

        They are tried twice: a minute may end during one try, but not during two.
        """
        moving = [key for key, stored in new.items() if stored.is_moving]
        once = dict(zip(moving, self._vary([cases[key] for key in moving]), strict=True))
        suspects = [key for key in moving if once[key]]
        again = zip(suspects, self._vary([cases[key] for key in suspects]), strict=True)
        both = {key: tuple(level for level in levels if level in once[key]) for key, levels in again}
        return {
            key: new[key].model_copy(update={"varies": _union(new[key].varies, levels)})
            for key, levels in both.items()
        }

    def _vary(self, cases: Sequence[Case]) -> list[tuple[Level, ...]]:
        """Return the levels that differ among consecutive runs of each case; none if a run was stopped."""
        results = iter(self.run([case for case in cases for _ in range(_RUNS_AT_ONCE)]) if cases else ())
        varying: list[tuple[Level, ...]] = []
        for _ in cases:
            first, *others = islice(results, _RUNS_AT_ONCE)
            levels: tuple[Level, ...] = ()
            if all(map(is_lasting, (first, *others))):
                for other in others:
                    levels = _union(levels, unlike(observe(first), observe(other), self.rules))
            varying.append(levels)
        return varying

    @contextmanager
    def _locked(self) -> Iterator[StoredCases]:
        with exclusive(self.path.with_suffix(".lock")):
            stored = self.path.is_file()
            yield StoredCases.model_validate_json(self.path.read_bytes()) if stored else StoredCases()

    def _write(self, stored: StoredCases, new: Mapping[str, StoredCase]) -> None:
        write_atomically(self.path, StoredCases(cases={**stored.cases, **new}).model_dump_json().encode())


def _union(some: Sequence[Level], others: Sequence[Level]) -> tuple[Level, ...]:
    return tuple(level for level in LEVELS if level in some or level in others)


def is_lasting(result: CaseResult) -> bool:
    """Return whether a result is a property of the reference, and not of a busy machine."""
    return result.ended == "exited" and _HURRIED not in result.truncated


def _key(case: Case, how: How) -> str:
    return f"{how}-{_digest(case)}"


def _digest(case: Case) -> str:
    content = json.dumps(case.model_dump(exclude={"command_class", "negative"}), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def observe(result: CaseResult) -> Observation:
    """Return the observation that the metrics compare.

    A note tells apart outputs that were cut or are not UTF-8. Outputs that were cut are equal only if they are equal to
    their last byte. Changes that were cut have an extra change for each reason, at a path that no file can have. So
    they never equal complete ones. Two that were cut for the same reasons are compared as far as they are stored, and
    files that there was no time to read by their sizes.
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
    cut = {
        f"{FILES_ROOT}/\0{reason}": Change("file") for reason in result.truncated if reason in _CUT_CHANGES
    }
    return Observation(result.exit_code, result.stdout, changes | cut, result.seconds, ", ".join(notes))


def _content(change: CaseChange) -> str:
    return change.digest or ("" if change.size is None else f"{change.size} bytes")


def _check_promises(cases: Sequence[Case], run: ReferenceRun) -> None:
    """Raise `VerifierError` for a case that could not run, does not print text, or does not end as its file says."""
    for number, (case, result) in enumerate(zip(cases, run.results, strict=True), start=1):
        where = f"cases.jsonl, line {number}"
        output = (result.stderr or result.stdout)[-500:]
        if result.ended in ("prep", "lost"):
            raise VerifierError(f"{where}: its files or its prep script fail ({result.ended}): {output}")
        if "stdout" in result.binary:
            raise VerifierError(
                f"{where}: the reference's stdout is not UTF-8 text, so nothing could equal it: {output}"
            )
        promised = "negative" in case.model_fields_set  # the authors' files do not say
        if promised and case.negative is (result.exit_code == 0):
            kind = "negative" if case.negative else "positive"
            ending = f"exit code {result.exit_code} ({result.ended})"
            raise VerifierError(f"{where}: the reference ends with {ending} in a {kind} case: {output}")
