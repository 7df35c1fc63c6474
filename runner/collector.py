"""The garbage collector, where it only costs time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without it while heavy libraries are imported, whose every object stays: a quarter of litellm's import."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
