"""Keep trials on disk: one folder per trial, whose record is written once, atomically, and last.

    outputs/
    ├── .lock                          held by the one runner that may write here
    ├── trials/<kk>/<key>/             kk = first two digits of the key
    │   ├── record.json                TrialRecord; its presence means that the trial ended
    │   ├── ledger.jsonl               every model call, appended while the trial runs
    │   ├── judge.jsonl                every call of the verifier's judge model, if it has one
    │   ├── ledger.sent  judge.sent    while it runs: numbers of calls sent, which a killed runner leaves
    │   ├── trajectory.json            ATIF, made from the ledger
    │   ├── agent.stdout  agent.stderr verifier.tar.gz  workspace.tar.gz
    │   ├── given.tar.gz               the workspace as agents are given it, in one trial of each task
    │   ├── artifacts.tar.gz           what the agent left in `/logs/artifacts`, if anything
    │   ├── again/                     output of a second verdict's tests, if one was asked for
    │   ├── earlier/<n>/               tries that our side spoiled: same files; their spend is counted
    │   └── superseded/<n>/            finished trials replaced by `fresh=true`; their spend is not counted
    ├── .index/                        what records say, for resuming; may be deleted (`record_index`)
    ├── cache/                         what agents in our process share
    └── <sweep>/                       plan, projections and report of one command
        └── live.json                  what a running sweep does now, for `job=watch`

A try that died with its runner left a ledger and no record. The next `begin` finds it, so that no spend is lost.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from pydantic import ValidationError

from runner.errors import OutputsError
from runner.files import no_room, written_beside
from runner.locks import exclusive, held
from runner.records import ErrorInfo, LiveSweep, ModelCall, Retry, TrialRecord, Usage
from runner.records.base import first_fault
from runner.records.trial_files import JUDGE_LEDGER, LEDGER, RECORD, SENT
from runner.sweeps.cache import CachedFile, cached
from runner.sweeps.record_index import Ended, FileState, RecordIndex

LOOKING_SECONDS = 0.05
"""Pause before the second try at the lock: far longer than `Store.holder` holds it."""
_ASIDE = ("earlier", "superseded")
"""Names of the folders that hold tries which were moved aside."""


class Store:
    """The trial folders below `outputs`, to read and to write."""

    def __init__(self, outputs: Path) -> None:
        self.outputs = outputs
        self._writing = Lock()
        self._is_closed = False
        self._trials = str(outputs / "trials")
        self._index = RecordIndex(outputs)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold `outputs/` against other runners; the store is closed before the lock is released.

        Raises `OutputsError` if it cannot be written or another runner holds it. The lock dies with the process.
        """
        path = self.outputs / ".lock"
        with ExitStack() as stack:
            try:
                self._take(stack, path)
                path.write_text(f"process {os.getpid()}")
            except BlockingIOError as error:
                message = (
                    f"Another runner ({path.read_text().strip() or 'unknown'}) is using {self.outputs}. "
                    "Wait for it to end, or choose another folder with outputs=DIR."
                )
                raise OutputsError(message) from error
            except OSError as error:
                message = (
                    f"Cannot write to {self.outputs} ({error.strerror}). Make room, mend its permissions, or choose "
                    "outputs=DIR."
                )
                raise OutputsError(message) from error
            self._is_closed = False
            stack.callback(self.close)
            yield

    def _take(self, stack: ExitStack, path: Path) -> None:
        """Take the lock, at the second try if somebody was only looking (`holder`)."""
        try:
            stack.enter_context(exclusive(path, wait=False))
        except BlockingIOError:
            time.sleep(LOOKING_SECONDS)
            stack.enter_context(exclusive(path, wait=False))

    def holder(self) -> str | None:
        """Return the holder of `outputs/`, such as `process 12`; None if nobody holds it.

        To find out, a free lock is held for a few microseconds.
        """
        path = self.outputs / ".lock"
        try:
            with held(path, wait=False):
                return None
        except BlockingIOError:
            return path.read_text().strip()
        except OSError:  # no runner was ever here, or nobody may look
            return None

    def close(self) -> None:
        """Refuse trials and records from now on, since another runner may write them. Wait for a write under way."""
        with self._writing:
            self._is_closed = True

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Arrange for `stop` to be called if another runner takes over. The lock on a folder cannot be taken over."""

    def refresh(self, sweep: Path, *, workspaces: bool = False) -> None:
        """Take what other machines have written, for commands that only read. A folder has no other machines."""

    def hear(self, sweep: Path) -> LiveSweep | None:  # noqa: ARG002 - a mirror's
        """Take the records of other machines, and return what a sweep's process there said last.

        None if nothing was said, or if this machine runs a sweep. A folder has no other machines.
        """
        return None

    def fetch(self, keys: Collection[str], *, archives: bool = False, workspaces: bool = False) -> None:
        """Make sure that the files of these trials are here. A folder has them. Raises `OutputsError`.

        Archives are fetched only with `archives`, or as far as trial pages show them (`workspaces`).
        """

    def publish(self, sweep: Path) -> None:
        """Show the files of a sweep to other machines. Raises `OutputsError`."""

    @property
    def cache(self) -> Path:
        """Folder that all trials share. It may not exist yet. Losing it costs money, but no results."""
        return self.outputs / "cache"

    def cached(self, name: str, check: Callable[[], None]) -> AbstractContextManager[CachedFile]:
        """Wait for a file of the cache and hold it. `check` is called again and again meanwhile, and may raise."""
        return cached(self.cache / name, check)

    def folder(self, key: str) -> Path:
        """Return the folder of one trial, which may not exist yet."""
        return self.outputs / "trials" / key[:2] / key

    def load(self, keys: Sequence[str]) -> dict[str, TrialRecord]:
        """Return the existing records of `keys`. Raises `OutputsError` as `read` does."""
        records = {}
        for key in keys:
            record = self.read(key)
            if record is not None:
                records[key] = record
        return records

    def read(self, key: str) -> TrialRecord | None:
        """Return one trial's record; None if there is none, or if it is damaged or another trial's, in which case
        `begin` moves it aside.

        Raises `OutputsError` for a record that another version wrote, whose trial would be run and paid for again, and
        for one that may not be read.
        """
        path = self.folder(key) / RECORD
        try:
            record = TrialRecord.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from error
        except ValidationError as error:
            if error.errors()[0]["type"] in ("json_invalid", "model_type"):
                return None
            raise OutputsError(
                f"{path} was written by another version of Assay ({first_fault(error)}). Use that version, "
                "choose another outputs=DIR, or run its trial anew, and pay for it again, with fresh=true."
            ) from error
        return record if record.key == key else None

    def damaged(self, keys: Iterable[str]) -> list[Path]:
        """Return the records among `keys` that exist and are not JSON objects, as a failing disk may leave them, or are
        those of another trial.
        """
        found = []
        for key in keys:
            with suppress(OSError, OutputsError):
                state = self._state(key)
                if state is None or self._index.find(key, state):
                    continue
                path = self.folder(key) / RECORD
                try:
                    content = json.loads(path.read_bytes())
                    whole = isinstance(content, dict) and content.get("key", key) == key
                except (ValueError, RecursionError):
                    whole = False
                if not whole:
                    found.append(path)
        return found

    def ended(self, keys: Iterable[str]) -> dict[str, Ended]:
        """Return the facts about those of `keys` whose trial has a record. Raises `OutputsError` as `read` does.

        A record is read only if its file is not as it was when the index was written.
        """
        found = {}
        for key in keys:
            if (state := self._state(key)) is None:
                continue
            known = self._index.find(key, state)
            if known is None and (record := self.read(key)):
                known = self._index.add(record, state)
            if known is not None:
                found[key] = known
        self._index.save()
        return found

    def _state(self, key: str) -> FileState | None:
        """Return the state of a trial's record; None if there is none. Raises `OutputsError`."""
        path = f"{self._trials}/{key[:2]}/{key}/{RECORD}"
        try:
            return FileState.of(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from error

    def finished(self, keys: Iterable[str]) -> Collection[str]:
        """Return those of `keys` whose trial is finished (`Status.finished`). Raises as `ended` does."""
        return {key for key, ended in self.ended(keys).items() if ended.finished}

    def begin(self, key: str) -> tuple[Path, tuple[Retry, ...]]:
        """Make room for a new try. Return its empty folder, and the spoiled tries before it with what they spent.

        Raises `OutputsError`.
        """
        with self._writing:
            self._check_open()
            return self._begin(key)

    def _begin(self, key: str) -> tuple[Path, tuple[Retry, ...]]:
        folder = self.folder(key)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:  # of an earlier try
            pass
        except OSError as error:
            raise no_room(folder, error) from error
        else:
            return folder, ()
        try:
            record = self.read(key)
            finished = record is not None and record.status.finished
        except OutputsError:  # of another version, which only `fresh=true` replaces
            finished = True
        try:
            if finished:
                _move_aside(folder, "superseded", everything=True)
            else:
                _move_aside(folder, "earlier", everything=False)
        except OSError as error:
            raise no_room(folder, error) from error
        earlier = sorted((folder / "earlier").glob("*"), key=lambda path: int(path.name))
        return folder, tuple(_retry(path) for path in earlier)

    def write(self, record: TrialRecord) -> None:
        """Write one record; after a crash it is there whole or not at all. Raises `OutputsError`."""
        path = self.folder(record.key) / RECORD
        self._check_open()
        # Several records are flushed to disk at a time.
        with written_beside(path, record.model_dump_json(indent=1).encode()) as beside, self._writing:
            self._check_open()
            beside.replace(path)
            with suppress(OSError):
                self._index.add(record, FileState.of(str(path)))
            self._index.save()

    def _check_open(self) -> None:
        """Raise `OutputsError` once the store is closed."""
        if self._is_closed:
            raise OutputsError(f"{self.outputs} is no longer this runner's; the same command resumes.")


def _unreadable(path: Path | str, error: OSError) -> OutputsError:
    return OutputsError(f"Cannot read {path} ({error.strerror}). Mend its permissions: did its trial end?")


class Spend(NamedTuple):
    """The spend of all calls of a ledger."""

    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    """Cost in USD; None if that of any answered call, or of any call with known usage, is unknown."""
    turns: int = 0
    """Number of answered calls."""
    lost: int = 0
    """Number of calls of unknown cost (`ModelCall.lost`)."""


def recorded_cost(call: ModelCall) -> float | None:
    """Return the cost of a call as its session counted it."""
    return call.cost_usd


def ledger_spend(ledger: Path, cost_of: Callable[[ModelCall], float | None] = recorded_cost) -> Spend:
    """Return the spend in one ledger file as its session counted it. Answers that broke off count up to that point.

    A last line cut off by a crash is left out. The call that was then under way counts as `lost`, and so does each
    unreadable line. `cost_of` may price the calls otherwise.
    """
    total, sent = Spend(), ledger.with_suffix(SENT)
    under_way = set(sent.read_text().split()) if sent.exists() else set()
    *lines, _ = ledger.read_bytes().split(b"\n") if ledger.exists() else (b"",)
    for line in lines:
        try:
            call = ModelCall.model_validate_json(line)
        except ValidationError:
            total = total._replace(lost=total.lost + 1)
            continue
        under_way.discard(str(call.index))
        answered, usage = call.response is not None, call.usage or Usage()
        timed = call.server_seconds is not None
        cost = cost_of(call) if answered or usage != Usage() or timed else 0.0
        total = Spend(
            total.usage + usage,
            None if cost is None or total.cost_usd is None else total.cost_usd + cost,
            total.turns + answered,
            total.lost + call.lost,
        )
    return total._replace(lost=total.lost + len(under_way))


def ledgers(folder: Path) -> list[Path]:
    """Return the ledgers of all tries in a trial's folder whose spend counts, those of spoiled tries first."""
    return [path for path in (*sorted(folder.glob(f"earlier/*/{LEDGER}")), folder / LEDGER) if path.exists()]


def _move_aside(folder: Path, where: str, *, everything: bool) -> None:
    """Move a try's files to `<where>/<n>`; with `everything`, also the earlier tries of its trial."""
    staying = ("superseded",) if everything else _ASIDE
    files = [path for path in folder.iterdir() if path.name not in staying]
    if not files:
        return
    taken = [int(path.name) for path in (folder / where).glob("*")]
    target = folder / where / str(max(taken, default=0) + 1)
    target.mkdir(parents=True)
    # The record goes last: after a crash it tells what the files beside it are.
    for path in sorted(files, key=lambda path: path.name == RECORD):
        path.rename(target / path.name)


def _own_record(folder: Path) -> dict[str, Any]:
    """Return the record of a try that was moved aside. Raises `ValueError` if it is another trial's."""
    record: dict[str, Any] = json.loads((folder / RECORD).read_bytes())
    if record["key"] != folder.parent.parent.name:
        raise ValueError("it is another trial's")
    return record


def _retry(folder: Path) -> Retry:
    """Return a spoiled try's record, made from the files that the try left."""
    spend = ledger_spend(folder / LEDGER)
    reason = ErrorInfo(type="RunnerDied", message="The runner ended before this try did.")
    seconds = 0.0
    try:
        record = _own_record(folder)
        seconds = float(record["wall_seconds"])
        stopped = {"type": record["status"], "message": "stopped by the user"}
        reason = ErrorInfo.model_validate(record["error"] or stopped)
    except FileNotFoundError:
        pass  # the default reason says it
    except (ValueError, KeyError, TypeError):
        reason = ErrorInfo(type="RecordUnreadable", message="The record of this try makes no sense.")
    judge = ledger_spend(folder / JUDGE_LEDGER)
    return Retry(
        reason=reason,
        usage=spend.usage,
        cost_usd=spend.cost_usd,
        judge_usd=judge.cost_usd,
        turns=spend.turns,
        lost=spend.lost + judge.lost,
        wall_seconds=seconds,
    )
