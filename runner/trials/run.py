"""One trial, from an image to a record. Everything that can happen to it ends as a value on that record.

image → session at the gateway → sandbox up → rollout → processes dead → verdict from a fresh container → record
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from runner.archives.compressed import compress_archives
from runner.benchmarks.harbor.artifacts import PUBLISHED
from runner.benchmarks.harbor.carrying import keep_published
from runner.benchmarks.harbor.verifier import LIVE_FRESH
from runner.errors import (
    AssayError,
    ConfigError,
    HealthError,
    ImageError,
    JudgeError,
    OutputsError,
    SpoiledMachine,
    TaskError,
    WorkspaceTooLarge,
)
from runner.protocols import DrivingAgent, Sandbox
from runner.records import ErrorInfo, ExecResult, ExecSpec, SandboxSpec, Status, TrialRecord, Verdict
from runner.sandbox.inside import proxied, supervised
from runner.sandbox.network import allowed
from runner.sweeps.store import JUDGE_LEDGER, LEDGER, NO_ROOM, PROBE_LEDGER, no_room
from runner.terminal.escaping import one_line
from runner.trials import workspace
from runner.trials.driving import Clock, Machine, Workbench, drive
from runner.trials.outcome import REFUSED, refused_call
from runner.trials.state import Rollout, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from runner.gateway import Session
    from runner.gateway.asking import Asking
    from runner.gateway.egress import Egress
    from runner.protocols import CommandAgent
    from runner.sweeps.plan import PlannedTrial
    from runner.trials.context import Lab

LASTING = frozenset(
    {
        *(kind.__name__ for kind in (ImageError, ConfigError, TaskError, JudgeError)),
        "CassetteMismatch",
        REFUSED,
    }
)
"""Failures of ours that a repetition cannot mend, or not at its price: a judge's would pay for the rollout again."""
COLLECT_SECONDS = 60.0
"""For each command of a task's own that collects what is to be judged."""
BACK_OFF_SECONDS = (2.0, 8.0)
"""Before the first and every later repetition of a trial that our side spoiled."""


Work = Callable[[Sandbox], ExecResult]
"""A rollout that waits for its sandbox."""


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
        if cancelled() or not affordable():
            break
    return record


def run_trial(trial: PlannedTrial, lab: Lab, cancelled: Callable[[], bool]) -> TrialRecord:
    """Run one try. Raises only `OutputsError`: if `outputs/` cannot be written there is no place for a record."""
    started = datetime.now(UTC)
    folder, retries = lab.store.begin(trial.key)
    state = Rollout(folder, entered=partial(lab.watcher.entered, trial.key))
    try:
        with ExitStack() as stack:
            _run(trial, lab, state, stack, cancelled)
    except OutputsError:
        raise
    except SpoiledMachine as error:
        if state.began:  # before that no agent had been there
            state.verdict = _worthless(trial, ErrorInfo.of(error, state.phase))
        else:
            state.error = ErrorInfo.of(error, state.phase)
    except AssayError as error:
        state.error = ErrorInfo.of(error, state.phase)
    except Exception as error:  # the trial boundary: a bug or a broken task spoils one trial, not a sweep
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise no_room(folder, error) from error
        state.error = ErrorInfo.of(error, state.phase, unexpected=True)
    compress_archives(folder)
    return recorded(trial, state, lab.bundles, retries, started)


def _worthless(trial: PlannedTrial, error: ErrorInfo) -> Verdict:
    """The verdict on a machine that cannot be judged for what the agent did to it."""
    of_task = trial.task.verifier
    return Verdict(reward=0.0, mode="live" if of_task.keep_processes else of_task.mode, error=error)


