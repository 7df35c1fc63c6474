"""Read the masks of a generator's script: the replacements that its authors make in outputs before comparing them.

A mask is code (`sanitize_stdout`). It is parsed and never executed: replacements whose pattern and text stand in the
script become normalizers of the task, and a line that is anything else is named.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import ValidationError

from runner.benchmarks.cli_tool_bench.normalizers import LONGEST_PATTERN, MOST, Normalizer
from runner.errors import TaskError

METHOD = "sanitize_stdout"
FLAGS = {
    **dict.fromkeys(("I", "IGNORECASE"), "i"),
    **dict.fromkeys(("M", "MULTILINE"), "m"),
    **dict.fromkeys(("S", "DOTALL"), "s"),
    **dict.fromkeys(("X", "VERBOSE"), "x"),
    **dict.fromkeys(("A", "ASCII"), "a"),
    **dict.fromkeys(("U", "UNICODE"), ""),
}
"""Flag of `re` -> its letter at the beginning of a pattern."""
_IDLE = ("strip", "rstrip", "lstrip")
"""Methods that change only white space at the ends of an output, which no comparison takes into account."""
STEPS = 10_000
"""Limit on the expressions and statements that are followed. Loops and chained names could multiply them."""
_Chain = tuple[Normalizer, ...]
"""The replacements that lead from the tool's output to a value."""


class Masks(NamedTuple):
    """The masks of one script."""

    normalizers: tuple[Normalizer, ...]
    remarks: tuple[str, ...]
    """Remarks on masks that could not be taken over, with their lines."""


class _NotRead(Exception):  # noqa: N818 - says what happened
    """An expression is of a kind that is not read."""


class _TooMuch(Exception):  # noqa: N818 - says what happened
    """A script is nested too deeply, or its method takes more than `STEPS` to follow."""


def read_masks(script: str, base: str) -> Masks:
    """Return the masks of a script, including those of the base class that it calls.

    Replacements of the base class alone are left out: they only remove ANSI escapes, which no comparison counts. Raises
    `TaskError` if a script is not Python.
    """
    try:
        method, names = _find(script, "start.py")
        if method is None:
            return Masks((), ())
        inherited, base_names = _find(base, "BaseRepoAdapter.py")
        theirs = _Reader(base_names, ()).read(inherited) if inherited else Masks((), ())
        found = _Reader(names, theirs.normalizers).read(method)
    except (_TooMuch, RecursionError):
        return Masks((), (f"its {METHOD} is too long or too deeply nested, and is not taken over",))
    if len(found.normalizers) > MOST:
        return Masks((), (f"its {METHOD} makes more than {MOST} replacements, which are left out",))
    own = found.normalizers if {*found.normalizers} - {*theirs.normalizers} else ()
    return Masks(own, found.remarks)


