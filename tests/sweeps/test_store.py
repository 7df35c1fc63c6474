"""The store loses nothing: not a record to a crash, not a dollar to a retry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from runner.errors import OutputsError
from runner.files import write_atomically
from runner.records import ErrorInfo, Status, Usage
from runner.records.trial_files import LEDGER, RECORD
from runner.sweeps.store import Store, ledger_spend
from tests.support.records_factory import model_call, trial_record

KEY = "ab" * 16


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    store, record = Store(tmp_path), trial_record(cost_usd=0.25, flags=("unjudged",))
    store.write(record)
    assert store.load([KEY, "cd" * 16]) == {KEY: record}


@pytest.mark.parametrize(
    ("status", "finished"), [(s, s not in ("infra_invalid", "cancelled")) for s in Status]
)
def test_only_endings_of_the_configurations_own_doing_are_finished(
    tmp_path: Path, status: Status, *, finished: bool
) -> None:
    store = Store(tmp_path)
    store.write(trial_record(status=status))
    assert (KEY in store.finished([KEY])) is finished


def test_a_spoiled_try_is_kept_aside_with_what_it_spent(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder, retries = store.begin(KEY)
    assert retries == ()
    (folder / LEDGER).write_text(model_call().model_dump_json() + "\n")
    error = ErrorInfo(type="EngineError", message="gone")
    store.write(
        trial_record(status=Status.INFRA_INVALID, reward=None, passed=None, error=error, wall_seconds=7.0)
    )

    folder, retries = store.begin(KEY)

    assert not (folder / RECORD).exists()
    assert not (folder / LEDGER).exists()
    (retry,) = retries
    assert (retry.reason, retry.cost_usd, retry.turns, retry.wall_seconds) == (error, 0.01, 1, 7.0)
    assert retry.usage == Usage(input_tokens=10, output_tokens=5)


def test_the_spend_of_a_try_that_died_with_its_runner_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder, _ = store.begin(KEY)
    line = model_call().model_dump_json()
    (folder / LEDGER).write_text(line + "\n" + line[: len(line) // 2])
    _, (retry,) = store.begin(KEY)
    assert (retry.reason.type, retry.cost_usd, retry.turns) == ("RunnerDied", 0.01, 1)


def test_a_damaged_line_of_a_ledger_cost_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder, _ = store.begin(KEY)
    line = model_call().model_dump_json().encode()
    (folder / LEDGER).write_bytes(b"\n".join([line, b"\xff" + line[1:], line, line[:20]]))
    _, (retry,) = store.begin(KEY)
    assert (retry.turns, retry.cost_usd, retry.lost) == (2, 0.02, 1)


def test_a_call_under_way_when_the_runner_was_killed_was_unknown_without_a_word(tmp_path: Path) -> None:
    """Three were sent, one of them twice; one has its line, and the line of another was cut off."""
    store = Store(tmp_path)
    folder, _ = store.begin(KEY)
    line = model_call(index=1).model_dump_json()
    (folder / LEDGER).write_text(line + "\n" + line[: len(line) // 2])
    (folder / "ledger.sent").write_text("0\n1\n0\n2\n")
    (folder / "judge.sent").write_text("0\n")
    _, (retry,) = store.begin(KEY)
    assert (retry.lost, retry.cost_usd, retry.turns) == (3, 0.01, 1)
    _, (retry,) = store.begin(KEY)
    assert retry.lost == 3, "nor is it forgotten by the next"


@pytest.mark.parametrize("content", [b"", b'{"key": ', b"[]", b"\xff"])
def test_a_damaged_record_was_taken_for_a_runner_that_died(tmp_path: Path, content: bytes) -> None:
    store = Store(tmp_path)
    folder, _ = store.begin(KEY)
    (folder / RECORD).write_bytes(content)
    assert store.damaged([KEY, "cd" * 16]) == [folder / RECORD]
    _, (retry,) = store.begin(KEY)
    assert retry.reason.type == "RecordUnreadable"
    assert store.damaged([KEY]) == []


def test_a_finished_trial_that_runs_afresh_is_not_counted_as_a_retry(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder, _ = store.begin(KEY)
    (folder / LEDGER).write_text(model_call().model_dump_json() + "\n")
    store.write(trial_record())
    folder, retries = store.begin(KEY)
    assert retries == ()
    assert (folder / "superseded" / "1" / RECORD).exists()


@pytest.mark.parametrize("moved", [1, 2])
def test_a_crash_while_a_finished_trial_is_put_aside_makes_no_retry_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    """Its ledger, left without its record, was taken for a try that its runner's death had spoiled: paid for twice."""
    store, rename = Store(tmp_path), Path.rename
    renamed: list[str] = []
    folder, _ = store.begin(KEY)
    store.write(trial_record())
    for name in (LEDGER, "agent.stdout"):
        (folder / name).write_text(model_call().model_dump_json() + "\n")

    def crash(path: Path, target: Path) -> Path:
        if len(renamed) == moved:
            raise KeyboardInterrupt
        renamed.append(path.name)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", crash)
    with pytest.raises(KeyboardInterrupt):
        store.begin(KEY)
    monkeypatch.undo()
    folder, retries = store.begin(KEY)
    assert retries == ()
    assert not (folder / LEDGER).exists()


