"""The inventory of a package by its syntax alone: nothing of it is imported or run (section 3.1.2)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from runner.errors import ConfigError
from runner.records import Record

TESTS = ("test", "tests", "testing")
"""Folders whose content is no part of a package, like files `test_*.py`, `*_test.py` and `conftest.py`."""
OUTSIDE = ("build", "dist", "docs", "doc", "examples", "node_modules", "venv")
Kind = Literal["module", "class", "function", "method", "constant"]


class Entry(Record):
    """One thing that a package defines."""

    kind: Kind
    name: str
    """Dotted, with its module: `jsonlines.jsonlines.Reader.read`."""
    signature: str = ""
    """Of functions and methods: what stands between the parentheses, and the result; of classes their bases."""
    parameters: tuple[str, ...] | None = None
    """Names of the parameters of functions and methods, without `self` and `cls`; None for anything else."""
    file: str
    line: int
    public: bool
    """No part of its name begins with `_`, dunder methods aside."""

    @property
    def short(self) -> str:
        """Its own name."""
        return self.name.rpartition(".")[2]


def inventory(root: Path) -> list[Entry]:
    """Everything that the Python files below a folder define, or a single file; in the order of files and lines.

    A folder `src` is no part of modules' names. Raises `ConfigError` if there is no such file, or one is no Python.
    """
    files = (
        [root]
        if root.is_file()
        else [path for path in sorted(root.rglob("*.py")) if _counts(path.relative_to(root))]
    )
    base = root.parent if root.is_file() or (root / "__init__.py").is_file() else root
    if not files:
        raise ConfigError(f"{root} holds no Python file of a package.")
    return [entry for file in files for entry in _of_file(file, base)]


def code_lines(root: Path) -> int:
    """Lines of a package's code that are neither blank nor a comment (section 3.1.1)."""
    files = (
        {root} if root.is_file() else {path for path in root.rglob("*.py") if _counts(path.relative_to(root))}
    )
    texts = (path.read_text("utf-8", errors="replace").splitlines() for path in files)
    return sum(bool(line.strip()) and not line.strip().startswith("#") for text in texts for line in text)


def _counts(path: Path) -> bool:
    name, folders = path.name, path.parts[:-1]
    mine = not any(part in (*TESTS, *OUTSIDE) or part.startswith(".") for part in folders)
    plain = not (name.startswith("test_") or name.endswith("_test.py") or name in ("conftest.py", "setup.py"))
    return mine and plain


def _of_file(file: Path, base: Path) -> Iterator[Entry]:
    where = file.relative_to(base)
    parts = [part for part in where.with_suffix("").parts if part not in ("src", "__init__")]
    module = ".".join(parts) or where.stem
    try:
        tree = ast.parse(file.read_bytes())  # which may say its own encoding
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{file} cannot be parsed: {error}.") from error
    yield Entry(kind="module", name=module, file=str(where), line=1, public=_public(module))
    yield from _of_body(tree.body, module, str(where), inside=False)


def _of_body(body: list[ast.stmt], owner: str, file: str, *, inside: bool) -> Iterator[Entry]:
    for node in body:
        if isinstance(node, ast.If | ast.Try):  # what depends on a version or on a library that may be absent
            branches = [
                *node.body,
                *node.orelse,
                *(line for h in getattr(node, "handlers", ()) for line in h.body),
            ]
            yield from _of_body(branches, owner, file, inside=inside)
        elif isinstance(node, ast.ClassDef):
            name = f"{owner}.{node.name}"
            bases = ", ".join(ast.unparse(base) for base in node.bases)
            yield _entry("class", name, node, file, bases)
            yield from _of_body(node.body, name, file, inside=True)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            kind: Kind = "method" if inside else "function"
            result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            signature = f"({ast.unparse(node.args)}){result}"
            entry = _entry(kind, f"{owner}.{node.name}", node, file, signature)
            bound = inside and not any(ast.unparse(of) == "staticmethod" for of in node.decorator_list)
            yield entry.model_copy(update={"parameters": parameters(node.args, bound=bound)})
        elif not inside:
            yield from (_entry("constant", f"{owner}.{name}", node, file) for name in _constants(node))


def _entry(kind: Kind, name: str, node: ast.stmt, file: str, signature: str = "") -> Entry:
    return Entry(kind=kind, name=name, signature=signature, file=file, line=node.lineno, public=_public(name))


def parameters(arguments: ast.arguments, *, bound: bool) -> tuple[str, ...]:
    """Names in their order, stars included; without the first of a bound method's."""
    plain = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)][bound:]
    star = [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    more = [argument.arg for argument in arguments.kwonlyargs]
    both = [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
    return (*plain, *star, *more, *both)


def _constants(node: ast.stmt) -> list[str]:
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return [target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()]


def _public(name: str) -> bool:
    return not any(
        part.startswith("_") and not (part.startswith("__") and part.endswith("__"))
        for part in name.split(".")
    )
