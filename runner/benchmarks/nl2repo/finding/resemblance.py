"""Compare the code of an archive with a document, since a package of the same name may be another library."""

from __future__ import annotations

import re
from pathlib import Path

from runner.benchmarks.nl2repo.finding.document_names import module_names
from runner.benchmarks.nl2repo.specification.inventory import inventory
from runner.errors import ConfigError

SHARE = 0.3
"""Least share of an archive's public names that its document mentions. 33 of the 38 confirmed sources whose document
names packages have it. Documents of other libraries reach it only for the smallest libraries, whose packages they do
not name."""
SHORTEST = 4
"""Least length of a name, in letters, that counts: shorter ones occur in any document."""


def lacks_modules(root: Path, document: str) -> bool:
    """Return whether a document names packages, and an unpacked archive has none of them in any folder.

    Such an archive is another library. Each of the 38 confirmed sources whose document names packages has one of them.
    """
    names = module_names(document)
    places = (place for name in names for place in (*root.rglob(name), *root.rglob(f"{name}.py")))
    return bool(names) and not any(places)


def resembles(root: Path, document: str) -> bool:
    """Return whether an unpacked archive holds the library that a document describes.

    It must have a module that the document names, and the document must mention enough of its public classes and
    functions. An archive that cannot be parsed does not.
    """
    modules = [place / name for name in module_names(document) for place in (root, root / "src")]
    if not any(module.is_dir() or module.with_suffix(".py").is_file() for module in modules):
        return False
    try:
        entries = inventory(root)
    except (ConfigError, RecursionError, MemoryError):  # a hostile file may be nested as deeply as it likes
        return False
    public = {entry.name.rpartition(".")[2] for entry in entries if entry.public and entry.kind != "module"}
    counted = {name for name in public if len(name) >= SHORTEST}
    mentioned = counted.intersection(re.findall(r"\w+", document))
    return bool(counted) and len(mentioned) >= SHARE * len(counted)
