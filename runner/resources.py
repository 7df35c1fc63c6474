"""Folders that Assay reads: the data it ships with, and the user's own options."""

from __future__ import annotations

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
    """Return `conf/` of the current folder, which holds the user's own options.

    None if there is none, or if it is the shipped one.
    """
    folder = Path("conf").absolute()
    return folder if folder.is_dir() and not folder.samefile(CONF) else None
