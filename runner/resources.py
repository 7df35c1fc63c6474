"""Folders that Assay reads and writes on this machine: the data it ships with, the user's own options, and caches."""

from __future__ import annotations

import os
from pathlib import Path


def _root() -> Path:
    package = Path(__file__).resolve().parent
    packaged = package / "data"
    return packaged if packaged.is_dir() else package.parent


ROOT = _root()
"""Folder of the shipped `conf/` and `tasks/`: `runner/data` of an installed copy, otherwise the checkout.
`${root:...}` in YAML starts here."""
CONF = ROOT / "conf"


def own_conf() -> Path | None:
    """Return the user's own options: `conf/` of the current folder. None without one, and where it is the shipped one."""
    folder = Path("conf").absolute()
    return folder if folder.is_dir() and not folder.samefile(CONF) else None


def cache_folder() -> Path:
    """Return the folder for what can be made again at any time: `assay` in the user's cache folder (XDG)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))  # the specification ignores a relative one
    return (base if base.is_absolute() else Path.home() / ".cache") / "assay"
