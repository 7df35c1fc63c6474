"""The verifier of CLI-Tool-Bench: the agent's tool and the human-written one run the same cases (section 2.3).

Only the workspace travels: it is installed in a fresh image that the agent never touched, and so is the reference's
source. What the reference does is looked at twice, once and for all candidates; cases in which it is not the same
both times are quarantined. The candidate's machine holds neither the reference nor any case but the one that runs.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from metrics import differential as metric
from runner.case_file import read_cases
from runner.cases import Case, CaseLimits, CaseResult, CaseSide, How
from runner.errors import EngineError, SpoiledMachine, VerifierError, WorkspaceTooLarge
from runner.printing import printable
from runner.records import ErrorInfo, ExecSpec, Image, Judge, Record, SandboxSpec, Task, Verdict
from runner.sandbox import casebox
from runner.sandbox.network import allowed
from runner.store import write_atomically
from runner.verifiers.comparison import Comparison, known
from runner.verifiers.reference_runs import ReferenceRun, reference_run
from runner.verifiers.semantic import SemanticJudge, identity
from runner.workspace import measure

if TYPE_CHECKING:
    from runner.protocols import Ask, Sandbox, SandboxProvider

WORKSPACE = "/workspace"
"""Where a tool's source lies when it is installed, on both sides."""
FOUND = "differential.json"
"""Everything that was found, case by case, beside the trial's record."""


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

    @model_validator(mode="after")
    def _has_the_judge_it_needs(self) -> DifferentialVerifier:
        if self.reward == "semantic_match" and self.judge is None:
            raise ValueError("reward=semantic_match needs a judge: dataset=cli_tool_bench_judged has one")
        return self

    @property
    def shaping(self) -> dict[str, Any]:
        """What of it can change a reward; the judge only where its word is the reward."""
        rules = self.model_dump(mode="json", exclude={"cache", "lanes", "judge"})
        if self.judge and self.reward == "semantic_match":
            return rules | {"judge": identity(self.judge)}
        return rules

    def verify(
        self, task: Task, sandbox: Sandbox, sandboxes: SandboxProvider, into: Path, ask: Ask | None = None
    ) -> Verdict:
        """See `protocols.Verifier`. Raises `VerifierError` when the reference itself is broken."""
        began = time.monotonic()
        cases = _cases(task)
        _reference(task)  # before anything is run in vain
        image = sandboxes.image(task.environment)
        workspace = into / "workspace.tar"
        try:
            sandbox.get(sandbox.workdir, workspace)
        except (WorkspaceTooLarge, FileNotFoundError) as error:
            # What cannot be taken out cannot be installed, and that is the agent's doing.
            return Verdict(
                reward=0.0,
                components={"build": 0.0, **task.verifier.reference},
                mode="separate",
                error=ErrorInfo.of(error, "verify"),
            )
        results, output = self._candidate(task, workspace, cases, sandboxes)
        how = results[0].how if results else None
        reference = self._reference(task, cases, sandboxes, how)
        compared = Comparison(self.rules, cases, reference, results, output)
        if self.judge and ask:
            semantic = SemanticJudge(self.judge, self.cache, ask)
            compared = compared.judged(semantic.verdicts(compared.questions.values()))
        verdict = self._verdict(compared, into)
        sizes = {"workspace_depth": float(measure(workspace).depth), **task.verifier.reference}
        return verdict.model_copy(
            update={
                "image": image.id,
                "components": verdict.components | sizes,
                "seconds": time.monotonic() - began,
            }
        )

    @property
    def rules(self) -> metric.Rules:
        """How observations are compared."""
        return metric.Rules(self.semantics, self.tau, self.compare_modes)

    def _candidate(
        self, task: Task, workspace: Path, cases: Sequence[Case], sandboxes: SandboxProvider
    ) -> tuple[list[CaseResult] | None, str]:
        """Results, None if there is nothing that could run; and what the installation printed."""
        image, output, results = sandboxes.image(task.environment), "", None
        try:
            with self._installed(task, (workspace, "/"), image, sandboxes) as candidate:
                output = candidate.output
                if candidate.image is not None:
                    results = self._run(task, candidate.image, cases, sandboxes)
        except (EngineError, SpoiledMachine) as error:
            if results is not None:  # there was nothing of the candidate's left to do
                raise
            # A workspace may be none that can be unpacked, and an installation can break its machine so that nothing
            # runs there. That is the agent's doing, or it could void a trial that it is losing; unless nothing runs on
            # the machine as it was, either.
            self._run(task, image, cases[:1], sandboxes)
            output += f"\nThe workspace or its installation broke the machine: {error}"
        return results, output

    def _reference(
        self, task: Task, cases: Sequence[Case], sandboxes: SandboxProvider, how: How | None
    ) -> ReferenceRun:
        """What the reference did, now or at an earlier time, in the way in which the candidate's cases were run."""
        reference, image = _reference(task), sandboxes.image(task.environment)

        def run(cases: Sequence[Case]) -> list[CaseResult]:
            with self._installed(task, (reference / "source", WORKSPACE), image, sandboxes) as installed:
                if installed.image is None:
                    raise VerifierError(
                        f"The reference of {task.name} cannot be installed: {installed.output[-1000:]}"
                    )
                return self._run(task, installed.image, cases, sandboxes, how or "auto")

        shaping = [image.id, reference.name, task.verifier.install, self.limits.model_dump(), _engine()]
        try:
            return reference_run(self.cache / "results", shaping, cases, self.rules, run, how)
        except SpoiledMachine as error:  # not the agent's: its tool has never been there
            raise VerifierError(f"The reference of {task.name} spoils its machine: {error}") from error

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
        # A private workspace is no failure: what is judged is what was made, and not under which umask.
        command = ExecSpec(
            argv=("bash", "-c", f"chmod -R a+rX . && {task.verifier.install}"),
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
                yield Installed(None, f"{output}\n`{task.verifier.install}` ended with {ending}")

    def _run(
        self,
        task: Task,
        image: Image,
        cases: Sequence[Case],
        sandboxes: SandboxProvider,
        how: How | Literal["auto"] = "auto",
    ) -> list[CaseResult]:
        """What came of each case on one side, in their order."""
        from runner.sandbox.cases import stream  # noqa: PLC0415 - a plan that starts nothing needs no engine

        name = f"{task.name}-cases"
        side = CaseSide(name=name, image=image, limits=self.limits, lanes=self.lanes, how=how)
        heard = cases if self.semantics == "paper" else [_merged(case) for case in cases]
        with sandboxes.cases(side) as box:
            results = dict(stream(box, heard))
        return [results[index] for index in range(len(cases))]

    def _verdict(self, compared: Comparison, into: Path) -> Verdict:
        """The verdict; everything else goes to files in `into`."""
        scored = compared.scored()
        text = printable(compared.text(scored))  # a candidate's own words, which people read on a terminal
        (into / "verifier.stdout").write_text(text, encoding="utf-8", errors="replace")
        write_atomically(into / FOUND, json.dumps(compared.found(scored), indent=1).encode())
        reward = scored.metrics[self.reward]
        error = None
        if isnan(reward):
            reason = "The reference succeeds in no stable case of any class, so there is no score."
            error = ErrorInfo(type="VerifierError", message=reason, phase="verify")
        return Verdict(
            reward=None if error else reward,
            components={"build": scored.build, **known(scored.metrics), **compared.components()},
            mode="separate",
            output=text[-4000:],
            error=error,
        )


def _cases(task: Task) -> tuple[Case, ...]:
    if task.verifier.cases is None:
        raise VerifierError(f"{task.name} has no cases, which differential testing needs.")
    return read_cases(task.verifier.cases)


def _reference(task: Task) -> Path:
    if task.solution is None or not task.solution.is_dir():
        raise VerifierError(f"The reference of {task.name} is not here: fetch it with job=setup.")
    return task.solution


def _engine() -> str:
    """Digest of what looks at cases: another version may see other things."""
    digest = hashlib.sha256()
    for source in sorted(Path(casebox.__file__).parent.glob("*.py")):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()


def _merged(case: Case) -> Case:
    """As the authors' runner has it: both streams in one, in the order in which they were written."""
    return case.model_copy(update={"command": f"exec 2>&1\n{case.command}"})
