"""Bringing an engine up. A second, private daemon plays the one of a fresh machine."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import NoReturn

import pytest

from runner.errors import EngineError
from runner.records import ExecSpec
from runner.sandbox.docker import engine
from runner.sandbox.docker.container import DockerSandbox

# The Docker client leaves its socket open when nobody listens there.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(autouse=True)
def _open_sockets_are_collected_here() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a folder with a short name: a socket's path is limited to 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        yield Path(folder)


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


@pytest.mark.usefixtures("no_engine")
def test_absent_engine_is_one_clear_sentence() -> None:
    with pytest.raises(EngineError, match=r"unix:///nowhere/docker\.sock: start it, or run `make docker`"):
        engine.connect()


@pytest.mark.usefixtures("no_engine")
def test_a_configured_engine_elsewhere_is_never_replaced() -> None:
    with pytest.raises(
        EngineError, match=r"DOCKER_HOST=unix:///nowhere/docker\.sock, and it cannot be installed"
    ):
        engine.ensure(pytest.fail)


def test_the_command_says_what_to_install_and_fails() -> None:
    env = {**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    command = [sys.executable, "-m", "runner.sandbox.docker.engine"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("No Docker Engine answers")
    assert "Traceback" not in done.stderr


@pytest.mark.docker
def test_an_engine_that_answers_is_used() -> None:
    client = engine.ensure(pytest.fail)
    assert client.ping()
    client.close()


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("dockerd") is None, reason="starting a daemon needs root"
)
def test_daemon_is_started_and_awaited(place: Path) -> None:
    url = f"unix://{place}/docker.sock"
    folders = ("--data-root", f"{place}/data", "--exec-root", f"{place}/run", "--pidfile", f"{place}/pid")
    # In its own network: a daemon without a bridge removes docker0, which the real one may be using.
    command = ("unshare", "--net", "dockerd", "--host", url, *folders, "--bridge=none", "--iptables=false")
    daemon = engine._start(command, place / "log")
    try:
        client = engine._await(daemon, place / "log", url)
        assert client.ping()
        assert int((place / "pid").read_text()) == daemon.pid
        assert os.getsid(daemon.pid) == daemon.pid, "it must outlive the terminal"
        client.close()
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(30)


def test_daemon_that_dies_is_told_by_its_log_at_once(place: Path) -> None:
    started = time.monotonic()
    daemon = engine._start(("sh", "-c", "echo no cgroups here; exit 1"), place / "log")
    with pytest.raises(EngineError, match=r"(?s)exit code 1\..*no cgroups here"):
        engine._await(daemon, place / "log", f"unix://{place}/docker.sock")
    assert time.monotonic() - started < engine.START_SECONDS


@pytest.mark.parametrize(("own", "expected"), [(None, engine.GARBAGE_PERCENT), ("70", "70")])
def test_the_daemon_collects_garbage_less_often_unless_a_user_said_how_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, expected: str
) -> None:
    monkeypatch.delenv("GOGC", raising=False)
    if own:
        monkeypatch.setenv("GOGC", own)
    assert engine._start(("sh", "-c", "echo $GOGC"), tmp_path / "log").wait() == 0
    assert (tmp_path / "log").read_text() == f"{expected}\n"


@pytest.mark.docker
def test_no_variable_of_the_daemon_reaches_a_sandbox(start: Callable[..., DockerSandbox]) -> None:
    """With the daemon's GOGC, a candidate that is written in Go would be measured as it never runs elsewhere."""
    result = start().exec(ExecSpec(argv=("sh", "-c", "tr '\\0' '\\n' < /proc/1/environ; env")))
    assert "PATH=" in result.stdout
    assert "GOGC" not in result.stdout


def test_output_does_not_wait_for_a_daemon_that_an_installation_started() -> None:
    started = time.monotonic()
    done = engine.output_of(("sh", "-c", "sleep 30 & echo installed"), 60)
    assert (done.returncode, done.stdout) == (0, "installed\n")
    assert time.monotonic() - started < 25


def test_output_has_a_time_limit() -> None:
    with pytest.raises(EngineError, match=r"`sleep 60` did not end within 0\.2 s"):
        engine.output_of(("sleep", "60"), 0.2)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("apt-get") is None, reason="installing needs root and apt"
)
def test_package_that_cannot_be_installed_shows_what_apt_said() -> None:
    with pytest.raises(EngineError, match="Unable to locate package assay-no-such-package"):
        engine.install(("assay-no-such-package",), lambda _: None)


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("apt-get") is None, reason="installing needs root and apt"
)
def test_of_two_commands_that_installed_packages_one_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`make -j 2 test` may install the engine and a browser at once."""
    real = shutil.which("apt-get")
    (tmp_path / "apt-get").write_text(f'#!/bin/sh\n[ "$1" = update ] || exec {real} "$@" --no-upgrade\n')
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Path("/var/lib/dpkg/lock-frontend").open("w") as lock, ThreadPoolExecutor(1) as pool:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        installing = pool.submit(engine.install, ("apt",), lambda _: None)
        wait([installing], timeout=2)
        fcntl.lockf(lock, fcntl.LOCK_UN)
        installing.result()


def test_only_one_command_at_a_time_sets_things_up(tmp_path: Path) -> None:
    """This includes commands with other temporary folders, such as those of each sweep."""
    code = """from runner.sandbox.docker.engine import exclusive
with exclusive('test', lambda: print('waits')):
    print('in')
"""
    with engine.exclusive("test"):
        elsewhere = {**os.environ, "TMPDIR": str(tmp_path)}
        other = subprocess.Popen([sys.executable, "-uc", code], stdout=subprocess.PIPE, env=elsewhere)
        assert other.stdout
        assert other.stdout.readline() == b"waits\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1)
    assert other.communicate(timeout=60)[0] == b"in\n"


class Vanishing(dict[str, str]):
    """Environment variables, one of which disappears during iteration."""

    def items(self) -> NoReturn:
        raise KeyError("ANOTHER_THREADS")


@pytest.mark.docker
def test_a_variable_that_another_thread_removed_failed_a_call_of_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client looked for proxies in all variables, and a `KeyError: 'PYTEST_CURRENT_TEST'` spoiled a trial."""
    client = engine.connect()
    monkeypatch.setattr(os, "environ", Vanishing(os.environ.copy()))
    assert client.ping()
