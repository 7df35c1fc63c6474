"""The files of a trial's folder, on their way from its node to the desk."""

from __future__ import annotations

import os
from pathlib import Path

from runner.errors import ConfigError
from runner.files import write_atomically
from runner.records.trial_files import SENT

Parcel = dict[str, bytes]
"""Path below the trial's folder, with slashes -> content of the file."""


def pack(folder: Path) -> Parcel:
    """Return the regular files of a folder, those of folders in it included. Raises `OSError`."""
    found: Parcel = {}
    _gather(str(folder), "", found)
    return found


def _gather(folder: str, above: str, found: Parcel) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _gather(entry.path, f"{above}{entry.name}/", found)
            elif entry.is_file(follow_symlinks=False):
                with open(entry.path, "rb", buffering=0) as file:  # noqa: PTH123 - once for each file of each trial
                    found[f"{above}{entry.name}"] = file.read()


def put_in(parcel: Parcel, folder: Path) -> None:
    """Put files in the place of what the desk noted in this folder, each file at once.

    Raises `OSError` and `OutputsError`, and `ConfigError` for a path that leads out of the folder, which no crew sends.
    """
    for name in parcel:
        if "\0" in name or not all(part.strip(".") for part in name.split("/")):
            raise ConfigError(f"A crew sent a file named {name[:200]!r}.")
    for name, content in parcel.items():
        write_atomically(folder / name, content, lasting=False)
    with os.scandir(folder) as entries:
        noted = [entry.path for entry in entries if entry.name.endswith(SENT)]
    for path in noted:
        Path(path).unlink()
