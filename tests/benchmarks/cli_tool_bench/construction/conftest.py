"""The command line, with a key that no provider knows, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sweeps import Cli


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k-0123456789")
    return Cli(tmp_path / "outputs", monkeypatch, capsys)
