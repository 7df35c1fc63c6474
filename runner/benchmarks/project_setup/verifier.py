"""The verifier of dataset=execution: compare the results of an agent's two scripts, run from scratch, with the truth.

Only the scripts travel from the agent's sandbox. `rerun` says how they are run; `watched_results` says what counts and
what cannot be excluded. The agent's own account of its tests is recorded and does not count.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from metrics import deviations
from runner.benchmarks.project_setup.deliverables import (
    DOCKERFILE,
    RESULTS,
    SCRIPT,
    TRUTH,
    Outcomes,
    Rerun,
    Truth,
    fetched_project,
)
from runner.benchmarks.project_setup.frameworks.result_lines import MOST
from runner.benchmarks.project_setup.rerun import rerun, taken_from
from runner.benchmarks.project_setup.tree import strata
from runner.errors import VerifierError
from runner.records import Record, Task, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from runner.benchmarks.project_setup.rerun import Deliverables
    from runner.protocols import Submission

JUDGE_VERSION = "c7b08bcbe4857afeda51e287ea3bf8b33c85b6c3b1b6549cf0c7220368ee43d4"
"""Version of the judge, which is part of every trial key: a new value runs finished trials again.
`tests/benchmarks/test_judge_versions.py` says when to change it."""
MEASURED = "rerun.json"
"""File of the `Rerun` in a trial's folder."""
PRINTED = "verifier.stdout"


class _Claim(BaseModel):
    """An agent's own numbers of tests; other fields are ignored."""

    passed: int = Field(ge=0, le=MOST)
    failed: int = Field(ge=0, le=MOST)
    skipped: int = Field(ge=0, le=MOST)

    @property
    def outcomes(self) -> Outcomes:
        """The claimed numbers as a record."""
        return Outcomes(**self.model_dump())


class ProjectSetupVerifier(Record):
    """Verifier that builds and runs what the agent delivers, and compares the results of tests with the truth."""

    @property
    def judge(self) -> None:
        """Return None, because tests decide and not a model."""

    @property
    def shaping(self) -> dict[str, str]:
        """See `protocols.Verifier`."""
        return {"judge": JUDGE_VERSION}

    def verify(self, submission: Submission) -> Verdict:
        """See `protocols.Verifier`. Raises `VerifierError` when the truth cannot be read."""
        began = time.monotonic()
        truth = truth_of(submission.task)
        delivered = taken_from(submission.sandbox)
        found = rerun(submission.task, delivered, submission.sandboxes)
        _record(submission.folder, delivered, found)
        return Verdict(
            reward=reward(truth, found.outcomes),
            components={
                **components(truth, found),
                **_claimed(delivered.results, found.outcomes),
                **strata(fetched_project(submission.task)),
            },
            exit_code=found.exit_code,
            mode="separate",
            image=found.image,
            output=found.output[-4000:],
            seconds=time.monotonic() - began,
        )


def measured_in(trial: Path) -> Rerun | None:
    """Read what the verifier measured from a trial's folder; None if it did not get so far."""
    file = trial / MEASURED
    return Rerun.model_validate_json(file.read_bytes()) if file.is_file() else None


def truth_of(task: Task) -> Truth | None:
    """Read the ground truth of a task; None where there is none. Raises `VerifierError`."""
    file = task.verifier.tests and task.verifier.tests / TRUTH
    if not file or not file.is_file():
        return None
    try:
        return Truth.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise VerifierError(f"The truth of {task.name} cannot be read: {error}") from error


def reward(truth: Truth | None, found: Outcomes | None) -> float:
    """Return 1 minus the total deviation, but at least 0. Without executed tests: 0; without a truth: 1."""
    if found is None or not found.total:
        return 0.0
    if truth is None:
        return 1.0
    total = _deviations(truth.outcomes, found)["total_deviation"]
    return 0.0 if math.isnan(total) else max(0.0, 1 - total / 100)


def components(truth: Truth | None, found: Rerun) -> dict[str, float]:
    """Return the figures of a verdict (section 3.1.2). Undefined and unknown figures are left out."""
    outcomes = found.outcomes
    executed = outcomes is not None and outcomes.total > 0
    figures = {"built": float(found.built), "tests_executed": float(executed)}
    sizes = found.model_dump(include={"script_size", "size_dockerfile", "size_script"})
    figures |= {name: float(size) for name, size in sizes.items() if size is not None}
    if found.error and found.error.type == "refused":
        figures["refused"] = 1.0
    if executed and outcomes:
        figures |= _numbers("agent", outcomes)
    if truth:
        figures |= _numbers("truth", truth.outcomes)
    if truth and truth.tests and found.tests:
        every = truth.tests.keys() | found.tests.keys()
        same = sum(truth.tests.get(name) == found.tests.get(name) for name in every)
        figures |= {"tests_compared": float(len(every)), "tests_same": float(same)}
    if truth and executed and outcomes:
        figures |= _deviations(truth.outcomes, outcomes)
    return {name: value for name, value in figures.items() if not math.isnan(value)}


def _numbers(whose: str, outcomes: Outcomes) -> dict[str, float]:
    return {f"{whose}_{name}": float(value) for name, value in outcomes}


def _deviations(truth: Outcomes, found: Outcomes) -> dict[str, float]:
    away = deviations.deviations(
        (truth.passed, truth.failed, truth.skipped), (found.passed, found.failed, found.skipped)
    )
    return {"deviation": away.mean, "total_deviation": away.total, "close": float(away.close)}


def _claimed(results: str | None, found: Outcomes | None) -> dict[str, float]:
    """Return the agent's own numbers, and whether they differ from the measured ones; empty if they cannot be read."""
    try:
        claimed = _Claim.model_validate_json(results or "").outcomes
    except ValidationError:
        return {}
    return _numbers("claimed", claimed) | {"claim_differs": float(claimed != (found or Outcomes()))}


def _record(into: Path, delivered: Deliverables, found: Rerun) -> None:
    """Write the judged files and the result to the trial's folder."""
    texts = {DOCKERFILE: delivered.dockerfile, SCRIPT: delivered.script, RESULTS: delivered.results}
    for name, text in texts.items():
        if text is not None:
            (into / name).write_text(text, encoding="utf-8")
    (into / MEASURED).write_text(found.model_dump_json(indent=1), encoding="utf-8")
    why = f"{found.error.message}\n\n" if found.error else ""
    (into / PRINTED).write_text(f"{why}{found.output}", encoding="utf-8", errors="replace")
