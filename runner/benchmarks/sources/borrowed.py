"""Distinguish a reference's own files from those of required packages. Only its own files are the answer of a task.

Statements of a reference about itself are not trusted. A file is borrowed if it lies where a requirement was put, and
if no file of the reference's own package has the same content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from runner.benchmarks.sources.clients import file_digest

FILE = "borrowed.txt"
"""Name of the list beside a reference's source: one path per line, relative to the source."""


def contents(folder: Path, without: Iterable[str] = ()) -> set[str]:
    """Return the digests of all files below a folder, except those below the folders `without` in it."""
    left_out = [folder / name for name in without]
    return {
        file_digest(path)
        for path in _files(folder)
        if not any(path.is_relative_to(place) for place in left_out)
    }


def others(source: Path, places: Iterable[str], own: set[str]) -> list[str]:
    """Return the files at or below these places of a source whose content has a digest that is not in `own`."""
    found = {path for place in places for path in _files(source / place) if file_digest(path) not in own}
    return sorted(path.relative_to(source).as_posix() for path in found)


def write(paths: Iterable[str], file: Path) -> None:
    """Write a list of borrowed files, unless it is empty.

    Paths that are not plain text are left out, since a line end in one would put another path on the list.
    """
    if lines := "".join(f"{path}\n" for path in paths if path.isprintable()):
        file.write_text(lines, "utf-8")


def vendored(source: Path, module: str) -> list[str]:
    """Return the vendored files of a Go module, except those below its own path, which other majors of it share."""
    own = PurePosixPath("vendor", re.sub(r"/v\d+$", "", module))
    paths = (path.relative_to(source) for path in _files(source / "vendor"))
    return [path.as_posix() for path in paths if not path.is_relative_to(own)]


def _files(place: Path) -> Iterable[Path]:
    candidates = place.rglob("*") if place.is_dir() else [place]
    return (path for path in candidates if path.is_file() and not path.is_symlink())
