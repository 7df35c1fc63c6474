"""Texts by repository: categories and names of tools, in a user's YAML file or in the authors' `category.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from runner.errors import ConfigError

CATEGORIES = "category.json"
"""The authors' file at the root of their repository: category -> list of `owner/repository`."""
NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""`owner/repository`."""


def read_texts(source: Path | Mapping[str, str] | None, option: str) -> dict[str, str]:
    """Return a mapping of `OWNER/REPOSITORY` to a text, given directly or in a YAML file.

    Raises `ConfigError`, with the option.
    """
    if source is None:
        return {}
    node: Any = source
    if isinstance(source, Path):
        try:
            node = yaml.safe_load(source.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigError(f"{option}: {source} cannot be read: {error}") from error
    if not isinstance(node, Mapping) or not all(
        isinstance(text, str) for pair in node.items() for text in pair
    ):
        raise ConfigError(f"{option}: {source} must hold `OWNER/REPOSITORY: text`.")
    if wrong := [name for name in node if not NAME.fullmatch(name)]:
        raise ConfigError(f"{option}: {wrong[0]!r} is not OWNER/REPOSITORY.")
    return dict(node)


def read_categories(root: Path) -> dict[str, str]:
    """Return the category of each repository that a checkout's own file lists; nothing without such a file.

    Raises `ConfigError`.
    """
    path = root / CATEGORIES
    if not path.is_file():
        return {}
    try:
        if path.resolve() != root.resolve() / CATEGORIES:
            raise ConfigError(f"job.root: {CATEGORIES} lies behind a link: replace it by what it points to.")
        node = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"job.root: {CATEGORIES} cannot be read: {error}.") from error
    lists = list(node.values()) if isinstance(node, dict) else [None]
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists):
        raise ConfigError(f"job.root: {CATEGORIES} is not a mapping of categories to lists of repositories.")
    return {name: category for category, names in node.items() for name in names}
