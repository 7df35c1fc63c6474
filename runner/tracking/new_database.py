"""Databases of MLflow that are whole or absent: making the tables of one takes seconds, in which a command may end."""

from __future__ import annotations

import shutil
from pathlib import Path

from runner.locks import exclusive


def make_if_missing(place: Path) -> None:
    """Make MLflow's SQLite database in a folder beside its place, and move it there when it has all of its tables.

    MLflow fails on a database that has some of them. Does nothing where there is no folder for the database. Waits for
    another command that makes it.
    """
    if place.exists() or not place.parent.is_dir():
        return
    from mlflow import MlflowClient  # noqa: PLC0415 - two seconds, and only to log

    with exclusive(place.parent):
        if place.exists():
            return
        folder = place.with_name(f".{place.name}.new")
        shutil.rmtree(folder, ignore_errors=True)  # of a command that ended meanwhile
        folder.mkdir()
        made = folder / place.name
        MlflowClient(tracking_uri=f"sqlite:///{made.resolve()}").search_experiments(max_results=1)
        made.replace(place)
        shutil.rmtree(folder)
