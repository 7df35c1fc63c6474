"""`making/reviews.csv`: whether people have confirmed a task that was made."""

from __future__ import annotations

import csv
from pathlib import Path

from runner.errors import TaskError

REVIEWS = "reviews.csv"
REVIEWERS = 2
"""Number of distinct people who must answer all questions with yes."""
UNREVIEWED = "unreviewed"
"""Flag of a task that too few people have confirmed; it is on the record of each of the task's trials."""


def is_reviewed(making: Path, questions: tuple[str, ...]) -> bool:
    """Return whether two people answer all questions with yes, and nobody answers one with no.

    The file in the folder `making` has the columns `reviewer` and the questions. Raises `TaskError` for a file that
    cannot be read.
    """
    file, columns = making / REVIEWS, ("reviewer", *questions)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TaskError(f"{making.name}/{REVIEWS} cannot be read: {error}.") from error
    votes: dict[str, bool] = {}
    for number, row in enumerate(rows, start=2):
        reviewer, *answers = (str(row.get(column) or "").strip().lower() for column in columns)
        reviewer = reviewer.casefold()  # a name in two spellings is one person
        if not reviewer or not {*answers} <= {"yes", "no"}:
            need = ", ".join(["yes or no"] * len(questions))
            raise TaskError(
                f"{making.name}/{REVIEWS}, row {number}: {', '.join(columns)} need a name, {need}."
            )
        votes[reviewer] = votes.get(reviewer, True) and set(answers) == {"yes"}
    return len(votes) >= REVIEWERS and all(votes.values())
