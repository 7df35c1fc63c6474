"""The verifier of CLI-Tool-Bench: the agent's tool and the human-written one run the same cases (section 2.3).

Only the workspace travels: it is installed in a fresh image that the agent never touched, and so is the reference's
source. What the reference does is looked at twice, and kept for all candidates. Where a candidate differs the reference
is looked at again, as it may print the time; where it moves with the clock both sides run within one moment. What it
does not do the same each time even then decides nothing. The candidate's machine holds neither the reference nor any
case but the one that runs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from metrics import differential as metric
from runner.benchmarks.cli_tool_bench import valid_cases
from runner.benchmarks.cli_tool_bench.beside import Beside, beside, surviving
from runner.benchmarks.cli_tool_bench.case_file import read_cases
from runner.benchmarks.cli_tool_bench.comparison import Comparison, known
from runner.benchmarks.cli_tool_bench.reference_runs import ReferenceRun, References
from runner.benchmarks.cli_tool_bench.semantic import SemanticJudge, identity
from runner.errors import MachineError, SpoiledMachine, TaskError, VerifierError, WorkspaceTooLarge
from runner.files import code_digest, write_atomically
from runner.records import ErrorInfo, ExecSpec, Image, Judge, Record, SandboxSpec, Task, Verdict
from runner.records.cases import Case, CaseLimits, CaseResult, CaseSide, How
from runner.sandbox.cases import inside
from runner.sandbox.network import allowed
from runner.terminal.escaping import printable
from runner.trials.workspace import measure

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider, Submission

WORKSPACE = "/workspace"
"""Where a tool's source lies when it is installed, on both sides."""
FOUND = "differential.json"
"""Everything that was found, case by case, beside the trial's record."""


class DifferentialTest(Record):
    """Payload of a task that is judged beside a reference."""

    cases: Path
    """File of cases. The candidate sees no line of it."""
    install: str
    """Shell command that installs the tool in a workspace."""
    reference: dict[str, float] = {}
    """Figures of the human-written tool, which become components of the verdict."""


class Installed(NamedTuple):
    """A side after its installation."""

    image: Image | None
    """None: it failed."""
    output: str


