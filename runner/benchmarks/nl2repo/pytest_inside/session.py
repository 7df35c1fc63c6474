"""One pytest session of a hidden suite: reports each test as it ends, and traps who tampers with the judging.

Started by `launch.py`'s `pytest` as `python3 -I -S`: no `sitecustomize`, no `.pth` file and no variable of the
environment comes before it, and pytest and its plugins are imported from a folder of root's before anything of the
candidate can be. The candidate's code then runs in this very process, so no defence in it is perfect. Two traps make
forging more than a line: tests that must fail stand among the others, and the functions that make reports are looked at
before every report leaves.
"""

from __future__ import annotations

import importlib
import json
import os
import secrets
import site
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

JUDGE = "/opt/judge"
"""Root's folder with pytest and the suite's plugins."""
WATCHED = (
    *(
        "_pytest.main",
        "_pytest.python",
        "_pytest.reports",
        "_pytest.runner",
        "_pytest.skipping",
        "_pytest.unittest",
    ),
    *("_pytest.outcomes", "_pytest.nodes", "_pytest.raises", "_pytest.python_api", "_pytest.recwarn"),
    *(
        "pluggy._callers",
        "pluggy._hooks",
        "pluggy._manager",
        "pluggy._result",
        "unittest.case",
        "json.encoder",
    ),
    "_pytest.assertion.rewrite",
    "__main__",
)
"""Modules whose functions decide what becomes of a test, or tell of it."""
MESSAGE = 1000
"""Characters of an error, and of its class's name, that are told."""
OUTCOMES: dict[tuple[str, str], str] = {
    ("setup", "failed"): "error",
    ("teardown", "failed"): "error",
    ("call", "failed"): "failed",
    ("setup", "skipped"): "skipped",
    ("call", "skipped"): "skipped",
}


def _session() -> int:
    """Import the judge, then open the candidate's places, then run."""
    descriptor, _, word = os.environ.pop("ASSAY_REPORT", "").partition(":")
    plugins = os.environ.pop("ASSAY_PLUGINS", "").split()
    sys.path.insert(0, JUDGE)
    pytest: Any = importlib.import_module("pytest")  # the judge's, and no library of the runner

    for name in plugins:
        importlib.import_module(name)
    sys.argv[0] = "pytest"
    given = [argument for name in plugins for argument in ("-p", name)]
    mine = [_reporter(pytest, int(descriptor), word)] if descriptor else []
    for folder in [*site.getsitepackages(), site.getusersitepackages()]:
        site.addsitedir(folder)
    for builtin in (site.setquit, site.setcopyright, site.sethelper):
        builtin()
    return int(pytest.main([*given, *sys.argv[1:]], plugins=mine))


class Seal:
    """The functions of some modules, as they were when it was made."""

    def __init__(self, names: tuple[str, ...]) -> None:
        modules = [sys.modules[name] for name in names if name in sys.modules]
        self._kept = [
            (vars(owner), name, found, function, function.__code__, owner.__name__)
            for module in modules
            for owner, name, found, function in _functions(module)
        ]

    def broken(self) -> list[str]:
        """Names of those that are not what they were. Asked after every test, so it must cost next to nothing."""
        return [
            f"{owner}.{name}"
            for there, name, found, function, code, owner in self._kept
            if there.get(name) is not found or function.__code__ is not code
        ]


def _functions(module: ModuleType) -> Iterator[tuple[Any, str, object, FunctionType]]:
    """Owner, name, what stands there, and the function, for each of a module's and of the classes that it defines."""
    owners = [
        module,
        *(of for of in vars(module).values() if isinstance(of, type) and of.__module__ == module.__name__),
    ]
    for owner in owners:
        for name, found in list(vars(owner).items()):
            function = getattr(found, "fget", None) or getattr(found, "__func__", found)
            if isinstance(function, FunctionType):
                yield owner, name, found, function


