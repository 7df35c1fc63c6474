"""The verifier of CLI-Tool-Bench: the agent's tool and the human-written one run the same cases (section 2.3).

Only the workspace is taken from the agent's machine. It is installed in a fresh image that the agent never touched, and
so is the reference's source. The reference runs every case twice, and its results are stored for all candidates. Where
a candidate differs, the reference runs again, as it may print the time; where its behaviour changes with the clock,
both sides run side by side. Results that vary even then are not judged. The candidate's machine contains neither the
reference nor any case but the one that runs.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from metrics import differential as metric
from runner.benchmarks.cli_tool_bench import valid_cases
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.comparison import Comparison, without_nan
from runner.benchmarks.cli_tool_bench.installation import WORKSPACE, Installed, install
from runner.benchmarks.cli_tool_bench.normalizers import Normalizer, normalize
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun, References, Run
from runner.benchmarks.cli_tool_bench.semantic import SemanticJudge, identity
from runner.benchmarks.cli_tool_bench.side_by_side import SideBySide, run_or_report_lost, run_side_by_side
from runner.errors import (
    EngineError,
    MachineError,
    SpoiledMachine,
    TaskError,
    VerifierError,
    WorkspaceTooLarge,
)
from runner.files import code_digest, write_atomically
from runner.records import EgressAttempt, ErrorInfo, Image, Judge, Record, Task, Verdict
from runner.records.cases import Case, CaseLimits, CaseResult, CaseSide, How
from runner.sandbox.cases import inside
from runner.terminal.escaping import printable
from runner.trials.workspace import measure

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider, Submission

ATTEMPTS = "installations.json"
"""File with the attempts of each side's installation to use a network, beside the trial's record."""
DETAILS = "differential.json"
"""File with the outcome of each case, beside the trial's record."""
ONLINE, REFUSED = "online_profile", "install_egress_refused"
"""Flags of verdicts: installations could reach a package index; the candidate's installation asked for another host."""
Install = Callable[[tuple[Path, str], str], Installed]
"""Function that installs a source, a path and its place, for one side; its image lives as long as the comparison."""


class DifferentialTest(Record):
    """Payload of a task that is judged by comparison with a reference."""

    cases: Path
    """File of cases. The candidate sees no line of it."""
    install: str
    """Shell command that installs the tool in a workspace."""
    reference: dict[str, float] = {}
    """Sizes of the human-written tool, which become components of the verdict."""
    profile: Literal["sealed", "online"] = "sealed"
    """Network of installations: none, or a package index (`CliToolBench.profile`)."""
    normalize: tuple[Normalizer, ...] = ()
    """Replacements in the stdout of both sides before anything is compared, in their order."""


