"""The Docker Engine: connect to it or, as root on Debian and Ubuntu, install and start it.

`python -m runner.sandbox.docker.engine` is `make docker`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import docker
from docker.errors import DockerException, create_api_error_from_http_exception
from requests import HTTPError

from runner import locks
from runner.errors import EngineError
from runner.sandbox.docker.engine_kinds import UnfitEngineError, check_address, check_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from docker import APIClient, DockerClient
    from requests import Response

    from runner.terminal.escaping import Say


LOG = Path("/var/log/assay-dockerd.log")
START_SECONDS = 60.0
SERVICE_SECONDS = 5.0
"""Longest wait for a service manager to start the engine after its installation."""
INSTALL_SECONDS = 600.0
CALL_SECONDS = 300
"""Longest wait for one request: a commit or an import of a large image on a busy disk takes minutes."""
LOCAL = "http+docker:"
"""Prefix of the client's address for an engine behind a local socket."""
GARBAGE_PERCENT = "400"
"""Go's variable GOGC for the daemon, unless it is set already: the percentage of its memory in use that the daemon
allocates before it collects garbage. For each archive that it reads or writes, the daemon starts its own program once
more, and with Go's default of 100 each such start collects garbage several times. What this saves and costs is in
docs/reference/speed.md."""
CONNECTIONS = 64
"""Connections to the engine that stay open. Each running trial holds one or two."""

_FIT: set[str] = set()
"""Addresses of engines that were checked in this process."""

_NEEDED = (
    "No Docker Engine answers{where}, and it cannot be installed from here ({why}). Install Docker Engine 20.10 or "
    "later and start it, or run `make docker` as root on Debian or Ubuntu, or set DOCKER_HOST to an engine on this "
    "machine; `docker info` must answer for this user."
)


def connect(base_url: str | None = None) -> DockerClient:
    """Return a client of the engine that answers at `base_url`, or where the environment says.

    Raises `EngineError`, and `UnfitEngineError` for an engine that sandboxes must not use.
    """
    check_address(base_url)
    try:
        if base_url is None:
            client = docker.from_env(timeout=CALL_SECONDS, max_pool_size=CONNECTIONS)
        else:
            client = docker.DockerClient(base_url, timeout=CALL_SECONDS, max_pool_size=CONNECTIONS)
        address = base_url or os.environ.get("DOCKER_HOST", "")
        if address not in _FIT:
            check_kind(client, base_url)
            _FIT.add(address)
    except DockerException as error:
        tried = base_url or os.environ.get("DOCKER_HOST")
        where = f" at {tried}" if tried else ""
        message = (
            f"No Docker Engine answers{where}: start it, or run `make docker` (as root on Debian or Ubuntu)."
        )
        raise EngineError(message) from error
    # The client would look for proxies in the environment at each call, which a local socket does not need. Such a call
    # fails if another thread sets a variable meanwhile, as loading litellm does.
    client.api.trust_env = not client.api.base_url.startswith(LOCAL)
    return client


def call(
    api: APIClient, method: Literal["GET", "POST", "DELETE"], path: str, seconds: float, **params: int | str
) -> Response:
    """Make one request with its own time limit. The client's own methods all share one time limit.

    Raises `APIError` for a refusal, as they do, and `RequestException` when there is no answer in time.
    """
    return checked(api.request(method, url(api, path), params=params, timeout=seconds))


def url(api: APIClient, path: str) -> str:
    """Return the URL of a path of the engine's API."""
    return f"{api.base_url}/v{api.api_version}{path}"


def checked(response: Response) -> Response:
    """Return the engine's answer. Raises `APIError` for a refusal."""
    try:
        response.raise_for_status()
    except HTTPError as error:
        create_api_error_from_http_exception(error)
    return response


