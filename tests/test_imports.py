"""Who may import whom, and what must not be loaded to say something simple."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from runner.resources import ROOT

FILES = sorted([*(ROOT / "runner").rglob("*.py"), *(ROOT / "metrics").rglob("*.py")])
HOMES = {
    "hydra": ("runner.cli.compose",),
    "omegaconf": ("runner.cli.compose", "runner.cli.config", "runner.jobs"),
    "mlflow": ("runner.tracking.mlflow",),
    "docker": ("runner.sandbox",),
    "litellm": ("runner.gateway",),
}
"""Library -> the only modules that know it."""
IMPLEMENTATIONS = ("agents", "datasets", "executors", "jobs", "tracking")
"""Reached through `_target_`, so imported by nobody but their own kind."""
HEAVY = {"docker", "hydra", "litellm", "mlflow", "numpy", "omegaconf", "pandas", "pydantic", "rich", "scipy"}


def _module(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(file: Path) -> Iterator[tuple[str, ast.stmt]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            assert node.module
            yield node.module, node
            if node.module == "runner":
                yield from ((f"runner.{alias.name}", node) for alias in node.names)


def _within(module: str, homes: tuple[str, ...]) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in homes)


@pytest.mark.parametrize("file", FILES, ids=_module)
def test_the_arrows_of_the_architecture(file: Path) -> None:
    module, names = _module(file), {name for name, _ in _imports(file)}
    for library, homes in HOMES.items():
        if any(_within(name, (library,)) for name in names):
            assert _within(module, homes), f"{module} must not know {library}"
    ours = {name for name in names if _within(name, ("runner",))}
    for foundation in ("runner.records", "runner.errors", "metrics"):
        if _within(module, (foundation,)):
            others = {name for name in ours if not _within(name, (foundation,))}
            assert not others, f"{module} imports nothing of the runner"
    for part in IMPLEMENTATIONS:
        if not _within(module, tuple(f"runner.{name}" for name in IMPLEMENTATIONS)):
            assert not any(_within(name, (f"runner.{part}",)) for name in ours), f"{module} names {part}"


def _arrows() -> dict[str, set[str]]:
    """Module -> the modules of `runner` it imports, be it lazily or for the type checker alone."""
    modules = {_module(file): file for file in FILES}
    arrows = {}
    for module, file in modules.items():
        nodes = list(ast.walk(ast.parse(file.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                names |= {name if name in modules else str(node.module) for name in inner}
        arrows[module] = names & modules.keys() - {module}
    return arrows


def test_no_module_imports_itself_by_way_of_others() -> None:
    TopologicalSorter(_arrows()).prepare()  # raises `CycleError` with the modules of a circle


def test_every_library_is_declared() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    known = {re.split(r"[^\w-]", name)[0].lower() for name in declared} | {"yaml", "hydra", "pydantic_core"}
    used = {name.partition(".")[0] for file in FILES for name, _ in _imports(file)}
    assert used - set(sys.stdlib_module_names) - {"runner", "metrics"} <= known


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


def test_a_dry_run_loads_no_engine_provider_store_or_statistics(tmp_path: Path) -> None:
    loaded = _loaded("agent=oracle", "dry_run=true", f"outputs={tmp_path}", cwd=tmp_path)
    assert not {"docker", "litellm", "mlflow", "scipy", "pandas"} & loaded


def test_a_key_of_the_usual_dataset_loads_no_other(tmp_path: Path) -> None:
    """To see whether `dataset.include` exists, the classes of all datasets were loaded: half a second."""
    loaded = _loaded(
        "agent=oracle", "dataset.include=[]", "dry_run=true", f"outputs={tmp_path}", cwd=tmp_path
    )
    assert "runner.benchmarks.harbor.dataset" in loaded
    assert not {"runner.benchmarks.cli_tool_bench.dataset", "runner.benchmarks.nl2repo.dataset"} & loaded
