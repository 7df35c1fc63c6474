"""Kinds of test failures (NL2Repo-Bench, section 4.3.7). Verifiers use this module, so it imports nothing heavy."""

from __future__ import annotations

import re

FAILURES = ("import", "signature", "assertion", "timeout", "other")
"""Kinds of failures (section 4.3.7): import or dependency; missing attribute or signature; assertion; time limit."""
_IMPORT = re.compile(r"ImportError|ModuleNotFoundError")
_SIGNATURE = re.compile(
    r"unexpected keyword argument|positional argument|missing \d+ required|got multiple values|no attribute"
)
_TIMEOUT = re.compile(r"timeout", re.IGNORECASE)


def failure_kind(exception: str, message: str) -> str:
    """Return which of `FAILURES` a test's failure is.

    `exception` is the name of the exception's class, and `message` the end of its traceback.
    """
    if _IMPORT.search(exception):
        return "import"
    if (
        "AttributeError" in exception
        or "NameError" in exception
        or ("TypeError" in exception and _SIGNATURE.search(message))
    ):
        return "signature"
    if _TIMEOUT.search(exception):
        return "timeout"
    if "AssertionError" in exception or exception in ("Failed", "Failure"):
        return "assertion"
    return "other"
