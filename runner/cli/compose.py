"""Compose one configuration per cell, through Hydra's public API alone (ADR 10)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import ClassVar

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.types import RunMode
from omegaconf import DictConfig, open_dict
from yaml import YAMLError

from runner.cli import arguments
from runner.errors import ConfigError
from runner.resources import CONF, own_conf

_PRIMARY = "config"
"""Name of the file that every composition starts from, without `.yaml`."""


class ConfigFolders(SearchPathPlugin):
    """Puts the user's own `conf/` before the shipped one, and the folders of `--config-dir` after it."""

    added: ClassVar[Sequence[Path]] = ()

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Change the search path of a composition; Hydra calls this before each."""
        if own := own_conf():
            search_path.prepend("own", f"file://{own}", anchor="main")
        for folder in self.added:
            search_path.append("command-line", f"file://{folder.absolute()}")


Plugins.instance().register(ConfigFolders)


def compose(words: Sequence[str]) -> list[DictConfig]:
    """Return one configuration per cell of a checked command line. Raises `ConfigError` with Hydra's reason."""
    flags, overrides = arguments.split(words)
    ConfigFolders.added = arguments.added_folders(flags)
    try:
        with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
            return _cells(overrides, several=arguments.is_multirun(flags))
    except (HydraException, YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(f"{error} {error.__cause__ or ''}".split())
        raise ConfigError(f"Hydra cannot compose this: {reason}") from error
    finally:
        ConfigFolders.added = ()


def answer(words: Sequence[str]) -> None:
    """Let Hydra answer a question such as `--cfg job`. Raises `SystemExit` after Hydra has reported an error."""
    typed = sys.argv
    sys.argv = [typed[0], *words]
    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=_PRIMARY)(lambda _: None)()
    except SystemExit as end:
        raise SystemExit(2 if end.code else 0) from None
    finally:
        sys.argv = typed


def _cells(overrides: Sequence[str], *, several: bool) -> list[DictConfig]:
    """Compose each combination of the swept values; without a sweep, compose the one cell.

    A preset sweeps by `hydra.mode` and `hydra.sweeper.params`; a typed value replaces the preset's. Hydra's own sweeper
    composes every cell twice, the first time to see whether it can.
    """
    typed = _parse(overrides)
    swept = [each for each in typed if each.is_sweep_override()]
    first = hydra.compose(
        _PRIMARY, _lines(each for each in typed if each not in swept), return_hydra_config=True
    )
    if several or first.hydra.mode == RunMode.MULTIRUN:
        preset = _parse([f"{key}={value}" for key, value in (first.hydra.sweeper.params or {}).items()])
        chosen = {each.get_key_element(): _values(each) for each in (*preset, *typed)}
        return [hydra.compose(_PRIMARY, list(cell)) for cell in product(*chosen.values())]
    if swept:
        raise ConfigError(
            f"{swept[0].input_line} names several values: add -m to run each of them, or put the value in quotes."
        )
    with open_dict(first):
        del first["hydra"]
    return [first]


def _parse(overrides: Sequence[str]) -> list[Override]:
    return OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides(list(overrides))


def _lines(overrides: Iterable[Override]) -> list[str]:
    return [str(each.input_line) for each in overrides]


def _values(override: Override) -> list[str]:
    """Return an override for each value that it sweeps."""
    if not override.is_sweep_override():
        return _lines([override])
    return [f"{override.get_key_element()}={value}" for value in override.sweep_string_iterator()]
