"""The door, from a folder of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.sweeps import Door


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Door:
    monkeypatch.chdir(tmp_path)
    return Door(tmp_path, monkeypatch, capsys)
