"""Find and pin what a library, its build and its tests require, from what its archive declares and its tests import."""

from __future__ import annotations

import ast
import configparser
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from runner.benchmarks.nl2repo.finding.declarations import declared
from runner.benchmarks.sources import packages
from runner.benchmarks.sources.clients import install_wheels
from runner.benchmarks.sources.registry_pypi import named
from runner.benchmarks.sources.sdists import lock_requirements
from runner.errors import FetchError

TESTING = re.compile(r"(^|[-_.])tests?(ing)?($|[-_.])|^pytest$", re.IGNORECASE)
"""Names of extras and groups that are there for the tests."""
NOT_FOR_TESTS = frozenset(
    [
        *(
            "pytest",
            "black",
            "flake8",
            "ruff",
            "mypy",
            "pylint",
            "isort",
            "pyright",
            "bandit",
            "safety",
            "towncrier",
        ),
        *(
            "pre-commit",
            "nosexcover",
            "tox",
            "nox",
            "twine",
            "build",
            "flit",
            "hatch",
            "poetry",
            "pip-tools",
            "cibuildwheel",
        ),
        *("sphinx", "mkdocs", "coveralls", "codecov", "coverage-badge", "pyroma", "check-manifest"),
        *("bumpversion", "bump2version", "zest-releaser", "pytest-black", "pytest-flake8", "pytest-mypy"),
        *("pytest-ruff", "pytest-isort", "pytest-pylint"),
    ]
)
"""Tools that no test imports."""
IMPORTED_AS = {
    "attrs": ("attr", "attrs"),
    "beautifulsoup4": ("bs4",),
    "pillow": ("pil",),
    "pyyaml": ("yaml",),
    "python-dateutil": ("dateutil",),
    "scikit-learn": ("sklearn",),
    "msgpack-python": ("msgpack",),
    "pyjwt": ("jwt",),
    "gitpython": ("git",),
    "webtest": ("webtest",),
    "ruamel-yaml": ("ruamel",),
}
"""Distributions whose modules have other names."""

UNDECLARED = {
    name: name
    for name in (
        *("freezegun", "httpretty", "hypothesis", "mock", "numpy", "pandas", "parameterized", "pytz"),
        *("requests", "responses", "simplejson", "six", "starlette", "webtest"),
    )
} | {"dateutil": "python-dateutil", "yaml": "pyyaml"}
"""Module -> distribution of what tests often import although no file of the archive declares it: developers have it.
Without it, tests are not collected, or those that need it are not defined."""
SUCCESSORS = {"nose": "pynose"}
"""Distribution that does not start with this Python -> the one that is kept up and has the same modules."""
OPTIONS = {
    r"--(no-)?cov\b": "pytest-cov",
    r"--flake8\b": "pytest-flake8",
    r"--black\b": "pytest-black",
    r"--mypy\b": "pytest-mypy",
    r"--isort\b": "pytest-isort",
    r"(-n ?(auto|\d)|--(numprocesses|dist)\b)": "pytest-xdist",
    r"(--timeout\b|^timeout *=)": "pytest-timeout",
    r"--benchmark-": "pytest-benchmark",
    r"(--asyncio-mode\b|^asyncio_mode *=)": "pytest-asyncio",
    r"--reruns\b": "pytest-rerunfailures",
    r"--random-order\b": "pytest-random-order",
}
"""Pattern of an option in the configuration of pytest -> the plugin without which pytest does not start."""


WHEELLESS = re.compile(r"Wheels are required for `([\w.-]+)`")
"""Pattern of uv's remark on a package whose releases have no wheel."""
MOST_WHEELLESS = 8
"""Largest number of packages without a wheel that are taken from their sdists for one task."""


class Pinned(NamedTuple):
    """The fields of a source that its requirements give."""

    packages: tuple[str, ...]
    plugins: tuple[str, ...]
    withheld: tuple[str, ...]
    sdists: tuple[str, ...] = ()
    """Requirements without a wheel, as `name==version --hash=..`."""


class Wheelless(NamedTuple):
    """A package that the index has as an sdist only."""

    line: str
    """The line that pins the package, `name==version --hash=..`."""
    requires: tuple[str, ...]
    """Requirements that its sdist declares."""


def wanted(
    root: Path, tests: list[Path], asked: tuple[str, ...] = (), commands: tuple[str, ...] = ()
) -> list[list[str]]:
    """Return lists of requirements, the longest first, of which the first that can be pinned is to be used.

    1. those of library and build, all that are declared for tests, or used by them, and well-known helpers of tests
       that they import and nothing declares;
    2. the same without such helpers, and without plugins of pytest that no test imports; 3. those of library and build
       alone. All have what the user asked for, and plugins whose options the commands use.

    Those of the library are as it declares them. Those of its build and tests are without versions: what developers
    pinned years ago need not exist for this Python. The judge brings pytest itself.
    """
    found = declared(root)
    imports = _imports([*tests, *_conftests(root, tests)])
    least = [*found.runtime, *map(_any_version, found.build), *asked, *_plugins_of("\n".join(commands))]
    plugins = []
    used = _configured(root)
    used += [name.replace("_", "-") for name in sorted(imports) if re.fullmatch(r"pytest_\w+", name)]
    for name, lines in found.extras.items():
        for declared_line in lines:
            own = canonicalize_name(_name(declared_line))
            if own in NOT_FOR_TESTS:
                continue
            line = SUCCESSORS.get(own, declared_line)
            if imports.intersection(_modules(own)):
                used.append(_any_version(line))
            elif TESTING.search(name) or own.startswith("pytest"):
                plugins.append(_any_version(line))
    known = {canonicalize_name(_name(line)) for line in (*least, *used, *plugins)}
    helpers = [UNDECLARED[module] for module in sorted(imports & UNDECLARED.keys())]
    everything = [*least, *used, *plugins, *(name for name in helpers if name not in known)]
    return [list(dict.fromkeys(lines)) for lines in (everything, [*least, *used], least)]


