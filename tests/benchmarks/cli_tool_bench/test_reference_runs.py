"""Stored results of references, cases that vary or move with the clock, and invalid references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from metrics.differential import Rules, effective, judge_case
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun, References, Run, observe
from runner.benchmarks.cli_tool_bench.side_by_side import run_or_report_lost, run_side_by_side
from runner.errors import EngineError, VerifierError
from runner.records.cases import Case, CaseResult, Change, How

CASES = [
    Case.model_validate({"class": name, "command": f"tally {name} {number}", "negative": False})
    for name in ("A", "B")
    for number in range(3)
]


def result(**values: Any) -> CaseResult:
    return CaseResult.model_validate({"exit_code": 0, "stdout": "out", "how": "overlay", **values})


def changed(**values: Any) -> tuple[Change, ...]:
    given = {"path": "/test_data/x", "change": "added", "kind": "file", "digest": "d", **values}
    return (Change.model_validate(given),)


def runs(*second: CaseResult, first: Sequence[CaseResult] = ()) -> Run:
    """Return a run whose first two passes begin with these results; all other results are equal."""
    passes = [first, second]

    def run(cases: Sequence[Case]) -> list[CaseResult]:
        if not passes:
            return [result()] * len(cases)
        count = len(cases) // 2
        both = [[*given, *[result()] * (count - len(given))] for given in passes]
        passes.clear()
        return [one for results in both for one in results]

    return run


def always(same: CaseResult) -> Run:
    return lambda cases: [same] * len(cases)


def moving(
    folder: Path, run: Run, cases: Sequence[Case] = CASES, how: How | None = "overlay", **rules: Any
) -> tuple[int, ...]:
    return look_up(folder, run, cases, how, **rules).moving


def look_up(
    folder: Path, run: Run, cases: Sequence[Case] = CASES, how: How | None = "overlay", **rules: Any
) -> ReferenceRun:
    return References.of(folder, ["image"], Rules(**rules), run).look_up(cases, how)


def test_a_case_whose_two_results_differ_is_moving(tmp_path: Path) -> None:
    """White space and hidden files do not count, as between two tools."""
    second = [
        result(),
        result(stdout="other"),
        result(stdout=" o ut"),
        result(changes=changed()),
        result(changes=changed(path="/test_data/.x")),
        result(exit_code=None, ended="deadline"),
    ]
    assert moving(tmp_path, runs(*second)) == (1, 3, 5)


def recording(how: How = "overlay") -> tuple[Run, list[list[str]]]:
    """Return a run with this isolation, and a list of the commands of each call."""
    asked: list[list[str]] = []

    def run(cases: Sequence[Case]) -> list[CaseResult]:
        asked.append([case.command for case in cases])
        return [result(stdout=case.command, how=how) for case in cases]

    return run, asked


def test_a_stored_case_is_valid_until_the_case_or_the_rules_change(tmp_path: Path) -> None:
    run, asked = recording()
    commands = [case.command for case in CASES]
    renamed = [case.model_copy(update={"command_class": "C"}) for case in CASES]
    for cases in (CASES, CASES, renamed, CASES[:2], CASES[::-1]):
        moving(tmp_path, run, cases)
    assert asked == [commands * 2]
    moving(tmp_path, run, CASES, semantics="artifact")
    moving(tmp_path, run, CASES, compare_modes=True)
    assert asked == [commands * 2] * 3


def test_a_new_case_runs_alone_and_equal_cases_run_once(tmp_path: Path) -> None:
    run, asked = recording()
    moving(tmp_path, run)
    new = Case.model_validate({"class": "A", "command": "tally new"})
    found = look_up(tmp_path, run, [new, *CASES, new])
    assert asked[1:] == [["tally new"] * 2]
    assert [one.stdout for one in found.results] == [
        "tally new",
        *(case.command for case in CASES),
        "tally new",
    ]


def test_results_of_one_isolation_are_not_used_for_the_other(tmp_path: Path) -> None:
    (overlay, overlaid), (copy, copied) = recording("overlay"), recording("copy")
    moving(tmp_path, overlay)
    moving(tmp_path, copy, how="copy")
    moving(tmp_path, copy, how="copy")
    moving(tmp_path, overlay, how=None)
    assert (len(overlaid), len(copied)) == (1, 1)


def test_trials_that_need_one_reference_at_once_pay_for_it_once(tmp_path: Path) -> None:
    run, asked = recording()
    parts = [CASES[:4], CASES[2:], CASES] * 3
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(lambda cases: moving(tmp_path, run, cases), parts))
    assert sorted(command for batch in asked for command in batch) == sorted(
        [case.command for case in CASES] * 2
    )


@pytest.mark.parametrize(
    ("wrong", "negative", "message"),
    [
        (
            {"exit_code": 4},
            False,
            r"line 2: the reference ends with exit code 4 \(exited\) in a positive case",
        ),
        ({"exit_code": None, "ended": "deadline"}, False, r"exit code None \(deadline\) in a positive case"),
        ({}, True, r"line 2: the reference ends with exit code 0 \(exited\) in a negative case"),
        (
            {"exit_code": None, "ended": "prep"},
            False,
            r"line 2: its files or its prep script fail \(prep\): out",
        ),
        ({"exit_code": None, "ended": "lost"}, True, r"line 2: its files or its prep script fail \(lost\)"),
    ],
)
def test_a_reference_that_contradicts_its_cases_is_an_error(
    tmp_path: Path,
    wrong: dict[str, Any],
    negative: bool,  # noqa: FBT001
    message: str,
) -> None:
    given = [result(), result(**wrong)]
    cases = [CASES[0], CASES[1].model_copy(update={"negative": negative}), *CASES[2:]]
    with pytest.raises(VerifierError, match=message):
        moving(tmp_path, runs(*given, first=given), cases)


def test_a_run_that_was_stopped_at_its_deadline_is_not_stored(tmp_path: Path) -> None:
    """A busy hour once spoiled a task forever, as later trials found the stopped run."""
    stopped = result(exit_code=None, ended="deadline")
    with pytest.raises(VerifierError, match="deadline"):
        moving(tmp_path, runs(stopped, first=[stopped]))
    assert moving(tmp_path, runs(stopped)) == (0,)
    assert moving(tmp_path, runs()) == ()


def test_a_run_that_was_lost_or_did_not_read_all_changes_is_not_stored(tmp_path: Path) -> None:
    """One such run once quarantined its case forever, and two that were cut alike were taken for the truth."""
    for number, spoiled in enumerate(
        (result(exit_code=None, ended="lost"), result(truncated=["diff_seconds"]))
    ):
        place = tmp_path / str(number)
        assert moving(place, runs(spoiled)) == (0,)
        assert moving(place, runs()) == ()
    hurried = result(truncated=["diff_seconds"])
    place = tmp_path / "twice"
    assert moving(place, runs(hurried, first=[hurried])) == ()
    again = look_up(place, runs())
    assert (again.results[0].truncated, again.whole) == ((), True)


class Clocked:
    """A reference that prints `of(minute)` on a clock that the test sets; `asked` counts its runs."""

    def __init__(self, folder: Path, minutes: int, of: Callable[[int], object] = lambda _: "always") -> None:
        self.now, self.asked, self.of = minutes, 0, of
        found = References.of(folder, ["image"], Rules(), self.run)
        self.references = replace(found, minute=lambda: self.now)

    def run(self, cases: Sequence[Case]) -> list[CaseResult]:
        self.asked += len(cases)
        return [result(stdout=f"{self.of(self.now)}") for _ in cases]

    def again(self, at: int) -> list[int]:
        """Return the cases that are found to move if a candidate differs in all of them at this minute."""
        self.now = at
        return self.references.look_again(dict(enumerate(CASES)), "overlay")


EVENING = 60 * (24 * 20_000 + 19)
"""19:00 on some day, in minutes since 1970."""


@pytest.mark.parametrize(
    ("prints", "later"),
    [(lambda now: now % 60, 1), (lambda now: now // 60 % 24, 60), (lambda now: now // 1440, 24 * 60)],
    ids=["minute", "hour", "day"],
)
def test_a_reference_that_prints_the_time_moves(
    tmp_path: Path, prints: Callable[[int], object], later: int
) -> None:
    """Its first output was once stored forever, so every candidate failed from the next minute on."""
    reference = Clocked(tmp_path, EVENING + 26, prints)
    assert reference.references.look_up(CASES, "overlay").moving == ()
    if later > 1:
        assert reference.again(EVENING + 27) == []
    everything = list(range(len(CASES)))
    assert reference.again(EVENING + 26 + later) == everything
    asked = reference.asked
    assert reference.again(EVENING + 28 + later) == everything, "this is stored"
    assert reference.references.look_up(CASES, "overlay").moving == tuple(everything)
    assert reference.asked == asked, "and needs no more runs"


def test_a_steady_reference_runs_again_once_an_hour_however_many_candidates_differ(
    tmp_path: Path,
) -> None:
    reference = Clocked(tmp_path, EVENING)
    reference.references.look_up(CASES, "overlay")
    reference.asked = 0
    counts = []
    for minute in (0, 1, 2, 30, 59, 60, 61, 119, 24 * 60 + 61):
        assert reference.again(EVENING + minute) == []
        counts.append(reference.asked // len(CASES))
    assert counts == [1, 2, 2, 2, 2, 3, 3, 3, 4]


def test_a_case_that_differs_from_run_to_run_varies_and_does_not_move(tmp_path: Path) -> None:
    """Its output is not judged; its exit code, which stays the same, is."""
    lots = count()

    def run(cases: Sequence[Case]) -> list[CaseResult]:
        return [result(stdout=f"{next(lots)}" if case.command_class == "A" else "b") for case in cases]

    references = References.of(tmp_path, ["image"], Rules(), run)
    for _ in range(2):
        found = references.look_up(CASES, "overlay")
        assert (found.varying, found.moving) == (dict.fromkeys(range(3), ("output",)), ())
    assert next(lots) == 3 * (2 + 3 + 3), "it does not run again"


def test_a_stopped_run_makes_no_case_move(tmp_path: Path) -> None:
    """Otherwise a candidate that keeps the machine busy could remove cases from its own comparison."""
    moving(tmp_path, runs())
    for spoiled in (result(exit_code=None, ended="deadline"), result(truncated=["diff_seconds"], stdout="")):
        references = References.of(tmp_path, ["image"], Rules(), always(spoiled))
        assert references.look_again(dict(enumerate(CASES)), "overlay") == []


def in_turn(*stdouts: str, **changed: Any) -> Callable[[Case], CaseResult]:
    remaining = iter(stdouts)
    return lambda _: result(stdout=next(remaining), **changed)


@pytest.mark.parametrize(
    ("outputs", "judged", "varying"),
    [
        (["19:27"] * 3, "19:27", ()),
        (["19:27", "19:27", "19:28", *["19:28"] * 3], "19:28", ()),
        (["a", "b", "c", "d", "e", "f"], "d", ("output",)),
    ],
    ids=["within a minute", "as a minute ends", "lots"],
)
def test_both_sides_are_compared_within_one_moment(
    outputs: list[str], judged: str, varying: tuple[str, ...]
) -> None:
    found = run_side_by_side(in_turn(*outputs), in_turn("x", "y"), CASES[0], Rules())
    assert (found.reference.stdout, found.varying, found.lasting) == (judged, varying, True)
    assert found.candidate.stdout == "xy"[len(outputs) > 3]


def test_a_reference_that_is_stopped_side_by_side_is_not_judged_and_not_stored() -> None:
    late = in_turn(*"aaaaaa", exit_code=None, ended="deadline")
    found = run_side_by_side(late, in_turn("a", "a"), CASES[0], Rules())
    assert (found.varying, found.lasting) == (("exit_code", "effects", "output"), False)


def test_a_candidate_that_ends_its_machine_side_by_side_fails_the_case() -> None:
    class Gone:
        how = "copy"

        def run(self, case: Case) -> CaseResult:
            raise EngineError(f"no container for {case.command}")

    found = run_side_by_side(in_turn(*"aaa"), partial(run_or_report_lost, Gone()), CASES[0], Rules())  # type: ignore[arg-type]
    assert (found.candidate.ended, found.candidate.exit_code, found.varying) == ("lost", None, ())


def test_what_varies_within_a_moment_is_stored(tmp_path: Path) -> None:
    run = runs(result(stdout="other"), result(stdout="other", changes=changed()))
    references = References.of(tmp_path, ["image"], Rules(), run)
    assert references.look_up(CASES, "overlay").moving == (0, 1)
    references.record_varying(CASES, "overlay", {0: ("output",), 1: ("output",)})
    found = references.look_up(CASES, "overlay")
    assert (found.varying, found.moving) == ({0: ("output",), 1: ("output",)}, (1,))


def test_a_case_without_a_sign_may_end_in_any_way(tmp_path: Path) -> None:
    """The authors' files do not say which cases are negative."""
    silent = [Case.model_validate({"class": "A", "command": "tally"})]
    given = [result(exit_code=2)]
    assert moving(tmp_path, runs(*given, first=given), silent) == ()


