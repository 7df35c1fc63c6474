"""Inventory of a package and coverage by a document, on a made-up package and on one of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.benchmarks.nl2repo.jobs.make_task import _tests
from runner.benchmarks.nl2repo.specification.coverage import coverage
from runner.benchmarks.nl2repo.specification.entries import Entry
from runner.benchmarks.nl2repo.specification.inventory import code_lines, inventory
from runner.errors import ConfigError
from runner.resources import ROOT
from tests.support.suite_factory import write

PACKAGE = {
    "src/mine/__init__.py": "from mine.core import Box\n\nVERSION = '1'\n_hidden = 1\nLIMIT: int = 3\n",
    "src/mine/core.py": '''"""Doc."""
import sys

class Box(dict):
    def __init__(self, size: int, *, name: str = "x") -> None:
        self.size = size

    @staticmethod
    def of(*items, **named):
        return Box(1)

    @property
    def full(self) -> bool:
        return False

    def _secret(self): ...

    def __len__(self): return 0

if sys.version_info > (3, 9):
    async def fetch(url, /, retries=3): ...
else:
    def fetch_slowly(url): ...

def _helper(): ...
''',
    "tests/test_box.py": "def test_box(): ...\n",
    "conftest.py": "",
    "setup.py": "",
}
DOCUMENT = """
`Box(size, name="x")` holds things, `Box.of(*items, **named)` makes one. It is `full` or not.
`await fetch(address)` gets one; `VERSION` says which.
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    write(tmp_path, PACKAGE)
    return tmp_path


def named(entries: list[Entry]) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


def test_an_inventory_has_everything_but_tests(package: Path) -> None:
    found = named(inventory(package))
    assert {name: entry.kind for name, entry in found.items()} == {
        "mine": "module",
        "mine.VERSION": "constant",
        "mine.LIMIT": "constant",
        "mine.core": "module",
        "mine.core.Box": "class",
        "mine.core.Box.__init__": "method",
        "mine.core.Box.of": "method",
        "mine.core.Box.full": "property",
        "mine.core.Box._secret": "method",
        "mine.core.Box.__len__": "method",
        "mine.core.fetch": "function",
        "mine.core.fetch_slowly": "function",
        "mine.core._helper": "function",
    }
    entry = found["mine.core.Box.__init__"]
    assert (entry.signature, entry.parameters) == (
        "(self, size: int, *, name: str='x') -> None",
        ("size", "name"),
    )
    assert (entry.file, entry.line) == ("src/mine/core.py", 5)
    assert found["mine.core.Box.of"].parameters == ("*items", "**named")
    assert found["mine.core.Box"].signature == "dict"
    assert {name for name, entry in found.items() if not entry.public} == {
        "mine.core.Box._secret",
        "mine.core._helper",
    }


def test_lines_of_code_are_without_blanks_comments_and_tests(package: Path) -> None:
    assert code_lines(package / "src" / "mine" / "__init__.py") == 4
    assert code_lines(package) == 4 + sum(
        bool(line.strip()) for line in PACKAGE["src/mine/core.py"].splitlines()
    )


def test_a_document_covers_what_it_names_with_the_right_signature(package: Path) -> None:
    found = coverage(inventory(package), DOCUMENT)
    assert set(found.right) == {
        *(
            "mine.VERSION",
            "mine.core.Box",
            "mine.core.Box.__init__",
            "mine.core.Box.of",
            "mine.core.Box.full",
        ),
    }
    assert found.otherwise == ("mine.core.fetch",)
    assert set(found.missing) == {"mine.LIMIT", "mine.core.fetch_slowly"}
    assert found.share == pytest.approx(5 / 8)


PRIVATE = {
    "mine/__init__.py": "from mine._core import Box, _helper as helper\nfrom ._hand import *\n"
    "from . import _more as more\nfrom os.path import join\n",
    "mine/_hand.py": "from ._core import LIMIT\n__all__ = ['lift']\ndef lift(box): ...\ndef _drop(box): ...\n",
    "mine/_core.py": "LIMIT = 3\nclass Box:\n    def open(self, key): ...\n    def _shut(self): ...\n"
    "def _helper(): ...\ndef nobodys(): ...\n",
    "mine/_more.py": "from ._core import Box\ndef more(): ...\n",
    "mine/api.py": "from mine._core import Box\nfrom ._more import Box as Crate\nfrom ._hand import LIMIT\n",
}


