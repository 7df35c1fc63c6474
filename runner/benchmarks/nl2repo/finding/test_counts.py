"""Count the tests of an unpacked archive by syntax alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from runner.benchmarks.nl2repo.published_folder import Published
from runner.benchmarks.nl2repo.suite import targets

NAMES = ("test_*.py", "*_test.py")
"""Patterns of the names of files that pytest collects by default."""
LARGEST = 4 << 20
"""Largest test file that is read, in bytes."""


class Count(NamedTuple):
    """Number of tests in some files."""

    tests: int
    exact: bool
    """True if every parametrization is a literal list. Otherwise there are at least `tests` tests."""


def test_files(root: Path, published: Published) -> list[Path]:
    """Return the files of an archive that the commands collect, and that the deletion list names; sorted.

    A command that names no path collects everything, of which only listed files are tests that are known to be hidden.
    """
    wanted = [path for command in published.commands for path in targets(command)]
    places = [path for path in wanted if path not in ("", ".")] or list(published.hidden)
    names = _names(root)
    found = {file for place in places for file in _collected(root, place, names)}
    return sorted(found)


def moved_tests(root: Path, published: Published) -> dict[str, str]:
    """Return where an archive has the tests that the commands name: path in the authors' layout -> path in the archive.

    Empty unless each missing path has just one place with its name. Some archives have the tests in the library's
    folder, and the authors put them beside it.
    """
    wanted = [path for command in published.commands for path in targets(command)]
    missing = {first for path in wanted if path not in ("", ".") and (first := _first_missing(root, path))}
    found = {}
    for path in sorted(missing):
        files = path.endswith(".py")
        places = [
            each
            for each in sorted(root.rglob(Path(path).name))
            if each.is_file() == files
            and not any(part.startswith(".") for part in each.relative_to(root).parts)
        ]
        if len(places) != 1 or not list(_collected(root, str(places[0].relative_to(root)), _names(root))):
            return {}
        found[path] = places[0].relative_to(root).as_posix()
    return found


def _first_missing(root: Path, path: str) -> str:
    """Return the shortest part of a path that does not exist; empty if all exists or it leads out of the archive."""
    parts = Path(path).parts
    if Path(path).is_absolute() or ".." in parts:
        return ""
    places = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    return next((place for place in places if not (root / place).exists()), "")


def count(files: list[Path], root: Path) -> Count:
    """Return the number of tests in an archive's files.

    A file that cannot be parsed has none that can be counted; one that imports a helper of the tests that is not in the
    archive has none, since it cannot be collected.
    """
    tests, exact = 0, True
    for file in files:
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
            exact = False
            continue
        if not all(_exists(place) for place in _helpers(tree, file, root)):
            continue
        for cases in _cases(tree.body):
            tests += cases or 1
            exact = exact and cases is not None
    return Count(tests, exact)


def _helpers(tree: ast.Module, file: Path, root: Path) -> Iterator[Path]:
    """Yield the modules, without suffix, of the tests' own folder that a file imports at its top."""
    top = file.relative_to(root).parts[0]
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        parts = node.module.split(".") if node.module else []
        if node.level and parts and node.level < len(file.relative_to(root).parts):
            yield file.parents[node.level - 1].joinpath(*parts)
        elif not node.level and len(parts) > 1 and parts[0] == top:
            yield root.joinpath(*parts)


def _exists(place: Path) -> bool:
    return place.is_dir() or any(place.parent.glob(f"{place.name}.*"))


def _names(root: Path) -> tuple[str, ...]:
    """Return the patterns of file names that pytest collects in an archive."""
    for name in ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"):
        text = (root / name).read_text("utf-8", "replace") if (root / name).is_file() else ""
        if found := re.search(r"^python_files\s*=\s*(\[[^\]]*\]|.*(?:\n[ \t]+.*)*)", text, re.MULTILINE):
            return tuple(re.findall(r"[\w.*?-]+", found[1]))
    return NAMES


def _collected(root: Path, place: str, names: tuple[str, ...]) -> Iterator[Path]:
    start = root / place
    if not start.resolve().is_relative_to(root.resolve()):
        return
    files = [start] if start.is_file() else sorted(start.rglob("*.py"))
    for file in files:
        named = file == start or any(fnmatchcase(file.name, name) for name in names)
        if named and file.suffix == ".py" and not file.is_symlink() and file.stat().st_size <= LARGEST:
            yield file


def _cases(body: list[ast.stmt], factor: int | None = 1) -> Iterator[int | None]:
    """Yield for each test function how many tests it is; None if only running it could tell."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield _product([factor, *map(_cases_of, node.decorator_list)])
        elif isinstance(node, ast.ClassDef) and _is_suite(node):
            yield from _cases(node.body, _product([factor, *map(_cases_of, node.decorator_list)]))
        elif isinstance(node, ast.If | ast.Try):
            yield from _cases(node.body, factor)


def _is_suite(node: ast.ClassDef) -> bool:
    bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases]
    return node.name.startswith("Test") or any("Test" in base for base in bases)


def _cases_of(decorator: ast.expr) -> int | None:
    """Return by what a decorator multiplies a test; None if it cannot be read."""
    if not isinstance(decorator, ast.Call) or getattr(decorator.func, "attr", "") != "parametrize":
        return 1
    values = [*decorator.args[1:2], *(each.value for each in decorator.keywords if each.arg == "argvalues")]
    if values and isinstance(values[0], ast.List | ast.Tuple | ast.Set):
        items = values[0].elts
        return None if any(isinstance(item, ast.Starred) for item in items) else len(items)
    return None


def _product(factors: list[int | None]) -> int | None:
    result = 1
    for factor in factors:
        if factor is None:
            return None
        result *= factor
    return result
