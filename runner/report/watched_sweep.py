"""The present state of a sweep, read from its files again and again at little cost. Nothing is written.

A record that tells how its configuration ended stays as it is, so it is read once. Only `fresh=true` replaces such a
record: one whose trial was seen to run again is read anew, and all of them are from time to time.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple

from runner.errors import OutputsError
from runner.records import LiveSweep, LiveTrial, PlannedRow, TrialRecord
from runner.records.trial_files import RECORD
from runner.sweeps import live_file, sweep_file
from runner.sweeps.store import Store

SILENT_SECONDS = 30.0
"""Age from which `live.json` of another machine, whose lock nobody sees here, counts as left behind."""
LOOK_AGAIN_SECONDS = 60.0
"""Time after which every record is looked at again."""

Kind = Literal["passed", "failed", "invalid", "running", "planned", "refused"]
Life = Literal["runs", "ended", "silent", "died", "absent"]
"""The state of a sweep's process, as far as it is known. runs; ended: it said so; silent: on another machine, and not
heard of for a while; died: it is gone without having said so; absent: none is at work, and none said anything."""


class Ended(NamedTuple):
    """The facts of a trial with a record that a display needs."""

    row: PlannedRow
    kind: Kind
    status: str
    reason: str
    """Error in one line; empty if there is none. Other people's text."""
    cost_usd: float | None
    judge_usd: float | None
    tokens: int
    turns: int
    seconds: float
    finished_at: datetime
    lasts: bool
    """True if only `fresh=true` replaces the record."""


class SweepNow(NamedTuple):
    """State of a sweep at one moment."""

    name: str
    moment: datetime
    life: Life
    live: LiveSweep | None
    """Last state that the process wrote to `live.json`; None if it wrote none."""
    rows: Sequence[PlannedRow]
    by_key: Mapping[str, PlannedRow]
    kinds: Mapping[str, Kind]
    """Key of each planned trial -> its state."""
    ended: Mapping[str, Ended]
    running: Sequence[LiveTrial]
    """Trials that run; none if the process does not."""
    others: bool
    """True if another process holds `outputs/`. It may be one that is about to resume this sweep."""

    @property
    def is_over(self) -> bool:
        """Return whether no process is at work on the sweep."""
        return self.life not in ("runs", "silent")

    @property
    def counts(self) -> Counter[Kind]:
        """Number of trials in each state."""
        return Counter(self.kinds.values())


class WatchedSweep:
    """A reader of the files of one sweep."""

    def __init__(self, folder: Path, hear: Callable[[], LiveSweep | None] = lambda: None) -> None:
        """`hear` returns what a process on another machine said last, where another way than this folder leads there.

        Raises `ConfigError` if there is no such sweep, and for an imported one, which no process runs.
        """
        self._folder, self._store, self._hear = folder, Store(folder.parent), hear
        self._plan = sweep_file.read(folder)
        self._planned_at = self._stamp(folder / sweep_file.NAME)
        self._rows = {row.key: row for row in self._plan.planned}
        self._ended: dict[str, Ended] = {}
        self._stamps: dict[str, tuple[int, int] | None] = {}
        self._was_running: set[str] = set()
        self._looked = -LOOK_AGAIN_SECONDS

    def now(self) -> SweepNow:
        """Return the state of the sweep. Raises `ConfigError` if its plan can no longer be read."""
        planned_at = self._stamp(self._folder / sweep_file.NAME)
        if planned_at != self._planned_at:
            self._plan, self._planned_at = sweep_file.read(self._folder), planned_at
            self._rows = {row.key: row for row in self._plan.planned}
        life, live, others = self._life()
        running = {trial.key: trial for trial in live.running} if live and life in ("runs", "silent") else {}
        self._read_records(set(running), everything=life in ("ended", "died", "absent"))
        for key in running.keys() & self._ended.keys():
            if self._ended[key].finished_at > running[key].started_at:  # since the last `live.json`
                del running[key]
        return SweepNow(
            name=self._plan.name,
            moment=datetime.now(UTC),
            life=life,
            live=live,
            rows=self._plan.planned,
            by_key=self._rows,
            kinds={row.key: self._kind(row, running) for row in self._plan.planned},
            ended=self._ended,
            running=tuple(running.values()),
            others=others,
        )

    def _kind(self, row: PlannedRow, running: Mapping[str, LiveTrial]) -> Kind:
        if row.refused:
            return "refused"
        if row.key in running:
            return "running"
        return self._ended[row.key].kind if row.key in self._ended else "planned"

    def _life(self) -> tuple[Life, LiveSweep | None, bool]:
        """Return the state of the process, its last message, and whether another one holds `outputs/`."""
        live, holder, heard = live_file.read(self._folder), self._store.holder(), self._hear()
        if holder is None and heard and (live is None or heard.written > live.written):
            return _life_elsewhere(heard), heard, False
        if live is None:
            return "absent", None, holder is not None
        own = holder == f"process {live.pid}"
        if live.ended is not None:
            return "ended", live, holder is not None and not own
        if live.host != socket.gethostname():
            return _life_elsewhere(live), live, False
        return "runs" if own else "died", live, holder is not None and not own

    def _read_records(self, running: set[str], *, everything: bool) -> None:
        """Read the records that may have changed since the last time."""
        all_again = everything or monotonic() - self._looked >= LOOK_AGAIN_SECONDS
        if all_again:
            self._looked = monotonic()
        for row in self._plan.planned:
            known = self._ended.get(row.key)
            if row.refused or (known and known.lasts and not all_again and row.key not in self._was_running):
                continue
            self._read_record(row)
        self._was_running = running

    def _read_record(self, row: PlannedRow) -> None:
        stamp = self._stamp(self._store.folder(row.key) / RECORD)
        if row.key in self._stamps and stamp == self._stamps[row.key]:
            return
        self._stamps[row.key] = stamp
        record = None
        if stamp:
            with suppress(OutputsError):  # of another version: the sweep itself says so
                record = self._store.read(row.key)
        if record:
            self._ended[row.key] = _ended(row, record)
        else:
            self._ended.pop(row.key, None)

    @staticmethod
    def _stamp(path: Path) -> tuple[int, int] | None:
        """Return a value that changes whenever a file is replaced; None if there is no file."""
        try:
            found = os.stat(path)  # noqa: PTH116 - a third of the time of `Path.stat`, thousands of times a second
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


def _life_elsewhere(live: LiveSweep) -> Life:
    """Return the state of a process on another machine, whose lock cannot be seen here."""
    if live.ended is not None:
        return "ended"
    age = (datetime.now(UTC) - live.written).total_seconds()
    return "silent" if age > SILENT_SECONDS else "runs"


def _ended(row: PlannedRow, record: TrialRecord) -> Ended:
    error = record.error or (record.verdict.error if record.verdict else None)
    return Ended(
        row=row,
        kind="invalid" if not record.judged else "passed" if record.passed else "failed",
        status=record.status.value,
        reason=f"{error.type}: {error.message[:500]}" if error else "",
        cost_usd=record.cost_usd,
        judge_usd=record.judge_usd,
        tokens=record.usage.input_tokens + record.usage.output_tokens,
        turns=record.turns,
        seconds=record.wall_seconds,
        finished_at=record.finished_at,
        lasts=record.status.finished,
    )
