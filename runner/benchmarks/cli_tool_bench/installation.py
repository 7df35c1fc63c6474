"""Installation of one side: its source, as root, in a machine of the task's image that no agent has touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner.records import EgressAttempt, ExecSpec, Image, SandboxSpec, Task
from runner.sandbox.inside import proxied
from runner.sandbox.network import allowed

if TYPE_CHECKING:
    from runner.gateway.egress import Egress
    from runner.protocols import Sandbox, SandboxProvider

WORKSPACE = "/workspace"
"""Folder in which either side's source is installed."""


class Installed(NamedTuple):
    """A side after its installation."""

    image: Image | None
    """None: the installation failed."""
    output: str


@contextmanager
def install(
    task: Task,
    command: str,
    source: tuple[Path, str],
    sandboxes: SandboxProvider,
    attempts: list[EgressAttempt],
) -> Iterator[Installed]:
    """Install `source`, a path and its place, in a fresh sandbox; the image lives as long as the context.

    `attempts` takes the attempts to use a network, if the task has trusted hosts. Then there is a proxy to them.
    """
    with ExitStack() as stack:
        hosts = allowed(sandboxes, task.environment)
        is_online = bool(
            hosts and task.environment.trusted_hosts
        )  # not by `sandbox.allowed_hosts`, for the agent
        proxy = stack.enter_context(_proxy(task, hosts or (), attempts)) if is_online else None
        spec = SandboxSpec(
            name=f"{task.name}-install",
            image=sandboxes.image(task.environment),
            # The engine would keep variables of the machine in the image, and so for the cases.
            environment=task.environment.model_copy(update={"env": {}}),
            user="root",
            gateway_dir=proxy.folder if proxy else None,
            network="open" if hosts is None else "none",
        )
        sandbox = stack.enter_context(sandboxes.open(spec))
        sandbox.put(*source)
        yield _run(_command(task, command, proxy), command, sandbox, proxy)


def _command(task: Task, command: str, proxy: Egress | None) -> ExecSpec:
    # A private workspace is not a failure: the tool is judged, not the umask under which it was written.
    spec = ExecSpec(
        argv=("bash", "-c", f"chmod -R a+rX . && {command}"),
        env=task.environment.env,
        cwd=WORKSPACE,
        user="root",
        timeout_seconds=task.verifier.timeout_seconds,
    )
    return proxied(spec) if proxy else spec


def _run(spec: ExecSpec, command: str, sandbox: Sandbox, proxy: Egress | None) -> Installed:
    result = sandbox.exec(spec)
    output = f"{result.stdout}{result.stderr}"
    if proxy:
        sandbox.kill()  # so that nothing asks for a host unseen, after the attempts are read
        proxy.unrouted(sandbox.counted().unrouted)
    if result.exit_code == 0:
        return Installed(sandbox.snapshot(), output)
    ending = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
    return Installed(None, f"{output}\n`{command}` ended with {ending}")


@contextmanager
def _proxy(task: Task, hosts: tuple[str, ...], attempts: list[EgressAttempt]) -> Iterator[Egress]:
    """Open the proxy to these hosts. `attempts` are complete even if the machine breaks."""
    from runner.gateway.egress import egress  # noqa: PLC0415 - loads a server, which sealed installations do not need

    with egress(hosts, trusted=task.environment.trusted_hosts) as proxy:
        try:
            yield proxy
        finally:
            attempts.extend(proxy.attempts)
