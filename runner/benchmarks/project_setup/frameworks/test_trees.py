"""Names of tests that frameworks print in a tree, beneath their suites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runner.benchmarks.project_setup.deliverables import Ended
from runner.benchmarks.project_setup.frameworks.result_lines import NAME, Named

DEEPEST: Final = 8
"""Largest number of titles in a test's name, the nearest ones."""
_SUBTEST: Final = re.compile(r"(?P<indent> *)# Subtest: (?P<name>.*)")
_POINT: Final = re.compile(
    r"(?P<indent> *)(?P<bad>not )?ok \d+ - (?P<name>.*?)(?: # (?P<note>SKIP|TODO)\b.*)?$"
)
"""Test point of TAP. Its note is one of the protocol's two directives: SKIP, or TODO for one expected to fail."""


@dataclass(frozen=True)
class Tree:
    """The lines of tests in a tree of titles, where what is indented more lies beneath. Calling it yields the names."""

    test: re.Pattern[str]
    """Line of a test: groups `indent`, `word` and `name`, and `note` for one that is still to do."""
    title: re.Pattern[str]
    """Line of a suite: groups `indent` and `name`."""
    ends: Mapping[str, Ended]
    """`word` -> outcome. Any other word is a failure."""
    last: re.Pattern[str]
    """Line after which nothing is the name of a test."""

    def __call__(self, lines: Sequence[str]) -> Named:
        """Yield the tests in these lines, each with the titles above it."""
        above: list[tuple[int, str]] = []
        for line in lines:
            if self.last.match(line):
                return
            if match := self.test.match(line):
                indent, name = len(match["indent"]), match["name"]
                closes = (indent, name) in above  # a suite's title, again at its end
                above = [title for title in above if title[0] < indent]
                if not closes:
                    end = self.ends.get(match["word"], "failed")
                    yield _path(above, name), "skipped" if match["note"] else end
            elif match := self.title.match(line):
                indent = len(match["indent"])
                above = [*(title for title in above if title[0] < indent), (indent, match["name"])]


# Debian's mocha does not find its mark of a passed test and prints `undefined`.
MOCHA: Final = Tree(
    test=re.compile(
        r"(?P<indent> {4,}|  )(?P<word>✔|✓|undefined|-|\d+\)) (?P<name>.+?)(?: \(\d+ms\))?(?P<note>)$"
    ),
    title=re.compile(r"(?P<indent> {2,})(?P<name>\S.*)"),
    ends={**dict.fromkeys(("✔", "✓", "undefined"), "passed"), "-": "skipped"},
    last=re.compile(r"  \d+ passing\b"),
)
_NODE: Final = Tree(
    test=re.compile(r"(?P<indent> *)(?P<word>[✔✖﹣⚠]) (?P<name>.+?) \(\d+(?:\.\d+)?ms\)(?P<note> # .*)?$"),
    title=re.compile(r"(?P<indent> *)▶ (?P<name>.+?)(?: \(\d+(?:\.\d+)?ms\))?$"),
    ends={"✔": "passed", "﹣": "skipped", "⚠": "skipped"},
    last=re.compile(r"ℹ tests \d+$"),
)


def node(lines: Sequence[str]) -> Named:
    """Yield the names that Node's own runner prints, as a tree or as TAP."""
    if any(_SUBTEST.match(line) for line in lines):
        return _points(lines)
    return _NODE(lines)


def _points(lines: Sequence[str]) -> Iterator[tuple[str, Ended]]:
    """Yield the tests in Node's TAP. A point's title stands above it; what was a suite is told beneath it."""
    above: list[tuple[int, str]] = []
    point: tuple[str, Ended] | None = None
    for line in lines:
        if match := _SUBTEST.match(line):
            indent = len(match["indent"])
            above = [*(title for title in above if title[0] < indent), (indent, match["name"])]
        elif match := _POINT.match(line):
            if point:
                yield point
            indent = len(match["indent"])
            above = [title for title in above if title[0] < indent]
            end: Ended = "skipped" if match["note"] else "failed" if match["bad"] else "passed"
            point = _path(above, match["name"]), end
        elif line.lstrip() == "type: 'suite'":
            point = None
    if point:
        yield point


def _path(above: Sequence[tuple[int, str]], name: str) -> str:
    return " > ".join([*(title[-NAME:] for _, title in above[-DEEPEST:]), name])
