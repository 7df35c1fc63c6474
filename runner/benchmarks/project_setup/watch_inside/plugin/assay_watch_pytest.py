"""Plugin for pytest 4 and later, on Python 3.6 and later, that reports each test to the watcher as it ends.

pytest finds the plugin by an entry point on PYTHONPATH; where either is ignored, pytest runs without it. The plugin
does not change what is collected, run or printed. A pytest that a test runs in turn reports nothing.
"""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any

SOCKET = Path(__file__).resolve().parent.parent / "socket"
REPORTING = "ASSAY_PYTEST"
"""Variable that marks the processes below a reporting session."""
RANKS = ("passed", "skipped", "failed")


def pytest_configure(config: Any) -> None:
    """Register for the outermost session only, and keep out of the header's list of plugins."""
    manager = config.pluginmanager
    pairs = getattr(manager, "_plugin_distinfo", [])
    pairs[:] = [pair for pair in pairs if getattr(pair[0], "__name__", "") != __name__]
    if REPORTING not in os.environ:
        os.environ[REPORTING] = "1"
        manager.register(Session(config), "assay-watch-session")


class Session:
    """One session. xdist's controller reports for its workers."""

    def __init__(self, config: Any) -> None:
        self._root = str(getattr(config, "rootpath", None) or config.rootdir)
        self._manager = config.pluginmanager
        self._name = os.urandom(8).hex()
        self._tests: Any = {}
        self._unreported: Any = {}

    def pytest_collectreport(self, report: Any) -> None:
        """Record a file that cannot be collected as failed, and one that skips itself as skipped."""
        if report.outcome != "passed":
            self._set(report.nodeid, report.outcome)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Record one phase of a test; the worst phase is the outcome."""
        outcome = report.outcome
        if hasattr(report, "wasxfail"):
            outcome = "skipped" if outcome == "skipped" else "failed"
        if outcome != "passed" or report.when == "call":
            self._set(report.nodeid, outcome)

    def pytest_runtest_logfinish(self) -> None:
        """Report a test as it ends, since the session may be aborted."""
        self._report(last=False)

    def pytest_sessionfinish(self) -> None:
        """Report the rest, such as files that cannot be collected."""
        self._report(last=True)

    def pytest_unconfigure(self) -> None:
        """Let a later session in this process be an outermost one."""
        os.environ.pop(REPORTING, None)

    def _set(self, name: str, outcome: str) -> None:
        if outcome in RANKS and RANKS.index(outcome) >= RANKS.index(self._tests.get(name, "passed")):
            self._tests[name] = outcome
            self._unreported[name] = outcome

    def _report(self, last: bool) -> None:  # noqa: FBT001 - Python 3.6
        report = {
            "ask": "pytest",
            "session": self._name,
            "root": self._root,
            "tests": self._unreported,
            "plugins": sorted({_file(plugin) for plugin in self._manager.get_plugins()} - {"", __file__}),
            "last": last,
        }
        data = json.dumps(report).encode()
        with suppress(OSError), socket(AF_UNIX, SOCK_STREAM) as watcher:
            watcher.connect(str(SOCKET))
            watcher.sendall(len(data).to_bytes(8, "big") + b"\xff" + data)
            watcher.recv(16)
            self._unreported = {}


def _file(plugin: Any) -> str:
    """Return the file of a plugin's code, or of its class's if the plugin is an object."""
    module = plugin if hasattr(plugin, "__file__") else sys.modules.get(type(plugin).__module__)
    return str(getattr(module, "__file__", None) or "")
