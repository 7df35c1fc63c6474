"""Run one trial, from an image to a record. Whatever happens to a trial ends as a value on that record.

image → session at the gateway → sandbox up → rollout → processes dead → verdict from a fresh container → record
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from runner.archives.compressed import compress_archives
from runner.errors import (
    AssayError,
    ConfigError,
    ImageError,
    JudgeError,
    OutputsError,
    SpoiledMachine,
    TaskError,
    WorkspaceTooLarge,
)
from runner.files import NO_ROOM, no_room
from runner.protocols import CollectingVerifier, DrivingAgent, Sandbox, Submission, helper_of
from runner.records import (
    ErrorInfo,
    ExecResult,
    ExecSpec,
    Status,
    TrialRecord,
    Verdict,
)
from runner.records.trial_files import JUDGE_LEDGER, LEDGER, PROBE_LEDGER
from runner.sandbox.inside import proxied, supervised
from runner.sandbox.network import allowed
from runner.terminal.escaping import one_line
from runner.trials import workspace
from runner.trials.activity import Reporting
from runner.trials.agent_driving import Clock, DrivenMachine, Workbench, drive
from runner.trials.context import TrialContext, TrialRun
from runner.trials.health import wait_until_healthy
from runner.trials.machines import open_services, reopen, sandbox_spec
from runner.trials.outcome import REFUSED, refused_call
from runner.trials.skills import settle_skills
from runner.trials.state import TrialState, make_record
from runner.trials.steps import of_step, run_steps

if TYPE_CHECKING:
    from pathlib import Path

    from runner.gateway import Session
    from runner.gateway.egress import Egress
    from runner.gateway.judge_calls import Asking
    from runner.protocols import CommandAgent
    from runner.records import Model, Task
    from runner.sweeps.cells import Cell
    from runner.sweeps.plan import PlannedTrial

LASTING = frozenset(
    {
        *(kind.__name__ for kind in (ImageError, ConfigError, TaskError, JudgeError)),
        "CassetteMismatch",
        REFUSED,
    }
)
"""Failures of our side that a repetition cannot mend, or, for a judge's, only at the price of another rollout."""
COLLECT_SECONDS = 60.0
"""Time limit for each of a task's own commands that collect what is to be judged."""
BACK_OFF_SECONDS = (2.0, 8.0)
"""Seconds to wait before the first, and before every later, repetition of a trial that our side spoiled."""


Work = Callable[[Sandbox], ExecResult]
"""Function that carries out a rollout in a given sandbox."""


def run_to_the_end(
    trial: PlannedTrial,
    context: TrialContext,
    retries: int,
    cancelled: Callable[[], bool],
    affordable: Callable[[], bool] = lambda: True,
) -> TrialRecord:
    """Run a trial. Repeat it with back-off after infrastructure failures that a repetition can mend.

    A repetition spends anew, so there is none once `affordable` returns False: the sweep's cap is spent.
    """
    for number in range(retries + 1):
        record = run_trial(trial, context, cancelled)
        context.store.write(record)
        lasting = record.error is not None and record.error.type in LASTING
        if record.status is not Status.INFRA_INVALID or lasting or number == retries:
            break
        until = time.monotonic() + BACK_OFF_SECONDS[min(number, len(BACK_OFF_SECONDS) - 1)]
        while time.monotonic() < until and not cancelled():
            time.sleep(0.1)
        if cancelled() or not affordable():
            break
    return record


