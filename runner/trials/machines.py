"""The machines of a trial: the agent's, its successors in later steps, and the services beside it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from runner.protocols import DrivingAgent
from runner.records import SandboxSpec, ServicesSpec
from runner.sandbox.network import allowed
from runner.terminal.escaping import one_line

if TYPE_CHECKING:
    from runner.protocols import Sandbox, Services
    from runner.records import Image
    from runner.trials.context import TrialRun


def sandbox_spec(run: TrialRun) -> SandboxSpec:
    """Return the specification of the agent's machine."""
    trial, task, agent = run.trial, run.trial.task, run.trial.cell.agent
    return SandboxSpec(
        name=task.name,
        image=run.state.image,
        environment=task.environment,
        user=task.agent_user,
        gateway_dir=run.state.sockets,
        bundles=(agent.bundle,) if agent.bundle else (),
        runtime=isinstance(agent, DrivingAgent),
        least_memory_mb=trial.memory_mb if trial.memory_raised else None,
        fresh_dirs=task.fresh_dirs,
        open_dirs=task.open_dirs,
        entrypoint=task.entrypoint,
        network=_network(run),
        services=run.state.services.network if run.state.services else None,
        labels=_labels(run),
    )


def _network(run: TrialRun) -> Literal["none", "open"]:
    return "open" if allowed(run.context.sandboxes, run.trial.task.environment) is None else "none"


def _labels(run: TrialRun) -> dict[str, str]:
    return {"assay.sweep": run.context.sweep, "assay.trial": run.trial.key}


def open_services(run: TrialRun) -> Services | None:
    """Start the task's further containers, which run until the verdict; None if it has none."""
    task = run.trial.task
    if not task.environment.services:
        return None
    image = f"an image of {one_line(task.name)}'s services"
    progress = partial(run.context.watcher.making, run.trial.key, image=image)
    spec = ServicesSpec(
        name=task.name, services=task.environment.services, network=_network(run), labels=_labels(run)
    )
    return run.stack.enter_context(run.context.sandboxes.services(spec, progress))


def reopen(run: TrialRun, image: Image) -> Sandbox:
    """Open a machine as the agent left it. The agent may have written its ENTRYPOINT, which gets no more rights."""
    spec = sandbox_spec(run).model_copy(update={"image": image, "entrypoint_user": run.trial.task.agent_user})
    return run.stack.enter_context(run.context.sandboxes.open(spec))
