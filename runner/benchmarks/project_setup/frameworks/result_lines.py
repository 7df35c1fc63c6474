"""Read a text of test results: its lines, its runs, and the grammar that most frameworks share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from runner.benchmarks.project_setup.deliverables import MOST_NAMED, Ended, Outcomes

_CONTROL: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""Control sequences: colours, movements of the cursor, titles of windows."""
_END: Final = re.compile(r"\r\n|\n|\r")
_LONGEST: Final = 4096
"""Longest part of a line that is read: no framework prints more about a test in one line."""


def lines_of(text: str) -> list[str]:
    """Split a text into lines, without control sequences and trailing blanks."""
    return [line[:_LONGEST].rstrip() for line in _END.split(_CONTROL.sub("", text))]


class Run(NamedTuple):
    """One run of a framework, with its place in the text."""

    first: int
    last: int
    """Numbers of its first and last line."""
    outcomes: Outcomes
    tests: Mapping[str, Ended] = MappingProxyType({})
    """Name of each test -> its outcome; empty if the text does not name every test by a name of its own."""


MOST: Final = 10**9
"""Largest number of tests that is believed."""


def number(digits: str) -> int:
    """Read a printed number, but at most `MOST`: the text may be hostile, and huge integers do not fit a float."""
    return int(digits) if len(digits) < len(str(MOST)) else MOST


Reader = Callable[[Sequence[str]], Iterator[Run]]
"""Function from the lines of a text to its runs, in their order, each with at least one test."""

NAME: Final = 200
"""Longest part of a test's name, in characters, that stands before or above many tests: the text may be hostile."""

Named = Iterable[tuple[str, Ended]]
"""Names of tests with their outcomes, in the order in which they were printed."""


def complete(named: Named, outcomes: Outcomes) -> Mapping[str, Ended]:
    """Return the names of tests if they are all of a run's tests, and each has one name; otherwise none."""
    tests = dict(islice(named, MOST_NAMED + 1))
    ends: Counter[str] = Counter(tests.values())
    return tests if all(ends[end] == number for end, number in outcomes) else {}


Fold = Callable[[Mapping[str, int]], Outcomes]
"""Function from named numbers to outcomes."""


def words(**outcomes: str) -> Fold:
    """Return a `Fold` from `outcome=names`, where the names are separated by commas."""
    names = {outcome: text.split(",") for outcome, text in outcomes.items()}

    def fold(counts: Mapping[str, int]) -> Outcomes:
        return Outcomes(
            **{outcome: max(0, sum(counts.get(name, 0) for name in own)) for outcome, own in names.items()}
        )

    return fold


def rest(everything: str, *, failed: str, skipped: str) -> Fold:
    """Return a `Fold` for frameworks that do not count passed tests: passed tests are the rest of `everything`."""
    others = words(failed=failed, skipped=skipped)

    def fold(counts: Mapping[str, int]) -> Outcomes:
        bad = others(counts)
        return bad + Outcomes(passed=max(0, counts.get(everything, 0) - bad.total))

    return fold


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The grammar of a framework's output, line by line. Calling it with lines yields their runs.

    Outcomes of single tests count only without a total, that is, when the run was killed.
    """

    pairs: re.Pattern[str] = re.compile(r"(?P<n>\d+) (?P<name>\w+)")
    """Pattern for a named number in a line: groups `n` and `name`."""
    fold: Fold = field(default_factory=words)
    """Function from these numbers to outcomes."""
    total: re.Pattern[str] | None = None
    """Line with numbers of the whole run; the lines of a total follow each other."""
    gap: int = 1
    """Largest distance between two lines of a total."""
    needs: str = ""
    """Name that every total of this framework has."""
    begins: re.Pattern[str] | None = None
    """First line of a run. If set, only a total counts without it."""
    ends: re.Pattern[str] | None = None
    """Last line of a run, if that is not a total."""
    partial: re.Pattern[str] | None = None
    """Line with numbers of a part of the run."""
    single: re.Pattern[str] | None = None
    """Line of one test, with its outcome in group `word`, or of many, with their outcomes as letters in `signs`. The
    last word for a `key` counts. A line that is less indented (`indent`) than the one before sums that up and is not a
    test."""
    tests: Fold = field(default_factory=words)
    """Function for the numbers of words and signs."""
    problem: re.Pattern[str] | None = None
    """Heading of the report on a failed test (group `key`), or, without a key, on a failure outside tests. The fold of
    a total gets their numbers: `again`, further failures of a test, and `outside`."""
    quotes: tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]] | None = None
    """Quotations of output: their first line, a line that is never within one, and their last line."""
    repeats: re.Pattern[str] | None = None
    """Line after which outcomes of single tests are repeated until the next run."""
    names: Callable[[Sequence[str]], Named] | None = None
    """Function from a run's lines to the names of its tests, for frameworks that print them in a tree. Others name a
    test in the line for it, as `name` in `single`."""

    def __call__(self, lines: Sequence[str]) -> Iterator[Run]:
        """Yield the runs in these lines."""
        first = 0
        for run in self._runs(lines):
            if self.names:
                named = self.names(lines[first : run.last + 1])
                yield run._replace(tests=complete(named, run.outcomes))
            else:
                yield run
            first = run.last + 1

    def _runs(self, lines: Sequence[str]) -> Iterator[Run]:
        run = _Open(self)
        for at, line in self._own(lines):
            if run.is_over(line, at):
                yield from run.closed()
                run = _Open(self)
            run.take(line, at)
        yield from run.closed()

    def numbers(self, line: str) -> dict[str, int]:
        """Return the numbers in a line by their names."""
        return {found["name"]: number(found["n"]) for found in self.pairs.finditer(line)}

    def _own(self, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yield numbered lines outside quotations. A beginning without an end is not a quotation."""
        if not self.quotes:
            yield from enumerate(lines)
            return
        first, breaks, last = self.quotes
        waiting: list[tuple[int, str]] = []
        for at, line in enumerate(lines):
            if last.match(line):
                waiting = []
            elif breaks.match(line):
                yield from waiting
                waiting = []
            elif waiting or first.match(line):
                waiting.append((at, line))
                continue
            yield at, line
        yield from waiting


