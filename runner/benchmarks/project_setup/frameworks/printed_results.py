"""Read the results of tests that frameworks print for people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from runner.benchmarks.project_setup.deliverables import MOST_NAMED, Outcomes, Reading
from runner.benchmarks.project_setup.frameworks import go, tap
from runner.benchmarks.project_setup.frameworks.grammars import GRAMMARS
from runner.benchmarks.project_setup.frameworks.result_lines import Reader, lines_of

READERS: Final[Mapping[str, Reader]] = {**GRAMMARS, "go": go.read, "tap": tap.read}
FRAMEWORKS: Final = frozenset(READERS)


def read_output(text: str, frameworks: Collection[str] = FRAMEWORKS) -> tuple[Reading, ...]:
    """Return the runs of these frameworks in the output of a test program, in their order.

    A run within another framework's run is output of that framework's tests and does not count.
    """
    lines = lines_of(text)
    runs = [(run, framework) for framework, reader in READERS.items() for run in reader(lines)]
    readings = []
    last: dict[str, int] = {}
    for run, framework in sorted(runs, key=lambda found: found[0][:2]):
        within = any(run.last < line for other, line in last.items() if other != framework)
        last[framework] = max(run.last, last.get(framework, 0))
        if framework in frameworks and not within:
            tests = dict(run.tests) if run.outcomes.total <= MOST_NAMED else {}
            readings.append(Reading(framework=framework, outcomes=run.outcomes, way="output", tests=tests))
    return tuple(readings)


def read_text(framework: str, text: str) -> Outcomes | None:
    """Return the sum of one framework's runs in a text; None if there are none."""
    runs = [run.outcomes for run in READERS[framework](lines_of(text))]
    return sum(runs, Outcomes()) if runs else None
