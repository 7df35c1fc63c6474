"""Report and tracked runs are refreshed while a sweep runs: rarely, elsewhere, and to no effect on what remains."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from runner.jobs import refreshing
from runner.jobs.refreshing import SHARE, Refreshing, RefreshProcess
from runner.records import Record
from runner.report.projections import TABLES, write_projections
from runner.tracking.mlflow import NoTracker
from tests.report.plans import sweep_of_four, write_sweep
from tests.support.records_factory import trial_record
from tests.support.waiting import PATIENCE_SECONDS, until

STAMP = "projected.json"


class Refused(NoTracker):
    """Tracker that takes nothing, like a server that is down."""

    def refresh(self, sweep: Path) -> None:
        raise OSError(f"nobody\x1b[2J answers for {sweep.name}")


class Endless(NoTracker):
    """Tracker that never ends, in the middle of writing a file."""

    def refresh(self, sweep: Path) -> None:
        import os  # noqa: PLC0415 - of the process that runs this

        (sweep / f".trials.csv.{os.getpid()}").touch()
        time.sleep(PATIENCE_SECONDS)


def settings(folder: Path, tracker: Record) -> Any:
    """The part of a sweep's settings that a refresh uses."""
    return SimpleNamespace(folder=folder, outputs=folder.parent, tracker=tracker)


def news_until(refreshed: Refreshing, true: Callable[[], object]) -> None:
    """Let trials end until something is true."""
    until(lambda: list(refreshed.hearing([trial_record()])) and true())


def test_it_takes_at_most_a_twentieth_of_the_time_that_it_leaves_free() -> None:
    spans: list[tuple[float, float]] = []

    def once(_: Event) -> str:
        began = time.monotonic()
        time.sleep(0.02)
        spans.append((began, time.monotonic()))
        return ""

    began = time.monotonic()  # before its thread starts to wait
    with Refreshing(0.1, once, print) as refreshed:
        news_until(refreshed, lambda: len(spans) >= 3)
    assert spans[0][0] - began >= 0.1
    for (before, ended), (after, _) in pairwise(spans):
        assert after - ended >= SHARE * (ended - before) * 0.99


def test_nothing_is_refreshed_unless_a_trial_has_ended() -> None:
    times: list[float] = []

    def once(_: Event) -> str:
        times.append(time.monotonic())
        return ""

    with Refreshing(0.01, once, print) as refreshed:
        time.sleep(0.5)
        assert not times
        list(refreshed.hearing([trial_record()]))
        until(lambda: times)
        time.sleep(0.5)
    assert len(times) == 1


def test_null_turns_it_off() -> None:
    with Refreshing(None, lambda _: pytest.fail("refreshed"), print) as refreshed:
        list(refreshed.hearing([trial_record()]))


def test_a_failure_is_said_once_and_does_not_end_the_sweep() -> None:
    notes: list[str] = []
    tries: list[int] = []

    def once(_: Event) -> str:
        tries.append(1)
        return "MLflow is down."

    with Refreshing(0.01, once, notes.append) as refreshed:
        news_until(refreshed, lambda: len(tries) > 2)
    (note,) = notes
    assert note == (
        "Report and tracked runs could not be refreshed: MLflow is down. "
        "The sweep goes on, and writes them when it ends."
    )


def written(folder: Path) -> dict[str, bytes]:
    """Tables and report of a sweep."""
    report = {
        str(path.relative_to(folder)): path for path in (folder / "report").rglob("*") if path.is_file()
    }
    return {name: path.read_bytes() for name, path in {**report, **{t: folder / t for t in TABLES}}.items()}


def test_the_report_at_the_end_is_that_of_a_sweep_that_was_never_refreshed(tmp_path: Path) -> None:
    planned, records = sweep_of_four()
    (tmp_path / "a").mkdir()
    folder = write_sweep(tmp_path / "a", planned, dict(list(records.items())[:9]))
    (folder / STAMP).write_text("{}")
    assert not RefreshProcess(settings(folder, NoTracker()), folder / STAMP)(Event())
    assert not (folder / STAMP).exists()  # or a sweep that ends now would take this report for its own
    partial = written(folder)
    write_sweep(tmp_path / "a", planned, records)
    write_projections(folder, tmp_path / "a")
    (tmp_path / "b").mkdir()
    alone = write_sweep(tmp_path / "b", planned, records)
    write_projections(alone, tmp_path / "b")
    paths = str(tmp_path / "a").encode(), str(tmp_path / "b").encode()
    assert _comparable(written(folder), *paths) == _comparable(written(alone))
    assert partial["report/index.html"] != written(folder)["report/index.html"]


def _comparable(files: dict[str, bytes], path: bytes = b"", by: bytes = b"") -> dict[str, bytes]:
    """Return the files without the digests of pages, since these count the times of a trial's files."""
    made_of = re.compile(rb'(?<=<meta name="made-of" content=")\w+')
    return {
        name: made_of.sub(b"", content.replace(path, by) if path else content)
        for name, content in files.items()
    }


def test_a_tracker_that_fails_is_quoted(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, *sweep_of_four())
    process = RefreshProcess(settings(folder, Refused()), folder / STAMP)
    assert process(Event()) == "OSError: nobody\x1b[2J answers for quickstart"
    notes: list[str] = []
    with Refreshing(0.01, process, notes.append) as refreshed:
        news_until(refreshed, lambda: notes)
    assert "nobody\\x1b[2J answers" in notes[0]


@pytest.mark.parametrize("patience", [refreshing.STOP_SECONDS, 0.0])
def test_the_end_of_a_sweep_does_not_wait_for_a_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    """Whether it ends when it is told to, or has to be killed."""
    monkeypatch.setattr(refreshing, "STOP_SECONDS", patience)
    folder = write_sweep(tmp_path, *sweep_of_four())

    def left() -> list[Path]:
        return list(folder.glob(".trials.csv.*"))

    with Refreshing(0.01, RefreshProcess(settings(folder, Endless()), folder / STAMP), print) as refreshed:
        news_until(refreshed, left)
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    assert not left()
