"""Read the Test Anything Protocol and the output of `prove`.

Test points of the outermost level are tests. `prove` without `-v` does not name skipped tests of a file that passes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.benchmarks.project_setup.deliverables import MOST_NAMED, Ended, Outcomes
from runner.benchmarks.project_setup.frameworks.result_lines import NAME, Run, complete, number

_VERSION: Final = re.compile(r"TAP version 1[34]$")
_PLAN: Final = re.compile(r"1\.\.(\d{1,9})(?: *#.*)?$")
_POINT: Final = re.compile(r"(not )?ok \d+\b(?:.*? #\s*(skip|todo)\b)?", re.IGNORECASE)
"""Test point. Its second group is one of the protocol's two directives: SKIP, or TODO for one expected to fail."""
_NODE: Final = re.compile(r"# cancelled \d+$")
"""Line that only node's own runner prints, at most six lines after a stream. Node's reader knows more."""
_NODE_LINES: Final = 6

_PROVE: Final = re.compile(
    r"(?:\[[\d:]+\] )?(\S+) \.\.+ ?(?:$|ok\b|skipped\b|Failed\b|Dubious\b|All \d|No subtests|\d+/)"
)
"""Line of a file, with its result unless the file's own output follows. Pytest's `collecting ... ` is no such line."""
_PROVE_FILE: Final = re.compile(r"\S+ +\(Wstat: [\w() ]*Tests: \d+ Failed: (\d{1,9})\)$")
_PROVE_SKIPPED: Final = re.compile(r"\s+\(less (\d{1,9}) skipped subtests?: \d+ okay\)$")
_PROVE_TODO: Final = re.compile(r" +TODO passed: +([\d, -]+)$")
"""Line of `prove` with the numbers of points that passed although the directive TODO says that they should fail."""
_PROVE_END: Final = re.compile(r"Files=\d+, Tests=(\d{1,9}),")


@dataclass
class _Stream:
    """Test points up to the end of their plan."""

    first: int
    last: int
    plan: int | None = None
    points: Counter[str] = field(default_factory=Counter)
    """Outcome -> number of points."""
    sure: bool = False
    """True if a version line or a plan shows that the text is this protocol."""
    file: str = ""
    """File that `prove` runs; empty for a program that prints the protocol by itself."""
    named: dict[str, Ended] = field(default_factory=dict)
    """Name of each point -> its outcome."""


@dataclass
class _Prove:
    """Files of one run of `prove`."""

    first: int
    streams: int
    """Number of streams before this run."""
    failed: int = 0
    skipped: int = 0

    def take(self, line: str) -> None:
        """Read one line; lines of other programs change nothing."""
        if match := _PROVE_FILE.match(line):
            self.failed += int(match[1])
        elif match := _PROVE_SKIPPED.match(line):
            self.skipped += int(match[1])
        elif match := _PROVE_TODO.match(line):
            self.failed += sum(_length(part) for part in match[1].split(","))


def read(lines: Sequence[str]) -> Iterator[Run]:
    """Yield a run for each stream, and for each `prove` without streams."""
    streams: list[_Stream] = []
    summaries: list[Run] = []
    prove: _Prove | None = None
    file = ""
    for at, line in enumerate(lines):
        if _NODE.match(line) and streams and at - streams[-1].last <= _NODE_LINES:
            streams.pop()
        elif match := _PROVE_END.match(line):
            if prove and len(streams) == prove.streams:
                summaries.extend(_summary(prove, at, int(match[1])))
            prove, file = None, ""
        elif match := _PROVE.match(line):
            prove, file = prove or _Prove(at, len(streams)), match[1]
        else:
            if prove:
                prove.take(line)
            _take(streams, line, at, file)
    runs = [
        Run(
            stream.first,
            stream.last,
            found := Outcomes(**stream.points),
            complete(stream.named.items(), found),
        )
        for stream in streams
        if stream.sure and stream.points
    ]
    yield from sorted([*summaries, *runs], key=lambda run: run.first)


def _take(streams: list[_Stream], line: str, at: int, file: str) -> None:
    version, plan, point = _VERSION.match(line), _PLAN.match(line), _POINT.match(line)
    if not (version or plan or point):
        return
    now = streams[-1] if streams else None
    ended = now and (
        now.points.total() == now.plan
        or (plan and (now.plan is not None or now.points.total() not in {0, int(plan[1])}))
    )
    if not now or version or ended:
        now = _Stream(at, at, file=file)
        streams.append(now)
    now.last = at
    if version or plan:
        now.sure = True
    if plan:
        now.plan = int(plan[1])
    if point:
        outcome = _outcome(failed=bool(point[1]), directive=(point[2] or "").lower())
        now.points[outcome] += 1
        if len(now.named) < MOST_NAMED:
            now.named[_name(now.file, line, point)] = outcome


def _name(file: str, line: str, point: re.Match[str]) -> str:
    """Return the number of a point and its description, behind the file that `prove` ran. Descriptions may be equal."""
    described = line[len(point[1] or "") + len("ok ") : point.start(2) if point[2] else None]
    return f"{file[-NAME:]} {described.rstrip('# ') if point[2] else described}".lstrip()


def _outcome(*, failed: bool, directive: str) -> Ended:
    """Return the outcome of a point. One with the directive TODO should fail, so it counts as failed when it passes."""
    if directive == "skip":
        return "skipped"
    if directive == "todo":
        return "skipped" if failed else "failed"
    return "failed" if failed else "passed"


def _summary(prove: _Prove, at: int, tests: int) -> Iterator[Run]:
    passed = max(0, tests - prove.failed - prove.skipped)
    outcomes = Outcomes(passed=passed, failed=prove.failed, skipped=prove.skipped)
    if outcomes.total:
        yield Run(prove.first, at, outcomes)


def _length(part: str) -> int:
    """Return the length of a number or a range."""
    first, _, last = part.strip().partition("-")
    if first.isdecimal() and last.isdecimal():
        return max(0, number(last) - number(first) + 1)
    return int(first.isdecimal())
