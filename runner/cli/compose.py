"""Hydra composes one configuration per cell, without what it does more often than is needed for that.

It would read all of `conf/`, and its own configuration, anew for each cell, and compose every cell to see whether one
fails before the first is run, where none is run.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory

import hydra
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from hydra.plugins.sweeper import Sweeper
from omegaconf import DictConfig

from runner.resources import CONF, own_conf

_Load = Callable[..., ConfigResult]


class OwnConf(SearchPathPlugin):
    """Puts the user's own `conf/` in front of the shipped one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra each time that it composes."""
        if own := own_conf():
            search_path.prepend("own", f"file://{own}", anchor="main")


Plugins.instance().register(OwnConf)


def compose(words: Sequence[str]) -> list[DictConfig]:
    """One configuration per cell of a checked command line. Raises `SystemExit` when Hydra has said what is wrong.

    Hydra gets a scratch folder, because a multirun insists on writing to one.
    """
    configs: list[DictConfig] = []

    @hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
    def collect(config: DictConfig) -> None:
        configs.append(config)

    typed = sys.argv
    with TemporaryDirectory(prefix="assay-") as scratch:
        sys.argv = [typed[0], *words, f"hydra.run.dir='{scratch}'", f"hydra.sweep.dir='{scratch}'"]
        try:
            collect()
        except SystemExit as end:
            raise SystemExit(2 if end.code else 0) from None
        finally:
            sys.argv = typed
    return configs


def _read_once(load: _Load) -> _Load:
    """`load` of a source of configuration that reads a file again only when it has changed.

    Everybody gets a copy, as Hydra changes what it is given; to unpickle one takes a fortieth of the time of its YAML.
    """
    kept: dict[tuple[str, str, int], bytes] = {}

    @wraps(load)
    def loaded(self: ConfigSource, config_path: str) -> ConfigResult:
        file = Path(self.path, f"{config_path.removesuffix('.yaml')}.yaml")
        key = (
            self.path,
            config_path,
            file.stat().st_mtime_ns if file.is_file() else 0,
        )  # 0: within a package
        if key not in kept:
            kept[key] = pickle.dumps(load(self, config_path))
        copy: ConfigResult = pickle.loads(kept[key])  # noqa: S301 - made two lines above
        return copy

    return loaded


Sweeper.validate_batch_is_legal = lambda *_: None  # type: ignore[method-assign]
Plugins.instance()  # which registers the sources
for _source in map(SourcesRegistry.instance().resolve, ("file", "pkg")):
    _source.load_config = _read_once(_source.load_config)  # type: ignore[method-assign]
