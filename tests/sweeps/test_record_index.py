"""The index of records saves time, and never says more than the records."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner.records import Status
from runner.records.trial_files import RECORD
from runner.sweeps.record_index import FOLDER, FileState, RecordIndex
from runner.sweeps.store import Store
from tests.support.records_factory import trial_record
from tests.support.sweeps import Cli
from tests.support.tasks_factory import make_task

KEYS = [f"{number:02x}" * 16 for number in range(4)]
A, B = KEYS[:2]

_opened: list[str] = []
_watching: list[bool] = []


def _watch(event: str, args: tuple[object, ...]) -> None:
    if _watching and event == "open" and isinstance(args[0], str | os.PathLike):
        _opened.append(os.fspath(args[0]))


sys.addaudithook(_watch)


@contextmanager
def opened() -> Iterator[list[str]]:
    """Yield the paths of the records that are opened in the block."""
    _opened.clear()
    _watching.append(True)
    records: list[str] = []
    try:
        yield records
    finally:
        _watching.clear()
        records += [path for path in _opened if path.endswith(RECORD)]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Outputs with four finished trials."""
    store = Store(tmp_path)
    for key in KEYS:
        store.write(trial_record(key))
    return tmp_path


def record_of(outputs: Path, key: str) -> Path:
    """Return the path of a record."""
    return Store(outputs).folder(key) / RECORD


def parts(outputs: Path) -> list[Path]:
    """Return the files of the index."""
    return sorted((outputs / FOLDER).iterdir())


def test_every_resume_read_every_record(outputs: Path) -> None:
    with opened() as records:
        assert Store(outputs).finished([*KEYS, "ff" * 16]) == set(KEYS)
        assert Store(outputs).damaged(KEYS) == []
    assert records == []


def test_what_is_known_of_a_trial_is_what_its_record_says(outputs: Path) -> None:
    store = Store(outputs)
    store.write(trial_record(B, status=Status.INFRA_INVALID, reward=None, passed=None, wall_seconds=7.5))
    for again in (store, Store(outputs)):
        ended = again.ended([A, B])
        assert [(e.finished, e.judged, e.wall_seconds) for e in ended.values()] == [
            (True, True, 1.0),
            (False, False, 7.5),
        ]
        assert ended[A].finished_at == trial_record().finished_at.isoformat()


