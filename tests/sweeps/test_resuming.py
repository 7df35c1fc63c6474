"""A sweep that is run again shows its present state."""

from __future__ import annotations

import csv
import errno
import shutil
from collections import Counter
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from threading import Thread
from typing import Self

import pytest

from runner.locks import exclusive
from runner.report.projections import TABLES, write_projections
from runner.sweeps import sweep_file
from runner.sweeps.store import Store
from runner.trials import state
from tests.support.sweeps import Cli, Ended, finished_sweep, forget
from tests.support.tasks_factory import make_task

pytestmark = pytest.mark.usefixtures("no_page")


def resume(cli: Cli, tasks: Path, *words: str) -> Ended:
    """The sweep of an agent that does nothing, without isolation."""
    sweep = ("agent=nop", "sandbox=local", "executor.retries=0", "dataset=harbor", f"dataset.root={tasks}")
    return cli(*sweep, "name=sweep", *words)


def test_a_task_refused_later_was_not_in_the_denominator_shown(cli: Cli, tmp_path: Path) -> None:
    """No record had changed, so the leaderboard of the former plan was shown, beneath the refusal of the new one."""
    make_task(tmp_path / "tasks", "a")
    assert "1 trials planned" in resume(cli, tmp_path / "tasks").out
    (make_task(tmp_path / "tasks", "b") / "instruction.md").unlink()
    assert "2 trials planned" in resume(cli, tmp_path / "tasks").out
    assert (tmp_path / "sweep/trials.csv").read_text().count("refused") >= 1


def test_a_sweep_in_which_nothing_was_judged_ended_as_if_all_were(cli: Cli, tmp_path: Path) -> None:
    shutil.rmtree(make_task(tmp_path / "tasks", "a") / "solution")
    for _ in range(2):
        ended = resume(cli, tmp_path / "tasks", "agent=oracle")
        assert "0 judged, 1 invalid" in ended.out
        assert ended.code == 4


@pytest.mark.parametrize(
    ("attempts", "rule", "message"),
    [
        (1, "pass@3", "pass@3 needs attempts=3 or more, and 1 are planned"),
        (18, "pass@9", "pass@9 of 18 attempts has more than 5000 choices a task"),
    ],
)
def test_a_choice_among_attempts_that_are_not_planned_was_refused_when_all_were_paid_for(
    cli: Cli, tmp_path: Path, attempts: int, rule: str, message: str
) -> None:
    make_task(tmp_path / "tasks", "a")
    ended = resume(cli, tmp_path / "tasks", f"attempts={attempts}", f"scoring.attempts={rule}")
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "trials").exists()


def test_a_damaged_record_was_paid_for_again_without_a_word(cli: Cli, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "a")
    resume(cli, tmp_path / "tasks")
    (record,) = tmp_path.glob("trials/*/*/record.json")
    record.write_text('{"schema_version": ')
    assert f"damaged: {record}" in resume(cli, tmp_path / "tasks", "dry_run=true").out
    assert f"damaged: {record}" in resume(cli, tmp_path / "tasks").out
    assert "damaged: " not in resume(cli, tmp_path / "tasks", "dry_run=true").out
    assert (record.parent / "earlier/1/record.json").read_text() == '{"schema_version": '


def test_a_clock_that_was_put_back_gave_a_trial_negative_seconds(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One such trial made `job=sensitivity` refuse its whole sweep."""

    class Earlier(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) - timedelta(hours=1)

    monkeypatch.setattr(state, "datetime", Earlier)
    make_task(tmp_path / "tasks", "a")
    resume(cli, tmp_path / "tasks")
    (record,) = Store(tmp_path).load([path.name for path in tmp_path.glob("trials/*/*")]).values()
    assert record.finished_at < record.started_at
    assert record.wall_seconds > 0


def test_a_report_called_a_damaged_record_a_trial_that_never_ran(cli: Cli) -> None:
    sweep = finished_sweep(cli.outputs)
    key = sweep_file.read(sweep).planned[0].key
    (Store(cli.outputs).folder(key) / "record.json").write_bytes(b"")
    assert cli("job=report", "name=full").code == 0
    with (sweep / "trials.csv").open() as table:
        reasons = Counter(row["reason"] for row in csv.DictReader(table))
    assert reasons == {"": 107, "record damaged": 1}


def test_a_record_that_may_not_be_read_ended_in_a_traceback(cli: Cli) -> None:
    """The record stands for one of another user: root may read any file, but cannot read a folder as a file."""
    sweep = finished_sweep(cli.outputs)
    record = Store(cli.outputs).folder(sweep_file.read(sweep).planned[0].key) / "record.json"
    record.unlink()
    record.mkdir()
    ended = cli("job=report", "name=full")
    assert ended.code == 2
    assert f"Cannot read {record}" in ended.err


def test_a_full_disk_was_a_failure_of_the_engine_or_of_the_agent_or_a_traceback(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial whose record could not be written was repeated, at the price of another rollout."""

    def full(path: Path, *_: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    make_task(tmp_path / "tasks", "a")
    monkeypatch.setattr(Path, "write_text", full)  # by which a trial keeps what its agent printed
    ended = resume(cli, tmp_path / "tasks", "executor.retries=2")
    assert ended.code == 2
    assert "No space left on device). Make room" in ended.err
    assert not list(tmp_path.glob("trials/*/*/earlier"))


def test_a_report_that_began_before_the_last_trial_ended_was_written_over_the_final_one(
    tmp_path: Path,
) -> None:
    """`job=report` while the sweep ends: whoever writes last must have read last."""
    sweep = finished_sweep(tmp_path)
    with exclusive(sweep):  # another command writes
        report = Thread(target=write_projections, args=(sweep, tmp_path))
        report.start()
        report.join(timeout=0.5)
        forget(tmp_path, sweep_file.read(sweep).planned[0].key)
    report.join()
    assert "107 judged" in (sweep / "leaderboard.txt").read_text()
    assert {file.name for file in sweep.iterdir()} == {*TABLES, "sweep.json", "config.yaml", "report"}