def test_what_public_modules_import_from_private_ones_is_public(tmp_path: Path) -> None:
    write(tmp_path, PRIVATE)
    entries = inventory(tmp_path)
    assert {entry.name for entry in entries if entry.public and entry.kind != "module"} == {
        *("mine.Box", "mine.Box.open", "mine.helper", "mine.lift", "mine.more.more", "mine.api.LIMIT")
    }
    box = named(entries)["mine.Box.open"]
    assert (box.file, box.line, box.parameters) == ("mine/_core.py", 3, ("key",))
    found = coverage(entries, "`Box.open(key)`, `lift(box)`")
    assert set(found.missing) == {"mine.helper", "mine.more.more", "mine.api.LIMIT"}


def test_constants_are_modules_classes_and_enumerations(tmp_path: Path) -> None:
    text = """
import enum, typing
A, (B, c) = 1, (2, 3)
T = typing.TypeVar("T")
retries: typing.Final = 3
class Color(enum.Enum):
    red = 1
    BLUE: int = 2
class Box:
    SIZE = 1
    name = ""
x.Y = Z[0] = 1
def f():
    INNER = 1
"""
    write(tmp_path, {"mine.py": text})
    constants = {entry.name for entry in inventory(tmp_path) if entry.kind == "constant"}
    names = ("A", "B", "retries", "Color.red", "Color.BLUE", "Box.SIZE")
    assert constants == {f"mine.{name}" for name in names}


TWO = """
class Reader:
    def __init__(self, fp): ...
    def close(self): ...
    def peek(self): ...
class Writer:
    def __init__(self, fp): ...
    def close(self): ...
"""


@pytest.mark.parametrize(
    ("document", "right", "otherwise"),
    [
        ("`Reader(fp)`, `Writer(fp)`: `close()`, `peek()`",
         "Reader.__init__ Reader.peek Writer.__init__ Writer.close", ""),
        ("`Reader(fp)`: `close()`, `peek()`. `Writer(fp)`: `close()`", "Reader.* Writer.*", ""),
        ("# Reader\nOf a Writer.\n`__init__(self, fp)`, `close()`\n# Writer\n`close(force)`",
         "Reader.__init__ Reader.close", "Writer.close Writer.__init__"),
        ("Reader, Writer: `Reader.close()`, `peek`", "Reader.close", "Reader.__init__ Reader.peek Writer.__init__"),
        ("class Writer:\n    def close(self)\nReader is another", "Writer.close", "Reader.__init__ Writer.__init__"),
    ],
)  # fmt: skip
def test_a_mention_is_of_one_class_and_has_its_parentheses(
    tmp_path: Path, document: str, right: str, otherwise: str
) -> None:
    write(tmp_path, {"mine.py": TWO})
    found = coverage(inventory(tmp_path), document)
    methods = {name.removeprefix("mine.") for name in found.right} - {"Reader", "Writer"}
    everything = {"Reader.__init__", "Reader.close", "Reader.peek", "Writer.__init__", "Writer.close"}
    assert methods == (everything if "*" in right else set(right.split()))
    assert {name.removeprefix("mine.") for name in found.otherwise} == set(otherwise.split())


def test_of_overloads_the_best_counts(tmp_path: Path) -> None:
    overloads = "@overload\ndef f(a): ...\n@overload\ndef f(a, b): ...\ndef f(*args): ...\n"
    write(tmp_path, {"mine.py": f"from typing import overload\n{overloads}"})
    assert coverage(inventory(tmp_path), "Call `f(a, b)`.").right == ("mine.f",)


def test_an_api_of_nothing_is_covered() -> None:
    assert coverage([], "").share == 1.0


def test_any_package_has_an_inventory() -> None:
    found = named(inventory(ROOT / "metrics"))
    assert found["metrics.cost"].kind == "module"
    assert "metrics.table.select" in found


def test_a_file_may_say_its_own_encoding(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes("# coding: latin-1\nNAME = 'é'\n".encode("latin-1"))
    assert "mine.NAME" in named(inventory(tmp_path))


@pytest.mark.parametrize("content", ["def f(:\n", "\0"])
def test_what_is_no_python_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "broken.py").write_text(content)
    with pytest.raises(ConfigError, match=r"broken\.py cannot be parsed"):
        inventory(tmp_path)
    with pytest.raises(ConfigError, match="holds no Python file"):
        inventory(tmp_path / "nowhere")


def test_where_tests_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"set job\.tests"):
        _tests(tmp_path)
    write(tmp_path, {"test_a.py": "", "x.py": ""})
    assert _tests(tmp_path) == ["test_a.py"]
    write(tmp_path, {"tests/test_b.py": ""})
    assert _tests(tmp_path) == ["tests"]