class _Open:
    """Run whose lines have not all been read."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._begun = grammar.begins is None
        self._done = False
        self._span: list[int] = []
        self._totals: dict[str, int] = {}
        self._parts = Outcomes()
        self._words: Counter[str] = Counter()
        self._keyed: dict[str, str] = {}
        self._named: dict[str, Ended] = {}
        self._problems: Counter[str] = Counter()
        self._indent = 0

    def is_over(self, line: str, at: int) -> bool:
        """Return whether this line belongs to another run."""
        grammar = self._grammar
        if grammar.begins and grammar.begins.match(line):
            return True
        if not self._totals or (grammar.total and grammar.total.match(line)):
            return bool(self._totals) and at > self._span[-1] + grammar.gap
        nexts = (grammar.single if not self._done and not grammar.begins else None, grammar.problem)
        return any(pattern and pattern.match(line) for pattern in nexts)

    def take(self, line: str, at: int) -> None:
        """Read one line."""
        grammar = self._grammar
        if grammar.begins and grammar.begins.match(line):
            self._begun = True
        elif grammar.total and grammar.total.match(line):
            self._totals.update(grammar.numbers(line))
        elif grammar.ends and grammar.ends.match(line):
            if self._done or self._totals:
                return
            self._done = True
        elif grammar.repeats and grammar.repeats.match(line):
            self._done = True
            return
        elif grammar.problem and (match := grammar.problem.match(line)):
            self._problems[match["key"] or ""] += 1
            return
        elif not (self._begun and not self._done and not self._totals and self._part(line)):
            return
        self._span = [*self._span[:1], at]

    def _part(self, line: str) -> bool:
        grammar = self._grammar
        if grammar.partial and grammar.partial.match(line):
            self._parts += grammar.fold(grammar.numbers(line))
        elif grammar.single and (match := grammar.single.match(line)):
            self._test(match.groupdict())
        else:
            return False
        return True

    def _test(self, groups: Mapping[str, str | None]) -> None:
        self._words.update(groups.get("signs") or "")
        if not (word := groups.get("word")):
            return
        indent, before = len(groups.get("indent") or ""), self._indent
        self._indent = indent
        if key := groups.get("key"):
            self._keyed[key] = word
        elif indent >= before:
            self._words[word] += 1
        if name := groups.get("name"):
            one = self._grammar.tests({word: 1})
            self._named[name] = "passed" if one.passed else "failed" if one.failed else "skipped"

    def closed(self) -> Iterator[Run]:
        """Yield the run if it has tests."""
        grammar = self._grammar
        outside = self._problems.pop("", 0)
        again = self._problems.total() - len(self._problems)
        if self._totals and (not grammar.needs or grammar.needs in self._totals):
            outcomes = grammar.fold({**self._totals, "outside": outside, "again": again})
        else:
            outcomes = self._parts + grammar.tests(self._words + Counter(self._keyed.values()))
        if outcomes.total:
            yield Run(self._span[0], self._span[-1], outcomes, complete(self._named.items(), outcomes))
