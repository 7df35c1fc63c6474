"""An object store, and drivers that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner.sweeps.store_address import StoreSettings
from tests.support.object_store import ObjectServer, ServerMissingError, environment, object_server

if TYPE_CHECKING:
    from runner.mirror.mirrored_store import MirroredStore

Opened = Callable[..., "MirroredStore"]


@pytest.fixture(scope="session")
def server(common: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    pytest.importorskip("obstore")
    running = object_server(common, tmp_path_factory.mktemp("moto") / "log")
    try:
        found = running.__enter__()
    except ServerMissingError as missing:
        pytest.skip(str(missing))
    yield found
    running.__exit__(None, None, None)


@pytest.fixture
def address(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a new store, which the environment leads to."""
    for name, value in environment(server.endpoint).items():
        monkeypatch.setenv(name, value)
    return server.bucket()


@pytest.fixture
def opened(address: str, tmp_path: Path) -> Opened:
    """Open the store from a folder of this name, as a machine of this name would."""

    def open_(name: str, lease_seconds: float = 60.0) -> MirroredStore:
        from runner.mirror.mirrored_store import MirroredStore  # noqa: PLC0415 - needs obstore

        settings = StoreSettings(address=address, lease_seconds=lease_seconds)
        return MirroredStore(tmp_path / name, settings, lambda _: None)

    return open_
