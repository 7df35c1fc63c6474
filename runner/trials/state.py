"""The state of a trial while it runs, and its record once it has ended, in whatever way."""

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
from runner.files import write_atomically
from runner.protocols import SettableAgent
from runner.records import ErrorInfo, PhaseSeconds, Status, TrialRecord, Usage
from runner.sweeps.plan import identity
from runner.trials.behaviour import actions, file_reads, kinds, own_finish, terminal_use
from runner.trials.outcome import ending
from runner.trials.skills import UNSUPPORTED, Skills

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from runner.gateway import Session
    from runner.gateway.egress import Egress
    from runner.gateway.judge_calls import Asking
    from runner.protocols import Services
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
    from runner.trials.activity import Reporting
    from runner.trials.workspace import Workspace


RUNTIME = "python"
"""Bundle with the supervisor. Every sandbox in which a model acts has it."""


@dataclass
class TrialState:
    """The knowledge about a try so far. Each phase adds to it, so a failing phase loses nothing."""

    folder: Path
    """Host folder of the trial."""
    opened: float = field(default_factory=time.monotonic)
    """Beginning of the try, by a monotonic clock."""
    clock: dict[str, float] = field(default_factory=dict)
    """Phase -> seconds, in the order in which the phases began."""
    entered: Callable[[str], None] = lambda _: None
    """Function that is called with each phase as it begins."""
    image: Image | None = None
    result: ExecResult | None = None
    session: Session | None = None
    reporting: Reporting | None = None
    """Reporter of what the agent does; None without a model."""
    egress: Egress | None = None
    services: Services | None = None
    """The task's further containers; None if it has none, or before they run."""
    sockets: Path | None = None
    """Host folder with the sockets by which the sandbox reaches the gateway or the proxy; None: it reaches neither."""
    asking: Asking | None = None
    verdict: Verdict | None = None
    unserved: ErrorInfo | None = None
    """Reason why the model's provider serves nobody: our own smallest call failed as the agent's did."""
    error: ErrorInfo | None = None
    warnings: list[ErrorInfo] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    skills: Skills | None = None
    """The image's skills that the agent can see; None for a task without skills."""
    workspace: Workspace | None = None
    own_usage: OwnUsage | None = None
    began: float = 0.0
    """Beginning of the rollout in seconds since the epoch; 0 before it."""
    used: dict[int, list[ToolCall]] = field(default_factory=dict)
    """Number of a model call -> tool calls that an agent in our process carried out for its answer. They stand for
    those of the answer itself, which the agent may have mended, or refused."""

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Model calls of the agent that have ended."""
        return self.session.calls if self.session else ()

    @property
    def waited_seconds(self) -> float:
        """Seconds that the rollout's model calls have waited for the limits on calls."""
        return self.session.meter.waited_seconds if self.session else 0.0

    def tools(self, call: ModelCall) -> tuple[ToolCall, ...]:
        """Return the tool calls of a model call, in the model's order."""
        from runner.gateway.trajectory import tool_calls  # noqa: PLC0415 - only where a model was used

        return tuple(self.used.get(call.index, ())) or tool_calls(call)

    @property
    def phase(self) -> str:
        """Phase that began last, in which an error that is caught now arose."""
        return next(reversed(self.clock), "environment")

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Measure the seconds of one phase, in all steps of the trial."""
        began = time.monotonic()
        before = self.clock.pop(phase, 0.0)  # of an earlier step
        self.clock[phase] = before
        self.entered(phase)
        try:
            yield
        finally:
            self.clock[phase] = before + time.monotonic() - began


def make_record(
    trial: PlannedTrial,
    state: TrialState,
    bundles: Mapping[str, InstalledBundle],
    retries: tuple[Retry, ...],
    started: datetime,
) -> TrialRecord:
    """Return the record of a try that is over, however far it came. Write its trajectory.

    `bundles` are the installed ones by name, `retries` the tries before this one, and `started` is its beginning (UTC).
    """
    agent, verdict = trial.cell.agent, state.verdict
    status, error = _outcome(trial, state)
    reward = verdict.reward if verdict and status.finished else None
    behaviour = _behaviour(trial, state, status)  # may add flags and warnings
    return TrialRecord(
        key=trial.key,
        **trial.row().model_dump(include=TrialRecord.model_fields.keys() - {"key"}),
        status=status,
        reward=reward,
        passed=None if reward is None else reward >= trial.cell.dataset.pass_threshold,
        verdict=verdict,
        error=error,
        warnings=tuple(state.warnings),
        flags=_flags(trial, state, retries),
        agent_setting=agent.setting if isinstance(agent, SettableAgent) else "",
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
        skills=state.skills.names if state.skills else None,
        host_env=trial.task.host_env,
        workspace_files=state.workspace.files if state.workspace else None,
        workspace_lines=state.workspace.lines if state.workspace else None,
        digests=_digests(trial, state, bundles),
    )


def _outcome(trial: PlannedTrial, state: TrialState) -> tuple[Status, ErrorInfo | None]:
    """Return status and error. The first of these that applies decides: the user's stop, a failure of ours, the
    rollout's ending, what it left.

    An agent that ended well and left something on which no test can run is in error. Where tests ran, its trial was
    completed.
    """
    if state.result and state.result.ended == "cancelled":
        return Status.CANCELLED, None
    verdict = state.verdict
    is_unfit = verdict is not None and verdict.error is not None and verdict.reward == 0.0
    # A later failure does not replace the verdict that nothing could be judged: it may have the same cause.
    if state.result is None or (state.error is not None and not is_unfit):
        return Status.INFRA_INVALID, state.error
    refusal = state.session.meter.refusal if state.session else None
    status, error = ending(state.result, state.calls, refusal, trial.seconds, state.unserved)
    if verdict and is_unfit and status is Status.COMPLETED and "no_verdict" not in verdict.flags:
        return Status.AGENT_ERROR, verdict.error
    return status, error


def _spent(state: TrialState, retries: Sequence[Retry]) -> dict[str, Any]:
    """Return a record's tokens and USD. All but the agent's own count include earlier tries."""
    session, asking = state.session, state.asking
    return {
        "usage": sum((retry.usage for retry in retries), session.meter.usage if session else Usage()),
        "cost_usd": _total(
            [session.meter.cost_usd if session else 0.0, *(retry.cost_usd for retry in retries)]
        ),
        "judge_usd": _total([asking.cost_usd if asking else 0.0, *(retry.judge_usd for retry in retries)]),
        "turns": session.meter.turns if session else 0,
        "helper": session.helper_spend if session else None,
        "agent_usage": state.own_usage,
        "usage_difference": _difference(state),
    }


def _behaviour(trial: PlannedTrial, state: TrialState, status: Status) -> dict[str, Any]:
    """Return how the agent worked, and write the trajectory. Calls that make no sense become a flag and a warning.

    Raises `OutputsError`.
    """
    try:
        return _read_calls(trial, state, status)
    except OutputsError:
        raise
    except Exception as problem:  # noqa: BLE001 - the trial boundary: what calls hold is the agent's and a provider's
        state.flags.append("calls_undescribed")
        state.warnings.append(ErrorInfo.of(problem, "agent", unexpected=True))
        return {}


def _read_calls(trial: PlannedTrial, state: TrialState, status: Status) -> dict[str, Any]:
    """Return how the agent worked, read from its model calls. Write the trajectory.

    Raises `OutputsError`, and anything that a nonsensical answer leads to.
    """
    agent, calls = trial.cell.agent, state.calls
    tool_calls = [tool for call in calls for tool in state.tools(call)]
    names = [tool.name for tool in tool_calls]
    used = kinds(names, agent.tools)
    terminal, files = terminal_use(tool_calls, used), file_reads(tool_calls, used)
    if terminal.cut:
        state.flags.append("commands_cut")
    _write_trajectory(trial, state, calls)
    worked = tool_calls and (_has_changed(state) or _last_words(calls))
    if state.session and state.session.meter.turns and not worked:
        state.flags.append("empty_rollout")
    return {
        "cached_calls": sum(call.usage is not None and call.usage.cache_hit_tokens > 0 for call in calls)
        if state.session
        else None,
        "interactions": len(names),
        "tool_calls": dict(Counter(names)),
        "tool_names": tuple(names),
        "tool_kinds": used,
        "actions": actions(tool_calls, used) if state.session else None,
        "tool_phases": terminal.phases,
        "programs": terminal.programs,
        "file_reads": files.reads if state.session else None,
        "repeated_reads": files.repeated if state.session else None,
        "own_finish": own_finish(status, used, agent.tools) if state.session else None,
    }


def _flags(trial: PlannedTrial, state: TrialState, retries: Sequence[Retry]) -> tuple[str, ...]:
    """Return what a reader of the record must know before trusting its reward."""
    return (
        *trial.task.flags,
        *state.flags,
        *_own_flags(trial, state, retries),
        *(state.verdict.flags if state.verdict else ()),
    )


def _own_flags(trial: PlannedTrial, state: TrialState, retries: Sequence[Retry]) -> list[str]:
    """Return the flags that the whole trial shows, beside those of its task, its phases and its verdict."""
    calls, verdict = state.calls, state.verdict
    return [
        flag
        for flag, holds in {
            "cassette_mismatch": any(call.replayed and call.error for call in calls),
            # The cost of such calls is not known, and part of neither `cost_usd` nor `judge_usd`.
            "calls_cut": any(call.cut for call in calls)
            or any(retry.lost for retry in retries)
            or (state.asking is not None and state.asking.is_cut),
            "agent_usage_differs": any(count for _, count in _difference(state) or ()),
            "params_dropped": any(
                call.response is not None and trial.cell.model.lost_params(call.dropped) for call in calls
            ),
            "no_model_call": state.session is not None and not state.session.meter.turns,
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
            UNSUPPORTED: state.skills is not None
            and bool(state.skills.names)
            and trial.cell.agent.uses_model
            and not trial.cell.agent.skills,
            "no_wall_limit": trial.seconds is None,
            "time_limit_cut": trial.is_cut,
            "memory_raised": trial.memory_raised,
        }.items()
        if holds
    ]


def _difference(state: TrialState) -> OwnUsage | None:
    """Return the agent's own count less the gateway's; None where one of them has none."""
    return state.own_usage.beyond(state.session.meter.usage) if state.own_usage and state.session else None


def _digests(
    trial: PlannedTrial, state: TrialState, bundles: Mapping[str, InstalledBundle]
) -> dict[str, str]:
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
        "image_digest": state.image.digest if state.image else "",
        "verifier_image": state.verdict.image if state.verdict else "",
    }
    if state.services:
        digests |= {f"service_image:{name}": image.id for name, image in state.services.images.items()}
    if judge := cell.dataset.verifier.judge:
        digests["judge"] = identity(judge)
    for name in (RUNTIME, *([bundle.name] if bundle else [])):
        if installed := bundles.get(name):
            digests[f"bundle:{name}"] = installed.recipe
            digests[f"bundle_content:{name}"] = installed.content
    return {name: digest for name, digest in digests.items() if digest}


def _write_trajectory(trial: PlannedTrial, state: TrialState, calls: Sequence[ModelCall]) -> None:
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


def _last_words(calls: Sequence[ModelCall]) -> str:
    """Return the words of the last answer."""
    from runner.gateway.trajectory import words  # noqa: PLC0415 - only with a model

    return next((words(call) for call in reversed(calls) if call.response), "")


def _has_changed(state: TrialState) -> bool:
    """Return whether the rollout changed anything in its workspace, to the second; True if that is unknown."""
    return state.workspace is None or state.workspace.changed >= int(state.began)


def _total(costs: Sequence[float | None]) -> float | None:
    """Return the sum in USD; None if one part is unknown."""
    return None if None in costs else sum(cost for cost in costs if cost is not None)
