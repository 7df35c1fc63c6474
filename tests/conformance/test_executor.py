"""The contract of every executor, `protocols.Executor`: its bound, late hand-out of trials, clean stops."""

from __future__ import annotations

import time
from threading import Event, Lock

import pytest

from runner.records import TrialRecord
from runner.sweeps.executors.threads import ThreadExecutor
from tests.support.records_factory import trial_record


def test_never_more_at_once_than_workers_and_every_record_comes_out() -> None:
    lock, full, running, most = Lock(), Event(), 0, 0

    def work(key: str) -> TrialRecord:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                full.set()
        assert full.wait(60)
        time.sleep(0.01)
        with lock:
            running -= 1
        return trial_record(key)

    keys = [f"{n:032d}" for n in range(20)]
    records = list(ThreadExecutor(workers=3).run(keys, work, Event()))
    assert sorted(record.key for record in records) == keys
    assert most == 3


def test_an_interrupted_sweep_starts_nothing_more_and_waits_for_what_runs() -> None:
    started: list[str] = []
    ended: list[str] = []
    cancel = Event()

    def work(key: str) -> TrialRecord:
        started.append(key)
        if key != "0":
            assert cancel.wait(60)
        ended.append(key)
        return trial_record()

    records = ThreadExecutor(workers=2).run([str(n) for n in range(9)], work, cancel)
    next(records)
    with pytest.raises(KeyboardInterrupt):
        records.throw(KeyboardInterrupt)
    assert cancel.is_set()
    assert sorted(started) == sorted(ended)
    assert len(started) <= 3


def test_an_error_of_the_work_itself_is_raised() -> None:
    def work(_: str) -> TrialRecord:
        raise OSError("outputs gone")

    with pytest.raises(OSError, match="outputs gone"):
        list(ThreadExecutor(workers=2).run(["a", "b"], work, Event()))
