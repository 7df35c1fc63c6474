"""The command line, with a key that no provider knows, in a folder of its own; and classes of few cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.benchmarks.cli_tool_bench.construction import drawing, golden
from tests.support.module_proxy import served
from tests.support.sweeps import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k-0123456789")
    return Cli(tmp_path / "outputs", monkeypatch, capsys)


@pytest.fixture
def _small_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make classes of ten cases. `test_seven_tools.py` and `test_looks.py` make classes of fifty, which takes long."""
    for name, number in {"CASES": 10, "FEWEST": 8, "AT_ONCE": 12}.items():
        monkeypatch.setattr(golden, name, number)
    monkeypatch.setattr(drawing, "DRAWS", 24)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Serve an index of Python packages, and yield its folder."""
    root = tmp_path / "index"
    root.mkdir()
    with served(root) as (address, _):
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{address}/")
        yield root
