"""Find what a suite uses of a package, by syntax alone: imports, names that it reaches, and keyword arguments.

A document must name each of them, private ones included, or the task cannot be solved (section 3.1.2).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal

from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.errors import ConfigError
from runner.records import Record

Kind = Literal["module", "name", "keyword"]
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_ANYWHERE = {"__init__", "__name__", "__doc__", "__dict__", "__class__", "__file__"}
"""Names that every class or module has."""


class Use(Record):
    """First use of a name in a suite."""

    kind: Kind
    """module: a module of the package; name: anything in one, or an attribute; keyword: name of an argument."""
    name: str
    """Dotted name of a module; for others the name alone."""
    file: str
    line: int


class TestFile(Record):
    """A parsed file of a suite."""

    __test__ = False  # pytest collects no class that says so

    path: str
    """Path relative to the suite's folder."""
    package: str
    """Dotted name of the package that holds the file, if it lies inside of the library; relative imports need it."""
    text: str

    @property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.text)


def read_tests(folder: Path, root: Path) -> list[TestFile]:
    """Return the Python files below a folder, or the one file. `root` is the folder from which modules are imported.

    Raises `ConfigError` if there is none, or one cannot be parsed.
    """
    files = [folder] if folder.is_file() else sorted(folder.rglob("*.py"))
    if not files:
        raise ConfigError(f"{folder} holds no Python file.")
    base = folder.parent if folder.is_file() else folder
    return [_read(file, base, root) for file in files]


def _read(file: Path, base: Path, root: Path) -> TestFile:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be parsed: {error}.") from error
    inside = file.resolve().is_relative_to(root.resolve())
    parts = file.resolve().relative_to(root.resolve()).parent.parts if inside else ()
    package = ".".join(part for part in parts if part != "src")
    return TestFile(path=file.relative_to(base).as_posix(), package=package, text=text)


def import_statements(tests: Sequence[TestFile], entries: Sequence[Entry]) -> list[str]:
    """Return the sorted statements by which tests import the package, each once; `from` names one thing each.

    These are the import paths of the paper's appendix C.3.3. Test folders of the package itself are left out.
    """
    modules = {entry.name for entry in entries if entry.kind == "module"}
    found: set[str] = set()
    for file in tests:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Import):
                found |= {_imported(alias) for alias in node.names if _is_ours(alias.name, modules)}
            elif isinstance(node, ast.ImportFrom):
                origin = _origin(node, file)
                if _is_ours(origin, modules):
                    found |= {f"from {origin} import {_named(alias)}" for alias in node.names}
    return sorted(found)


def used_names(tests: Sequence[TestFile], entries: Sequence[Entry], attributes: Collection[str]) -> list[Use]:
    """Return the first use of each name, in the order of files and lines.

    `attributes` are names that the package's code assigns to attributes. An attribute of an unknown object counts if
    the package defines one of that name: a suite that calls `.items()` on a dictionary uses a package's own `items`.
    """
    known = {entry.short for entry in entries if entry.kind != "module"} | set(attributes)
    modules = {entry.name for entry in entries if entry.kind == "module"}
    first: dict[tuple[Kind, str], Use] = {}
    for file in tests:
        finder = _Finder(file, modules, known, entries)
        for kind, name, line in sorted(finder.uses(), key=lambda each: each[2]):
            if name not in _ANYWHERE:
                first.setdefault((kind, name), Use(kind=kind, name=name, file=file.path, line=line))
    return list(first.values())


class _Finder:
    """Finds the uses in one file."""

    def __init__(self, file: TestFile, modules: set[str], known: set[str], entries: Sequence[Entry]) -> None:
        self._file, self._modules, self._known, self._entries = file, modules, known, entries
        self._bound: dict[str, str] = {}
        """Name in the file -> dotted name of what it stands for."""

    def uses(self) -> Iterator[tuple[Kind, str, int]]:
        nodes = list(ast.walk(self._file.tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._imports(node)
        for node in nodes:
            if isinstance(node, ast.Attribute):
                yield from self._attribute(node)
            elif isinstance(node, ast.Call):
                yield from self._keywords(node)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._patched(node.value, node.lineno)
            elif isinstance(node, ast.Name) and node.id in self._bound and "*" in self._bound[node.id]:
                yield "name", node.id, node.lineno

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[Kind, str, int]]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_ours(alias.name, self._modules):
                    top = alias.name.partition(".")[0]
                    self._bound[alias.asname or top] = alias.name if alias.asname else top
                    yield "module", alias.name, node.lineno
            return
        origin = _origin(node, self._file)
        if not _is_ours(origin, self._modules):
            return
        yield "module", origin, node.lineno
        for alias in node.names:
            if alias.name == "*":
                inner = (entry for entry in self._entries if entry.name == f"{origin}.{entry.short}")
                self._bound |= {entry.short: "*" for entry in inner}
                continue
            whole = f"{origin}.{alias.name}"
            self._bound[alias.asname or alias.name] = whole
            yield (
                ("module", whole, node.lineno)
                if whole in self._modules
                else (
                    "name",
                    alias.name,
                    node.lineno,
                )
            )

    def _attribute(self, node: ast.Attribute) -> Iterator[tuple[Kind, str, int]]:
        owner = self._dotted(node.value)
        whole = f"{owner}.{node.attr}"
        if whole in self._modules:
            yield "module", whole, node.lineno
        elif owner in self._modules or node.attr in self._known:
            yield "name", node.attr, node.lineno

    def _keywords(self, node: ast.Call) -> Iterator[tuple[Kind, str, int]]:
        """Yield the keywords of a call of the library's: those that name a parameter of any of its entries."""
        func = node.func
        ours = (isinstance(func, ast.Name) and func.id in self._bound) or (
            isinstance(func, ast.Attribute)
            and (func.attr in self._known or self._dotted(func.value) in self._modules)
        )
        takes = {name for entry in self._entries for name in entry.parameters or ()}
        for keyword in node.keywords:
            if ours and keyword.arg and keyword.arg in takes:
                yield "keyword", keyword.arg, node.lineno

    def _patched(self, text: str, line: int) -> Iterator[tuple[Kind, str, int]]:
        """Yield the names in a text such as that of `mock.patch("package.module.name")`."""
        if not _DOTTED.fullmatch(text) or not _is_ours(text, self._modules):
            return
        owner, _, name = text.rpartition(".")
        if text in self._modules:
            yield "module", text, line
        elif owner in self._modules or any(entry.name == owner for entry in self._entries):
            yield "name", name, line

    def _dotted(self, node: ast.expr) -> str:
        """Return the dotted name of an expression that begins with an imported name; empty for any other."""
        if isinstance(node, ast.Name):
            return self._bound.get(node.id, "")
        if isinstance(node, ast.Attribute) and (owner := self._dotted(node.value)):
            return f"{owner}.{node.attr}"
        return ""


def _is_ours(name: str, modules: Collection[str]) -> bool:
    """Return whether a dotted name lies in the package, and is not itself a test."""
    parts = name.split(".")
    return any(".".join(parts[:length]) in modules for length in range(1, len(parts) + 1)) and not (
        {"test", "tests", "testing"} & set(parts)
    )


def _origin(node: ast.ImportFrom, file: TestFile) -> str:
    """Return the module that a statement imports from; empty for a relative import outside of the package."""
    if not node.level:
        return node.module or ""
    parts = file.package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])]) if file.package and above else ""


def _imported(alias: ast.alias) -> str:
    return f"import {_named(alias)}"


def _named(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
