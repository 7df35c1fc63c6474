"""Checks of bundles' lock files. Knows no engine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from runner.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from runner.records import BundleRecipe

HOW_LOCKS_ARE_MADE = {
    "pypi": "see the command at the top of the shipped locks, conf/agent/locks/*.lock",
    "npm": "npm install --package-lock-only --omit-lockfile-registry-resolved --save-exact PACKAGE@VERSION",
}


def checked_lock(recipe: BundleRecipe) -> Path:
    """Return a bundle's lock file. Raises `ConfigError` unless it pins this version and all dependencies."""
    if recipe.lock is None:
        raise ConfigError(
            f"bundle {recipe.name} needs `lock`, a file with the hash of everything that is installed: "
            f"{HOW_LOCKS_ARE_MADE[recipe.kind]}"
        )
    if recipe.kind == "npm":  # PyPI's locks are checked where the agent is configured
        _check_npm(recipe.lock, recipe)
    return recipe.lock


def _check_npm(lock: Path, recipe: BundleRecipe) -> None:
    """Raise `ConfigError` unless a `package-lock.json` pins this version, and all dependencies by hash."""
    how = HOW_LOCKS_ARE_MADE["npm"].replace("PACKAGE@VERSION", f"{recipe.package}@{recipe.version}")
    try:
        packages = json.loads(lock.read_text())["packages"]
        version = packages[f"node_modules/{recipe.package}"]["version"]
        unpinned = [path for path, package in packages.items() if path and not _is_pinned(package)]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        message = f"bundle {recipe.name}: {lock} is not a package-lock.json of {recipe.package}: {error}"
        raise ConfigError(f"{message}. Make one: {how}") from error
    if version != recipe.version:
        raise ConfigError(
            f"bundle {recipe.name}: {lock} is for version {version}, not for {recipe.version}. Make a lock of that "
            f"version ({how}) and name it: agent.bundle.lock=FILE"
        )
    if unpinned:
        raise ConfigError(
            f"bundle {recipe.name}: {lock} has no sha512 of {unpinned[0]}. Make it again: {how}"
        )


def _is_pinned(package: dict[str, Any]) -> bool:
    """Return whether an entry is a package of the registry with its SHA-512, or lies inside such a package."""
    if package.get("link"):
        return False
    return bool(package.get("inBundle")) or str(package.get("integrity", "")).startswith("sha512-")
