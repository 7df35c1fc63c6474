"""The certificates of the authorities with which this host checks servers, for sandboxes that ask the same servers."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLES = (
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
)
"""Variables in which the usual clients look for a file of certificates."""


def host_file() -> Path | None:
    """Return the file of this host's authorities; None if it has none."""
    file = Path(os.environ.get("SSL_CERT_FILE") or "/etc/ssl/certs/ca-certificates.crt")
    return file if file.is_file() else None


def variables(path: str) -> dict[str, str]:
    """Return the environment variables that name this file to the usual clients."""
    return dict.fromkeys(VARIABLES, path)