def test_one_unpriced_call_makes_the_sum_unknown_and_not_smaller(tmp_path: Path) -> None:
    ledger = tmp_path / LEDGER
    ledger.write_text(
        model_call().model_dump_json() + "\n" + model_call(1, cost_usd=None).model_dump_json() + "\n"
    )
    assert ledger_spend(ledger) == (Usage(input_tokens=20, output_tokens=10), None, 2, 0)


def test_an_answer_without_counts_is_a_turn_of_unknown_cost(tmp_path: Path) -> None:
    ledger = tmp_path / LEDGER
    ledger.write_text(model_call(usage=None, cost_usd=None).model_dump_json() + "\n")
    assert ledger_spend(ledger) == (Usage(), None, 1, 0)


def test_what_is_known_of_an_answer_that_broke_off_is_spent_in_an_earlier_try_too(tmp_path: Path) -> None:
    """It was counted while its trial ran, and gone from the sums once that was repeated."""
    cut = {"response": None, "status_code": 502, "lost": 1}
    unheard = {**cut, "usage": None, "cost_usd": None}
    folder, _ = Store(tmp_path).begin(KEY)
    lines = [model_call(), model_call(1, **cut), model_call(2, **unheard)]
    (folder / LEDGER).write_text("".join(f"{line.model_dump_json()}\n" for line in lines))
    _, (retry,) = Store(tmp_path).begin(KEY)
    assert (retry.cost_usd, retry.turns, retry.lost) == (0.02, 1, 2)
    assert retry.usage == Usage(input_tokens=20, output_tokens=10)


def test_a_record_cut_in_half_is_not_taken_for_a_result(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(trial_record())
    path = store.folder(KEY) / RECORD
    path.write_bytes(path.read_bytes()[:100])
    assert store.finished([KEY]) == set()
    store.begin(KEY)
    assert (store.folder(KEY) / "earlier" / "1" / RECORD).exists()


def test_a_record_of_another_version_is_refused_and_not_run_again(tmp_path: Path) -> None:
    """It was taken for a trial that never ran: reports said so, and the next command paid for it again."""
    store = Store(tmp_path)
    store.write(trial_record())
    path = store.folder(KEY) / RECORD
    record = json.loads(path.read_bytes())
    for change, text in (({"schema_version": 2}, "schema_version"), ({"news": 1}, "news")):
        path.write_text(json.dumps(record | change))
        for look in (store.finished, store.load):
            with pytest.raises(OutputsError, match=rf"record\.json was written by another version .*{text}"):
                look([KEY])
    assert json.loads(path.read_bytes())["news"] == 1
    folder, retries = store.begin(KEY)  # as `fresh=true` does
    assert (retries, (folder / "superseded" / "1" / RECORD).exists()) == ((), True)


def test_a_record_that_cannot_be_opened_is_refused_by_name(tmp_path: Path) -> None:
    (Store(tmp_path).folder(KEY) / RECORD).mkdir(parents=True)
    with pytest.raises(OutputsError, match=r"Cannot read .*record\.json \(Is a directory\)"):
        Store(tmp_path).read(KEY)


def test_a_second_runner_on_the_same_outputs_is_refused_by_name(tmp_path: Path) -> None:
    refused = pytest.raises(OutputsError, match=rf"process {os.getpid()}.*outputs=DIR")
    with Store(tmp_path).locked(), refused, Store(tmp_path).locked():
        pytest.fail("two runners hold one folder")


def test_a_killed_runner_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from runner.sweeps.store import Store\n"
        "with Store(pathlib.Path(sys.argv[1])).locked(): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    with Store(tmp_path).locked():
        pass


def test_outputs_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(OutputsError, match="outputs=DIR"), Store(file).locked():
        pytest.fail("a file was taken for a folder")


def test_half_a_file_that_could_not_be_written_took_what_room_there_was(tmp_path: Path) -> None:
    (tmp_path / RECORD).mkdir()
    with pytest.raises(OutputsError):
        write_atomically(tmp_path / RECORD, b"x")
    assert list(tmp_path.iterdir()) == [tmp_path / RECORD]


def test_a_full_disk_leaves_the_old_record_whole() -> None:
    """/dev/full takes no byte: the write fails before the rename."""
    with pytest.raises(OutputsError, match="the same command resumes"):
        write_atomically(Path("/dev/full/record.json"), b"x")


def test_readers_never_see_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    contents = [bytes([digit]) * 1_000_000 for digit in b"01"]
    write_atomically(path, contents[0])
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for content in contents:
                write_atomically(path, content)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        assert all(path.read_bytes() in contents for _ in range(50))
    finally:
        stop.set()
        writer.join()


def test_no_room_for_the_lock_ended_in_a_traceback(tmp_path: Path) -> None:
    (tmp_path / ".lock").symlink_to("/dev/full")
    with pytest.raises(OutputsError, match="Cannot write to"), Store(tmp_path).locked():
        pass


def test_a_store_whose_lock_is_gone_writes_nothing(tmp_path: Path) -> None:
    """A thread that outlived its runner's lock wrote over the records of the next runner."""
    store = Store(tmp_path)
    with store.locked():
        store.begin(KEY)
        store.write(trial_record())
    before = (store.folder(KEY) / RECORD).read_bytes()
    for late in (lambda: store.write(trial_record(reward=0.0)), lambda: store.begin(KEY)):
        with pytest.raises(OutputsError, match="no longer this runner's"):
            late()
    assert (store.folder(KEY) / RECORD).read_bytes() == before
    with store.locked():
        store.write(trial_record())
