"""Write the project that installs a Python reference, and find the modules of a checkout. Nothing is built or run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from runner.errors import TaskError

SRC = "src"
"""Folder of the modules in a reference's source."""
NOT_INSTALLED = {"setup.py", "conftest.py", "noxfile.py", "tasks.py", "test", "tests", "docs", "examples"}
"""Python files and packages beside a tool's own modules that its installation leaves out."""


def write_project(tool: str, version: str, entry: str, into: Path, data: Sequence[str] = ("*",)) -> None:
    """Write the `pyproject.toml` that installs the modules in `src/`, with one command: the tool.

    `data` are patterns, within each package, of other files that are installed. For wheels, it stays as it was when
    their tasks were made.
    """
    code = into / SRC
    modules = [path.stem for path in sorted(code.glob("*.py"))]
    folders = sorted({".".join(path.parent.relative_to(code).parts) for path in code.rglob("*/*.py")})
    (into / "pyproject.toml").write_text(
        f"""[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = {json.dumps(tool)}
version = {json.dumps(version)}

[project.scripts]
{tool} = {json.dumps(entry)}

[tool.setuptools]
package-dir = {{ "" = "src" }}
py-modules = {json.dumps(modules)}
packages = {json.dumps(folders)}

[tool.setuptools.package-data]
"*" = {json.dumps(data)}
"""
    )


def modules(checkout: Path, entry: str) -> list[Path]:
    """Return the files and folders from which Python imports once a checkout is installed.

    They lie beside the module that `entry` names: in `src`, at the top, or in another folder. Raises `TaskError` if it
    is in none of them.
    """
    name = entry.partition(":")[0].partition(".")[0]
    own = {name, f"{name}.py"}
    folders = sorted(path for path in checkout.iterdir() if path.is_dir() and not path.is_symlink())
    for place in (checkout / SRC, checkout, *folders):
        if (place / f"{name}.py").is_file() or (place / name).is_dir():
            others = [path.name for path in place.iterdir() if _is_module(path)]
            return [place / one for one in sorted({*others} - NOT_INSTALLED | own) if (place / one).exists()]
    raise TaskError(f"its command starts {entry!r}, and no folder of it has a module {name!r}.")


def place_modules(checkout: Path, entry: str, code: Path) -> list[str]:
    """Copy the modules of a checkout into a folder, over what lies there, and return their names.

    Raises `TaskError` if it does not have the module that `entry` names.
    """
    found = modules(checkout, entry)
    for path in found:
        if path.is_dir():
            shutil.copytree(path, code / path.name, symlinks=True, dirs_exist_ok=True)
        else:
            code.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, code / path.name)
    return [path.name for path in found]


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" if path.is_file() else (path / "__init__.py").is_file()
