"""A plugin of pytest (4 and later, Python 3.6 and later) that tells the watcher what became of each test, when it has.

It comes by an entry point and PYTHONPATH: where either is ignored, pytest runs as if there were none. It changes
nothing of what is collected, run or printed. A pytest that a test runs in turn tells nothing.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

SOCKET = Path(__file__).resolve().parent.parent / "socket"
TELLING = "ASSAY_PYTEST"
"""Set in the environment of what the session that tells starts."""
RANKS = ("passed", "skipped", "failed")


def pytest_configure(config: Any) -> None:
    """Be a plugin of the outermost session only, and of none in the header's list."""
    manager = config.pluginmanager
    pairs = getattr(manager, "_plugin_distinfo", [])
    pairs[:] = [pair for pair in pairs if getattr(pair[0], "__name__", "") != __name__]
    if TELLING not in os.environ:
        os.environ[TELLING] = "1"
        manager.register(Session(config), "assay-watch-session")


class Session:
    """One session; that of xdist's workers is told by who controls them."""

    def __init__(self, config: Any) -> None:
        self._root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._manager = config.pluginmanager
        self._name = os.urandom(8).hex()
        self._tests: Any = {}
        self._untold: Any = {}

    def pytest_collectreport(self, report: Any) -> None:
        """A file that cannot be collected has failed, one that skips itself is skipped."""
        if report.outcome != "passed":
            self._set(report.nodeid, report.outcome)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of a test: the worst of them is what became of it."""
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "skipped" if outcome == "skipped" else "failed"
        if outcome != "passed" or report.when == "call":
            self._set(report.nodeid, outcome)

    def pytest_runtest_logfinish(self) -> None:
        """Tell of a test that has ended: there may be no end of the session."""
        self._tell(last=False)

    def pytest_sessionfinish(self) -> None:
        """Tell the rest, of files that cannot be collected for one."""
        self._tell(last=True)

    def pytest_unconfigure(self) -> None:
        """Another session in this process is another outermost one."""
        os.environ.pop(TELLING, None)

    def _set(self, name: str, outcome: str) -> None:
        if outcome in RANKS and RANKS.index(outcome) >= RANKS.index(self._tests.get(name, "passed")):
            self._tests[name] = outcome
            self._untold[name] = outcome

    def _tell(self, last: bool) -> None:  # noqa: FBT001 - Python 3.6
        told = {
            "ask": "pytest",
            "session": self._name,
            "root": self._root,
            "tests": self._untold,
            "plugins": sorted({_file(plugin) for plugin in self._manager.get_plugins()} - {"", __file__}),
            "last": last,
        }
        data = json.dumps(told).encode()
        with suppress(OSError), socket(AF_UNIX, SOCK_STREAM) as watcher:
            watcher.connect(str(SOCKET))
            watcher.sendall(len(data).to_bytes(8, "big") + b"\xff" + data)
            watcher.recv(16)
            self._untold = {}


def _file(plugin: Any) -> str:
    """Where a plugin's code lies; that of an object where its class's does."""
    module = plugin if hasattr(plugin, "__file__") else sys.modules.get(type(plugin).__module__)
    return str(getattr(module, "__file__", None) or "")
