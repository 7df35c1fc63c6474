"""One trial, from an image to a record. Everything that can happen to it ends as a value on that record.

image → session at the gateway → sandbox up → rollout → processes dead → verdict from a fresh container → record
"""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runner import __version__, workspace
from runner.behaviour import kinds, own_finish
from runner.ending import ending
from runner.errors import (
    AssayError,
    ConfigError,
    EngineError,
    ImageError,
    JudgeError,
    OutputsError,
    WorkspaceTooLarge,
)
from runner.plan import PlannedTrial, identity
from runner.records import (
    ErrorInfo,
    ExecResult,
    ExecSpec,
    Image,
    ModelCall,
    OwnUsage,
    PhaseSeconds,
    Retry,
    SandboxSpec,
    Status,
    TrialRecord,
    Usage,
    Verdict,
)
from runner.sandbox.inside import proxied, supervised
from runner.sandbox.network import allowed
from runner.store import JUDGE_LEDGER, LEDGER
from runner.verifiers.harbor import LIVE_FRESH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from runner.gateway import Gateway, Session
    from runner.gateway.asking import Asking
    from runner.gateway.egress import Egress
    from runner.protocols import Sandbox, SandboxProvider
    from runner.records import ToolCall
    from runner.store import Store

LASTING = frozenset({ImageError.__name__, ConfigError.__name__, JudgeError.__name__, "CassetteMismatch"})
"""Failures of ours that a repetition cannot mend, or not at its price: a judge's would pay for the rollout again."""
BACK_OFF_SECONDS = (2.0, 8.0)
"""Before the first and every later repetition of a trial that our side spoiled."""


@dataclass(frozen=True)
class Lab:
    """What every trial of a sweep shares."""

    sandboxes: SandboxProvider
    gateway: Gateway
    store: Store
    sweep: str
    bundles: dict[str, str]
    """Bundle name -> recipe digest."""


@dataclass
class _Rollout:
    """What is known of a trial so far; filled in as the phases pass, whatever becomes of the later ones."""

    folder: Path
    clock: dict[str, float] = field(default_factory=dict)
    image: Image | None = None
    result: ExecResult | None = None
    session: Session | None = None
    egress: Egress | None = None
    asking: Asking | None = None
    verdict: Verdict | None = None
    error: ErrorInfo | None = None
    flags: list[str] = field(default_factory=list)
    workspace: workspace.Workspace | None = None
    own_usage: OwnUsage | None = None
    began: float = 0.0
    """Of the rollout, in seconds since the epoch."""


def run_to_the_end(
    trial: PlannedTrial,
    lab: Lab,
    retries: int,
    cancelled: Callable[[], bool],
    affordable: Callable[[], bool] = lambda: True,
) -> TrialRecord:
    """Run a trial; repeat it with back-off after infrastructure failures that a repetition can mend.

    A repetition spends anew, so there is none where `affordable` says that the sweep's cap is spent.
    """
    for number in range(retries + 1):
        record = run_trial(trial, lab, cancelled)
        lab.store.write(record)
        lasting = record.error is not None and record.error.type in LASTING
        if record.status is not Status.INFRA_INVALID or lasting or number == retries:
            break
        until = time.monotonic() + BACK_OFF_SECONDS[min(number, len(BACK_OFF_SECONDS) - 1)]
        while time.monotonic() < until and not cancelled():
            time.sleep(0.1)
        if not affordable():
            break
    return record


def run_trial(trial: PlannedTrial, lab: Lab, cancelled: Callable[[], bool]) -> TrialRecord:
    """Run one try. Raises only `OutputsError`: if `outputs/` cannot be written there is no place for a record."""
    started = datetime.now(UTC)
    folder, retries = lab.store.begin(trial.key)
    state = _Rollout(folder)
    try:
        with ExitStack() as stack:
            _run(trial, lab, state, stack, cancelled)
    except OutputsError:
        raise
    except AssayError as error:
        state.error = ErrorInfo.of(error, _phase(state))
    except Exception as error:  # noqa: BLE001 - the trial boundary: a bug or a broken task spoils one trial, not a sweep
        state.error = ErrorInfo.of(error, _phase(state))
    return _record(trial, lab, state, retries, started)