def as_old_as(path: Path, before: os.stat_result) -> None:
    """Give a file the times that it had, as a careful program would."""
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncated(path: Path, before: os.stat_result) -> None:
    path.write_bytes(path.read_bytes()[: before.st_size // 2])


def emptied_to_its_size(path: Path, before: os.stat_result) -> None:
    path.write_bytes(b" " * before.st_size)


def replaced_by_anothers(path: Path, before: os.stat_result) -> None:
    shutil.copy2(path.parents[2] / B[:2] / B / RECORD, path)
    assert path.stat().st_size == before.st_size


def moved_from_another(path: Path, before: os.stat_result) -> None:
    (path.parents[2] / B[:2] / B / RECORD).rename(path)
    assert path.stat().st_size == before.st_size


def deleted(path: Path, _before: os.stat_result) -> None:
    path.unlink()


def deleted_with_its_folder(path: Path, _before: os.stat_result) -> None:
    shutil.rmtree(path.parent)


def made_invalid(path: Path, before: os.stat_result) -> None:
    """Change the status in place, and keep size and time of modification."""
    record = json.loads(path.read_bytes()) | {"status": "cancelled"}
    with path.open("r+b") as file:
        file.write(json.dumps(record).encode().ljust(before.st_size))


@pytest.mark.parametrize("restored", [True, False])
@pytest.mark.parametrize(
    "attack",
    [
        truncated,
        emptied_to_its_size,
        replaced_by_anothers,
        moved_from_another,
        deleted,
        deleted_with_its_folder,
        made_invalid,
    ],
)
def test_an_index_made_a_trial_count_whose_record_had_gone(
    outputs: Path, attack: Callable[[Path, os.stat_result], None], *, restored: bool
) -> None:
    running = Store(outputs)
    assert A in running.finished(KEYS)
    path = record_of(outputs, A)
    before = path.stat()
    attack(path, before)
    if restored and path.exists():
        as_old_as(path, before)
    for store in (running, Store(outputs)):
        assert A not in store.finished(KEYS)
        assert store.read(A) is None or not store.read(A).status.finished  # type: ignore[union-attr]


@pytest.mark.parametrize("attack", [truncated, replaced_by_anothers])
def test_a_record_of_another_trial_is_named_and_put_aside(
    outputs: Path, attack: Callable[[Path, os.stat_result], None]
) -> None:
    path = record_of(outputs, A)
    attack(path, path.stat())
    assert Store(outputs).damaged(KEYS) == [path]
    folder, (retry,) = Store(outputs).begin(A)
    assert retry.reason.type == "RecordUnreadable"
    assert (folder / "earlier/1" / RECORD).exists()
    assert Store(outputs).damaged(KEYS) == []


@pytest.mark.parametrize("cut", [1, 20, 60, 100])
def test_a_line_that_a_crash_cut_off_spoils_no_other(outputs: Path, cut: int) -> None:
    (path,) = (part for part in parts(outputs) if part.name == A[:2])
    path.write_bytes(path.read_bytes()[:cut])
    other = A[:2] + "e" * 30
    Store(outputs).write(trial_record(other))
    with opened() as records:
        assert Store(outputs).finished([A, other]) == {A, other}
    assert records == [str(record_of(outputs, A))]
    with opened() as records:
        assert Store(outputs).finished([A, other]) == {A, other}
    assert records == [], "a record that was read is in the index again"


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\n[]", b"{}\n[1, 2]\nnull", b'["v", [], 1, 1, 1, 1, true, true, 1.0, "x"]', b"[" * 99999],
)
def test_an_index_of_nonsense_costs_nothing_but_time(outputs: Path, content: bytes) -> None:
    for part in parts(outputs):
        part.write_bytes(content)
    assert Store(outputs).finished(KEYS) == set(KEYS)


def test_an_index_says_nothing_of_a_trial_without_a_record(outputs: Path) -> None:
    """Its line is as good as the others."""
    absent = A[:2] + "f" * 30
    index = RecordIndex(outputs)
    index.add(trial_record(absent), FileState.of(str(record_of(outputs, A))))
    index.save()
    assert Store(outputs).finished([absent]) == set()


def test_the_index_of_another_version_is_not_believed(outputs: Path) -> None:
    """Its records may mean something else: this one would refuse them."""
    for part in parts(outputs):
        part.write_text(part.read_text().replace('["', '["f', 1))
    with opened() as records:
        assert Store(outputs).finished(KEYS) == set(KEYS)
    assert len(records) == len(KEYS)


def test_an_index_may_be_deleted_or_unwritable(outputs: Path) -> None:
    shutil.rmtree(outputs / FOLDER)
    assert Store(outputs).finished(KEYS) == set(KEYS)
    assert len(parts(outputs)) == len(KEYS)
    shutil.rmtree(outputs / FOLDER)
    (outputs / FOLDER).touch()
    store = Store(outputs)
    store.write(trial_record("ee" * 16))
    assert store.finished([*KEYS, "ee" * 16]) == {*KEYS, "ee" * 16}


def test_outputs_that_were_copied_are_read_once(
    outputs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("copy") / "outputs"
    shutil.copytree(outputs, copy)
    for expected in (len(KEYS), 0):
        with opened() as records:
            assert Store(copy).finished(KEYS) == set(KEYS)
        assert len(records) == expected


def test_a_sweep_with_nothing_left_reads_no_record(cli: Cli, tmp_path: Path) -> None:
    make_task(tmp_path / "tasks", "a")
    words = (
        "agent=nop",
        "sandbox=local",
        "dataset=harbor",
        f"dataset.root={tmp_path / 'tasks'}",
        "attempts=3",
    )
    first = cli(*words, "name=s")
    with opened() as records:
        again = cli(*words, "name=s")
        plan = cli(*words, "name=s", "dry_run=true")
    assert again.out == first.out[-len(again.out) :]
    assert "3 finished, 0 to do" in plan.out
    assert records == []
