"""Modules that configuration may still call by an earlier name."""

from __future__ import annotations

from collections.abc import Mapping

MOVED: Mapping[str, str] = {}
"""Earlier name of a module that `_target_` names a class of -> its name today."""
