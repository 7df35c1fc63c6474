"""The inventory of a package and what a document says of it, on a package made for it and on one of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.door import ROOT
from runner.errors import ConfigError
from runner.jobs.make_nl2repo_task import _tests
from runner.specification.coverage import coverage
from runner.specification.inventory import Entry, code_lines, inventory
from tests.suite_factory import write

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
        "mine.core.Box.full": "method",
        "mine.core.Box._secret": "method",
        "mine.core.Box.__len__": "method",
        "mine.core.fetch": "function",
        "mine.core.fetch_slowly": "function",
        "mine.core._helper": "function",
    }
    made = found["mine.core.Box.__init__"]
    assert (made.signature, made.parameters) == (
        "(self, size: int, *, name: str='x') -> None",
        ("size", "name"),
    )
    assert (made.file, made.line) == ("src/mine/core.py", 5)
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
    with pytest.raises(ConfigError, match=r"say job\.tests"):
        _tests(tmp_path)
    write(tmp_path, {"test_a.py": "", "x.py": ""})
    assert _tests(tmp_path) == ["test_a.py"]
    write(tmp_path, {"tests/test_b.py": ""})
    assert _tests(tmp_path) == ["tests"]
