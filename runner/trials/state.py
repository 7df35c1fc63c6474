"""What is known of a trial while it runs, and the record made of it whatever became of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from runner import __version__
from runner.errors import OutputsError
from runner.records import ErrorInfo, PhaseSeconds, Status, TrialRecord, Usage
from runner.sweeps.plan import identity
from runner.sweeps.store import write_atomically
from runner.trials.behaviour import in_terminal, kinds, own_finish
from runner.trials.outcome import ending

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from runner.gateway import Session
    from runner.gateway.asking import Asking
    from runner.gateway.egress import Egress
    from runner.records import (
        ExecResult,
        Image,
        InstalledBundle,
        ModelCall,
        OwnUsage,
        Retry,
        ToolCall,
        Verdict,
    )
    from runner.sweeps.plan import PlannedTrial
    from runner.trials.workspace import Workspace


RUNTIME = "python"
"""The bundle with the supervisor, which is part of every sandbox that a model acts in."""


@dataclass
class Rollout:
    """What is known of a trial so far; filled in as the phases pass, whatever becomes of the later ones."""

    folder: Path
    opened: float = field(default_factory=time.monotonic)
    """When it began, by a clock that is never set."""
    clock: dict[str, float] = field(default_factory=dict)
    entered: Callable[[str], None] = lambda _: None
    """Hears of each phase as it begins."""
    image: Image | None = None
    result: ExecResult | None = None
    session: Session | None = None
    egress: Egress | None = None
    sockets: Path | None = None
    """Host folder with what its sandbox may reach of the gateway; None: nothing."""
    asking: Asking | None = None
    verdict: Verdict | None = None
    unserved: ErrorInfo | None = None
    """Why the model's provider serves nobody, if our own smallest call failed as the agent's did."""
    error: ErrorInfo | None = None
    warnings: list[ErrorInfo] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    workspace: Workspace | None = None
    own_usage: OwnUsage | None = None
    began: float = 0.0
    """Of the rollout, in seconds since the epoch."""
    used: dict[int, list[ToolCall]] = field(default_factory=dict)
    """Number of a model call -> tool calls that an agent in our process read from the words of its answer."""

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every model call of the agent that has ended."""
        return self.session.calls if self.session else ()

    @property
    def waited_seconds(self) -> float:
        """How long the rollout's model calls have waited for the limits on calls."""
        return self.session.waited_seconds if self.session else 0.0

    def tools(self, call: ModelCall) -> tuple[ToolCall, ...]:
        """The tool calls of a model call, in the model's order."""
        from runner.gateway.trajectory import tool_calls  # noqa: PLC0415 - only where a model was used

        return (*tool_calls(call), *self.used.get(call.index, ()))

    @property
    def phase(self) -> str:
        """The last one whose clock has started: an error arose there."""
        return next(reversed(self.clock), "environment")

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """The clock of one phase."""
        began = time.monotonic()
        self.clock[phase] = 0.0
        self.entered(phase)
        try:
            yield
        finally:
            self.clock[phase] = time.monotonic() - began


def recorded(
    trial: PlannedTrial,
    state: Rollout,
    bundles: Mapping[str, InstalledBundle],
    retries: tuple[Retry, ...],
    started: datetime,
) -> TrialRecord:
    """The record of a try that is over, however far it came, and its trajectory on disk.

    `bundles` are those that are installed, by name; `retries` are the tries before it, `started` is when it began
    (UTC).
    """
    verdict = state.verdict
    status, error = _ended(trial, state)
    reward = verdict.reward if verdict and status.finished else None
    behaviour = {}
    try:
        behaviour = _behaviour(trial, state, status)
    except OutputsError:
        raise
    except Exception as problem:  # noqa: BLE001 - the trial boundary: what calls hold is the agent's and a provider's
        state.flags.append("calls_undescribed")
        state.warnings.append(ErrorInfo.of(problem, "agent", unexpected=True))
    return TrialRecord(
        key=trial.key,
        **trial.row().model_dump(exclude={"key", "refused"}),
        status=status,
        reward=reward,
        passed=None if reward is None else reward >= trial.cell.dataset.pass_threshold,
        verdict=verdict,
        error=error,
        warnings=tuple(state.warnings),
        flags=(
            *trial.task.flags,
            *state.flags,
            *_flags(trial, state, retries),
            *(verdict.flags if verdict else ()),
        ),
        agent_exit_code=state.result.exit_code if state.result else None,
        memory_mb=trial.memory_mb,
        **_spent(state, retries),
        **behaviour,
        started_at=started,
        finished_at=datetime.now(UTC),
        wall_seconds=time.monotonic() - state.opened,
        seconds=PhaseSeconds(**state.clock, waiting=state.waited_seconds),
        retries=retries,
        egress=state.egress.attempts if state.egress else (),
        host_env=trial.task.host_env,
        workspace_files=state.workspace.files if state.workspace else None,
        workspace_lines=state.workspace.lines if state.workspace else None,
        digests=_digests(trial, state, bundles),
    )


def _ended(trial: PlannedTrial, state: Rollout) -> tuple[Status, ErrorInfo | None]:
    """Status and error. In order: the user's stop, a failure of ours, what the rollout came to, what it left.

    An agent that ended well and left what no test can run on is in error; where tests ran, it was completed.
    """
    if state.result and state.result.ended == "cancelled":
        return Status.CANCELLED, None
    verdict = state.verdict
    is_unfit = verdict is not None and verdict.error is not None and verdict.reward == 0.0
    # Once there is a verdict on what cannot be judged, what happens later says nothing else: it may be the same cause.
    if state.result is None or (state.error is not None and not is_unfit):
        return Status.INFRA_INVALID, state.error
    refusal = state.session.refusal if state.session else None
    status, error = ending(state.result, state.calls, refusal, trial.seconds, state.unserved)
    if verdict and is_unfit and status is Status.COMPLETED and "no_verdict" not in verdict.flags:
        return Status.AGENT_ERROR, verdict.error
    return status, error


