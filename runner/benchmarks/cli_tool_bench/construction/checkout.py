"""Turn a checkout, a folder with a project, into a task's reference (`sources.checkout_files` chooses its files).

The project's own files become part of the task, so that the folder is no longer needed. Steps depend only on the
content of these files, neither on the folder's location nor on git.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from runner.archives import unpack
from runner.benchmarks.cli_tool_bench.construction.recipe import Language, Recipe
from runner.benchmarks.cli_tool_bench.construction.steps import Steps
from runner.benchmarks.sources import checkout_package
from runner.benchmarks.sources.checkout_files import copy_checkout
from runner.benchmarks.sources.clients import file_digest
from runner.benchmarks.sources.clones import pack
from runner.benchmarks.sources.published_package import Package
from runner.benchmarks.sources.references import CHECKOUT
from runner.benchmarks.sources.rejections import RejectedError, rejected
from runner.errors import ConfigError, TaskError


def take(recipe: Recipe, making: Path, into: Path) -> Recipe:
    """Pack the files of a recipe's checkout into a tar file, and return the recipe with the language of the tool.

    `making` is the folder of the recipe's file. Raises `RejectedError` for a checkout that cannot be taken.
    """
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "own")
        try:
            if recipe.folder:
                copy_checkout(Path(os.path.normpath(making / recipe.folder)), own)
            else:
                _unpack_finished(making.parent / CHECKOUT, own)
            language = _language(checkout_package.languages_of(own), recipe)
        except RejectedError:
            raise
        except ConfigError as error:
            raise rejected("candidate", str(error)) from error
        pack(own, into)
    return recipe.model_copy(update={"written_in": language})


def look_up(recipe: Recipe, packed: Path, client: Callable[[str], Path], steps: Steps) -> Package:
    """Return the package that a packed checkout declares, with the licence that the checkout or the recipe states.

    Raises `RejectedError` for a checkout that cannot be a reference, and `FetchError` if a client fails.
    """
    key = [recipe.source, file_digest(packed), recipe.language, recipe.version, recipe.entry]
    look = partial(_look_up, recipe, packed, client)
    found = steps.get("package", key, Package, look)
    if not (found.license or recipe.license):
        raise rejected(
            "candidate",
            "license: the checkout does not state its licence. Add `license` to the recipe, as an SPDX identifier.",
        )
    return found


def _look_up(recipe: Recipe, packed: Path, client: Callable[[str], Path]) -> Package:
    try:
        return checkout_package.look_up(packed, recipe.language, recipe.version, recipe.entry, client)
    except TaskError as error:
        raise rejected("candidate", str(error)) from error


def _unpack_finished(packed: Path, into: Path) -> None:
    if not packed.is_file():
        reason = (
            f"folder: none is named, and no {CHECKOUT} lies in the task. Name the folder of the checkout."
        )
        raise rejected("candidate", reason)
    unpack(packed, into)


def _language(found: list[checkout_package.Language], recipe: Recipe) -> Language:
    """Return the language of a checkout. Raises `RejectedError` if it has several languages or lacks the wanted one."""
    if recipe.written_in is None and len(found) == 1:
        return found[0]
    if recipe.written_in in found and recipe.written_in is not None:
        return recipe.written_in
    known = ", ".join(found)
    reason = (
        f"written_in: it has build files of {known}. Set `written_in` in the recipe to the tool's language."
    )
    raise rejected("candidate", reason)