def _run(
    trial: PlannedTrial, lab: Lab, state: _Rollout, stack: ExitStack, cancelled: Callable[[], bool]
) -> None:
    """The phases in their order. Leaving `stack` removes the sandbox and kills the trial's key."""
    task, agent = trial.task, trial.cell.agent
    with _timed(state, "environment"):
        state.image = image = lab.sandboxes.image(task.environment)
        limit = _limit(trial)
        state.session = _open_session(trial, lab, state.folder, limit, stack)
        endpoint = state.session.endpoint if state.session else None
        command = agent.command(task, endpoint).model_copy(update={"timeout_seconds": limit})
        state.egress = egress = _open_egress(trial, lab, state.session, stack)
        sandbox = stack.enter_context(lab.sandboxes.open(_sandbox_spec(trial, lab, image, state)))
        _wait_until_healthy(trial, sandbox)
    with _timed(state, "agent"):
        guarded = _guarded(command, trial, state.session, egress)
        state.began = time.time()
        state.result = result = sandbox.exec(guarded, cancelled, lambda: _waited(state))
    with _timed(state, "collect"):
        _collect(trial, sandbox, result, state)
    if result.ended != "cancelled":
        with _timed(state, "verify"):
            verifier = trial.cell.dataset.verifier
            state.asking = asking = _open_asking(trial, lab, state.folder, stack)
            ask = asking.ask if asking else None
            state.verdict = verifier.verify(task, sandbox, lab.sandboxes, state.folder, ask)


def _open_session(
    trial: PlannedTrial, lab: Lab, folder: Path, limit: float | None, stack: ExitStack
) -> Session | None:
    if not trial.cell.agent.uses_model:
        return None
    from runner.gateway import SessionSpec  # noqa: PLC0415 - the gateway's libraries load only when a model is used
    from runner.gateway.cassette import find  # noqa: PLC0415

    replayed = trial.cell.model.replayed
    spec = SessionSpec(
        trial=trial.key,
        task=trial.task.name,
        model=trial.cell.model,
        budget=trial.cell.budget,
        seconds=limit,
        ledger=folder / LEDGER,
        cassette=find(trial.cell, trial.task.name, trial.attempt) if replayed else None,
    )
    return stack.enter_context(lab.gateway.open(spec))


def _open_asking(trial: PlannedTrial, lab: Lab, folder: Path, stack: ExitStack) -> Asking | None:
    judge = trial.cell.dataset.verifier.judge
    if judge is None:
        return None
    from runner.gateway.asking import Asking  # noqa: PLC0415 - as above

    return stack.enter_context(Asking(lab.gateway, judge, trial.key, folder / JUDGE_LEDGER))


def _open_egress(trial: PlannedTrial, lab: Lab, session: Session | None, stack: ExitStack) -> Egress | None:
    """The proxy of a sandbox without an open network; beside a session also where it lets nothing through."""
    hosts = allowed(lab.sandboxes, trial.task.environment)
    if hosts is None or not (hosts or session):
        return None
    from runner.gateway.egress import egress  # noqa: PLC0415 - as above

    return stack.enter_context(egress(hosts, session.socket_dir if session else None))


def _guarded(
    command: ExecSpec, trial: PlannedTrial, session: Session | None, egress: Egress | None
) -> ExecSpec:
    """The command under the supervisor; the bounds need neither a gateway nor a gentle end, and so no runtime."""
    if session is None and trial.cell.agent.bundle is None and egress is None:
        return command
    guarded = supervised(command, gateway=session is not None, gently=session is None or not session.limited)
    return proxied(guarded) if egress else guarded


def _sandbox_spec(trial: PlannedTrial, lab: Lab, image: Image, state: _Rollout) -> SandboxSpec:
    task, bundle, session = trial.task, trial.cell.agent.bundle, state.session
    sockets = session.socket_dir if session else state.egress.folder if state.egress else None
    return SandboxSpec(
        name=task.name,
        image=image,
        environment=task.environment,
        user=task.agent_user,
        gateway_dir=sockets,
        bundles=(bundle,) if bundle else (),
        fresh_dirs=LIVE_FRESH if task.verifier.keep_processes else (),
        network="open" if allowed(lab.sandboxes, task.environment) is None else "none",
        labels={"assay.sweep": lab.sweep, "assay.trial": trial.key},
    )


