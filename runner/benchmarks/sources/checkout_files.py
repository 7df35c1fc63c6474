"""Take the files of a checkout: a folder with a project, from which a task is made.

In a git checkout these are the files that git does not ignore; elsewhere they are all files. History, caches, virtual
environments, installed packages and files that hold keys are left out. A checkout with a file that cannot be taken
unchanged, such as a link that leads outside, is refused.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from runner.archives import stays_inside
from runner.benchmarks.sources.checkouts import project_paths
from runner.errors import TaskError

MOST_FILES, MOST_BYTES = 20_000, 64 << 20
"""Largest number and total size, in bytes, of a checkout's files."""
HISTORY = {".git", ".hg", ".svn", ".bzr"}
CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".eggs", ".DS_Store"}
KEYS = {".env", ".netrc", ".npmrc", ".pypirc"}
"""Files in which people keep passwords and tokens."""
LEFT_OUT = HISTORY | CACHES | KEYS | {"node_modules"}
"""Names that are left out at any depth. A project's requirements are resolved anew."""
BUILT = {"build", "dist"}
"""Folders at the top of a Python project that its own build makes."""


def copy_checkout(folder: Path, into: Path) -> None:
    """Copy the files of a checkout into a new folder.

    Raises `TaskError` if there is no such folder, if it is too large, or if something in it cannot be taken.
    """
    if not folder.is_dir():
        raise TaskError(f"folder: {folder} is not a folder. Name the folder of the checkout.")
    files = total = 0
    try:
        for path in _chosen(folder.resolve()):
            files, total = files + 1, total + path.lstat().st_size
            if files > MOST_FILES or total > MOST_BYTES:
                raise TaskError(
                    f"folder: {folder} holds more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB. Name the "
                    "folder of one project, or remove what the tool does not need from a copy of it."
                )
            _copy(path, path.relative_to(folder.resolve()), into)
    except OSError as error:
        raise TaskError(
            f"folder: {error.filename or folder} cannot be read ({error.strerror}). Make it readable, or remove it."
        ) from error
    if not files:
        raise TaskError(f"folder: {folder} holds no file that is taken. Name the folder of the checkout.")


def _chosen(folder: Path) -> Iterator[Path]:
    """Yield the files and links of a checkout that are taken, in a stable order."""
    is_git = (folder / ".git").exists()
    listed = {*project_paths(folder)} if is_git else set()
    for top, folders, files in os.walk(folder, onerror=_fail):
        here = Path(top)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in links and _is_taken(here / name, folder))
        for name in sorted([*files, *links]):
            path = here / name
            if _is_taken(path, folder) and (not is_git or path.relative_to(folder).as_posix() in listed):
                yield path


def _is_taken(path: Path, folder: Path) -> bool:
    if path.name in LEFT_OUT or path.name.endswith((".egg-info", ".pyc")):
        return False
    if path.is_symlink() or not path.is_dir():
        return True
    is_built = path.parent == folder and path.name in BUILT and not (folder / "package.json").exists()
    is_package = (path / "__init__.py").exists() or (folder / "go.mod").exists()
    return not (path / "pyvenv.cfg").exists() and (is_package or not is_built)


def _copy(path: Path, inner: Path, into: Path) -> None:
    """Copy one file or link, with its executable bit. Raises `TaskError`, and `OSError`."""
    name = inner.as_posix()
    if not name.isprintable():
        raise TaskError(f"folder: the file name {name!r} is not plain text. Rename the file.")
    if path.is_symlink() and not stays_inside(inner.parts, str(path.readlink())):
        raise TaskError(f"folder: {name} is a link that leads outside. Replace it by what it points to.")
    if not path.is_symlink() and not path.is_file():
        raise TaskError(f"folder: {name} is neither a file nor a folder nor a link. Remove it.")
    target = into / inner
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target, follow_symlinks=False)
    if not target.is_symlink():
        target.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _fail(error: OSError) -> None:
    raise error
