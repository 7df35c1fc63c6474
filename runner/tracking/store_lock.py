"""The right to write to a store, which only one command has at a time: two at once would each write the same runs."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.locks import exclusive
from runner.tracking.new_database import make_if_missing
from runner.tracking.server_lock import server_lock

_KEY = zlib.crc32(b"assay: tracking")
"""Number of our advisory lock, the same for all who use the database."""
_FILE = "sqlite:///"


@contextmanager
def alone(store: str, outputs: Path) -> Iterator[None]:
    """Wait until no other command writes to this store, and keep others waiting within the context.

    Commands on this machine that share `outputs` or a SQLite file wait for each other, and commands on any machine that
    share a PostgreSQL database or an MLflow server. A SQLite file that is missing is made first.
    """
    if store.startswith(_FILE) and not set(store) & set(
        "?%"
    ):  # MLflow takes what follows these for something else
        make_if_missing(Path(store.removeprefix(_FILE)))
    with exclusive(outputs):
        if store.startswith("postgresql"):
            with _advisory_lock(store):
                yield
        elif store.startswith(_FILE) and (path := Path(store.removeprefix(_FILE))).is_file():
            with exclusive(path):
                yield
        elif store.startswith(("http://", "https://")):
            with server_lock(store):
                yield
        else:
            yield


@contextmanager
def _advisory_lock(store: str) -> Iterator[None]:
    """Hold our lock in a PostgreSQL database, which releases it when the connection ends, however that happens."""
    from sqlalchemy import NullPool, create_engine, text  # noqa: PLC0415 - half a second, and only to log

    engine = create_engine(store, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _KEY}):
            print("MLflow: another command writes to this database; waiting for its end", flush=True)
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _KEY})
        yield