def _wait_until_healthy(trial: PlannedTrial, sandbox: Sandbox) -> None:
    """Raises `EngineError` when the task's own health check never succeeds."""
    check = trial.task.environment.healthcheck
    if check is None:
        return
    # `timeout` inside: our own deadline would end the whole sandbox.
    limit = f"{check.timeout_seconds:g}"
    probe = ExecSpec(argv=("timeout", "-k", "1", limit, "bash", "-c", check.command), user="root")
    time.sleep(check.start_period_seconds)
    for _ in range(check.retries):
        if sandbox.exec(probe).exit_code == 0:
            return
        time.sleep(check.interval_seconds)
    raise EngineError(f"The health check of {trial.task.name} never succeeded: {check.command}")


def _collect(trial: PlannedTrial, sandbox: Sandbox, result: ExecResult, state: _Rollout) -> None:
    """What is taken out of the agent's sandbox. Its processes die as soon as what they hold has been read."""
    if state.egress:
        state.egress.unrouted(sandbox.unrouted())
    try:
        state.own_usage = trial.cell.agent.reported(sandbox, result)
    except ValueError:
        state.flags.append("agent_usage_unreadable")
    for collect in trial.task.verifier.collect:
        sandbox.exec(ExecSpec(argv=("bash", "-c", collect), user="root", timeout_seconds=60.0))
    if not trial.task.verifier.keep_processes:
        sandbox.kill()
    (state.folder / "agent.stdout").write_text(result.stdout)
    (state.folder / "agent.stderr").write_text(result.stderr)
    if sandbox.workdir != "/":  # a task that works in / is judged whole; its workspace is the machine
        try:
            sandbox.get(sandbox.workdir, state.folder / "workspace.tar")
            state.workspace = workspace.measure(state.folder / "workspace.tar")
        except WorkspaceTooLarge:
            state.flags.append("workspace_too_large")
        except FileNotFoundError:
            state.flags.append("workspace_gone")


def _record(
    trial: PlannedTrial, lab: Lab, state: _Rollout, retries: tuple[Retry, ...], started: datetime
) -> TrialRecord:
    cell, verdict = trial.cell, state.verdict
    calls = state.session.calls if state.session else ()
    status, error = Status.INFRA_INVALID, state.error
    if state.error is None and state.result is not None:
        refusal = state.session.refusal if state.session else None
        status, error = ending(state.result, calls, refusal, _limit(trial))
    if verdict and verdict.error and verdict.reward == 0.0:  # what it left cannot be judged, by its own doing
        status, error = Status.AGENT_ERROR, verdict.error
    reward = verdict.reward if verdict and status.finished else None
    names = [call.name for call in _tool_calls(calls)]
    used, tools = kinds(names, cell.agent.tools), Counter(names)
    finished = datetime.now(UTC)
    _write_trajectory(trial, state.folder, calls)
    return TrialRecord(
        key=trial.key,
        **trial.row().model_dump(exclude={"key", "refused"}),
        status=status,
        reward=reward,
        passed=None if reward is None else reward >= cell.dataset.pass_threshold,
        verdict=verdict,
        error=error,
        flags=(*trial.task.flags, *state.flags, *_flags(trial, state, calls)),
        agent_exit_code=state.result.exit_code if state.result else None,
        usage=sum((retry.usage for retry in retries), state.session.usage if state.session else Usage()),
        cost_usd=_total(
            [state.session.cost_usd if state.session else 0.0, *(retry.cost_usd for retry in retries)]
        ),
        agent_usage=state.own_usage,
        usage_difference=_difference(state),
        judge_usd=_total(
            [state.asking.cost_usd if state.asking else 0.0, *(retry.judge_usd for retry in retries)]
        ),
        turns=state.session.turns if state.session else 0,
        interactions=tools.total(),
        tool_calls=dict(tools),
        tool_kinds=used,
        own_finish=own_finish(status, used, cell.agent.tools) if state.session else None,
        started_at=started,
        finished_at=finished,
        wall_seconds=(finished - started).total_seconds(),
        seconds=PhaseSeconds(**state.clock, waiting=_waited(state)),
        retries=retries,
        egress=state.egress.attempts if state.egress else (),
        workspace_files=state.workspace.files if state.workspace else None,
        workspace_lines=state.workspace.lines if state.workspace else None,
        digests=_digests(trial, lab, state),
    )


