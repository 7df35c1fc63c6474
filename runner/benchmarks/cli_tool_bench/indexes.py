"""The profile `online`: the package index of each language, as this machine's own clients are configured.

No host is named here. The index is the one that `dataset.indexes` names, else the one that this machine's variables or
clients name, else the default of the client in the language's image. Its hosts are reached through the proxy to allowed
hosts, by the agent and by installations, and never by cases.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from runner.benchmarks.cli_tool_bench.construction.recipe import Language
from runner.benchmarks.sources.clients import GO, NODE, NPM, WHEELS
from runner.errors import ConfigError
from runner.records import Environment
from runner.sandbox import certificates
from runner.sandbox.inside import AUTHORITIES, GATEWAY_DIR
from runner.sandbox.network import canonical

UNSEALED: Mapping[Language, Mapping[str, str]] = {
    "python": {"PIP_NO_INDEX": "0", "PIP_NO_BUILD_ISOLATION": "1"},
    "javascript": {"NPM_CONFIG_OFFLINE": "false"},
    "go": {"GOPROXY": "", "GOSUMDB": ""},
}
"""Variables that undo the settings with which an image's client asks no index. pip reads the second variable the other
way round: 1 lets builds fetch what they require from the index. Go takes an empty value for its default."""
ADDRESS: Mapping[Language, tuple[str, ...]] = {
    "python": ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "javascript": ("NPM_CONFIG_REGISTRY",),
    "go": ("GOPROXY",),
}
"""Variables that name an index; the first one is set in sandboxes."""
NOTE = """
This machine can reach the package index of {language}, and so can the installation of your tool: it may have
dependencies, if its project names them. Where the text above says that there is no network, this holds instead. No
other host can be reached, and your tool runs without a network.
"""
"""Text at the end of the prompt, because the shipped prompts say that there is no network."""
CALLED: Mapping[Language, str] = {"python": "Python", "javascript": "JavaScript", "go": "Go"}
SCHEMES = {"http": 80, "https": 443}
"""Scheme -> its port. The proxy to allowed hosts reaches no other ports."""
ASK_SECONDS = 60.0
_PIP = """
import sys
sys.path.insert(0, sys.argv[1])
from pip._internal.models.index import PyPI
print(PyPI.simple_url, PyPI.file_storage_domain)
"""


class Index(NamedTuple):
    """The package index of a language."""

    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    """Addresses of the index for its client; none if the client's default holds."""


def note(language: Language) -> str:
    """Return the text at the end of the prompt."""
    return NOTE.format(language=CALLED[language])


def opened(environment: Environment, language: Language, index: Index) -> Environment:
    """Return the environment of a machine that can reach an index."""
    first, joined = ADDRESS[language][0], ",".join(index.addresses)
    named = {first: joined if language == "go" else index.addresses[0]} if index.addresses else {}
    trusted = certificates.variables(f"{GATEWAY_DIR}/{AUTHORITIES}") if certificates.host_file() else {}
    update = {
        "network": "allowlist",
        "allowed_hosts": index.hosts,
        "trusted_hosts": index.hosts,
        "env": {**environment.env, **trusted, **UNSEALED[language], **named},
    }
    return environment.model_copy(update=update)


def find(language: Language, configured: Sequence[str], context: Path) -> Index:
    """Return the index of a language. `context` is the build context of its image, which may not exist yet.

    Raises `ConfigError` if no host is known, or if an address is one that no sandbox can use.
    """
    option = f"dataset.indexes.{language}"
    if configured:
        return _index(configured, option)
    if named := next(
        (value for name in ADDRESS[language] if (value := os.environ.get(name, "").strip())), ""
    ):
        found = named.replace("|", ",").split(",") if language == "go" else [named]
    else:
        found = CLIENTS[language](context)
    entries = [entry for entry in found if entry not in ("", "direct", "off")]
    if not entries:
        raise ConfigError(
            f"dataset.profile=online: this machine names no package index for {language}. Set {option}=[ADDRESS], or "
            "run job=setup first, which fetches a client that has a default."
        )
    index = _index(entries, f"this machine's index for {language}")
    more = _files_of(index.hosts, context) if language == "python" else ()
    return index._replace(hosts=tuple(dict.fromkeys((*index.hosts, *more))))


def _index(entries: Sequence[str], where: str) -> Index:
    """Return the index that these entries name: addresses, and plain hosts. Raises `ConfigError`."""
    addresses = tuple(entry for entry in entries if "://" in entry)
    names = [_host(entry, where) if "://" in entry else entry for entry in entries]
    try:
        return Index(tuple(dict.fromkeys(canonical(names))), addresses)
    except ValueError as error:
        raise ConfigError(f"dataset.profile=online: {where}: {error}.") from error


def _host(address: str, where: str) -> str:
    """Return an address's host. Raises `ConfigError` for an address that cannot be used, without quoting it."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or SCHEMES.get(parts.scheme)
    except ValueError:
        host, port = "", None
    if parts.username is not None or parts.password is not None:
        fault = "its address contains a user or a password, which every agent could read"
    elif not host or parts.scheme not in SCHEMES or port not in SCHEMES.values():
        fault = (
            "it takes addresses http://HOST/.. and https://HOST/.. with the usual ports, and names of hosts"
        )
    else:
        return host
    raise ConfigError(
        f"dataset.profile=online: {where}: {fault}. Set dataset.indexes to an index that sandboxes may use."
    )


def _pips(context: Path) -> list[str]:
    """Return the index that pip is configured with, else its default."""
    own = _said(("pip", "config", "get", "global.index-url"))
    return [own] if own else list(_pips_default(context)[:1])


def _pips_default(context: Path) -> tuple[str, ...]:
    """Return pip's default index, and the host of its files; nothing if there is no pip to ask."""
    wheels = context / WHEELS
    if not (wheels / "pip").is_dir():
        return ()
    return tuple(_said((sys.executable, "-I", "-c", _PIP, str(wheels))).split())


def _files_of(hosts: Sequence[str], context: Path) -> tuple[str, ...]:
    """Return the host from which an index serves its files, if it is pip's default one."""
    default = _pips_default(context)
    return default[1:] if default and urlsplit(default[0]).hostname in hosts else ()


def _npms(context: Path) -> list[str]:
    command = ("npm",) if shutil.which("npm") else (str(context / NODE), str(context / NPM))
    return [_said((*command, "config", "get", "registry"))]


def _gos(context: Path) -> list[str]:
    command = "go" if shutil.which("go") else str(context / GO)
    return _said((command, "env", "GOPROXY")).replace("|", ",").split(",")


CLIENTS: Mapping[Language, Callable[[Path], list[str]]] = {"python": _pips, "javascript": _npms, "go": _gos}
"""Language -> function that asks its client for the index."""


@cache
def _said(command: tuple[str, ...]) -> str:
    """Return a client's answer in one line; empty if there is no such client or no answer."""
    try:
        done = subprocess.run(
            command, cwd="/", capture_output=True, text=True, check=False, timeout=ASK_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
