"""The tree of exceptions and the table that documents it."""

from __future__ import annotations

import inspect
import re

from runner import errors
from runner.errors import AssayError, EngineError, MachineError

CLASSES = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, AssayError) and kind.__module__ == errors.__name__
}
ROW = re.compile(r"^ {4}(?P<tree>[│├└─ ]*)(?P<name>[A-Z]\w+) {2,}\S")


def test_the_table_names_every_class_below_its_base() -> None:
    above: list[str] = []
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := ROW.match(line):
            depth = len(match["tree"]) // 4
            above[depth:] = [match["name"]]
            found[match["name"]] = above[depth - 1] if depth else "Exception"
    assert found == {name: kind.__mro__[1].__name__ for name, kind in CLASSES.items()}


def test_nothing_else_is_an_engine_error() -> None:
    """The sweep ends when the engine fails again and again, so no other failure may look like the engine's."""
    assert [kind for kind in CLASSES.values() if issubclass(kind, EngineError)] == [EngineError]
    assert issubclass(EngineError, MachineError)