def _flags(trial: PlannedTrial, state: _Rollout, calls: Sequence[ModelCall]) -> list[str]:
    """What a reader of the record must know before trusting its reward."""
    called, tools = bool(state.session and state.session.turns), bool(_tool_calls(calls))
    verdict = state.verdict
    return [
        flag
        for flag, holds in {
            "cassette_mismatch": any(call.replayed and call.error for call in calls),
            "calls_cut": any(
                call.cut for call in calls
            ),  # what they cost is not known, and not in `cost_usd`
            "agent_usage_differs": any(count for _, count in _difference(state) or ()),
            "no_model_call": state.session is not None and not called,
            "empty_rollout": called and not (tools and (_changed(state) or _said(calls))),
            "egress_refused": state.egress is not None
            and not all(one.allowed for one in state.egress.attempts),
            "lookups_unheard": state.egress is not None
            and state.result is not None
            and not state.egress.hears_lookups,
            "image_built_instead_of_pulled": bool(state.image and state.image.note),
            "verified_live": verdict is not None and verdict.mode == "live",
            "forged_results": verdict is not None and bool(verdict.components.get("forged")),
            "unjudged": verdict is not None and verdict.reward is None,
            "output_truncated": state.result is not None
            and state.result.output_bytes > len(state.result.stdout) + len(state.result.stderr) + 4096,
            "no_wall_limit": _limit(trial) is None,
        }.items()
        if holds
    ]


def _difference(state: _Rollout) -> OwnUsage | None:
    """What the agent itself counted, less what the gateway did; None where one of them counted nothing."""
    return state.own_usage.beyond(state.session.usage) if state.own_usage and state.session else None


def _digests(trial: PlannedTrial, lab: Lab, state: _Rollout) -> dict[str, str]:
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
    if bundle:
        digests[f"bundle:{bundle.name}"] = lab.bundles.get(bundle.name, "")
    return {name: digest for name, digest in digests.items() if digest}


def _write_trajectory(trial: PlannedTrial, folder: Path, calls: Sequence[ModelCall]) -> None:
    if not calls:
        return
    from runner.gateway.trajectory import atif  # noqa: PLC0415 - as above: only where a model was used

    agent = trial.cell.agent
    trajectory = atif(
        calls,
        agent=agent.name,
        version=agent.version,
        session_id=trial.key,
        instruction=trial.task.instruction,
    )
    (folder / "trajectory.json").write_text(json.dumps(trajectory, indent=1))


def _tool_calls(calls: Sequence[ModelCall]) -> list[ToolCall]:
    if not calls:
        return []
    from runner.gateway.trajectory import tool_calls  # noqa: PLC0415

    return [tool for call in calls for tool in tool_calls(call)]


def _said(calls: Sequence[ModelCall]) -> str:
    """The words of the last answer."""
    from runner.gateway.trajectory import words  # noqa: PLC0415

    return next((words(call) for call in reversed(calls) if call.response), "")


def _changed(state: _Rollout) -> bool:
    """Whether the rollout changed anything in its workspace, to the second; true where nobody can tell."""
    return state.workspace is None or state.workspace.changed >= int(state.began)


def _limit(trial: PlannedTrial) -> float | None:
    """Seconds of the rollout: the smaller of the task's own limit and the budget's."""
    limits = [trial.task.agent_timeout_seconds, trial.cell.budget.wall_seconds]
    return min((limit for limit in limits if limit is not None), default=None)


def _waited(state: _Rollout) -> float:
    """Seconds that the rollout's model calls have waited for the limits on calls."""
    return state.session.waited_seconds if state.session else 0.0


def _total(costs: Sequence[float | None]) -> float | None:
    """Sum of USD; None as soon as one part is unknown."""
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _phase(state: _Rollout) -> str:
    """The phase an error arose in: the last one whose clock has started."""
    return next(reversed(state.clock), "environment")


@contextmanager
def _timed(state: _Rollout, phase: str) -> Iterator[None]:
    began = time.monotonic()
    state.clock[phase] = 0.0
    try:
        yield
    finally:
        state.clock[phase] = time.monotonic() - began