class DifferentialVerifier(Record):
    """Compares exit code, stdout and file-system side effects, case by case."""

    cache: Path
    """Absolute folder for fetched files and for the references' results; safe to delete."""
    semantics: Literal["paper", "artifact"] = "paper"
    """Rules of the comparison. artifact: those of the authors' runner, where they differ from the paper."""
    tau: float = Field(default=0.8, ge=0, le=1)
    """τ of the fuzzy match."""
    compare_modes: bool = False
    """True if permission bits are part of the side effects."""
    reward: Literal["exec", "state", "exact_match", "fuzzy_match", "semantic_match"] = "exact_match"
    """Score of the paper that serves as the reward; `semantic_match` needs a judge."""
    judge: Judge | None = None
    """The model that decides whether differing outputs mean the same. None: there is no semantic match."""
    limits: CaseLimits = CaseLimits()
    """Limits on one case on one side."""
    lanes: int = Field(default=2, ge=1)
    """Number of cases that run at once."""
    install_seconds: float = Field(default=300.0, gt=0)
    """Seconds after which an installation has failed."""
    valid_share: float = Field(default=0.5, ge=0, le=1)
    """A task is refused unless its reference succeeds, and behaves the same each time, in this share of its cases, and
    in a case of this share of its classes."""

    @model_validator(mode="after")
    def _check_judge(self) -> DifferentialVerifier:
        if self.reward == "semantic_match" and self.judge is None:
            raise ValueError("reward=semantic_match needs a judge: dataset=cli_tool_bench_judged has one")
        return self

    @property
    def shaping(self) -> dict[str, Any]:
        """The settings that can change a reward; the judge is one only if the semantic match is the reward."""
        settings = self.model_dump(mode="json", exclude={"cache", "lanes", "judge", "valid_share"})
        if self.judge and self.reward == "semantic_match":
            return settings | {"judge": identity(self.judge)}
        return settings

    @property
    def rules(self) -> metric.Rules:
        """The rules by which observations are compared."""
        return metric.Rules(self.semantics, self.tau, self.compare_modes)

    def verify(self, submission: Submission) -> Verdict:
        """See `protocols.Verifier`.

        Raises `VerifierError` if the reference itself is broken, `TaskError` if too few cases are valid.
        """
        attempts: dict[str, list[EgressAttempt]] = defaultdict(list)
        verdict = self._judge(submission, attempts)
        if payload(submission.task).profile == "sealed":
            return verdict
        text = json.dumps(
            {side: [one.model_dump() for one in made] for side, made in attempts.items()}, indent=1
        )
        write_atomically(submission.folder / ATTEMPTS, text.encode())
        own = tuple(attempts["candidate"])
        flags = (ONLINE, REFUSED) if any(not one.allowed for one in own) else (ONLINE,)
        return verdict.model_copy(update={"flags": (*verdict.flags, *flags), "egress": own})

    def _judge(self, submission: Submission, attempts: dict[str, list[EgressAttempt]]) -> Verdict:
        """Return the verdict. `attempts` receives the attempts of each side's installation to use a network."""
        began = time.monotonic()
        task, sandboxes, folder = submission.task, submission.sandboxes, submission.folder
        test = payload(task)
        cases = read_cases(test.cases)
        _reference_folder(task)  # fail before anything runs
        image = sandboxes.image(task.environment)
        workspace = folder / "workspace.tar"
        try:
            submission.sandbox.get(submission.sandbox.workdir, workspace)
        except (WorkspaceTooLarge, FileNotFoundError) as error:
            # A workspace that cannot be copied cannot be installed, and that is the agent's doing.
            return Verdict(
                reward=0.0,
                components={"build": 0.0, **test.reference},
                mode="separate",
                error=ErrorInfo.of(error, "verify"),
            )
        comparison = self._compare(task, workspace, cases, sandboxes, attempts)
        if self.judge and submission.ask:
            judge = SemanticJudge(self.judge, self.cache, submission.ask)
            comparison = comparison.with_verdicts(judge.verdicts(comparison.questions.values()))
        verdict = self._verdict(comparison, folder)
        sizes = {"workspace_depth": float(measure(workspace).depth), **test.reference}
        return verdict.model_copy(
            update={
                "image": image.id,
                "components": verdict.components | sizes,
                "seconds": time.monotonic() - began,
            }
        )

    def refusal(self, task: Task) -> str | None:
        """Return why an earlier trial found too few valid cases; None if it found enough or there was none."""
        counts = valid_cases.read(self._counts(task))
        return counts.refusal(self.valid_share) if counts else None

    def _compare(
        self,
        task: Task,
        workspace: Path,
        cases: Sequence[Case],
        sandboxes: SandboxProvider,
        attempts: Mapping[str, list[EgressAttempt]],
    ) -> Comparison:
        """Run both sides, and compare them so that the clock has no influence."""
        with ExitStack() as stack:

            def installer(source: tuple[Path, str], side: str) -> Installed:
                made = install(task, payload(task).install, source, sandboxes, attempts[side])
                return stack.enter_context(made)

            candidate, results = self._run_candidate(task, workspace, cases, sandboxes, installer)
            how = results[0].how if results else None
            installed = self.reference_image(task, installer)

            def run(some: Sequence[Case]) -> list[CaseResult]:
                return self.run(task, installed(), some, sandboxes, how or "auto")

            references = self.references(task, sandboxes, run)
            reference = references.look_up(cases, how)
            self._check_counts(task, cases, reference)
            comparison = Comparison(self.rules, cases, reference, results, candidate.output)
            if not results or candidate.image is None:
                return comparison
            images = (installed, candidate.image)
            return self._compare_side_by_side(task, comparison, references, images, sandboxes)

    def _run_candidate(
        self,
        task: Task,
        workspace: Path,
        cases: Sequence[Case],
        sandboxes: SandboxProvider,
        installer: Install,
    ) -> tuple[Installed, list[CaseResult] | None]:
        """Install the candidate, and run its cases; None if nothing can run.

        A workspace may be impossible to unpack, or its installation may break the machine. That is the agent's doing:
        otherwise an agent could void a trial that it is losing. Where the engine failed, both are tried once more.
        Raises `MachineError` only if nothing runs on a fresh machine either.
        """
        image, broken = sandboxes.image(task.environment), ""
        for _ in range(2):
            candidate = Installed(None, "")
            try:
                candidate = installer((workspace, "/"), "candidate")
                results = self.run(task, candidate.image, cases, sandboxes) if candidate.image else None
            except MachineError as error:
                self.run(task, image, cases[:1], sandboxes)
                broken = f"{candidate.output}\nThe workspace or its installation broke the machine: {error}"
                if not isinstance(error, EngineError):
                    break
            else:
                return candidate, results
        return Installed(None, broken), None

    def reference_image(self, task: Task, installer: Install) -> Callable[[], Image]:
        """Return a function that installs the reference when first called."""
        source = (_reference_folder(task) / "source", WORKSPACE)

        @cache
        def installed() -> Image:
            try:
                side = installer(source, "reference")
            except SpoiledMachine as error:  # not the agent's doing: its tool was never on this machine
                raise VerifierError(f"The reference of {task.name} spoils its machine: {error}") from error
            if side.image is None:
                raise VerifierError(
                    f"The reference of {task.name} cannot be installed: {side.output[-1000:]}"
                )
            return side.image

        return installed

    def references(self, task: Task, sandboxes: SandboxProvider, run: Run) -> References:
        """Return the reference's stored results. `run` runs the cases of the reference whose results are missing."""
        image, folder = sandboxes.image(task.environment), _reference_folder(task)
        test = payload(task)
        shaping: list[Any] = [image.id, folder.name, test.install, self.limits.model_dump(), _engine()]
        shaping += [test.profile] if test.profile == "online" else []
        shaping += [[rule.model_dump() for rule in test.normalize]] if test.normalize else []
        return References.of(self.cache / "results", shaping, self.rules, run)

    def _compare_side_by_side(
        self,
        task: Task,
        comparison: Comparison,
        references: References,
        images: tuple[Callable[[], Image], Image],
        sandboxes: SandboxProvider,
    ) -> Comparison:
        """Run again the cases in which the reference changes with the clock. `images`: reference's, candidate's."""
        how = comparison.how
        moving = sorted({*comparison.reference.moving, *references.look_again(comparison.suspects, how)})
        if not moving:
            return comparison
        # One case at a time: nothing of the candidate runs while the reference does.
        sides = (
            CaseSide(name=f"{task.name}-beside", image=image, limits=self.limits, how=how)
            for image in (images[0](), images[1])
        )
        found: dict[int, SideBySide] = {}
        with ExitStack() as stack:
            reference, candidate = (stack.enter_context(sandboxes.cases(side)) for side in sides)
            rules = payload(task).normalize
            runs = (reference.run, partial(run_or_report_lost, candidate))
            both = [partial(_run_normalized, run, rules) for run in runs]
            for index in moving:
                case = self._prepare(comparison.cases[index])
                found[index] = run_side_by_side(both[0], both[1], case, self.rules)
        varying = {index: both.varying for index, both in found.items() if both.lasting and both.varying}
        references.record_varying(comparison.cases, how, varying)
        return comparison.with_side_by_side(found)

    def _check_counts(self, task: Task, cases: Sequence[Case], reference: ReferenceRun) -> None:
        """Store the counts of valid cases. Raises `TaskError` if there are too few.

        Only the reference's stored results decide, so no candidate can void its trial by its own runs.
        """
        counts = valid_cases.ValidCases.of(cases, reference)
        if reference.whole:
            valid_cases.write(self._counts(task), counts)
        if refusal := counts.refusal(self.valid_share):
            raise TaskError(f"{task.name}: {refusal}")

    def _counts(self, task: Task) -> Path:
        shaping = [task.digest, task.environment.digest, _engine()]
        return valid_cases.path_of(self.cache / "valid", shaping)

    def run(
        self,
        task: Task,
        image: Image,
        cases: Sequence[Case],
        sandboxes: SandboxProvider,
        how: How | Literal["auto"] = "auto",
    ) -> list[CaseResult]:
        """Run all cases on one side, and return their results in the same order, with the task's replacements made."""
        from runner.sandbox.cases.box import stream  # noqa: PLC0415 - a plan that starts nothing needs no engine

        name = f"{task.name}-cases"
        side = CaseSide(name=name, image=image, limits=self.limits, lanes=self.lanes, how=how)
        with sandboxes.cases(side) as box:
            results = dict(stream(box, [self._prepare(case) for case in cases]))
        return normalize([results[index] for index in range(len(cases))], payload(task).normalize)

    def _prepare(self, case: Case) -> Case:
        """Return the case as it is run under these semantics."""
        return case if self.semantics == "paper" else _merge_streams(case)

    def _verdict(self, comparison: Comparison, folder: Path) -> Verdict:
        """Return the verdict, and write the summary and the details to files in `folder`."""
        scored = comparison.score()
        text = printable(comparison.summary(scored))  # the candidate's output in it may reach a terminal
        (folder / "verifier.stdout").write_text(text, encoding="utf-8", errors="replace")
        write_atomically(folder / DETAILS, json.dumps(comparison.details(scored), indent=1).encode())
        reward = scored.metrics[self.reward]
        error = None
        if isnan(reward):
            reason = f"No case of any class decides {self.reward}: the reference always fails or varies."
            error = ErrorInfo(type="TaskError", message=reason, phase="verify")
        return Verdict(
            reward=None if error else reward,
            components={"build": scored.build, **without_nan(scored.metrics), **comparison.components()},
            mode="separate",
            output=text[-4000:],
            error=error,
        )


def payload(task: Task) -> DifferentialTest:
    """Return the task's payload. Raises `VerifierError` if the task is not one of this benchmark."""
    if not isinstance(task.payload, DifferentialTest):
        raise VerifierError(f"{task.name} has no cases, which differential testing needs.")
    return task.payload


def _reference_folder(task: Task) -> Path:
    """Return the folder of the fetched reference. Raises `VerifierError` if it is missing."""
    if task.solution is None or not task.solution.is_dir():
        raise VerifierError(f"The reference of {task.name} is missing: fetch it with job=setup.")
    return task.solution


def _engine() -> str:
    """Return the digest of the code that runs cases: another version may observe something else."""
    return code_digest(Path(inside.__file__).parent.glob("*.py"))


def _run_normalized(run: Callable[[Case], CaseResult], rules: Sequence[Normalizer], case: Case) -> CaseResult:
    """Run one case, and return its result with these replacements made."""
    return normalize([run(case)], rules)[0]


def _merge_streams(case: Case) -> Case:
    """Return the case with both streams in one, in the order of writing, as in the authors' runner."""
    return case.model_copy(update={"command": f"exec 2>&1\n{case.command}"})