def _spent(state: Rollout, retries: Sequence[Retry]) -> dict[str, Any]:
    """What a record says of tokens and USD: those of the tries before it included, but for what the agent says."""
    session, asking = state.session, state.asking
    return {
        "usage": sum((retry.usage for retry in retries), session.usage if session else Usage()),
        "cost_usd": _total([session.cost_usd if session else 0.0, *(retry.cost_usd for retry in retries)]),
        "judge_usd": _total([asking.cost_usd if asking else 0.0, *(retry.judge_usd for retry in retries)]),
        "turns": session.turns if session else 0,
        "agent_usage": state.own_usage,
        "usage_difference": _difference(state),
    }


def _behaviour(trial: PlannedTrial, state: Rollout, status: Status) -> dict[str, Any]:
    """What a record says of how its agent worked, read from what model calls hold; and the trajectory on disk.

    Raises `OutputsError`, and whatever an answer that makes no sense leads to.
    """
    agent, calls = trial.cell.agent, state.calls
    made = [tool for call in calls for tool in state.tools(call)]
    used, tools = kinds([tool.name for tool in made], agent.tools), Counter(tool.name for tool in made)
    terminal = in_terminal(made, used)
    if terminal.cut:
        state.flags.append("commands_cut")
    _write_trajectory(trial, state, calls)
    if state.session and state.session.turns and not (made and (_changed(state) or _said(calls))):
        state.flags.append("empty_rollout")
    return {
        "interactions": tools.total(),
        "tool_calls": dict(tools),
        "tool_kinds": used,
        "tool_phases": terminal.phases,
        "programs": terminal.programs,
        "own_finish": own_finish(status, used, agent.tools) if state.session else None,
    }


def _flags(trial: PlannedTrial, state: Rollout, retries: Sequence[Retry]) -> list[str]:
    """What a reader of the record must know before trusting its reward."""
    calls, verdict = state.calls, state.verdict
    return [
        flag
        for flag, holds in {
            "cassette_mismatch": any(call.replayed and call.error for call in calls),
            # what they cost is not known, and neither in `cost_usd` nor in `judge_usd`
            "calls_cut": any(call.cut for call in calls)
            or any(retry.lost for retry in retries)
            or (state.asking is not None and state.asking.is_cut),
            "agent_usage_differs": any(count for _, count in _difference(state) or ()),
            "no_model_call": state.session is not None and not state.session.turns,
            "egress_refused": state.egress is not None
            and not all(one.allowed for one in state.egress.attempts),
            "lookups_unheard": state.egress is not None
            and state.result is not None
            and not state.egress.hears_lookups,
            "image_built_instead_of_pulled": bool(state.image and state.image.note),
            "verified_live": verdict is not None and verdict.mode == "live",
            "forged_results": verdict is not None and bool(verdict.components.get("forged")),
            "unjudged": verdict is not None and verdict.reward is None,
            "output_truncated": state.result is not None and state.result.output_cut,
            "no_wall_limit": trial.seconds is None,
            "time_limit_cut": trial.is_cut,
            "memory_raised": trial.memory_raised,
        }.items()
        if holds
    ]


def _difference(state: Rollout) -> OwnUsage | None:
    """What the agent itself counted, less what the gateway did; None where one of them counted nothing."""
    return state.own_usage.beyond(state.session.usage) if state.own_usage and state.session else None


def _digests(trial: PlannedTrial, state: Rollout, bundles: Mapping[str, InstalledBundle]) -> dict[str, str]:
    cell, bundle = trial.cell, trial.cell.agent.bundle
    digests = {
        "assay": __version__,
        "agent": identity(cell.agent),
        "model": identity(cell.model),
        "prices": cell.prices,
        "budget": identity(cell.budget),
        "task": trial.task.digest,
        "environment": trial.task.environment.digest,
        "image": state.image.id if state.image else "",
        "verifier_image": state.verdict.image if state.verdict else "",
    }
    if judge := cell.dataset.verifier.judge:
        digests["judge"] = identity(judge)
    for name in (RUNTIME, *([bundle.name] if bundle else [])):
        if installed := bundles.get(name):
            digests[f"bundle:{name}"] = installed.recipe
            digests[f"bundle_content:{name}"] = installed.content
    return {name: digest for name, digest in digests.items() if digest}


def _write_trajectory(trial: PlannedTrial, state: Rollout, calls: Sequence[ModelCall]) -> None:
    if not calls:
        return
    from runner.gateway.trajectory import atif  # noqa: PLC0415 - as above

    agent = trial.cell.agent
    trajectory = atif(
        calls,
        agent=agent.name,
        version=agent.version,
        session_id=trial.key,
        instruction=trial.task.instruction,
        read=state.used,
    )
    write_atomically(state.folder / "trajectory.json", json.dumps(trajectory, indent=1).encode())


def _said(calls: Sequence[ModelCall]) -> str:
    """The words of the last answer."""
    from runner.gateway.trajectory import words  # noqa: PLC0415 - only with a model

    return next((words(call) for call in reversed(calls) if call.response), "")


def _changed(state: Rollout) -> bool:
    """Whether the rollout changed anything in its workspace, to the second; true where nobody can tell."""
    return state.workspace is None or state.workspace.changed >= int(state.began)


def _total(costs: Sequence[float | None]) -> float | None:
    """Sum of USD; None as soon as one part is unknown."""
    return None if None in costs else sum(cost for cost in costs if cost is not None)