class Reporter:
    """The plugin that reports."""

    def __init__(self, pytest: Any, tell: Callable[[dict[str, object]], None]) -> None:
        self._pytest, self._tell = pytest, tell
        self._traps: dict[Any, str] = {}
        self._sprung = 0
        self._names: dict[Any, str] = {}
        self._so_far: dict[Any, dict[str, Any]] = {}
        self._seal = Seal(WATCHED)

    def pytest_configure(self, config: Any) -> None:
        """Every test runs, whatever others do."""
        config.option.maxfail = 0
        config.option.continue_on_collection_errors = True
        if config.inipath:
            self._upstreams(config.inipath)

    def pytest_plugin_registered(self, plugin: Any) -> None:
        """Look at each `conftest.py`: an installation may write what no workspace may ship."""
        file = Path(getattr(plugin, "__file__", None) or "")
        if file.name == "conftest.py":
            self._upstreams(file)

    def _upstreams(self, file: Path) -> None:
        """Root's are upstream's, and all others planted."""
        if file.stat().st_uid:
            self._tell({"event": "forged", "message": f"planted: {file}"})

    def pytest_make_collect_report(self, collector: Any) -> None:
        """Have each test file itself imported: nothing that stands in its place already, and by pytest's own finder."""
        if not isinstance(collector, self._pytest.Module):
            return
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__dict__", {}).get("__file__")
            if name.rpartition(".")[2] == collector.path.stem or file == str(collector.path):
                del sys.modules[name]
        sys.meta_path.sort(key=lambda finder: type(finder).__module__ != "_pytest.assertion.rewrite")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Set the traps, and give tests of one id, which plugins may collect, a name each: their id, `#2`, `#3`.."""
        seen: Counter[str] = Counter()
        for item in items:
            seen[item.nodeid] += 1
            again = seen[item.nodeid]
            self._names[item] = f"{item.nodeid}#{again}" if again > 1 else item.nodeid
        for at in reversed(_borders(self._pytest, items)):
            secret = secrets.token_hex(8)
            module = items[min(at, len(items) - 1)].getparent(self._pytest.Module)
            trap = self._pytest.Function.from_parent(
                module, name=f"test_{secret}", callobj=_must_fail(secret)
            )
            self._traps[trap] = secret
            items.insert(at, trap)

    def pytest_collectreport(self, report: Any) -> None:
        """Tell what could not be collected."""
        if report.failed:
            message = str(report.longrepr)[-MESSAGE:]
            self._tell({"event": "collection", "id": report.nodeid, "message": message})

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        """Hear of one phase of a test, after everybody else; pluggy's wrapper."""
        report = yield
        if item in self._traps:
            self._spring(self._traps[item], report, call)
        else:
            self._add(item, report, call)
        return report

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Look at the judge a last time; a session whose failures are all traps ends well, so that `&&` goes on."""
        self._look()
        if exitstatus == self._pytest.ExitCode.TESTS_FAILED and session.testsfailed == self._sprung:
            session.exitstatus = self._pytest.ExitCode.OK

    def _spring(self, secret: str, report: Any, call: Any) -> None:
        """A test that must fail did, with its own words, or else nothing of this session is believed."""
        caught = report.failed and call.excinfo and secret in str(call.excinfo.value)
        self._sprung += report.failed
        if report.when == "call" and not caught:
            self._tell({"event": "forged", "message": "a test that fails was reported as another"})

    def _add(self, item: Any, report: Any, call: Any) -> None:
        """One phase of a test; its last one tells."""
        result = self._so_far.setdefault(item, {"outcome": "passed", "seconds": 0.0})
        result["seconds"] += call.duration
        outcome = OUTCOMES.get((report.when, report.outcome))
        if hasattr(report, "wasxfail") and report.when == "call":
            outcome = "xfailed" if report.skipped else "xpassed"
        if outcome and result["outcome"] in ("passed", "xpassed"):
            why = call.excinfo.typename[:MESSAGE] if call.excinfo else ""
            result |= {"outcome": outcome, "kind": why, "message": str(report.longrepr or "")[-MESSAGE:]}
        if report.when == "teardown":
            self._look()
            told = {"id": self._names.get(item, item.nodeid), "file": str(item.path)}
            self._tell({"event": "test", **told, **self._so_far.pop(item)})

    def _look(self) -> None:
        if broken := self._seal.broken():
            self._tell({"event": "forged", "message": f"changed: {', '.join(broken[:5])}"})


HOOKS: dict[str, dict[str, bool]] = {
    "pytest_configure": {"trylast": True},
    "pytest_make_collect_report": {"tryfirst": True},
    "pytest_collection_modifyitems": {"trylast": True},
    "pytest_runtest_makereport": {"wrapper": True, "tryfirst": True},
}
"""How `Reporter`'s hooks are called; marked when pytest is there."""


def _reporter(pytest: Any, descriptor: int, word: str) -> Reporter:
    """The plugin, and the end of the pipe for nobody else."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - its own signature
    for name, marks in HOOKS.items():
        pytest.hookimpl(**marks)(getattr(Reporter, name))
    return Reporter(pytest, _teller(descriptor, word))


def _teller(descriptor: int, word: str) -> Callable[[dict[str, object]], None]:
    """What writes a report; it holds what it needs, so that a module patched later changes nothing."""
    write, dumps = os.write, json.dumps

    def tell(report: dict[str, object]) -> None:
        with suppress(OSError):
            write(descriptor, f"{word} {dumps(report)}\n".encode())

    return tell


def _borders(pytest: Any, items: list[Any]) -> list[int]:
    """Where traps go: before the first module's tests and after some module's, where no fixture is cut in two."""
    modules = [item.getparent(pytest.Module) for item in items]
    ends = [at for at in range(1, len(items) + 1) if at == len(items) or modules[at] is not modules[at - 1]]
    places = {0, secrets.choice(ends)} if ends else set()
    return sorted(at for at in places if modules[min(at, len(items) - 1)] is not None)


def _must_fail(secret: str) -> Any:
    def check() -> None:
        raise AssertionError(secret)

    return check


if __name__ == "__main__":
    sys.exit(_session())