def run_trial(trial: PlannedTrial, context: TrialContext, cancelled: Callable[[], bool]) -> TrialRecord:
    """Run one try. Raises only `OutputsError`: without `outputs/` there is no place for a record."""
    started = datetime.now(UTC)
    folder, retries = context.store.begin(trial.key)
    state = TrialState(folder, entered=partial(context.watcher.entered, trial.key))
    try:
        with ExitStack() as stack:
            _run_phases(TrialRun(trial, context, state, stack, cancelled))
    except OutputsError:
        raise
    except SpoiledMachine as error:
        if state.began:  # else no agent had been in the machine
            state.verdict = _spoiled_verdict(trial, ErrorInfo.of(error, state.phase))
        else:
            state.error = ErrorInfo.of(error, state.phase)
    except AssayError as error:
        state.error = ErrorInfo.of(error, state.phase)
    except Exception as error:  # the trial boundary: a bug or a broken task spoils one trial, not a sweep
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise no_room(folder, error) from error
        state.error = ErrorInfo.of(error, state.phase, unexpected=True)
    compress_archives(folder)
    return make_record(trial, state, context.bundles, retries, started)


def _spoiled_verdict(trial: PlannedTrial, error: ErrorInfo) -> Verdict:
    """Return the verdict on a machine that cannot be judged because the agent spoiled it."""
    spec = trial.task.verifier
    return Verdict(reward=0.0, mode=spec.judged_in, error=error)


def _run_phases(run: TrialRun) -> None:
    """Run the phases in their order."""
    task, agent, state = run.trial.task, run.trial.cell.agent, run.state
    first = of_step(run, task.steps[0]) if task.steps else run
    with state.timed("environment"):
        if isinstance(agent, DrivingAgent) and (refusal := _refusal(agent, task)):
            raise TaskError(refusal)
        progress = partial(
            run.context.watcher.making, run.trial.key, image=f"the image of {one_line(task.name)}"
        )
        state.image = run.context.sandboxes.image(task.environment, progress)
        state.session = _open_session(run)
        work = _work(first)
        state.services = open_services(run)
        sandbox = run.stack.enter_context(run.context.sandboxes.open(sandbox_spec(first)))
        wait_until_healthy(task.environment.healthcheck, sandbox, task.name)
        state.skills = settle_skills(task, agent.skills, sandbox, uses_model=agent.uses_model)
        _keep_given(run, sandbox)
    if task.steps:
        state.verdict = run_steps(run, sandbox, _attempt, reopen)
    else:
        state.verdict = _attempt(run, sandbox, state.folder, work)


def _refusal(agent: DrivingAgent, task: Task) -> str | None:
    if task.steps:
        return f"{task.name} has several steps, and {agent.name} works on one: choose another agent."
    return agent.refusal(task)


def _work(run: TrialRun) -> Work:
    agent = run.trial.cell.agent
    return _driven(run, agent) if isinstance(agent, DrivingAgent) else _commanded(run, agent)


def _attempt(run: TrialRun, sandbox: Sandbox, folder: Path, work: Work | None = None) -> Verdict | None:
    """Let the agent work, take what it left, and judge it. Return None if there is nothing to judge."""
    task, state = run.trial.task, run.state
    work = work or _work(run)
    with state.timed("agent"):
        state.began = state.began or time.time()
        state.result = result = work(sandbox)
        if state.session and state.session.unwritten:
            # What the agent was answered from then on is not its fault.
            raise state.session.unwritten
    network = state.services.network if state.services else None
    submission = Submission(task, sandbox, run.context.sandboxes, folder, network)
    with state.timed("collect"):
        _collect(run.trial, submission, result, state)
        state.unserved = _unserved(run) if result.ended != "cancelled" else None
    if result.ended == "cancelled" or state.unserved:
        return None
    with state.timed("verify"):
        state.asking = state.asking or _open_asking(run)
        judged = replace(submission, ask=state.asking.ask) if state.asking else submission
        return run.trial.cell.dataset.verifier.verify(judged)