def test_a_reference_whose_output_is_not_text_is_refused_with_its_line(tmp_path: Path) -> None:
    given = [result(), result(stdout=r"\xff", binary=("stdout",)), result(binary=("stderr",))]
    with pytest.raises(
        VerifierError, match=r"^cases.jsonl, line 2: the reference's stdout is not UTF-8 text"
    ):
        moving(tmp_path, runs(*given, first=given))


def exactly(reference: CaseResult, candidate: CaseResult) -> bool | None:
    return judge_case(observe(reference), observe(candidate), Rules()).exact_match


def test_output_that_is_not_text_never_equals_text() -> None:
    """It was once marked by words after the text, which a candidate could print."""
    no_text = result(stdout=r"\xff", binary=("stdout",))
    for reference in (r"\xff", "\\xff\n[not UTF-8]"):
        assert exactly(result(stdout=reference), result(stdout=reference))
        assert not exactly(result(stdout=reference), no_text)


def test_output_that_was_cut_is_compared_with_its_length() -> None:
    cut = result(stdout="x" * 9, stdout_bytes=100, truncated=("stdout",))
    longer = result(stdout="x" * 9, stdout_bytes=200, truncated=("stdout",))
    assert exactly(cut, cut)
    assert not exactly(cut, longer)
    assert not exactly(cut, result(stdout="x" * 9 + "[100 bytes]")), "and a candidate cannot print the length"
    assert exactly(result(stdout="x y", stdout_bytes=3), result(stdout="x  y\n", stdout_bytes=5)), (
        "whole ones"
    )


@pytest.mark.parametrize("semantics", ["paper", "artifact"])
@pytest.mark.parametrize("reason", ["entries", "diff_seconds"])
def test_changes_that_were_cut_never_equal_complete_ones(
    semantics: Literal["paper", "artifact"], reason: str
) -> None:
    complete, cut = result(changes=changed()), result(changes=changed(), truncated=(reason,))
    one, other, again = (effective(observe(r).changes, Rules(semantics)) for r in (complete, cut, cut))
    assert one != other
    assert other == again


def test_files_that_were_not_read_are_compared_by_size() -> None:
    small, large = (result(changes=changed(digest=None, size=size)) for size in (1, 2))
    assert observe(small).changes != observe(large).changes


def test_deletions_are_equal_whatever_was_deleted() -> None:
    folder, file = (
        result(changes=changed(change="deleted", kind=kind, digest=None)) for kind in ("directory", "file")
    )
    one, other = (effective(observe(gone).changes, Rules()) for gone in (folder, file))
    assert one == other
    assert one["/test_data/x"].kind == "deleted"
