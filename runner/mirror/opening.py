"""Open the store of a command: a folder, or a folder with its copy at an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runner.errors import ConfigError
from runner.sweeps.store import Store

if TYPE_CHECKING:
    from runner.sweeps.cells import Settings


def open_store(settings: Settings) -> Store:
    """Return the store of these settings. A mirror prints what it takes and sends.

    Raises `ConfigError` if it has an address, and the library that reads it is not installed.
    """
    if not settings.store.address:
        return Store(settings.outputs)
    try:
        from runner.mirror.mirrored_store import MirroredStore  # noqa: PLC0415 - loads obstore
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise ConfigError(
            f"outputs={settings.store.address} needs obstore, which is not installed: pip install 'assay[s3]'. "
            "Or choose a folder: outputs=DIR."
        ) from error
    return MirroredStore(settings.outputs, settings.store, print)
