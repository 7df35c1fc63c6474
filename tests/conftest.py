"""Fixtures and settings of all tests."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from runner.__main__ import QUIET, main
from runner.locks import exclusive
from tests.support import warm
from tests.support.longest_first import SECONDS
from tests.support.no_page import without_page, without_pixels
from tests.support.ray_cluster import TOKEN
from tests.support.serving import KEY_VARIABLE
from tests.support.sweeps import Cli

if TYPE_CHECKING:
    from runner.gateway import Gateway
    from runner.report.findings import Findings

os.environ.update(QUIET)
os.environ.update(TOKEN)  # Ray reads it when it is imported, and several tests of a process may start one
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it for its workers, which would make every table narrower
# An example may wait for a busy machine.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
# Tests send these signals to programs, and a parent such as `sh -c 'make test &'` may have set them to be ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
# Imported modules and collected tests live to the end; garbage collection would take a fifth of their time.
gc.disable()
# A test makes many objects and few circles of them.
gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files first that take longest. A worker that began one of them last would end alone."""
    items.sort(key=lambda item: -SECONDS.get(item.nodeid.partition("::")[0], 0))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test marked `serial` while no other worker of xdist runs one.

    This hook is the outermost, so waiting does not count towards a test's timeout.
    """
    if not hasattr(item.config, "workerinput") or not item.get_closest_marker("serial"):
        return (yield)
    with exclusive(Path(item.config.getoption("basetemp")).parent / "serial.lock"):
        return (yield)


@pytest.fixture(scope="session", autouse=True)
def _unflushed() -> Iterator[None]:
    """Leave written files to the kernel. No test cuts the power, and thousands of records would wait for a disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def common(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers share, for files that are made once and found by their content."""
    here = tmp_path_factory.getbasetemp()
    return here.parent if hasattr(request.config, "workerinput") else here


@pytest.fixture(scope="session")
def empty_store(common: Path) -> Path:
    """Return a new database of MLflow, to be copied; one worker makes it, since creating its tables takes seconds."""
    from runner.tracking.mlflow import MlflowTracker  # noqa: PLC0415 - as below
    from tests.report.plans import sweep_of_four, write_sweep  # noqa: PLC0415 - as below

    made, place = common / "mlflow", common / "mlflow.db"
    with exclusive(common / "mlflow.lock"):
        if not place.exists():
            tracker = MlflowTracker(experiment="other", trajectories="none", traces="none")
            tracker.log(write_sweep(made, *sweep_of_four()))
            (made / "mlflow.db").rename(place)
    return place


@pytest.fixture(scope="module")
def no_page() -> Iterator[None]:
    """Leave out the pages of sweeps, for modules whose tests never look at one."""
    with without_page():
        yield


@pytest.fixture(scope="module")
def no_pixels() -> Iterator[None]:
    """Leave the pictures of pages empty, for modules whose tests only read what a page says."""
    with without_pixels():
        yield


@pytest.fixture(scope="session")
def warm_server() -> Iterator[Path]:
    """Return the socket of a process that has imported the modules of commands."""
    with warm.server() as place:
        yield place


@pytest.fixture
def warm_commands(warm_server: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test start commands as forks of that process, by `warm.Process` or a script."""
    monkeypatch.setenv(warm.SOCKET, str(warm_server))
    monkeypatch.setenv(warm.CLIENT, warm.__file__)


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call `python -m runner ARGUMENT...` in an empty folder, in this process: the imports of one take a second."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["runner"])

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code = main(list(arguments))
        return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())

    return run


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call the command line from a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return Cli(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """Open one gateway for all tests of a worker, since importing litellm takes seconds.

    The path of its folder must be short, and agents of any user pass through it.
    """
    from runner.gateway import Gateway  # noqa: PLC0415 - as above

    with tempfile.TemporaryDirectory(prefix="assay-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, "sk-fake")
        Path(folder).chmod(0o755)
        with Gateway(Path(folder) / "s") as gateway:
            yield gateway


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Findings of a sweep of CLI-Tool-Bench; for tests that only look."""
    from tests.benchmarks.cli_tool_bench.tool_sweep import sweep_of_tools  # noqa: PLC0415 - brings pandas
    from tests.report.conftest import findings  # noqa: PLC0415 - as above

    return findings(tmp_path_factory.mktemp("tools"), *sweep_of_tools())


@pytest.fixture(scope="session")
def projects(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    """Findings of a sweep of projects to be set up; for tests that only look."""
    from tests.benchmarks.project_setup.project_sweep import sweep_of_projects  # noqa: PLC0415 - as above
    from tests.report.conftest import findings  # noqa: PLC0415 - as above

    return findings(tmp_path_factory.mktemp("projects"), *sweep_of_projects())