def _unserved(run: TrialRun) -> ErrorInfo | None:
    """Return why the provider serves nobody, if it refused the agent and refuses our own smallest call as well.

    Our call goes by the API that the agent is configured to speak, so nothing that the agent asks can make it fail.
    """
    call, cell = refused_call(run.state.calls), run.trial.cell
    if call is None or call.error is None or cell.model.backend != "provider":
        return None
    from runner.gateway.probe import probe  # noqa: PLC0415 - as for sessions: only when a model is used

    ledger = run.state.folder / PROBE_LEDGER
    helper = helper_of(cell.agent)
    asked = helper if helper and call.model == helper.id != cell.model.id else cell.model
    own = probe(run.context.gateway, asked, cell.agent.api, ledger, run.cancelled)
    if own.error is None:
        return None
    kind = REFUSED if own.refused else own.error.type
    message = (
        f"The provider of {asked.name} refused this agent's call ({call.status_code}) and our own smallest call "
        f"by the {cell.agent.api} API ({own.status_code}): {own.error.message}"
    )
    cause = f"{call.error.type}: {call.error.message}"[:1000]
    return ErrorInfo(type=kind, message=message, cause=cause, phase="gateway")


def _commanded(run: TrialRun, agent: CommandAgent) -> Work:
    """Prepare the rollout of an agent that runs in the sandbox: one command."""
    trial, state, session = run.trial, run.state, run.state.session

    def rendered(task: Task) -> ExecSpec:
        command = agent.command(task, session.endpoint if session else None)
        command = command.model_copy(update={"timeout_seconds": trial.seconds})
        return _guarded(command, trial, session, state.egress)

    state.egress = state.egress or _open_egress(run, session)
    state.sockets = session.socket_dir if session else state.egress.folder if state.egress else None
    plain = rendered(trial.task)  # what cannot be rendered shows before a machine is opened

    def work(sandbox: Sandbox) -> ExecResult:
        skills = state.skills
        command = rendered(skills.listed(trial.task)) if skills and skills.listing else plain
        return sandbox.exec(command, run.cancelled, lambda: state.waited_seconds)

    return work


def _driven(run: TrialRun, agent: DrivingAgent) -> Work:
    """Prepare the rollout of an agent in our process. The sandbox has no way to the model: only our process asks it."""
    state = run.state
    state.egress = _open_egress(run, None)
    state.sockets = state.egress.folder if state.egress else None

    def work(sandbox: Sandbox) -> ExecResult:
        clock = Clock(run.trial.seconds, lambda: state.waited_seconds, run.cancelled)
        services = run.trial.task.environment.services
        machine = DrivenMachine(sandbox, clock, services, behind_proxy=state.egress is not None)
        return drive(agent, Workbench(run, machine, clock))

    return work


def _open_session(run: TrialRun) -> Session | None:
    trial = run.trial
    if not trial.cell.agent.uses_model:
        return None
    from runner.gateway import SessionSpec  # noqa: PLC0415 - the gateway's libraries load only when a model is used
    from runner.gateway.cassette import find  # noqa: PLC0415

    cell = trial.cell
    names = cell.agent.name, cell.dataset.name, trial.task.name
    spec = SessionSpec(
        trial=trial.key,
        task=trial.task.name,
        model=cell.model,
        helper=_helper(cell),
        budget=cell.budget,
        seconds=trial.seconds,
        ledger=run.state.folder / LEDGER,
        cassette=find(cell.model, *names, trial.attempt) if cell.model.replayed else None,
    )
    session = run.stack.enter_context(run.context.gateway.open(spec))
    run.state.reporting = Reporting(session, partial(run.context.watcher.acting, trial.key))
    return session


def _helper(cell: Cell) -> Model | None:
    """Return the helper model of a trial. A recording has its calls, too, which are replayed at its own prices."""
    helper = helper_of(cell.agent)
    if helper is None or not cell.model.replayed:
        return helper
    return helper.model_copy(update={"backend": cell.model.backend, "mismatch": cell.model.mismatch})


def _open_asking(run: TrialRun) -> Asking | None:
    judge = run.trial.cell.dataset.verifier.judge
    if judge is None:
        return None
    from runner.gateway.judge_calls import Asking  # noqa: PLC0415 - as above

    asking = Asking(run.context.gateway, judge, run.trial.key, run.state.folder / JUDGE_LEDGER)
    return run.stack.enter_context(asking)


