"""Databases of MLflow that are whole or absent: making the tables of one takes seconds, in which a command may end."""

from __future__ import annotations

import shutil
from pathlib import Path

from runner.tracking.store_lock import FILE


def make_if_missing(store: str) -> None:
    """Make the SQLite database of a store beside its place, and move it there. Other stores make their own.

    MLflow fails on a database that has some of its tables. Only one command at a time may do this (`store_lock.alone`).
    """
    from mlflow import MlflowClient  # noqa: PLC0415 - two seconds, and only to log

    place = Path(store.removeprefix(FILE))
    if not store.startswith(FILE) or place.exists() or not place.parent.is_dir():
        return
    folder = place.with_name(f".{place.name}.new")
    shutil.rmtree(folder, ignore_errors=True)  # of a command that ended meanwhile
    folder.mkdir()
    made = folder / place.name
    MlflowClient(tracking_uri=f"{FILE}{made}").search_experiments(max_results=1)
    made.replace(place)
    shutil.rmtree(folder)