def ensure(say: Say) -> DockerClient:
    """Return a client of the engine, installing and starting it first where that is possible.

    Raises `EngineError` with what to install otherwise.
    """
    with exclusive("engine"):
        try:
            return connect()
        except UnfitEngineError:
            raise
        except EngineError:
            _refuse_unless_installable()
        if shutil.which("dockerd") is None:
            install(("docker.io",), say)
            if client := _answer(SERVICE_SECONDS):
                return client
        say(f"Starting the Docker Engine; its log is {LOG}")
        return _await(_start(("dockerd",), LOG), LOG)


def install(packages: Sequence[str], say: Say) -> None:
    """Install Debian packages on this machine. Raises `EngineError` with the end of apt's output."""
    say(f"Installing {' '.join(packages)} with apt-get")
    # Another command, or the system's own updates, may be installing packages.
    wait = f"DPkg::Lock::Timeout={INSTALL_SECONDS / 2:.0f}"
    command = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", wait, *packages)
    done = output_of(command, INSTALL_SECONDS)
    if done.returncode:  # no package lists yet, or old ones
        output_of(("apt-get", "update", "-qq"), INSTALL_SECONDS)
        done = output_of(command, INSTALL_SECONDS)
    if done.returncode:
        raise EngineError(f"`{' '.join(command)}` failed; install it by hand.\n{done.stdout[-2000:]}")


def output_of(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a system command without input and return its result, with both streams in `stdout`.

    Raises `EngineError` when it does not end in time.
    """
    # A file instead of a pipe: a daemon that the command starts keeps a pipe open forever.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            done = subprocess.run(
                command,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"`{' '.join(command)}` did not end within {seconds:g} s") from error
        output.seek(0)
        done.stdout = output.read()
    return done


@contextmanager
def exclusive(name: str, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold this user's lock of that name, so that two commands do not set up the same thing at once.

    `wait` is called if another command holds it, before this one waits.
    """
    # Not `tempfile`'s folder, which may differ from process to process.
    path = Path("/tmp", f"assay-{name}-{os.getuid()}.lock")  # noqa: S108 - see above
    with ExitStack() as stack:
        try:
            stack.enter_context(locks.exclusive(path, wait=False))
        except BlockingIOError:
            wait()
            stack.enter_context(locks.exclusive(path))
        yield


def _refuse_unless_installable() -> None:
    host = os.environ.get("DOCKER_HOST")
    where = f" at DOCKER_HOST={host}" if host else ""
    if host:
        why = "it is not the local default"
    elif os.geteuid() != 0:
        why = "that needs root"
    elif shutil.which("dockerd") is None and shutil.which("apt-get") is None:
        why = "this machine has no apt-get"
    else:
        return
    raise EngineError(_NEEDED.format(where=where, why=why))


def _start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start the daemon detached, so that it outlives this process and its terminal. It writes its own pid file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={"GOGC": GARBAGE_PERCENT, **os.environ},
            start_new_session=True,
        )


def _await(daemon: subprocess.Popen[bytes], log: Path, base_url: str | None = None) -> DockerClient:
    """Return a client once the started daemon answers. Raises `EngineError` with the end of its log."""
    if client := _answer(START_SECONDS, base_url, lambda: daemon.poll() is None):
        return client
    ending = "still starts up" if daemon.returncode is None else f"ended with exit code {daemon.returncode}"
    end = log.read_text(errors="replace")[-2000:]
    raise EngineError(f"dockerd does not answer and {ending}. The end of {log}:\n{end}")


def _answer(
    seconds: float, base_url: str | None = None, alive: Callable[[], bool] = lambda: True
) -> DockerClient | None:
    """Return a client of the engine once it answers; None if it does not in time, or dies."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and alive():
        try:
            return connect(base_url)
        except UnfitEngineError:
            raise
        except EngineError:
            time.sleep(0.25)
    return None


def main() -> int:
    """Make sure that an engine answers. Return 1, after printing one paragraph, if none can."""
    try:
        client = ensure(lambda line: print(line, flush=True))
    except EngineError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Docker Engine {client.version()['Version']} answers")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
