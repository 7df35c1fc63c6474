"""The address of an object store in place of a folder: `outputs=s3://BUCKET/PREFIX`."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, TypeGuard

from pydantic import Field

from runner.errors import ConfigError
from runner.records import Record

_ADDRESS = re.compile(r"s3://[A-Za-z0-9][\w.-]{1,61}[A-Za-z0-9](/(?!\.\.?(/|$))[\w.=+-]+)*", re.ASCII)
CREDENTIALS = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
"""Variables that open a store."""
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3")
"""Variables by which another service than Amazon's is used."""


class StoreSettings(Record):
    """Settings of the object store that mirrors `outputs`."""

    address: str = ""
    """`s3://BUCKET/PREFIX`; empty if `outputs` is a folder and nothing else."""
    local: Path | None = None
    """Folder of this machine's copy. None: `local_folder`."""
    lease_seconds: float = Field(default=60.0, ge=2.0)
    """Silence of a driver after which another one may take over."""


def is_address(outputs: Any) -> TypeGuard[str]:
    """Return whether `outputs` is an address and not a folder."""
    return isinstance(outputs, str) and "://" in outputs


def checked(address: str) -> str:
    """Return an address in its one form. Raises `ConfigError`, which does not repeat what may hold a password."""
    address = address.rstrip("/")
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(
            "outputs: a folder, or s3://BUCKET/PREFIX with letters, digits and . _ = + - in its parts. Credentials and "
            "endpoint come from the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT)."
        )
    return address


def local_folder(address: str) -> Path:
    """Return this machine's folder for the copy of a store.

    It lies with the user's data and not with what may be deleted at any time: it holds what could not be sent yet.
    """
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
    digest = hashlib.sha256(f"{endpoint}\n{address}".encode()).hexdigest()[:8]
    readable = re.sub(r"[^\w.-]", "-", address.removeprefix("s3://"))[:80]
    return data / "assay" / "stores" / f"{readable}-{digest}"
