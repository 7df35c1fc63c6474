"""Check whether a release may become a task: its size, its age and its licence (section 3.1.1, appendix C.1).

Two of the paper's criteria are checked elsewhere or not at all. Upstream must pass its own tests, which
`ground_truth` finds out. The ten stars on GitHub are in no archive, so nobody checks them here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.metadata import parse_email

from runner.benchmarks.sources.registry_pypi import license_of
from runner.errors import TaskError

LEAST_LINES, MOST_LINES = 300, 120_000
"""Bounds on the lines of code of a library, tests not counted (Complexity)."""
YEARS = 3
"""Largest age of a release in years (Recency)."""
PERMISSIVE = (
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MIT-CMU", "PSF-2.0"),
    *("Python-2.0", "Unlicense", "Zlib"),
)
"""SPDX identifiers of licences under which a library becomes a task."""


def check_size(lines: int) -> None:
    """Raise `TaskError` for a library that is smaller or larger than the paper's."""
    if not LEAST_LINES <= lines <= MOST_LINES:
        raise TaskError(
            f"It has {lines:,} lines of code; a task has {LEAST_LINES:,} to {MOST_LINES:,} (section 3.1.1)."
        )


def check_age(uploaded: str, since: dt.date) -> str:
    """Return the date of a release's upload, YYYY-MM-DD. Raises `TaskError` if it is older, or not known."""
    day = uploaded[:10]
    try:
        found = dt.date.fromisoformat(day)
    except ValueError as error:
        raise TaskError(
            "The package index does not say when it was uploaded: job.since=null takes it all the same."
        ) from error
    if found < since:
        raise TaskError(f"It was uploaded on {day}, before {since} (job.since, section 3.1.1).")
    return day


def check_license(stated: str, allowed: Collection[str]) -> str:
    """Return a licence as an SPDX expression of which every part, or one alternative, is allowed.

    Raises `TaskError` for any other licence, and for a text that is not SPDX.
    """
    try:
        expression = canonicalize_license_expression(stated)
    except InvalidLicenseExpression as error:
        raise TaskError(
            f"Its metadata calls its licence {stated[:80]!r}, which is not one of SPDX: read the licence, then state "
            "it with job.license=ID."
        ) from error
    if not _is_allowed(expression, set(allowed)):
        raise TaskError(f"Its licence is {expression}; job.licenses allows {', '.join(sorted(allowed))}.")
    return expression


def stated_license(source: Path) -> str:
    """Return the licence that the metadata of an unpacked sdist states; empty if it states none."""
    file = source / "PKG-INFO"
    return license_of(parse_email(file.read_bytes())[0]) if file.is_file() else ""


def years_before(day: dt.date) -> dt.date:
    """Return the same day `YEARS` earlier; 28 February for a 29th."""
    try:
        return day.replace(year=day.year - YEARS)
    except ValueError:
        return day.replace(year=day.year - YEARS, day=28)


def _is_allowed(expression: str, allowed: set[str]) -> bool:
    """Return whether one alternative (`OR`) has only allowed parts (`AND`). Parentheses make it unclear, so: no."""
    if "(" in expression:
        return False
    return any(set(one.split(" AND ")) <= allowed for one in expression.split(" OR "))
