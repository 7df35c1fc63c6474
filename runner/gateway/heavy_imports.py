"""The garbage collector, where it only costs time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Import heavy libraries without garbage collection, which would find nothing: litellm loads a quarter faster.

    If anything was imported, what exists at the end is exempt from every later collection too. A full collection holds
    all threads while it visits each object. For litellm's 325,000 objects that was 0.12 s, taken from each call that a
    gateway was serving.
    """
    loaded = len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > loaded:
            gc.freeze()
        gc.enable()
