"""What a sandbox looks like from inside: fixed paths, the gateway's address, and the supervisor's command line.

Pure functions and constants; the program itself is `supervise.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runner.records import ExecSpec

ROOT = "/opt/assay"
"""Bundles are mounted read-only below it, each at `/opt/assay/<name>`, the path it was built at."""
AGENT_DIR = "/run/assay/agent"
"""A tmpfs, writable by the sandbox's user, for the agent's configuration, caches and logs."""
GATEWAY_DIR = "/run/assay/gateway"
"""Where the host folder with the gateway's socket is mounted."""
SOCKET_PATH = f"{GATEWAY_DIR}/gateway.sock"
GATEWAY_PORT = 4180
BASE_URL = f"http://127.0.0.1:{GATEWAY_PORT}"
"""The gateway as agents see it, without `/v1`."""
EGRESS_SOCKET = "egress.sock"
"""Of the proxy to allowed hosts, in the same folder."""
EGRESS_PORT = 4181
DNS_SOCKET = "dns.sock"
"""Of what hears which names are looked up, in the same folder."""
RESOLVER = "127.0.0.11"
"""Where a sandbox without a network asks for names. Not 127.0.0.1, where a task may serve names itself."""
_PROXY = f"http://127.0.0.1:{EGRESS_PORT}"
_DIRECT = "localhost,127.0.0.1,::1,0.0.0.0"
PROXY_ENV = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _PROXY),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), _DIRECT),
}
"""Both spellings: curl reads only the small one for plain HTTP, others only the large one."""

PYTHON = f"{ROOT}/python/closed/bin/python3"
"""The interpreter of all programs of ours: nothing of an image reaches it (`scripts/python.sh`). It is isolated and
without `site` by itself, and each variable that it is given has a `+` before its name. Agents have another."""
SUPERVISOR = (PYTHON, f"{ROOT}/python/supervise.py")
IDLE = (PYTHON, "-c", "import signal; signal.pause()")
"""What a container of ours does until its first command: `sleep` is a program of the image."""
PRELOADED = "/etc/ld.so.preload"
"""Names libraries that every program of the image loads when it starts."""
NOT_PRELOADED = {"LD_PRELOAD": "", "LD_AUDIT": ""}
"""Variables that do the same, as an image may have them."""
DEADLINE_EXIT_CODE = 124
GRACE_SECONDS = 10.0
"""How much later the outside deadline is: the supervisor's 5 s between TERM and KILL, and a start on a busy host."""


def supervised(spec: ExecSpec, *, gateway: bool, gently: bool = True) -> ExecSpec:
    """The same command under the supervisor, with the gateway's port open if asked.

    The command gets its whole `timeout_seconds` inside; the returned spec's is `GRACE_SECONDS` longer and is for
    the host to keep. Two deadlines, because each alone fails: the inside one ends the process group gently, so that
    an agent can still write its trajectory, but a hostile command can kill its supervisor; the outside one cannot be
    dodged, but can only kill the container. `DEADLINE_EXIT_CODE` after at least the given `timeout_seconds` means
    that the inside one struck. Not `gently`: there is no inside one, which cannot be moved while the command runs.
    """
    options: list[str] = []
    timeout = spec.timeout_seconds
    if gateway:
        options += ["--socket", SOCKET_PATH, "--port", str(GATEWAY_PORT)]
    if timeout is not None and gently:
        options += ["--deadline", f"{timeout:g}"]
        timeout += GRACE_SECONDS
    return spec.model_copy(update={"argv": _with_options(spec, options), "timeout_seconds": timeout})


def proxied(spec: ExecSpec) -> ExecSpec:
    """The same command with the proxy to allowed hosts open, and told of it by environment; its lookups are heard."""
    options = ["--egress", f"{GATEWAY_DIR}/{EGRESS_SOCKET}", "--egress-port", str(EGRESS_PORT)]
    options += ["--dns", f"{GATEWAY_DIR}/{DNS_SOCKET}", "--dns-at", f"{RESOLVER}:53"]
    return spec.model_copy(update={"argv": _with_options(spec, options), "env": PROXY_ENV | spec.env})


def fed(argv: tuple[str, ...], path: str) -> tuple[str, ...]:
    """The command with a container file as its standard input instead of /dev/null."""
    return (*SUPERVISOR, "--stdin", path, "--", *argv)


def _with_options(spec: ExecSpec, options: Sequence[str]) -> tuple[str, ...]:
    """The command line under a supervisor with these options; one supervisor does for all that is asked of it."""
    own = len(SUPERVISOR) if spec.argv[: len(SUPERVISOR)] == SUPERVISOR else 0
    rest = spec.argv[own:] if own else ("--", *spec.argv)
    return (*SUPERVISOR, *options, *rest)