def pinned(
    absent: tuple[str, ...],
    requirements: list[list[str]],
    image: Path,
    python: str,
    wheelless: Callable[[str], Wheelless],
) -> Pinned:
    """Pin the first of these lists that can be pinned, and find the plugins of pytest among them.

    `absent` are the library, which no image may have, and after it requirements that are installed in another way.
    What our own image installs keeps the image's version. `wheelless` looks up a requirement that has no wheel, by name
    and specifier, and raises `FetchError` for one that cannot be taken from its sdist. Raises `FetchError` if not even
    the last list can be pinned.
    """
    tools = packages.lines_of((image / "tools.lock").read_text())
    judge = packages.lines_of((image / "judge.lock").read_text())
    ours = {named(line) for line in tools}
    mine, *other = map(canonicalize_name, absent)
    others = {*ours, *other, mine}
    limits = tuple(line.split(" ")[0] for line in (*tools, *judge) if named(line) != mine)
    lock = _Lock(python, limits, others, wheelless)
    for at, each in enumerate(requirements, start=1):
        try:
            lines, sdists = lock.pins(each)
            break
        except FetchError:
            if at == len(requirements):
                raise
    kept = tuple(line for line in lines if canonicalize_name(named(line)) not in others)
    withheld = (mine.replace("-", "_"),) if mine in ours else ()
    return Pinned(kept, _plugins(kept, python), withheld, sdists)


@dataclass(frozen=True)
class _Lock:
    """The settings with which a list of requirements is pinned."""

    python: str
    limits: tuple[str, ...]
    others: set[str]
    """Names of what is installed in another way, or not at all."""
    wheelless: Callable[[str], Wheelless]

    def pins(self, requirements: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the pins of packages with wheels, and of those without. Raises `FetchError`."""
        asked, sdists = list(requirements), dict[str, str]()
        while True:
            wanted = [line for line in asked if canonicalize_name(_name(line)) not in {*self.others, *sdists}]
            lines = tuple(map(packages.requirement, wanted))
            try:
                locked = lock_requirements(
                    lines, python=self.python, constraints=self.limits, without=tuple(sdists)
                )
            except FetchError as error:
                names = {*map(canonicalize_name, WHEELLESS.findall(str(error)))} - sdists.keys()
                if not names or len(sdists) + len(names) > MOST_WHEELLESS:
                    raise
                for name in sorted(names):
                    line = next((line for line in wanted if canonicalize_name(_name(line)) == name), name)
                    found = self.wheelless(line.partition(";")[0].strip())
                    sdists[name] = found.line
                    asked += found.requires
            else:
                return locked, tuple(sdists.values())


def _plugins(lines: tuple[str, ...], python: str) -> tuple[str, ...]:
    """Return the modules of pytest plugins in these packages, as the entry points of their wheels name them."""
    found: list[str] = []
    if not lines:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        install_wheels(lines, Path(folder), python)
        for file in sorted(Path(folder).glob("*.dist-info/entry_points.txt")):
            parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
            try:
                parser.read_string(file.read_text("utf-8"))
            except (configparser.Error, UnicodeDecodeError):
                continue
            if parser.has_section("pytest11"):
                found += parser["pytest11"].values()
    return tuple(dict.fromkeys(found))


def _any_version(line: str) -> str:
    """Return a requirement with its extras and its marker, and without its version."""
    head, _, marker = line.partition(";")
    plain = re.match(r"[\w.-]+(\[[^\]]*\])?", head.strip())
    return (plain[0] if plain else line) + (f" ; {marker.strip()}" if marker and plain else "")


def _name(line: str) -> str:
    return re.split(r"[^\w.-]", line)[0]


def _modules(own: str) -> tuple[str, ...]:
    plain = own.replace("-", "_")
    return IMPORTED_AS.get(own, (plain, plain.removeprefix("python_")))


def _configured(root: Path) -> list[str]:
    """Return the plugins whose options the configuration of pytest sets."""
    texts = []
    for name in ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"):
        text = (root / name).read_text("utf-8", "replace") if (root / name).is_file() else ""
        texts += re.findall(
            r"^\[(?:tool:|tool\.)?pytest(?:\.ini_options)?\]$(.*?)(?=^\[|\Z)", text, re.DOTALL | re.MULTILINE
        )
    return _plugins_of("\n".join(texts))


def _plugins_of(options: str) -> list[str]:
    """Return the plugins whose options are in lines of configuration or in commands."""
    return [plugin for pattern, plugin in OPTIONS.items() if re.search(pattern, options, re.MULTILINE)]


def _conftests(root: Path, tests: list[Path]) -> set[Path]:
    folders = {parent for test in tests for parent in test.parents if parent.is_relative_to(root)}
    beside = {file for folder in {test.parent for test in tests} for file in folder.glob("*.py")}
    return {folder / "conftest.py" for folder in folders if (folder / "conftest.py").is_file()} | beside


def _imports(files: Iterable[Path]) -> set[str]:
    """Return the lower-case names of the top-level modules that files import."""
    found: set[str] = set()
    for file in files:
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0].lower() for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0].lower())
    return found
