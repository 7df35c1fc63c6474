"""The lock of an object store: one object that its holder renews, and that anyone may take over once it is old.

Only the store's clock counts: a lease is as old as the last writing of its object, compared with an object that is
written now. A holder that could not renew its lease for three quarters of its time counts it as lost, so that it has
stopped writing before another may begin.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Self

from pydantic import ValidationError

from runner.mirror.bucket import Bucket, StoreError, Taken
from runner.records import Record

LEASE = "lease.json"
RENEWALS = 4
"""Number of renewals of a lease within its life."""
RESOLUTION_SECONDS = 1.0
"""Resolution of times at a store."""


class Holder(Record):
    """Content of a lease."""

    place: str
    """Random name of the holder's local folder, which a lock of that machine keeps to one driver."""
    host: str
    process: int
    since: datetime
    seconds: float
    """Life of the lease after its last renewal."""
    beat: str
    """Random text by which each renewal is recognised."""
    released: bool = False

    @property
    def text(self) -> str:
        """The holder in words."""
        return f"{self.host}, process {self.process}, since {self.since:%Y-%m-%d %H:%M} UTC"


class Lease:
    """Context in which this driver alone may write to the store."""

    def __init__(self, bucket: Bucket, place: str, seconds: float, lost: Callable[[], None]) -> None:
        """`lost` is called, in another thread, when the lease is lost."""
        self._bucket = Bucket(bucket.address, seconds / RENEWALS, seconds / RENEWALS)
        self._lost, self._seconds = lost, seconds
        self._holder = Holder(
            place=place,
            host=socket.gethostname(),
            process=os.getpid(),
            since=datetime.now(UTC),
            seconds=seconds,
            beat="",
        )
        self._etag, self._until, self._why = "", 0.0, ""
        self._ended = Event()
        self._thread = Thread(target=self._renew_often, name="lease", daemon=True)

    def __enter__(self) -> Self:
        began = _clock()
        self._bucket.now()  # also shows that the store can be written
        self._etag = self._take()
        self._until = began + self._trusted
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if not self._why:
            with suppress(StoreError, Taken):
                self._write(released=True)

    def check(self) -> None:
        """Raise `StoreError` once the lease is lost."""
        if not self._why and _clock() > self._until:
            self._why = "it did not answer in time, so this driver may have lost its lease."
        if self._why:
            raise StoreError(f"{self._bucket.address}: {self._why} This driver no longer writes there.")

    @property
    def _trusted(self) -> float:
        return self._seconds * (1 - 1 / RENEWALS)

    def _take(self) -> str:
        """Create the lease, or take it over, and return its ETag. Raises `StoreError`."""
        mine = self._holder.model_copy(update={"beat": secrets.token_hex(8)})
        content = mine.model_dump_json(indent=1).encode()
        try:
            return self._bucket.create(LEASE, content)
        except Taken:
            pass
        found = self._bucket.get(LEASE)
        if found is None:
            raise self._held("which has just ended")
        text, etag, written = found
        try:
            holder = Holder.model_validate_json(text)
        except ValidationError as error:
            raise StoreError(f"{self._bucket.address}/{LEASE} is not a lease: delete it.") from error
        age = (self._bucket.now() - written).total_seconds()
        is_over = holder.released or age > holder.seconds + RESOLUTION_SECONDS
        if not is_over and holder.place != self._holder.place:
            raise self._held(f"{holder.text}; last sign of life {max(age, 0):.0f} s ago")
        try:
            return self._bucket.replace(LEASE, content, etag)
        except Taken:
            raise self._held("which was faster") from None

    def _held(self, who: str) -> StoreError:
        return StoreError(
            f"Another driver is using {self._bucket.address} ({who}). Wait for it to end, or choose another outputs=. "
            f"If it died, its lease ends {self._seconds:g} s after its last sign of life."
        )

    def _renew_often(self) -> None:
        while not self._ended.wait(self._seconds / RENEWALS):
            began = _clock()
            try:
                self._write()
                self._until = began + self._trusted
            except Taken:
                self._why = f"another driver has taken over{self._who()}."
            except StoreError:
                with suppress(StoreError):  # it only notes the loss
                    self.check()
            if self._why:
                self._lost()
                return

    def _who(self) -> str:
        with suppress(StoreError, ValidationError):
            if found := self._bucket.get(LEASE):
                return f" ({Holder.model_validate_json(found[0]).text})"
        return ""

    def _write(self, *, released: bool = False) -> None:
        """Renew the lease, or release it. Raises `Taken` if another driver has it, and `StoreError`."""
        holder = self._holder.model_copy(update={"beat": secrets.token_hex(8), "released": released})
        self._etag = self._bucket.replace(LEASE, holder.model_dump_json(indent=1).encode(), self._etag)


def _clock() -> float:
    """Return seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