class DifferentialVerifier(Record):
    """Compares exit code, stdout and file-system side effects, case by case."""

    cache: Path
    """Absolute folder for what is fetched and for what references did; safe to delete."""
    semantics: Literal["paper", "artifact"] = "paper"
    """artifact: as the authors' runner compares, where that differs from their paper."""
    tau: float = Field(default=0.8, ge=0, le=1)
    """τ of the fuzzy match."""
    compare_modes: bool = False
    """Whether permission bits are part of the side effects."""
    reward: Literal["exec", "state", "exact_match", "fuzzy_match", "semantic_match"] = "exact_match"
    """Which of the paper's scores is the reward; the last one needs a judge."""
    judge: Judge | None = None
    """Says whether unlike outputs mean the same. None: there is no semantic match."""
    limits: CaseLimits = CaseLimits()
    """Of one case on one side."""
    lanes: int = Field(default=2, ge=1)
    """Cases that run at once."""
    install_seconds: float = Field(default=300.0, gt=0)
    """An installation that takes longer has failed."""
    valid_share: float = Field(default=0.5, ge=0, le=1)
    """A task is refused unless its reference succeeds, and does the same each time, in this share of its cases, and in
    a case of this share of its classes."""

    @model_validator(mode="after")
    def _has_the_judge_it_needs(self) -> DifferentialVerifier:
        if self.reward == "semantic_match" and self.judge is None:
            raise ValueError("reward=semantic_match needs a judge: dataset=cli_tool_bench_judged has one")
        return self

    @property
    def shaping(self) -> dict[str, Any]:
        """What of it can change a reward; the judge only where its word is the reward."""
        rules = self.model_dump(mode="json", exclude={"cache", "lanes", "judge", "valid_share"})
        if self.judge and self.reward == "semantic_match":
            return rules | {"judge": identity(self.judge)}
        return rules

    def verify(self, submission: Submission) -> Verdict:
        """See `protocols.Verifier`.

        Raises `VerifierError` when the reference itself is broken, `TaskError` when too few cases are valid.
        """
        began = time.monotonic()
        task, sandboxes, folder = submission.task, submission.sandboxes, submission.folder
        test = _test(task)
        cases = read_cases(test.cases)
        _reference(task)  # before anything is run in vain
        image = sandboxes.image(task.environment)
        workspace = folder / "workspace.tar"
        try:
            submission.sandbox.get(submission.sandbox.workdir, workspace)
        except (WorkspaceTooLarge, FileNotFoundError) as error:
            # What cannot be taken out cannot be installed, and that is the agent's doing.
            return Verdict(
                reward=0.0,
                components={"build": 0.0, **test.reference},
                mode="separate",
                error=ErrorInfo.of(error, "verify"),
            )
        compared = self._compared(task, workspace, cases, sandboxes)
        if self.judge and submission.ask:
            semantic = SemanticJudge(self.judge, self.cache, submission.ask)
            compared = compared.judged(semantic.verdicts(compared.questions.values()))
        verdict = self._verdict(compared, folder)
        sizes = {"workspace_depth": float(measure(workspace).depth), **test.reference}
        return verdict.model_copy(
            update={
                "image": image.id,
                "components": verdict.components | sizes,
                "seconds": time.monotonic() - began,
            }
        )

    def _compared(
        self, task: Task, workspace: Path, cases: Sequence[Case], sandboxes: SandboxProvider
    ) -> Comparison:
        """Both sides of all cases, the clock's part taken out."""
        with ExitStack() as stack:
            candidate, results = self._candidate(task, workspace, cases, sandboxes, stack)
            how = results[0].how if results else None
            installed = self._reference_image(task, sandboxes, stack)
            references = self._references(task, sandboxes, installed, how)
            reference = references.seen(cases, how)
            self._check_counts(task, cases, reference)
            compared = Comparison(self.rules, cases, reference, results, candidate.output)
            if not results or candidate.image is None:
                return compared
            return self._looked_again(task, compared, references, (installed, candidate.image), sandboxes)

    @property
    def rules(self) -> metric.Rules:
        """How observations are compared."""
        return metric.Rules(self.semantics, self.tau, self.compare_modes)

    def _candidate(
        self,
        task: Task,
        workspace: Path,
        cases: Sequence[Case],
        sandboxes: SandboxProvider,
        stack: ExitStack,
    ) -> tuple[Installed, list[CaseResult] | None]:
        """What the installation left, for as long as `stack` is open; results, None if nothing could run."""
        image, candidate = sandboxes.image(task.environment), Installed(None, "")
        try:
            candidate = stack.enter_context(self._installed(task, (workspace, "/"), image, sandboxes))
            results = self._run(task, candidate.image, cases, sandboxes) if candidate.image else None
        except MachineError as error:
            # A workspace may be none that can be unpacked, and an installation can break its machine so that nothing
            # runs there. That is the agent's doing, or it could void a trial that it is losing; unless nothing runs on
            # the machine as it was, either.
            self._run(task, image, cases[:1], sandboxes)
            broken = f"{candidate.output}\nThe workspace or its installation broke the machine: {error}"
            return Installed(None, broken), None
        return candidate, results

    def _reference_image(
        self, task: Task, sandboxes: SandboxProvider, stack: ExitStack
    ) -> Callable[[], Image]:
        """The installed reference: made when it is first asked for, and there for as long as `stack` is open."""
        source, image = (_reference(task) / "source", WORKSPACE), sandboxes.image(task.environment)

        @cache
        def installed() -> Image:
            try:
                side = stack.enter_context(self._installed(task, source, image, sandboxes))
            except SpoiledMachine as error:  # not the agent's: its tool has never been there
                raise VerifierError(f"The reference of {task.name} spoils its machine: {error}") from error
            if side.image is None:
                raise VerifierError(
                    f"The reference of {task.name} cannot be installed: {side.output[-1000:]}"
                )
            return side.image

        return installed

    def _references(
        self, task: Task, sandboxes: SandboxProvider, installed: Callable[[], Image], how: How | None
    ) -> References:
        """What the reference does, in the way in which the candidate's cases were run."""

        def run(cases: Sequence[Case]) -> list[CaseResult]:
            return self._run(task, installed(), cases, sandboxes, how or "auto")

        image, reference = sandboxes.image(task.environment), _reference(task)
        shaping = [image.id, reference.name, _test(task).install, self.limits.model_dump(), _engine()]
        return References.of(self.cache / "results", shaping, self.rules, run)

    def _looked_again(
        self,
        task: Task,
        compared: Comparison,
        references: References,
        images: tuple[Callable[[], Image], Image],
        sandboxes: SandboxProvider,
    ) -> Comparison:
        """The comparison without the clock's part in it. `images`: the reference's and the candidate's."""
        how = compared.how
        moving = sorted({*compared.reference.moving, *references.look_again(compared.suspects, how)})
        if not moving:
            return compared
        # One case at a time: nothing of the candidate's runs while the reference is looked at.
        ours, theirs = (
            CaseSide(name=f"{task.name}-beside", image=side, limits=self.limits, how=how)
            for side in (images[0](), images[1])
        )
        found: dict[int, Beside] = {}
        with sandboxes.cases(ours) as reference, sandboxes.cases(theirs) as candidate:
            for index in moving:
                case = self._heard(compared.cases[index])
                found[index] = beside(reference.run, surviving(candidate), case, self.rules)
        varying = {index: one.varying for index, one in found.items() if one.lasting and one.varying}
        references.note(compared.cases, how, varying)
        return compared.beside(found)

    def _check_counts(self, task: Task, cases: Sequence[Case], reference: ReferenceRun) -> None:
        """Raises `TaskError` if too few cases are valid; keeps how many are.

        What is kept of the reference decides: no candidate can void its trial by what it brings to light.
        """
        counts = valid_cases.ValidCases.of(cases, reference)
        if reference.whole:
            valid_cases.write(self._counts(task), counts)
        if refusal := counts.refusal(self.valid_share):
            raise TaskError(f"{task.name}: {refusal}")

    def refusal(self, task: Task) -> str | None:
        """Why a task is refused, by what an earlier trial found of its reference; None: it is not, or nobody knows."""
        counts = valid_cases.read(self._counts(task))
        return counts.refusal(self.valid_share) if counts else None

    def _counts(self, task: Task) -> Path:
        shaping = [task.digest, task.environment.digest, _engine()]
        return valid_cases.path_of(self.cache / "valid", shaping)

    @contextmanager
    def _installed(
        self, task: Task, source: tuple[Path, str], image: Image, sandboxes: SandboxProvider
    ) -> Iterator[Installed]:
        """A workspace, put at its place in a fresh sandbox and installed; its image lives as long as the context."""
        spec = SandboxSpec(
            name=f"{task.name}-install",
            image=image,
            environment=task.environment,
            user="root",
            network="open" if allowed(sandboxes, task.environment) is None else "none",
        )
        install = _test(task).install
        # A private workspace is no failure: what is judged is what was made, and not under which umask.
        command = ExecSpec(
            argv=("bash", "-c", f"chmod -R a+rX . && {install}"),
            cwd=WORKSPACE,
            user="root",
            timeout_seconds=task.verifier.timeout_seconds,
        )
        with sandboxes.open(spec) as place:
            place.put(*source)
            result = place.exec(command)
            output = f"{result.stdout}{result.stderr}"
            if result.exit_code == 0:
                yield Installed(place.snapshot(), output)
            else:
                ending = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
                yield Installed(None, f"{output}\n`{install}` ended with {ending}")

    def _run(
        self,
        task: Task,
        image: Image,
        cases: Sequence[Case],
        sandboxes: SandboxProvider,
        how: How | Literal["auto"] = "auto",
    ) -> list[CaseResult]:
        """What came of each case on one side, in their order."""
        from runner.sandbox.cases.box import stream  # noqa: PLC0415 - a plan that starts nothing needs no engine

        name = f"{task.name}-cases"
        side = CaseSide(name=name, image=image, limits=self.limits, lanes=self.lanes, how=how)
        with sandboxes.cases(side) as box:
            results = dict(stream(box, [self._heard(case) for case in cases]))
        return [results[index] for index in range(len(cases))]

    def _heard(self, case: Case) -> Case:
        """The case as it is run."""
        return case if self.semantics == "paper" else _merged(case)

    def _verdict(self, compared: Comparison, into: Path) -> Verdict:
        """The verdict; everything else goes to files in `into`."""
        scored = compared.scored()
        text = printable(compared.text(scored))  # a candidate's own words, which people read on a terminal
        (into / "verifier.stdout").write_text(text, encoding="utf-8", errors="replace")
        write_atomically(into / FOUND, json.dumps(compared.found(scored), indent=1).encode())
        reward = scored.metrics[self.reward]
        error = None
        if isnan(reward):
            reason = f"No case of any class decides {self.reward}, as the reference succeeds or stays the same in none."
            error = ErrorInfo(type="TaskError", message=reason, phase="verify")
        return Verdict(
            reward=None if error else reward,
            components={"build": scored.build, **known(scored.metrics), **compared.components()},
            mode="separate",
            output=text[-4000:],
            error=error,
        )


def _test(task: Task) -> DifferentialTest:
    if not isinstance(task.payload, DifferentialTest):
        raise VerifierError(f"{task.name} has no cases, which differential testing needs.")
    return task.payload


def _reference(task: Task) -> Path:
    if task.solution is None or not task.solution.is_dir():
        raise VerifierError(f"The reference of {task.name} is not here: fetch it with job=setup.")
    return task.solution


def _engine() -> str:
    """Return the digest of the code that runs cases: another version may see other things."""
    return code_digest(Path(inside.__file__).parent.glob("*.py"))


def _merged(case: Case) -> Case:
    """As the authors' runner has it: both streams in one, in the order in which they were written."""
    return case.model_copy(update={"command": f"exec 2>&1\n{case.command}"})
