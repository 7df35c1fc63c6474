"""Network access beyond the gateway: modes of the network, and lists of allowed hosts. Pure functions.

An entry of such a list is a host name, `*.host` (every name below it, but not itself), an address, or a CIDR range.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runner.protocols import SandboxProvider
    from runner.records import Environment

HOST = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*")


def allowed(sandboxes: SandboxProvider, environment: Environment) -> tuple[str, ...] | None:
    """Return the hosts that a sandbox of this environment may reach; None for an unrestricted network."""
    mode, declared = sandboxes.network, environment.network
    if mode == "open" or (mode == "task" and declared == "public"):
        return None
    if mode == "allowlist":
        return sandboxes.allowed_hosts
    return environment.allowed_hosts if mode == "task" else ()


def canonical(hosts: Iterable[str]) -> tuple[str, ...]:
    """Return the entries in lower case and without trailing dots. Raises `ValueError` for anything else."""
    entries = tuple(host.lower().removesuffix(".") for host in hosts)
    for entry in entries:
        if not (HOST.fullmatch(entry) or _range(entry)):
            raise ValueError(
                f"allowed_hosts takes host names, *.host, addresses and CIDR ranges, not {entry!r}"
            )
    return entries


def permits(hosts: Iterable[str], host: str) -> bool:
    """Return whether a canonical list allows this host, a name or an address as a client writes it."""
    name = host.lower().removesuffix(".")
    wanted = _range(name)
    for entry in hosts:
        listed = _range(entry)
        if wanted and listed:
            if wanted.version == listed.version and wanted.network_address in listed:
                return True
        elif entry.startswith("*.") and not wanted:
            if name.endswith(entry[1:]):
                return True
        elif name == entry:
            return True
    return False


def _range(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return an address or CIDR range; None for a name."""
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