class _Reader:
    """Follows the value of an output through a method."""

    def __init__(self, names: dict[str, ast.expr], inherited: _Chain) -> None:
        """`names` holds the constants of the module and of its classes, `inherited` the base class's replacements."""
        self._names, self._inherited = dict(names), inherited
        self._values: dict[str, _Chain] = {}
        self._latest: _Chain = ()
        self._remarks: dict[str, None] = {}
        self._steps = 0

    def read(self, method: ast.FunctionDef) -> Masks:
        """Return the replacements on the way to what the method returns."""
        arguments = [argument.arg for argument in method.args.args]
        self._values = dict.fromkeys(arguments[1:], ())
        returned = self._run(method.body)
        return Masks(self._latest if returned is None else returned, tuple(self._remarks))

    def _run(self, body: Sequence[ast.stmt]) -> _Chain | None:
        """Follow statements, and return the value that they return; None if they return nothing."""
        for statement in body:
            self._step()
            if isinstance(statement, ast.Return) and statement.value:
                return self._text(statement.value)
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                self._assign(statement)
            elif isinstance(statement, ast.For):
                self._repeat(statement)
            elif not _is_idle(statement):
                self._remark(statement)
        return None

    def _assign(self, statement: ast.Assign | ast.AnnAssign) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if len(targets) != 1 or not isinstance(targets[0], ast.Name) or statement.value is None:
            self._remark(statement)
            return
        name, value = targets[0].id, statement.value
        if self._is_constant(value):
            self._names[name] = value
        else:
            self._values[name] = self._latest = self._text(value)

    def _repeat(self, loop: ast.For) -> None:
        """Follow a loop over constants that stand in the script, once for each."""
        rows = self._resolve(loop.iter)
        names = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
        if not isinstance(rows, ast.Tuple | ast.List) or len(rows.elts) > MOST:
            self._remark(loop)
            return
        for row in rows.elts:
            parts = row.elts if isinstance(loop.target, ast.Tuple) and isinstance(row, ast.Tuple) else [row]
            if len(parts) != len(names):
                self._remark(loop)
                return
            self._names |= {
                name.id: part for name, part in zip(names, parts, strict=True) if isinstance(name, ast.Name)
            }
            self._run(loop.body)

    def _text(self, node: ast.expr) -> _Chain:
        """Return the replacements on the way to an expression. One that is not read leaves the output unchanged."""
        try:
            return self._follow(node)
        except _NotRead:
            self._remark(node)
            return self._latest

    def _step(self) -> None:
        self._steps += 1
        if self._steps > STEPS:
            raise _TooMuch

    def _follow(self, node: ast.expr) -> _Chain:
        if isinstance(node, ast.Name) and node.id in self._values:
            return self._values[node.id]
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise _NotRead
        of, method = node.func.value, node.func.attr
        if method == METHOD and isinstance(of, ast.Call) and ast.unparse(of.func) == "super":
            return (*self._follow(_argument(node, 0, "raw_stdout")), *self._inherited)
        if method == "sub" and isinstance(of, ast.Name) and of.id == "re":
            pattern = self._pattern(_argument(node, 0, "pattern"), _optional(node, 4, "flags"))
            return self._replaced(node, pattern, 1)
        if method == "sub":
            return self._replaced(node, self._compiled(of), 0)
        if method == "replace" and len(node.args) == 2 and not node.keywords:  # noqa: PLR2004 - old, new
            old, new = (self._string(argument) for argument in node.args)
            return (*self._follow(of), self._normalizer(re.escape(old), new.replace("\\", r"\\")))
        if method in _IDLE and not node.args and not node.keywords:
            return self._follow(of)
        raise _NotRead

    def _replaced(self, node: ast.Call, pattern: str, first: int) -> _Chain:
        """Return the replacements with one more; `first` is the position of its text among the arguments."""
        if _optional(node, first + 2, "count"):
            raise _NotRead
        before = self._follow(_argument(node, first + 1, "string"))
        return (*before, self._normalizer(pattern, self._string(_argument(node, first, "repl"))))

    def _normalizer(self, pattern: str, replacement: str) -> Normalizer:
        try:
            return Normalizer(pattern=pattern, replacement=replacement)
        except ValidationError as error:
            raise _NotRead from error

    def _compiled(self, node: ast.expr) -> str:
        """Return the pattern of a `re.compile(...)` call, which may be the value of a name."""
        made = self._resolve(node)
        if not isinstance(made, ast.Call) or ast.unparse(made.func) != "re.compile":
            raise _NotRead
        return self._pattern(_argument(made, 0, "pattern"), _optional(made, 1, "flags"))

    def _pattern(self, node: ast.expr, flags: ast.expr | None) -> str:
        """Return a pattern with its flags at its beginning."""
        made = self._resolve(node)
        if isinstance(made, ast.Call):
            return self._compiled(made)
        letters = "".join(sorted({*self._letters(flags)})) if flags else ""
        return (f"(?{letters})" if letters else "") + self._string(node)

    def _letters(self, flags: ast.expr) -> str:
        if isinstance(flags, ast.BinOp) and isinstance(flags.op, ast.BitOr):
            return self._letters(flags.left) + self._letters(flags.right)
        if isinstance(flags, ast.Attribute) and flags.attr in FLAGS:
            return FLAGS[flags.attr]
        if isinstance(flags, ast.Constant) and flags.value == 0:
            return ""
        raise _NotRead

    def _string(self, node: ast.expr) -> str:
        found = self._resolve(node)
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            return found.value
        if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add):
            text = self._string(found.left) + self._string(found.right)
            if len(text) <= LONGEST_PATTERN:
                return text
        raise _NotRead

    def _resolve(self, node: ast.expr) -> ast.expr:
        """Return the value of a name that stands for a constant, or the expression itself."""
        self._step()
        for _ in range(MOST):  # a name may stand for itself
            name = (
                node.attr
                if isinstance(node, ast.Attribute)
                else node.id
                if isinstance(node, ast.Name)
                else None
            )
            if name not in self._names:
                return node
            node = self._names[name]
        raise _NotRead

    def _is_constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return ast.unparse(node.func) == "re.compile"
        return not any(
            isinstance(part, ast.Call) or _is_output(part, self._values) for part in ast.walk(node)
        )

    def _remark(self, node: ast.stmt | ast.expr) -> None:
        self._remarks.setdefault(f"line {node.lineno} of its {METHOD} is not taken over")


def _find(script: str, name: str) -> tuple[ast.FunctionDef | None, dict[str, ast.expr]]:
    """Return the method that masks outputs, and the constants of the module and its classes.

    Raises `TaskError` if the script is not Python, `_TooMuch` if it is nested too deeply.
    """
    try:
        module = ast.parse(script)
    except (RecursionError, MemoryError) as error:
        raise _TooMuch from error
    except (SyntaxError, ValueError) as error:
        raise TaskError(f"{name} is not Python: {error}.") from error
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    parts = [part for node in classes for part in node.body]
    methods = [part for part in parts if isinstance(part, ast.FunctionDef) and part.name == METHOD]
    return (methods[0] if methods else None), dict(_constants([*module.body, *parts]))


def _constants(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, statement.value


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr:
    """Return an argument of a call. Raises `_NotRead` if it is missing."""
    if (found := _optional(call, position, keyword)) is None:
        raise _NotRead
    return found


def _optional(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if position < len(call.args):
        return call.args[position]
    return next((part.value for part in call.keywords if part.arg == keyword), None)


def _is_idle(statement: ast.stmt) -> bool:
    """Return whether a statement changes no output: a docstring, an import, `pass`, or returning an empty output."""
    if isinstance(statement, ast.If):
        is_guard = isinstance(statement.test, ast.UnaryOp) and isinstance(statement.test.op, ast.Not)
        return (
            is_guard and not statement.orelse and all(isinstance(part, ast.Return) for part in statement.body)
        )
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass)


def _is_output(node: ast.AST, values: dict[str, _Chain]) -> bool:
    return isinstance(node, ast.Name) and node.id in values