def _run(
    trial: PlannedTrial, lab: Lab, state: Rollout, stack: ExitStack, cancelled: Callable[[], bool]
) -> None:
    """The phases in their order. Leaving `stack` removes the sandbox and kills the trial's key."""
    task, agent = trial.task, trial.cell.agent
    with state.timed("environment"):
        if isinstance(agent, DrivingAgent) and (refusal := agent.refusal(task)):
            raise TaskError(refusal)
        making = partial(lab.watcher.making, trial.key, image=f"the image of {one_line(task.name)}")
        state.image = lab.sandboxes.image(task.environment, making)
        state.session = _open_session(trial, lab, state.folder, stack)
        if isinstance(agent, DrivingAgent):
            work = _driven(trial, agent, lab, state, stack, cancelled)
        else:
            work = _commanded(trial, agent, lab, state, stack, cancelled)
        sandbox = stack.enter_context(lab.sandboxes.open(_sandbox_spec(trial, lab, state)))
        _wait_until_healthy(trial, sandbox)
    with state.timed("agent"):
        state.began = time.time()
        state.result = result = work(sandbox)
        if (
            state.session and state.session.unwritten
        ):  # nor may the agent be blamed for what it was answered then
            raise state.session.unwritten
    with state.timed("collect"):
        _collect(trial, sandbox, result, state)
        state.unserved = _unserved(trial, lab, state, cancelled) if result.ended != "cancelled" else None
    if result.ended != "cancelled" and not state.unserved:
        with state.timed("verify"):
            verifier = trial.cell.dataset.verifier
            state.asking = asking = _open_asking(trial, lab, state.folder, stack)
            ask = asking.ask if asking else None
            state.verdict = verifier.verify(task, sandbox, lab.sandboxes, state.folder, ask)


def _unserved(
    trial: PlannedTrial, lab: Lab, state: Rollout, cancelled: Callable[[], bool]
) -> ErrorInfo | None:
    """Why the provider serves nobody, where it refused the agent and refuses our own smallest call as well.

    The call goes by the API that the agent is configured to speak, so nothing that the agent asks can make it fail.
    """
    call, model = refused_call(state.calls), trial.cell.model
    if call is None or call.error is None or model.backend != "provider":
        return None
    from runner.gateway.probing import probe  # noqa: PLC0415 - as for sessions: only when a model is used

    own = probe(lab.gateway, model, trial.cell.agent.api, state.folder / PROBE_LEDGER, cancelled)
    if own.error is None:
        return None
    kind = REFUSED if own.refused else own.error.type
    message = (
        f"The provider of {model.name} refused this agent's call ({call.status_code}) and our own smallest call by the "
        f"{trial.cell.agent.api} API ({own.status_code}): {own.error.message}"
    )
    cause = f"{call.error.type}: {call.error.message}"[:1000]
    return ErrorInfo(type=kind, message=message, cause=cause, phase="gateway")


def _commanded(
    trial: PlannedTrial,
    agent: CommandAgent,
    lab: Lab,
    state: Rollout,
    stack: ExitStack,
    cancelled: Callable[[], bool],
) -> Work:
    """The rollout of an agent that runs in the sandbox: one command."""
    session = state.session
    command = agent.command(trial.task, session.endpoint if session else None)
    command = command.model_copy(update={"timeout_seconds": trial.seconds})
    state.egress = _open_egress(trial, lab, session, stack)
    state.sockets = session.socket_dir if session else state.egress.folder if state.egress else None
    guarded = _guarded(command, trial, session, state.egress)
    return lambda sandbox: sandbox.exec(guarded, cancelled, lambda: state.waited_seconds)


def _driven(
    trial: PlannedTrial,
    agent: DrivingAgent,
    lab: Lab,
    state: Rollout,
    stack: ExitStack,
    cancelled: Callable[[], bool],
) -> Work:
    """The rollout of an agent in our process. Its sandbox has no way to the model: what runs there asks nothing."""
    state.egress = _open_egress(trial, lab, None, stack)
    state.sockets = state.egress.folder if state.egress else None

    def work(sandbox: Sandbox) -> ExecResult:
        clock = Clock(trial.seconds, lambda: state.waited_seconds, cancelled)
        machine = Machine(sandbox, clock, behind_proxy=state.egress is not None)
        return drive(agent, Workbench(trial, machine, clock, state, lab))

    return work


