"""Golden outputs: what the reference does in each case of a class (section 2.3), and which cases are kept.

The reference runs each case twice in a row, and a third time with the clock a day ahead and another host name. A case
with differing results is not kept. Neither is a case that ends alike on a machine without the tool, because it would
count for every submission.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from metrics.differential import Rules, unlike
from runner.benchmarks.cli_tool_bench.construction.drawing import Dimension, Drawn, Draws
from runner.benchmarks.cli_tool_bench.reference_runs import is_lasting, observe
from runner.records import Record
from runner.records.cases import Case, CaseResult, Change

if TYPE_CHECKING:
    from runner.benchmarks.cli_tool_bench.construction.machine import ReferenceMachine
    from runner.benchmarks.cli_tool_bench.construction.scrubbing import Brand

CASES = 50
"""Cases of a class (section 2.2.2)."""
FEWEST = 40
"""Smallest number of repeatable cases with which a class is kept."""
AT_ONCE = 54
"""Number of cases that run together. Further cases run only if these do not suffice."""
MOST_QUOTED = 1_500
LONGEST_STDOUT = 2_000
"""Longest output that is stored in full, in characters; of a longer one only the digest is stored."""


class GoldenCase(Record):
    """A case that is kept, with the reference's result."""

    dimension: Dimension
    case: Case
    exit_code: int
    stdout: str
    """Standard output; empty if it is longer than `LONGEST_STDOUT`."""
    stdout_digest: str
    changes: tuple[str, ...]
    """Changed paths, as `added /test_data/a.txt sha256:..`."""

    @property
    def line(self) -> dict[str, object]:
        """The case as a line of `cases.jsonl`."""
        case = self.case
        node = {"class": case.command_class, "command": case.command, "files": case.files}
        node |= {name: value for name in ("prep", "env") if (value := getattr(case, name))}
        return node | {"negative": self.exit_code != 0}


class GoldenClass(Record):
    """The cases of one command class."""

    name: str
    example: GoldenCase
    """Verified example for the prompt, which is not among the cases."""
    example_result: CaseResult
    cases: tuple[GoldenCase, ...]
    dropped: dict[str, int]
    """Reason -> number of drawn cases that ran and were not kept."""


def golden_class(
    name: str, draws: Draws, machine: ReferenceMachine, brand: Brand, rules: Rules
) -> GoldenClass:
    """Run a class's cases until 50 can be kept. Raises `ValueError` with the fault of the generator."""
    kept: list[tuple[GoldenCase, CaseResult]] = []
    dropped: Counter[str] = Counter()
    message = ""
    for begin in range(0, len(draws.cases), AT_ONCE):
        batch = draws.cases[begin : begin + AT_ONCE]
        cases = [drawn.case(name) for drawn in batch]
        results, reasons = _look(cases, machine, brand, rules)
        for drawn, case, result, reason in zip(batch, cases, results, reasons, strict=True):
            if reason:
                dropped[reason] += 1
            else:
                kept.append((_golden(drawn, case, result), result))
            if drawn.dimension == "common" and result.exit_code != 0 and not message:
                message = f"$ {drawn.command}\n{(result.stderr or result.stdout)[-MOST_QUOTED:]}"
        if _suffices(kept):
            break
    return _chosen(name, kept, dropped, message)


def digest(text: str) -> str:
    """Return the digest of `golden.jsonl`, as `sha256:..`."""
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def lines(classes: Sequence[GoldenClass]) -> str:
    """Return the content of `golden.jsonl`: one line per case, in the order of `cases.jsonl`."""
    nodes = (
        {"class": one.name, **golden.model_dump(mode="json", exclude={"case"})}
        for one in classes
        for golden in one.cases
    )
    return "".join(f"{json.dumps(node, ensure_ascii=False)}\n" for node in nodes)


