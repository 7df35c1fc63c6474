"""Installation of one side: its source, as root, in a machine of the task's image that no agent has touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runner.records import EgressAttempt, ExecResult, ExecSpec, Image, SandboxSpec, Task
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
    """Image of the machine after the installation; None if the installation failed."""
    output: str


class Machine(NamedTuple):
    """A fresh machine of a task's image, with the source of one side."""

    sandbox: Sandbox
    proxy: Egress | None

    def run(self, task: Task, command: str) -> ExecResult:
        """Run a shell command as root in the workspace. If a network was in reach, end all processes afterwards."""
        # A private workspace is not a failure: the tool is judged, not the umask under which it was written.
        spec = ExecSpec(
            argv=("bash", "-c", f"chmod -R a+rX . && {command}"),
            env=task.environment.env,
            cwd=WORKSPACE,
            user="root",
            timeout_seconds=task.verifier.timeout_seconds,
        )
        result = self.sandbox.exec(proxied(spec) if self.proxy else spec)
        if self.proxy:
            self.sandbox.kill()  # so that nothing asks for a host unseen, after the attempts are read
            self.proxy.unrouted(self.sandbox.counted().unrouted)
        return result


@contextmanager
def install(
    task: Task,
    command: str,
    source: tuple[Path, str],
    sandboxes: SandboxProvider,
    attempts: list[EgressAttempt],
) -> Iterator[Installed]:
    """Install `source`, a path and its place, in a fresh sandbox. The image exists as long as the context.

    If the task has trusted hosts, there is a proxy to them, and `attempts` receives the attempts to use a network.
    """
    with open_machine(task, source, sandboxes, attempts) as machine:
        result = machine.run(task, command)
        output = f"{result.stdout}{result.stderr}"
        if result.exit_code == 0:
            yield Installed(machine.sandbox.snapshot(), output)
        else:
            ending = f"exit code {result.exit_code}" if result.ended == "exited" else result.ended
            yield Installed(None, f"{output}\n`{command}` ended with {ending}")


@contextmanager
def open_machine(
    task: Task, source: tuple[Path, str], sandboxes: SandboxProvider, attempts: list[EgressAttempt]
) -> Iterator[Machine]:
    """Open a fresh sandbox with `source`, as `install` does."""
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
        yield Machine(sandbox, proxy)


@contextmanager
def _proxy(task: Task, hosts: tuple[str, ...], attempts: list[EgressAttempt]) -> Iterator[Egress]:
    """Open the proxy to these hosts. `attempts` are complete even if the machine breaks."""
    from runner.gateway.egress import egress  # noqa: PLC0415 - loads a server, which sealed installations do not need

    with egress(hosts, trusted=task.environment.trusted_hosts) as proxy:
        try:
            yield proxy
        finally:
            attempts.extend(proxy.attempts)
