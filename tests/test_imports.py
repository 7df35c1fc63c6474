"""The order of the rooms, and modules that must not be loaded to answer a question."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

from runner.resources import ROOT
from tests.report.plans import sweep_of_four, write_sweep

FILES = sorted([*(ROOT / "runner").rglob("*.py"), *(ROOT / "metrics").rglob("*.py")])
HOMES = {
    "hydra": ("runner.cli.compose",),
    "omegaconf": ("runner.cli.compose", "runner.cli.config", "runner.jobs"),
    "mlflow": ("runner.tracking",),
    "docker": ("runner.sandbox.docker", "runner.sandbox.cases"),
    "litellm": ("runner.gateway",),
    "obstore": ("runner.mirror.bucket",),
    "ray": ("runner.executors.ray",),
}
"""Library -> the only modules that know it."""
ROOMS = (
    *(
        "errors",
        "heavy_imports",
        "records",
        "locks",
        "resources",
        "files",
        "terminal",
        "archives",
        "protocols",
    ),
    *(
        "sandbox",
        "gateway",
        "agents",
        "sweeps",
        "mirror",
        "trials",
        "cli",
        "executors",
        "report",
        "tracking",
        "jobs",
    ),
    *("benchmarks.sources", "benchmarks.*", "__main__"),
)
"""Rooms of `runner/`, from the ground up: a module imports modules of its own room and of rooms named before it."""
HEAVY = {"docker", "hydra", "litellm", "mlflow", "numpy", "omegaconf", "pandas", "pydantic", "rich", "scipy"}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def _statements(file: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the imports of a file, be they lazy or for the type checker alone."""
    return tuple(
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )


def _imports(file: Path) -> Iterator[str]:
    for node in _statements(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            assert node.level == 0, f"{file}: relative import"
            assert node.module
            yield node.module
            if node.module == "runner":
                yield from (f"runner.{alias.name}" for alias in node.names)


def _within(module: str, homes: tuple[str, ...]) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in homes)


@pytest.mark.parametrize("library", HOMES)
def test_the_arrows_of_the_architecture(library: str) -> None:
    knowing = {_module(file) for file in FILES if any(_within(name, (library,)) for name in _imports(file))}
    assert knowing, f"nothing imports {library}"
    assert not {module for module in knowing if not _within(module, HOMES[library])}, (
        f"must not know {library}"
    )


@cache
def _arrows() -> dict[str, set[str]]:
    """Module -> the modules of `runner` it imports, be it lazily or for the type checker alone."""
    modules = {name: file for file in FILES if (name := _module(file)).startswith("runner.")}
    arrows = {}
    for module, file in modules.items():
        names: set[str] = set()
        for node in _statements(file):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            else:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                names |= {name if name in modules else str(node.module) for name in inner}
        arrows[module] = names & modules.keys() - {module}
    return arrows


def _room(module: str) -> str:
    parts = module.split(".")[1:]
    return ".".join(parts[:2]) if parts[0] == "benchmarks" else parts[0]


def _floor(room: str) -> int:
    return ROOMS.index(room if room in ROOMS else "benchmarks.*" if room.startswith("benchmarks.") else room)


def test_a_module_imports_only_what_lies_beneath_it() -> None:
    """The generic line never imports a benchmark, and no benchmark imports another one."""
    upward = {
        f"{module} must not import {name}"
        for module, names in _arrows().items()
        for name in names - {"runner"}
        if (there := _room(name)) != (here := _room(module)) and _floor(there) >= _floor(here)
    }
    assert not upward


def test_metrics_import_nothing_of_the_runner() -> None:
    files = [file for file in FILES if _within(_module(file), ("metrics",))]
    assert not [name for file in files for name in _imports(file) if _within(name, ("runner",))]


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(_arrows()).prepare()  # raises `CycleError` with the modules of a circle


def test_every_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    known = {re.split(r"[^\w-]", name)[0].lower() for name in declared} | {"yaml", "hydra", "pydantic_core"}
    used = {name.partition(".")[0] for file in FILES for name in _imports(file)}
    beside = {"fuzz"}  # lies beside the file that imports it, in the sandbox of a generator
    assert used - set(sys.stdlib_module_names) - {"runner", "metrics"} - beside <= known


def _loaded(*words: str, cwd: Path) -> set[str]:
    """Modules in memory after a command."""
    code = (
        "import sys; from runner.__main__ import main\n"
        f"assert main({list(words)}) == 0\n"
        "print('\\n' + ' '.join(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["--help", "agent"], ["--complete"]])
def test_questions_are_answered_without_loading_anything(words: list[str], tmp_path: Path) -> None:
    assert not HEAVY & _loaded(*words, cwd=tmp_path)


def test_the_help_of_everything_read_yaml_for_a_third_of_its_time(tmp_path: Path) -> None:
    assert not {"yaml", "traceback"} & _loaded("--help", cwd=tmp_path)


def test_a_dry_run_loads_no_engine_provider_store_or_statistics(tmp_path: Path) -> None:
    loaded = _loaded("agent=oracle", "dry_run=true", f"outputs={tmp_path}", cwd=tmp_path)
    assert not {"docker", "litellm", "mlflow", "scipy", "pandas", "obstore"} & loaded


def test_a_key_of_the_usual_dataset_loads_no_other(tmp_path: Path) -> None:
    """To see whether `dataset.include` exists, the classes of all datasets were loaded: half a second."""
    loaded = _loaded(
        "agent=oracle", "dataset.include=[]", "dry_run=true", f"outputs={tmp_path}", cwd=tmp_path
    )
    assert "runner.benchmarks.harbor.dataset" in loaded
    assert not {"runner.benchmarks.cli_tool_bench.dataset", "runner.benchmarks.nl2repo.dataset"} & loaded


def test_who_watches_a_sweep_loads_no_gateway_and_no_statistics(tmp_path: Path) -> None:
    """The gateway came with one function of its package, which the tracker needs: a third of the time to the view."""
    write_sweep(tmp_path, *sweep_of_four())
    loaded = _loaded("job=watch", "name=quickstart", "job.once=true", f"outputs={tmp_path}", cwd=tmp_path)
    assert not {"aiohttp", "httpx", "litellm", "mlflow", "numpy", "pandas", "runner.gateway"} & loaded
