"""`live.json`: what a running sweep says of itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from runner.records import LiveSweep
from runner.sweeps import live_file
from runner.sweeps.live_file import LiveFile
from runner.sweeps.store import Store
from tests.support.waiting import until


def said(folder: Path) -> LiveSweep:
    found = live_file.read(folder)
    assert found
    return found


def test_it_follows_the_sweep_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_file, "LOOK_SECONDS", 0.01)
    state: dict[str, Any] = {"done": 1, "left": "2 min left"}
    with LiveFile(tmp_path) as live:
        assert (said(tmp_path).pid, said(tmp_path).ended) == (os.getpid(), None)
        live.follow(lambda: dict(state))
        until(lambda: said(tmp_path).done == 1)
        state["done"] = 2
        until(lambda: said(tmp_path).done == 2)
        live.finish("writing the report")
        until(lambda: said(tmp_path).doing == "writing the report")
        assert (said(tmp_path).done, said(tmp_path).left) == (2, "")
    last = said(tmp_path)
    assert (last.ended is not None, last.done, last.doing) == (True, 2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["live.json"]


def test_a_quiet_sweep_is_heard_of_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_file, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(live_file, "BEAT_SECONDS", 0.05)
    with LiveFile(tmp_path):
        first = said(tmp_path).written
        until(lambda: said(tmp_path).written > first)


def test_a_disk_that_takes_nothing_does_not_end_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with LiveFile(tmp_path / "file"):
        pass
    assert live_file.read(tmp_path / "file") is None


def test_who_holds_outputs_is_seen_from_elsewhere(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.holder() is None
    with store.locked():
        assert Store(tmp_path).holder() == f"process {os.getpid()}"
    assert Store(tmp_path).holder() is None
