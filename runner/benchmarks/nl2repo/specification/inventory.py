"""List what a package defines, by syntax alone: nothing of the package is imported or run (section 3.1.2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from runner.benchmarks.nl2repo.specification.entries import Entry, Kind, is_public, statements
from runner.benchmarks.nl2repo.specification.exports import Import, exported, imports
from runner.errors import ConfigError

TESTS = ("test", "tests", "testing")
"""Names of test folders, which are not part of a package; nor are `test_*.py`, `*_test.py`, `tests.py`, `conftest.py`.
"""
OUTSIDE = ("build", "dist", "docs", "doc", "examples", "node_modules", "venv")
_PROPERTIES = {"property", "cached_property", "setter", "deleter", "getter"}
"""Last parts of decorators that make a method an attribute."""


def inventory(root: Path) -> list[Entry]:
    """Return the definitions in a Python file, or in all below a folder, in the order of files and lines.

    Private definitions that a public module imports are listed once more, at the end, under the public name. A folder
    `src` is not part of modules' names. Raises `ConfigError` if there is no file, or one cannot be parsed.
    """
    files, base = package_files(root), import_root(root)
    if not files:
        raise ConfigError(f"{root} holds no Python file of a package.")
    entries: list[Entry] = []
    imported: list[Import] = []
    for file in files:
        (tree, module), where = _parsed(file, base), str(file.relative_to(base))
        entries.append(Entry(kind="module", name=module, file=where, line=1, public=is_public(module)))
        entries.extend(_of_body(tree.body, module, where, None))
        imported.extend(imports(tree, module, is_package=file.name == "__init__.py"))
    return [*entries, *exported(entries, imported)]


def code_lines(root: Path) -> int:
    """Count the lines of a package's code that are neither blank nor a comment (section 3.1.1)."""
    texts = (path.read_text("utf-8", errors="replace").splitlines() for path in package_files(root))
    return sum(bool(line.strip()) and not line.strip().startswith("#") for text in texts for line in text)


def package_files(root: Path) -> list[Path]:
    """Return the Python files of a package below a folder, sorted, without tests, documents and examples."""
    if root.is_file():
        return [root]
    return [path for path in sorted(root.rglob("*.py")) if _counts(path.relative_to(root))]


def import_root(root: Path) -> Path:
    """Return the folder from which the modules of `root` are imported, but for a folder `src`."""
    return root.parent if root.is_file() or (root / "__init__.py").is_file() else root


def assigned_attributes(root: Path) -> set[str]:
    """Return the names of the attributes that the code of a package assigns: `x` of `self.x = 1`."""
    nodes = (node for file in package_files(root) for node in ast.walk(ast.parse(file.read_bytes())))
    return {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def _counts(path: Path) -> bool:
    name, folders = path.name, path.parts[:-1]
    mine = not any(part in (*TESTS, *OUTSIDE) or part.startswith(".") for part in folders)
    plain = not (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name in ("conftest.py", "setup.py", "tests.py")
    )
    return mine and plain


def _parsed(file: Path, base: Path) -> tuple[ast.Module, str]:
    """Return a file's tree and the name of its module."""
    where = file.relative_to(base)
    parts = [part for part in where.with_suffix("").parts if part not in ("src", "__init__")]
    try:
        return ast.parse(file.read_bytes()), ".".join(parts) or where.stem  # bytes may declare an encoding
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{file} cannot be parsed: {error}.") from error


def _of_body(body: list[ast.stmt], owner: str, file: str, around: ast.ClassDef | None) -> Iterator[Entry]:
    for node in statements(body):
        if isinstance(node, ast.ClassDef):
            name = f"{owner}.{node.name}"
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            yield _entry("class", name, node, file, bases)
            yield from _of_body(node.body, name, file, node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield _callable(node, owner, file, inside=around is not None)
        else:
            yield from (
                _entry("constant", f"{owner}.{name}", node, file) for name in _constants(node, around)
            )


def _callable(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str, file: str, *, inside: bool) -> Entry:
    """Return the entry of a function, a method or a property."""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    decorators = [ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list]
    if inside and _PROPERTIES.intersection(decorators):
        return _entry("property", f"{owner}.{node.name}", node, file, result)
    kind: Kind = "method" if inside else "function"
    entry = _entry(kind, f"{owner}.{node.name}", node, file, f"({ast.unparse(node.args)}){result}")
    bound = inside and "staticmethod" not in decorators
    return entry.model_copy(update={"parameters": parameters(node.args, bound=bound)})


def _entry(kind: Kind, name: str, node: ast.stmt, file: str, signature: str = "") -> Entry:
    return Entry(
        kind=kind, name=name, signature=signature, file=file, line=node.lineno, public=is_public(name)
    )


def parameters(arguments: ast.arguments, *, bound: bool) -> tuple[str, ...]:
    """Return the names of parameters in their order, with stars, and without the first of a bound method."""
    plain = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][bound:]
    star = [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    more = [argument.arg for argument in arguments.kwonlyargs]
    both = [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return (*plain, *star, *more, *both)


def _constants(node: ast.stmt, around: ast.ClassDef | None) -> Iterator[str]:
    """Yield the constants of a statement: names in capitals, `Final` names, and members of enumerations."""
    if isinstance(node, ast.Assign):
        targets, note = node.targets, ""
    elif isinstance(node, ast.AnnAssign):
        targets, note = [node.target], ast.unparse(node.annotation)
    else:
        return
    value = node.value
    called = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    if called.rpartition(".")[2] in ("TypeVar", "ParamSpec", "TypeVarTuple"):
        return
    enumeration = around and any(ast.unparse(base).endswith(("Enum", "Flag")) for base in around.bases)
    fixed = enumeration or "Final" in note
    names = (name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    yield from (name.id for name in names if isinstance(name.ctx, ast.Store) and (fixed or name.id.isupper()))
