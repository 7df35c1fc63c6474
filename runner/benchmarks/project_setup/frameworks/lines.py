"""How a text of tests is read: its lines, its runs, and what most frameworks print in common."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from runner.benchmarks.project_setup.deliverables import Outcomes

_CONTROL: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
"""Colours, movements of the cursor, titles of windows."""
_END: Final = re.compile(r"\r\n|\n|\r")
_LONGEST: Final = 4096
"""Characters of a line that are read: no framework says more of a test in one, and no pattern has to look further."""


def lines_of(text: str) -> list[str]:
    """Lines as a person would see them: without colours, and without blanks at their ends."""
    return [line[:_LONGEST].rstrip() for line in _END.split(_CONTROL.sub("", text))]


class Run(NamedTuple):
    """One run of a framework, and where in the text it is."""

    first: int
    last: int
    """Number of its first and of its last line."""
    outcomes: Outcomes


MOST: Final = 10**9
"""A larger number of tests is none."""


def number(digits: str) -> int:
    """A number that was printed, `MOST` at most: what prints it may be hostile, and longer ones are no float."""
    return int(digits) if len(digits) < len(str(MOST)) else MOST


Reader = Callable[[Sequence[str]], Iterator[Run]]
"""Runs that the lines of a text show, in their order, and none without a test."""

Fold = Callable[[Mapping[str, int]], Outcomes]
"""Outcomes of numbers that have names."""


def words(**of: str) -> Fold:
    """`of`: outcome -> the names (parted by commas) that count as it."""
    names = {outcome: text.split(",") for outcome, text in of.items()}

    def fold(counts: Mapping[str, int]) -> Outcomes:
        return Outcomes(
            **{outcome: max(0, sum(counts.get(name, 0) for name in of)) for outcome, of in names.items()}
        )

    return fold


def rest(of: str, *, failed: str, skipped: str) -> Fold:
    """The same where passed tests have no number: they are those `of` all that are nothing else."""
    others = words(failed=failed, skipped=skipped)

    def fold(counts: Mapping[str, int]) -> Outcomes:
        bad = others(counts)
        return bad + Outcomes(passed=max(0, counts.get(of, 0) - bad.total))

    return fold


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """What a framework prints, line by line. Called with lines, it is their reader.

    What single tests were is of use while there is no total: the run was killed. A total has the last word.
    """

    pairs: re.Pattern[str] = re.compile(r"(?P<n>\d+) (?P<name>\w+)")
    """Finds the numbers of a line: groups `n` and `name`."""
    fold: Fold = field(default_factory=words)
    """Outcomes of these."""
    total: re.Pattern[str] | None = None
    """A line of numbers of the whole run; the lines of a total follow each other."""
    gap: int = 1
    """Lines from one line of a total to the next, at most."""
    needs: str = ""
    """A name without which a total is somebody else's."""
    begins: re.Pattern[str] | None = None
    """First line of a run. Where there is one, nothing counts without it but a total."""
    ends: re.Pattern[str] | None = None
    """Last line of a run, where that is no total."""
    partial: re.Pattern[str] | None = None
    """A line of numbers of a part of the run."""
    single: re.Pattern[str] | None = None
    """A line of one test, whose outcome is group `word`; or of many, whose outcomes are the letters of `signs`. The
    last word on a `key` counts. What is less indented (`indent`) than the line before is the sum of that, no test."""
    tests: Fold = field(default_factory=words)
    """Outcomes of the numbers of words and signs."""
    problem: re.Pattern[str] | None = None
    """Heads what is told of a failed test, group `key`; without a key, of something that is no test. The total is
    given their numbers: `again`, problems of tests that had one, and `outside`."""
    quotes: tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]] | None = None
    """Of what it quotes, of tests' own output and of itself: the first line, one that is in no quote, the last."""
    repeats: re.Pattern[str] | None = None
    """From here to the next run it says again what became of single tests."""

    def __call__(self, lines: Sequence[str]) -> Iterator[Run]:
        """Runs that these lines show."""
        run = _Open(self)
        for at, line in self._own(lines):
            if run.is_over(line, at):
                yield from run.closed()
                run = _Open(self)
            run.take(line, at)
        yield from run.closed()

    def numbers(self, line: str) -> dict[str, int]:
        """Those of a line, by their names."""
        return {found["name"]: number(found["n"]) for found in self.pairs.finditer(line)}

    def _own(self, lines: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Lines that are no quotes, with their numbers. A quote that has no end before it breaks off is none."""
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
    """A run of which not all lines have been seen."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._begun = grammar.begins is None
        self._done = False
        self._span: list[int] = []
        self._totals: dict[str, int] = {}
        self._parts = Outcomes()
        self._words: Counter[str] = Counter()
        self._keyed: dict[str, str] = {}
        self._problems: Counter[str] = Counter()
        self._indent = 0

    def is_over(self, line: str, at: int) -> bool:
        """Whether this line is of another run."""
        of = self._grammar
        if of.begins and of.begins.match(line):
            return True
        if not self._totals or (of.total and of.total.match(line)):
            return bool(self._totals) and at > self._span[-1] + of.gap
        nexts = (of.single if not self._done and not of.begins else None, of.problem)
        return any(pattern and pattern.match(line) for pattern in nexts)

    def take(self, line: str, at: int) -> None:
        """Read one line of it."""
        of = self._grammar
        if of.begins and of.begins.match(line):
            self._begun = True
        elif of.total and of.total.match(line):
            self._totals.update(of.numbers(line))
        elif of.ends and of.ends.match(line):
            if self._done or self._totals:
                return
            self._done = True
        elif of.repeats and of.repeats.match(line):
            self._done = True
            return
        elif of.problem and (match := of.problem.match(line)):
            self._problems[match["key"] or ""] += 1
            return
        elif not (self._begun and not self._done and not self._totals and self._part(line)):
            return
        self._span = [*self._span[:1], at]

    def _part(self, line: str) -> bool:
        of = self._grammar
        if of.partial and of.partial.match(line):
            self._parts += of.fold(of.numbers(line))
        elif of.single and (match := of.single.match(line)):
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

    def closed(self) -> Iterator[Run]:
        """What it was, if tests were run in it."""
        of = self._grammar
        outside = self._problems.pop("", 0)
        again = self._problems.total() - len(self._problems)
        if self._totals and (not of.needs or of.needs in self._totals):
            outcomes = of.fold({**self._totals, "outside": outside, "again": again})
        else:
            outcomes = self._parts + of.tests(self._words + Counter(self._keyed.values()))
        if outcomes.total:
            yield Run(self._span[0], self._span[-1], outcomes)