def _open_session(trial: PlannedTrial, lab: Lab, folder: Path, stack: ExitStack) -> Session | None:
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
        seconds=trial.seconds,
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


def _sandbox_spec(trial: PlannedTrial, lab: Lab, state: Rollout) -> SandboxSpec:
    task, agent = trial.task, trial.cell.agent
    return SandboxSpec(
        name=task.name,
        image=state.image,
        environment=task.environment,
        user=task.agent_user,
        gateway_dir=state.sockets,
        bundles=(agent.bundle,) if agent.bundle else (),
        runtime=isinstance(agent, DrivingAgent),
        least_memory_mb=trial.memory_mb if trial.memory_raised else None,
        fresh_dirs=LIVE_FRESH if task.verifier.keep_processes else (),
        open_dirs=task.open_dirs,
        entrypoint=task.entrypoint,
        network="open" if allowed(lab.sandboxes, task.environment) is None else "none",
        labels={"assay.sweep": lab.sweep, "assay.trial": trial.key},
    )


def _wait_until_healthy(trial: PlannedTrial, sandbox: Sandbox) -> None:
    """Raises `HealthError` when the task's own health check never succeeds."""
    check = trial.task.environment.healthcheck
    if check is None:
        return
    # `timeout` inside: our own deadline would end the whole sandbox.
    limit = f"{check.timeout_seconds:g}"
    argv = ("timeout", "-k", "1", limit, "bash", "-c", check.command)
    probe = ExecSpec(argv=argv, user="root", timeout_seconds=check.timeout_seconds + COLLECT_SECONDS)
    time.sleep(check.start_period_seconds)
    for _ in range(check.retries):
        if sandbox.exec(probe).exit_code == 0:
            return
        time.sleep(check.interval_seconds)
    raise HealthError(f"The health check of {trial.task.name} never succeeded: {check.command}")


def _collect(trial: PlannedTrial, sandbox: Sandbox, result: ExecResult, state: Rollout) -> None:
    """What is taken out of the agent's sandbox. Its processes die as soon as what they hold has been read."""
    counted = sandbox.counted()
    if state.egress:
        state.egress.unrouted(counted.unrouted)
    if counted.memory_kills:
        state.flags.append("out_of_memory")
    try:
        state.own_usage = trial.cell.agent.reported(sandbox, result)
    except ValueError:
        state.flags.append("agent_usage_unreadable")
    _run_collect_commands(trial, sandbox, state)
    if not trial.task.verifier.keep_processes:
        sandbox.kill()
    if sandbox.excess and result.ended == "exited":  # made in the last instant, it counts as if made before
        state.result = result.model_copy(update={"exit_code": None, "ended": sandbox.excess})
    (state.folder / "agent.stdout").write_text(result.stdout, "utf-8")
    (state.folder / "agent.stderr").write_text(result.stderr, "utf-8")
    if PUBLISHED in trial.task.open_dirs and not keep_published(sandbox, state.folder):
        state.flags.append("artifacts_not_kept")
    if sandbox.workdir != "/":  # a task that works in / is judged whole; its workspace is the machine
        try:
            sandbox.get(sandbox.workdir, state.folder / "workspace.tar")
            state.workspace = workspace.measure(state.folder / "workspace.tar")
        except WorkspaceTooLarge:
            state.flags.append("workspace_too_large")
        except FileNotFoundError:
            state.flags.append("workspace_gone")


def _run_collect_commands(trial: PlannedTrial, sandbox: Sandbox, state: Rollout) -> None:
    """The task's own commands that collect what is to be judged."""
    for collect in trial.task.verifier.collect:
        spec = ExecSpec(argv=("bash", "-c", collect), user="root", timeout_seconds=COLLECT_SECONDS)
        if sandbox.exec(spec).ended != "exited":  # and the sandbox with it: what is judged may be incomplete
            state.flags.append("collect_unfinished")
            break