def _look(
    cases: Sequence[Case], machine: ReferenceMachine, brand: Brand, rules: Rules
) -> tuple[list[CaseResult], list[str]]:
    """Return the results of the first run, and for each case the reason not to keep it, empty if it is kept."""
    run = machine.look_up(cases)
    reasons = [
        _flaw(cases[index], result, brand)
        or ("it varies" if index in run.varying or index in run.moving else "")
        for index, result in enumerate(run.results)
    ]
    steady = [index for index, reason in enumerate(reasons) if not reason]
    later = machine.run_elsewhere([cases[index] for index in steady])
    without = machine.run_without([cases[index] for index in steady])
    for index, result, absent in zip(steady, later, without, strict=True):
        seen = observe(run.results[index])
        if unlike(seen, observe(result), rules):
            reasons[index] = "it depends on the date or the host"
        elif not unlike(seen, observe(absent), rules):
            reasons[index] = "it ends alike without the tool"
    return list(run.results), reasons


def _flaw(case: Case, result: CaseResult, brand: Brand) -> str:
    """Return why a result cannot be golden, whatever later runs show; empty if there is no objection."""
    if not is_lasting(result) or result.exit_code is None:
        return f"it does not end by itself ({result.ended})"
    if "stdout" in result.binary:
        return "its output is not text"
    if brand.find(case.model_dump_json()):
        return "it uses a published name"
    shown = "\n".join([result.stdout, *(f"{change.path}\n{change.text or ''}" for change in result.changes)])
    return "it shows a published name" if brand.find(shown) else ""


def _golden(drawn: Drawn, case: Case, result: CaseResult) -> GoldenCase:
    stdout = result.stdout if len(result.stdout) <= LONGEST_STDOUT else ""
    return GoldenCase(
        dimension=drawn.dimension,
        case=case,
        exit_code=result.exit_code or 0,  # only results that exited are kept
        stdout=stdout,
        stdout_digest=result.stdout_digest or hashlib.sha256(result.stdout.encode()).hexdigest(),
        changes=tuple(f"{one.change} {one.path} {one.digest or one.kind}" for one in result.changes),
    )


def _suffices(kept: Sequence[tuple[GoldenCase, CaseResult]]) -> bool:
    """Return whether there are enough cases for a class and its example, both positive and negative."""
    return len(kept) > CASES and len({golden.exit_code == 0 for golden, _ in kept}) == 2  # noqa: PLR2004 - both signs


def _chosen(
    name: str, kept: list[tuple[GoldenCase, CaseResult]], dropped: Counter[str], message: str
) -> GoldenClass:
    """Return the class: its example and the first 50 other cases, positive and negative. Raises `ValueError`."""
    why = ", ".join(f"{number}: {reason}" for reason, number in dropped.most_common())
    example = _example(kept)
    if example is None:
        raise ValueError(f"no common case succeeds{f' and can be kept ({why})' if why else ''}. {message}")
    others = [golden for golden, _ in kept if golden is not example[0]]
    for sign in (True, False):
        if not any((golden.exit_code == 0) is sign for golden in others):
            raise ValueError(f"no case {'succeeds' if sign else 'fails'}, and both kinds are needed")
    if len(others) < FEWEST:
        why = (
            ", ".join(f"{number}: {reason}" for reason, number in dropped.most_common())
            or "too few are drawn"
        )
        raise ValueError(f"{len(others)} steady cases are too few, {FEWEST} are needed ({why})")
    cases, rest = others[:CASES], others[CASES:]
    signs = {golden.exit_code == 0 for golden in cases}
    if len(signs) == 1:
        cases[-1] = next(golden for golden in rest if (golden.exit_code == 0) not in signs)
    return GoldenClass(
        name=name, example=example[0], example_result=example[1], cases=tuple(cases), dropped=dict(dropped)
    )


def _example(kept: Sequence[tuple[GoldenCase, CaseResult]]) -> tuple[GoldenCase, CaseResult] | None:
    """Return a common case that succeeds, at the first quartile of length; one that can be shown in full, if any."""
    good = [one for one in kept if one[0].exit_code == 0 and one[0].dimension == "common"]
    whole = [one for one in good if all(_is_whole(change) for change in one[1].changes)]
    by_size = sorted(whole or good, key=lambda one: len(one[0].case.model_dump_json()) + len(one[1].stdout))
    return by_size[len(by_size) // 4] if by_size else None


def _is_whole(change: Change) -> bool:
    """Return whether the whole content of a changed file is stored."""
    return change.text is None or change.size is None or len(change.text.encode()) >= change.size