def _open_egress(run: TrialRun, session: Session | None) -> Egress | None:
    """Open the proxy of a sandbox without an open network; beside a session also one that lets nothing through."""
    hosts = allowed(run.context.sandboxes, run.trial.task.environment)
    if hosts is None or not (hosts or session):
        return None
    from runner.gateway.egress import egress  # noqa: PLC0415 - as above

    trusted = run.trial.task.environment.trusted_hosts
    return run.stack.enter_context(egress(hosts, session.socket_dir if session else None, trusted))


def _guarded(
    command: ExecSpec, trial: PlannedTrial, session: Session | None, egress: Egress | None
) -> ExecSpec:
    """Return the command under the supervisor. Without model, bundle and proxy, it needs neither supervisor nor
    runtime.
    """
    if session is None and trial.cell.agent.bundle is None and egress is None:
        return command
    guarded = supervised(command, gateway=session is not None, gently=session is None or not session.limited)
    return proxied(guarded, trial.task.environment.services) if egress else guarded


def _keep_given(run: TrialRun, sandbox: Sandbox) -> None:
    """Keep the workspace as the agent is given it, if this is the trial that keeps it for its task."""
    trial, state = run.trial, run.state
    image = state.image.id if state.image else ""
    if sandbox.workdir == "/" or not run.context.given.is_kept_by(
        trial.key, trial.cell.dataset.name, trial.task.name, image
    ):
        return
    with suppress(
        WorkspaceTooLarge, FileNotFoundError
    ):  # then the report has no base for its diffs and says so
        sandbox.get(sandbox.workdir, state.folder / "given.tar")


def _collect(trial: PlannedTrial, submission: Submission, result: ExecResult, state: TrialState) -> None:
    """Copy what is needed out of the agent's sandbox. End its processes as soon as what they hold has been read."""
    sandbox, verifier = submission.sandbox, trial.cell.dataset.verifier
    _count(sandbox, state)
    try:
        state.own_usage = trial.cell.agent.reported(sandbox, result)
    except ValueError:
        state.flags.append("agent_usage_unreadable")
    _run_collect_commands(trial, sandbox, state)
    if trial.task.verifier.ends_processes:
        sandbox.kill()
    # What was written in the last instant counts as if it had been written before.
    if sandbox.excess and result.ended == "exited":
        state.result = result.model_copy(update={"exit_code": None, "ended": sandbox.excess})
    (submission.folder / "agent.stdout").write_text(result.stdout, "utf-8")
    (submission.folder / "agent.stderr").write_text(result.stderr, "utf-8")
    if isinstance(verifier, CollectingVerifier):
        state.flags += verifier.collect(submission)
    if sandbox.workdir != "/":  # a task that works in / is judged whole; its workspace is the machine
        try:
            sandbox.get(sandbox.workdir, state.folder / "workspace.tar")
            state.workspace = workspace.measure(state.folder / "workspace.tar")
        except WorkspaceTooLarge:
            state.flags.append("workspace_too_large")
        except FileNotFoundError:
            state.flags.append("workspace_gone")


def _count(sandbox: Sandbox, state: TrialState) -> None:
    """Record the kernel's counts for the sandbox, and whether services have failed."""
    counted = sandbox.counted()
    if state.egress:
        state.egress.unrouted(counted.unrouted)
    if counted.memory_kills:
        state.flags.append("out_of_memory")
    if state.services and state.services.ended:
        state.flags.append("services_ended")


def _run_collect_commands(trial: PlannedTrial, sandbox: Sandbox, state: TrialState) -> None:
    """Run the task's own commands that collect what is to be judged."""
    for collect in trial.task.verifier.collect:
        spec = ExecSpec(argv=("bash", "-c", collect), user="root", timeout_seconds=COLLECT_SECONDS)
        if sandbox.exec(spec).ended != "exited":  # and the sandbox with it: what is judged may be incomplete
            state.flags.append("collect_unfinished")
            break
