"""One driver at a time writes to a store, and one that lost it stops."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event

import pytest

from tests.support.object_store import ObjectServer
from tests.support.waiting import until

pytest.importorskip("obstore")

from runner.mirror.bucket import Bucket, StoreError
from runner.mirror.lease import Lease

SHORT_SECONDS = 2.0


def _lease(address: str, place: str, seconds: float = 60.0, lost: Event | None = None) -> Lease:
    return Lease(Bucket(address), place, seconds, (lost or Event()).set)


def test_a_second_driver_is_refused_until_the_first_has_ended(address: str) -> None:
    with _lease(address, "here") as first:
        with pytest.raises(
            StoreError, match=r"Another driver is using .*, process \d+, since .* last sign of life"
        ):
            _lease(address, "there").__enter__()
        first.check()
    with _lease(address, "there"):
        pass


def test_a_folder_whose_driver_died_takes_its_own_lease_over_at_once(address: str) -> None:
    """The lock on the folder has shown that the driver is dead."""
    lost = Event()
    dead = _lease(address, "here", SHORT_SECONDS, lost)
    dead.__enter__()
    with _lease(address, "here"):
        until(lost.is_set)
    with pytest.raises(StoreError, match="another driver has taken over"):
        dead.check()
    dead.__exit__()


def test_a_renewed_lease_does_not_end(address: str) -> None:
    with _lease(address, "here", SHORT_SECONDS) as lease:
        time.sleep(2.5 * SHORT_SECONDS)
        lease.check()
        with pytest.raises(StoreError, match="Another driver"):
            _lease(address, "there").__enter__()


def test_of_many_drivers_one_takes_over_from_one_that_is_cut_off_and_which_then_stops(
    server: ObjectServer, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = Event()
    with server.line() as line, ExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setenv("AWS_ENDPOINT", line.endpoint)
            first = stack.enter_context(_lease(address, "here", SHORT_SECONDS, lost))
        line.cut()
        began = time.monotonic()
        with pytest.raises(StoreError, match="Another driver"):
            _lease(address, "there").__enter__()
        until(lost.is_set)
        with pytest.raises(StoreError, match=r"may have lost its lease.* no longer writes"):
            first.check()

        others = [_lease(address, f"there-{n}") for n in range(8)]

        def attempt(lease: Lease) -> bool:
            try:
                stack.enter_context(lease)
            except StoreError:
                return False
            return True

        with ThreadPoolExecutor(len(others)) as pool:
            while not (won := sum(pool.map(attempt, others))):
                assert time.monotonic() < began + 30
                time.sleep(0.2)
        assert won == 1
        assert time.monotonic() > began + SHORT_SECONDS / 2

        line.mend()
        with pytest.raises(StoreError, match="no longer writes"):
            first.check()


def test_what_is_no_lease_is_not_overwritten(address: str) -> None:
    Bucket(address).put("lease.json", b"{}")
    with pytest.raises(StoreError, match=r"lease.json is not a lease: delete it"):
        _lease(address, "here").__enter__()
