"""Programs that run tests, and files of a project that are results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runner.benchmarks.project_setup.deliverables import Reading

_PYTHON: Final = frozenset({"pytest", "unittest"})
_JAVASCRIPT: Final = frozenset({"jest", "mocha", "vitest", "node", "tap"})
_JAVA: Final = frozenset({"surefire", "gradle"})
_ANY: Final = _PYTHON | _JAVASCRIPT | _JAVA | {"go", "cargo", "ctest", "automake"}

PROGRAMS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **dict.fromkeys(("make", "gmake", "ninja", "tox", "nox", "cmake", "meson", "just"), _ANY),
        **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), _ANY),
        **dict.fromkeys(
            ("python", "python3", "pytest", "py.test", "coverage", "python3-coverage", "nose2"), _PYTHON
        ),
        **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "pipenv"), _PYTHON),
        **dict.fromkeys(("node", "nodejs", "c8", "nyc"), _JAVASCRIPT),
        **dict.fromkeys(("tape", "tap", "ava", "prove", "perl"), frozenset({"tap"})),
        **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew"), _JAVA),
        **{name: frozenset({name}) for name in ("jest", "mocha", "vitest", "go", "cargo", "ctest")},
    }
)
"""Name of a test program -> frameworks whose results its output may show."""

FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "**/target/surefire-reports/TEST-*.xml": "surefire",
        "**/target/failsafe-reports/TEST-*.xml": "surefire",
        "**/build/test-results/**/TEST-*.xml": "gradle",
        "**/*.trs": "automake",
        "**/Testing/*/Test.xml": "ctest",
    }
)
"""Glob for files in a project -> framework that writes these files for machines. A run may write many of them."""

_OVERWRITTEN: Final = frozenset({"ctest"})
"""Frameworks that overwrite their files with each run. Their output says more than the files."""


def counted(files: Iterable[Reading], output: Iterable[Reading]) -> tuple[Reading, ...]:
    """Return the readings of one script that count: those from files or from output of a framework, not both."""
    files, output = tuple(files), tuple(output)
    written = {reading.framework for reading in files}
    printed = {reading.framework for reading in output}
    return (
        *(reading for reading in files if reading.framework not in _OVERWRITTEN & printed),
        *(
            reading
            for reading in output
            if reading.framework in _OVERWRITTEN or reading.framework not in written
        ),
    )
