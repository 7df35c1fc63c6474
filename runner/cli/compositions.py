"""What the same words composed before, so that a command that is typed again is spared Hydra: 0.1 s a cell.

A composition depends on the words, on the YAML files and on Hydra, and all of these are in its name: another letter
anywhere is another name. Where it may depend on more (the environment, the clock, chance, a folder elsewhere, a
plugin), it is neither kept nor looked for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from runner.cli import arguments
from runner.errors import OutputsError
from runner.resources import cache_folder
from runner.sweeps.store import write_atomically

FOLDER = cache_folder() / "composed"
"""May be deleted at any time."""
LIMIT = 100
"""Compositions kept; the one that was used longest ago makes room."""
FOLDERS = 200
"""Of a configuration, at most; `conf/` has 15. Somebody's whole project, or a link that leads in circles, has more."""

_ASKS_MORE = re.compile(rb"\$\{(?!root:)[^}]*:|\}[\w.]*:|\\[xuU\r\n]|searchpath|shuffle")
"""A call of anything but `${root:...}`, escapes that may spell one, files from elsewhere, or chance."""


def compose(words: Sequence[str], folder: Path = FOLDER) -> list[DictConfig]:
    """`runner.cli.compose.compose`, or what it said to the same words about the same files."""
    name = _name(words)
    file = folder / f"{name}.json"
    if name and (kept := _read(file)):
        return kept
    from runner.cli.compose import compose as anew  # noqa: PLC0415 - spared where it can be

    configs = anew(words)
    if name and configs and name == _name(words):  # else a file has changed since the name was made
        _keep(configs, file)
    return configs


def _name(words: Sequence[str]) -> str | None:
    """Digest of everything that the composition depends on; None where that is not known."""
    asked = any(word.partition("=")[0] in arguments.QUESTIONS for word in words)
    if asked or importlib.util.find_spec("hydra_plugins"):
        return None
    try:
        versions = [version(package) for package in ("hydra-core", "omegaconf", "pyyaml")]
        ours = Path(__file__).with_name("compose.py").read_bytes()
        parts = [os.fsencode(json.dumps([versions, *words], ensure_ascii=False)), *_files(words)]
    except OSError:
        return None
    if any(_ASKS_MORE.search(part) for part in parts):
        return None
    digest = hashlib.sha256()
    for part in (ours, *parts):
        digest.update(len(part).to_bytes(8) + part)
    return digest.hexdigest()


def _files(words: Sequence[str]) -> Iterator[bytes]:
    """Name and content of each file that Hydra may read. Raises `OSError` where one cannot be read, or nobody can tell
    which they are.
    """
    for folder in arguments.config_folders(words):
        found: list[Path] = []
        for count, (place, _, names) in enumerate(os.walk(folder, onerror=_fail, followlinks=True)):
            if count == FOLDERS:
                raise OSError(f"{folder} is more than a configuration.")
            found += [Path(place, name) for name in names if name.endswith(".yaml")]
        for file in sorted(found):
            yield from (os.fsencode(file.relative_to(folder)), file.read_bytes())


def _fail(error: OSError) -> None:
    raise error


def _read(file: Path) -> list[DictConfig]:
    """What was kept; nothing where it is not there, or not whole."""
    try:
        nodes = json.loads(file.read_bytes())
        file.touch()
    except (OSError, ValueError):
        return []
    return [OmegaConf.create(node, flags={"struct": True}) for node in nodes]


def _keep(configs: Iterable[DictConfig], file: Path) -> None:
    """Write it down unless JSON would change it. Where the folder cannot be written, the next time takes longer."""
    nodes = [OmegaConf.to_container(config) for config in configs]
    try:
        text = json.dumps(nodes)
        if json.loads(text) != nodes:
            return
        write_atomically(file, text.encode())
        kept = sorted(file.parent.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-LIMIT]:
            old.unlink()
    except (OSError, OutputsError, TypeError):
        return
