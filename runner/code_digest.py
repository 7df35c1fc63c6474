"""Digest the source files of ours that a result depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path


def code_digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of source files in the order of their paths: other code may judge otherwise."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()
