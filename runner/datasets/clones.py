"""A reference from a git clone: packed at its head, by digest, and its lines of code counted."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

from runner.errors import TaskError

SUFFIXES = {"python": (".py",), "javascript": (".js", ".mjs", ".cjs", ".ts", ".jsx", ".tsx"), "go": (".go",)}
NOT_THE_TOOL = {"test", "tests", "__tests__", "node_modules", "vendor", "dist"}
"""Folders whose code does not count."""
COMMENT = {"python": ("#",), "javascript": ("//", "/*", "*"), "go": ("//", "/*", "*")}
GIT_SECONDS = 120.0


def packed(clone: Path, language: str, into: Path) -> dict[str, Any]:
    """Pack the head of a clone as the tar file `into`: the same bytes for the same commit.

    Returns `version` (the commit), `digest`, `license` and `lines` of a task's `[reference]`. Raises `TaskError`.
    """
    version = _git(clone, "rev-parse", "--verify", "HEAD").strip()
    _git(clone, "archive", "--format=tar", f"--output={into}", version)
    return {
        "version": version,
        "digest": f"sha256:{hashlib.sha256(into.read_bytes()).hexdigest()}",
        "license": "NOASSERTION",  # SPDX for: nobody has looked
        "lines": _lines(into, language),
    }


def _lines(archive: Path, language: str) -> int:
    """Lines of the language's files that are neither blank nor only a comment. Docstrings count."""
    count = 0
    with tarfile.open(archive) as files:
        for member in files:
            path = PurePosixPath(member.name)
            counts = path.suffix in SUFFIXES[language] and not NOT_THE_TOOL & set(path.parts)
            if counts and not path.name.endswith("_test.go") and (stream := files.extractfile(member)):
                stripped = (line.strip() for line in stream.read().decode(errors="replace").splitlines())
                count += sum(bool(line) and not line.startswith(COMMENT[language]) for line in stripped)
    return count


def _git(clone: Path, *words: str) -> str:
    command = ["git", "--git-dir", str(clone / ".git"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GIT_SECONDS)
    if done.returncode:
        raise TaskError(f"git {words[0]} failed on {clone}: {done.stderr.strip()[-500:]}")
    return done.stdout
