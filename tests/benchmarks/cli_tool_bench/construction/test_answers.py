"""Answers of models and people, stored steps, and reviews."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.construction.made import is_reviewed
from runner.benchmarks.cli_tool_bench.construction.steps import Steps
from runner.benchmarks.sources.answers import BY_HAND, Answers, Question, Talk
from runner.benchmarks.sources.rejections import RejectedError, rejected
from runner.errors import TaskError
from runner.records import Record

QUESTION = Question(file="context.md", step="prompt", instruction="Describe.", material="README")


class Parrot:
    """A model that gives prepared answers."""

    name = "parrot"

    def __init__(self, *answers: str) -> None:
        self.answers, self.heard = list(answers), list[Sequence[dict[str, str]]]()

    @contextmanager
    def conversation(self, _: Question) -> Iterator[Talk]:
        def talk(messages: Sequence[dict[str, str]]) -> str:
            self.heard.append([dict(message) for message in messages])
            return self.answers.pop(0)

        yield talk


def _check(text: str) -> str:
    if "good" not in text:
        raise ValueError("it is not good")
    return text.strip()


def test_what_is_wrong_with_an_answer_goes_back_until_one_passes(tmp_path: Path) -> None:
    model = Parrot("bad", "still bad", " good ")
    assert Answers(tmp_path, model, 3).get(QUESTION, _check) == "good"
    assert [len(messages) for messages in model.heard] == [2, 4, 6]
    assert "it is not good" in model.heard[1][-1]["content"]
    assert (tmp_path / "context.md").read_text() == "good"


def test_an_answer_is_paid_for_once_and_again_only_for_another_question(tmp_path: Path) -> None:
    Answers(tmp_path, Parrot("good"), 1).get(QUESTION, _check)
    unasked = Parrot()
    assert Answers(tmp_path, unasked, 1).get(QUESTION, _check) == "good"
    assert Answers(tmp_path, None, 1).get(QUESTION, _check) == "good"
    other = QUESTION.model_copy(update={"material": "another README"})
    assert Answers(tmp_path, Parrot("good, too"), 1).get(other, _check) == "good, too"


def test_a_model_that_never_passes_rejects_the_tool_with_the_last_fault(tmp_path: Path) -> None:
    with pytest.raises(RejectedError, match=r"context.md: parrot failed 2 times: it is not good"):
        Answers(tmp_path, Parrot("bad", "bad"), 2).get(QUESTION, _check)
    assert not (tmp_path / "context.md").exists()


def test_what_people_wrote_is_never_asked_for_and_its_author_is_named(tmp_path: Path) -> None:
    (tmp_path / "context.md").write_text("good by hand")
    answers = Answers(tmp_path, Parrot(), 1)
    assert answers.get(QUESTION, _check) == "good by hand"
    assert list(answers.authors) == [BY_HAND]
    generator = QUESTION.model_copy(update={"file": "generators/BASIC.py"})
    Answers(tmp_path, Parrot("good"), 1).get(generator, _check)
    assert list(answers.authors) == [BY_HAND, "parrot"]


@pytest.mark.parametrize("text", [None, "bad"])
def test_without_a_model_a_missing_or_wrong_answer_rejects(tmp_path: Path, text: str | None) -> None:
    if text:
        (tmp_path / "context.md").write_text(text)
    with pytest.raises(RejectedError, match=r"context.md(: it is not good| is missing: write it by hand)"):
        Answers(tmp_path, None, 1).get(QUESTION, _check)


class Number(Record):
    value: int


def _once(value: int) -> Callable[[], Number]:
    left = [value]
    return lambda: Number(value=left.pop())


def test_a_step_is_carried_out_once_for_what_it_depends_on(tmp_path: Path) -> None:
    said: list[str] = []
    steps, make = Steps(tmp_path, said.append), _once(3)
    assert [steps.get("a", ["x"], Number, make).value for _ in range(3)] == [3, 3, 3]
    assert steps.get("a", ["y"], Number, _once(4)).value == 4
    assert said == ["a", "a"]
    assert steps.has("a", ["y"])
    assert not steps.has("a", ["x"])


def test_a_rejection_is_a_result_and_another_failure_is_not(tmp_path: Path) -> None:
    steps = Steps(tmp_path)

    def refuse() -> Number:
        raise rejected("entry", "no command")

    def fail() -> Number:
        raise OSError("no room")

    with pytest.raises(RejectedError):
        steps.get("a", [], Number, refuse)
    with pytest.raises(RejectedError, match="no command") as caught:
        steps.get("a", [], Number, _once(1))
    assert caught.value.rejection.step == "entry"
    with pytest.raises(OSError, match="no room"):
        steps.get("b", [], Number, fail)
    assert steps.get("b", [], Number, _once(2)).value == 2


def test_a_damaged_step_is_made_again(tmp_path: Path) -> None:
    steps = Steps(tmp_path)
    steps.get("a", [], Number, _once(1))
    (tmp_path / "a.json").write_text("{")
    assert steps.get("a", [], Number, _once(2)).value == 2


@pytest.mark.parametrize(
    ("rows", "confirmed"),
    [
        (["one,yes,yes", "two,yes,yes"], True),
        (["one,yes,yes"], False),
        (["one,yes,yes", "one,yes,yes"], False),
        (["one,yes,yes", " ONE ,yes,yes"], False),
        (["one,yes,yes", "two,yes,no"], False),
        (["one,yes,yes", "two,yes,yes", "three,no,yes"], False),
        (["one,yes,yes", "two,yes,yes", "three,yes,yes"], True),
        ([], False),
    ],
)
def test_two_distinct_people_must_confirm_a_task_and_nobody_deny_it(
    tmp_path: Path,
    rows: list[str],
    confirmed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    (tmp_path / "making").mkdir()
    file = tmp_path / "making" / "reviews.csv"
    file.write_text("\n".join(["reviewer,entry_right,commands_run", *rows]) + "\n")
    assert is_reviewed(tmp_path) is confirmed


@pytest.mark.parametrize("text", ["reviewer,entry_right,commands_run\none,perhaps,yes\n", "who\nme\n"])
def test_a_review_that_says_something_else_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "making").mkdir()
    (tmp_path / "making" / "reviews.csv").write_text(text)
    with pytest.raises(TaskError, match="row 2"):
        is_reviewed(tmp_path)


def test_a_task_without_reviews_is_unreviewed(tmp_path: Path) -> None:
    assert not is_reviewed(tmp_path)


def test_provenance_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "written_by.json").write_text(json.dumps({"context.md": {"by": 3}}))
    (tmp_path / "context.md").write_text("good")
    with pytest.raises(TaskError, match=r"written_by\.json"):
        Answers(tmp_path, Parrot(), 1).get(QUESTION, _check)
