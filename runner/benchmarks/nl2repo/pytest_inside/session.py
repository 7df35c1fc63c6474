"""Run one pytest session of a hidden suite, report each test as it ends, and detect tampering with the judge.

`launch.py` starts this program as `python3 -I -S`, so no `sitecustomize`, `.pth` file or environment variable takes
effect before it. It imports pytest and its plugins from a folder of root's before any code of the candidate. That code
then runs in this very process, so no defence here is perfect. Several make forging take more than a few lines: tests
that must fail stand among the others under their names; the functions that make reports are compared with the
originals before every report; reports carry a word that is in no variable, file or module; and this program uses
builtin functions of its own and is not among the modules.
"""

from __future__ import annotations

import builtins
import importlib
import json.encoder
import os
import secrets
import site
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
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
    ),
    "_pytest.assertion.rewrite",
    "__main__",
)
"""Modules whose functions decide the outcome of a test, or report it."""
WATCHED_AT_ONCE = ("_pytest.reports", "_pytest.runner", "pluggy._callers")
"""Those that no test has reason to change, even while it runs."""
MESSAGE = 1000
"""Longest error, and longest name of its class, in a report, in characters."""
LONGEST = 16_384
"""Longest message, in bytes; `launch.py` reads no longer ones."""
OUTCOMES: dict[tuple[str, str], str] = {
    ("setup", "failed"): "error",
    ("teardown", "failed"): "error",
    ("call", "failed"): "failed",
    ("setup", "skipped"): "skipped",
    ("call", "skipped"): "skipped",
}


def _session() -> int:
    """Import the judge, then make the candidate's packages importable, then run pytest. Return its exit code."""
    descriptor = os.environ.pop("ASSAY_REPORT", "")
    plugins = os.environ.pop("ASSAY_PLUGINS", "").split()
    sys.path.insert(0, JUDGE)
    pytest: Any = importlib.import_module("pytest")  # the judge's: the runner does not depend on it
    for name in plugins:
        importlib.import_module(name)
    globals().update({name: each for name, each in vars(builtins).items() if not name.startswith("_")})
    sys.argv[0] = "pytest"
    options = [argument for name in plugins for argument in ("-p", name)]
    if plugins:  # they are imported already, which is an error where a suite turns warnings into errors
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
    own = [_reporter(pytest, int(descriptor))] if descriptor else []
    sys.modules["__main__"] = ModuleType("__main__")
    for folder in [*site.getsitepackages(), site.getusersitepackages()]:
        site.addsitedir(folder)
    for builtin in (site.setquit, site.setcopyright, site.sethelper):
        builtin()
    return int(pytest.main([*options, *sys.argv[1:]], plugins=own))


class Seal:
    """Snapshot of the functions of some modules."""

    def __init__(self, names: tuple[str, ...]) -> None:
        modules = [sys.modules[name] for name in names if name in sys.modules]
        self._functions = [
            (vars(owner), name, value, function, function.__code__, owner.__name__)
            for module in modules
            for owner, name, value, function in _functions(module)
        ]

    def broken(self) -> list[str]:
        """Return the names of functions that have changed. This runs after every test and must be fast."""
        return [
            f"{owner}.{name}"
            for namespace, name, value, function, code, owner in self._functions
            if namespace.get(name) is not value or function.__code__ is not code
        ]


def _functions(module: ModuleType) -> Iterator[tuple[Any, str, object, FunctionType]]:
    """Yield owner, name, value and function for each function of a module and of the classes that it defines."""
    owners = [
        module,
        *(
            each
            for each in vars(module).values()
            if isinstance(each, type) and each.__module__ == module.__name__
        ),
    ]
    for owner in owners:
        for name, value in list(vars(owner).items()):
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                yield owner, name, value, function


class Reporter:
    """Plugin that reports the results of tests."""

    def __init__(self, pytest: Any, report: Callable[[dict[str, Any]], None]) -> None:
        self._pytest, self._report = pytest, report
        self._traps: dict[Any, str] = {}
        self._sprung = 0
        self._names: dict[Any, str] = {}
        self._so_far: dict[Any, dict[str, Any]] = {}
        self._seal, self._inner_seal = Seal(WATCHED), Seal(WATCHED_AT_ONCE)

    def pytest_configure(self, config: Any) -> None:
        """Run every test, even after failures."""
        config.option.maxfail = 0
        config.option.continue_on_collection_errors = True
        if config.inipath:
            self._check_owner(config.inipath)

    def pytest_plugin_registered(self, plugin: Any) -> None:
        """Check each `conftest.py`: an installation could write one, which a workspace may not ship."""
        file = Path(getattr(plugin, "__file__", None) or "")
        if file.name == "conftest.py":
            self._check_owner(file)

    def _check_owner(self, file: Path) -> None:
        """Report a file that is not root's. Upstream's files are root's; any other was planted."""
        if file.stat().st_uid:
            self._report({"event": "forged", "message": f"planted: {file}"})

    def pytest_make_collect_report(self, collector: Any) -> None:
        """Make pytest's own finder import each test file, not a module that was put in its place."""
        if not isinstance(collector, self._pytest.Module):
            return
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__dict__", {}).get("__file__")
            if name.rpartition(".")[2] == collector.path.stem or file == str(collector.path):
                del sys.modules[name]
        sys.meta_path.sort(key=lambda finder: type(finder).__module__ != "_pytest.assertion.rewrite")

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Insert the traps, and number tests that plugins collected under the same id: the id, then `#2`, `#3`, ..."""
        seen: Counter[str] = Counter()
        for item in items:
            seen[item.nodeid] += 1
            count = seen[item.nodeid]
            self._names[item] = f"{item.nodeid}#{count}" if count > 1 else item.nodeid
        tests = list(items)
        for at in reversed(_borders(self._pytest, tests)):
            secret = secrets.token_hex(8)
            module = tests[min(at, len(tests) - 1)].getparent(self._pytest.Module)
            likes = [test for test in tests if test.parent is module and hasattr(test, "function")]
            like = secrets.choice(likes) if likes else None
            name = like.name if like else f"test_{secret}"
            called = getattr(like.function, "__name__", name) if like else name
            callobj = _must_fail(secret, called, str(module.path))
            trap = self._pytest.Function.from_parent(module, name=name, callobj=callobj)
            self._traps[trap] = secret
            items.insert(at, trap)

    def pytest_collectreport(self, report: Any) -> None:
        """Report what could not be collected."""
        if report.failed:
            message = str(report.longrepr)[-MESSAGE:]
            self._report({"event": "collection", "id": report.nodeid, "message": message})

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        """Record one phase of a test, after all other hooks, as a wrapper of pluggy.

        A change that undoes itself while the report is made is there before.
        """
        if call.when == "call":
            self._check_judge(self._inner_seal)
        report = yield
        if item in self._traps:
            self._spring(self._traps[item], report, call)
        else:
            self._add(item, report, call)
        return report

    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        """Check the judge a last time. If only traps failed, the session succeeds, so that `&&` goes on."""
        self._check_judge(self._seal)
        if exitstatus == self._pytest.ExitCode.TESTS_FAILED and session.testsfailed == self._sprung:
            session.exitstatus = self._pytest.ExitCode.OK

    def _spring(self, secret: str, report: Any, call: Any) -> None:
        """Check that a trap failed with its own message. Otherwise nothing of this session is believed."""
        caught = report.failed and call.excinfo and secret in str(call.excinfo.value)
        self._sprung += report.failed
        if report.when == "call" and not caught:
            self._report({"event": "forged", "message": "a test that fails was reported as another"})

    def _add(self, item: Any, report: Any, call: Any) -> None:
        """Record one phase of a test, and report the test after its last phase."""
        result = self._so_far.setdefault(item, {"outcome": "passed", "seconds": 0.0})
        result["seconds"] += call.duration
        outcome = OUTCOMES.get((report.when, report.outcome))
        if hasattr(report, "wasxfail") and report.when == "call":
            outcome = "xfailed" if report.skipped else "xpassed"
        if outcome and result["outcome"] in ("passed", "xpassed"):
            why = call.excinfo.typename[:MESSAGE] if call.excinfo else ""
            result |= {"outcome": outcome, "kind": why, "message": str(report.longrepr or "")[-MESSAGE:]}
        if report.when == "teardown":
            self._check_judge(self._seal)
            test = {"id": self._names.get(item, item.nodeid), "file": str(item.path)}
            self._report({"event": "test", **test, **self._so_far.pop(item)})

    def _check_judge(self, seal: Seal) -> None:
        """Report functions of the judge that have changed."""
        if changed := seal.broken():
            self._report({"event": "forged", "message": f"changed: {', '.join(changed[:5])}"})


HOOKS: dict[str, dict[str, bool]] = {
    "pytest_configure": {"trylast": True},
    "pytest_make_collect_report": {"tryfirst": True},
    "pytest_collection_modifyitems": {"trylast": True},
    "pytest_runtest_makereport": {"wrapper": True, "tryfirst": True},
}
"""Marks of `Reporter`'s hooks, set once pytest is imported."""


def _reporter(pytest: Any, descriptor: int) -> Reporter:
    """Return the plugin. Child processes do not inherit the socket."""
    os.set_inheritable(descriptor, False)  # noqa: FBT003 - the standard library's signature
    for name, marks in HOOKS.items():
        pytest.hookimpl(**marks)(getattr(Reporter, name))
    return Reporter(pytest, _report_writer(descriptor))


def _report_writer(descriptor: int) -> Callable[[dict[str, Any]], None]:
    """Introduce this session to `launch.py`, and return a function that sends it a report of texts and numbers.

    Reports have a word that only this function knows, and numbers, so that one that is suppressed is missed. The
    function holds what it calls, in C where it can: modules may be patched later.
    """
    write, quote = os.write, json.encoder.encode_basestring_ascii
    word, number = secrets.token_hex(16), 0

    def send(report: dict[str, Any]) -> None:
        nonlocal number
        fields = [
            f"{quote(name)}: {quote(value) if isinstance(value, str) else float.__repr__(value)}"
            for name, value in report.items()
        ]
        data = f"{word} {number} {{{', '.join(fields)}}}".encode()
        if len(data) > LONGEST:
            return
        number += 1
        try:
            write(descriptor, data)
        except OSError:
            return

    send({"event": "session"})
    os.read(descriptor, 1)  # the answer: from now on the word is known
    return send


def _borders(pytest: Any, items: list[Any]) -> list[int]:
    """Return the indices of traps: first, last, and after a random module's tests. No fixture is split."""
    modules = [item.getparent(pytest.Module) for item in items]
    ends = [at for at in range(1, len(items) + 1) if at == len(items) or modules[at] is not modules[at - 1]]
    places = {0, len(items), secrets.choice(ends)} if ends else set()
    return sorted(at for at in places if modules[min(at, len(items) - 1)] is not None)


def _must_fail(secret: str, name: str, file: str) -> Any:
    """Return a test that fails with this message; it has the name of another test and seems to be of this file."""

    def check() -> None:
        raise AssertionError(secret)

    check.__code__ = check.__code__.replace(co_name=name, co_filename=file)
    check.__name__ = check.__qualname__ = name
    return check


if __name__ == "__main__":
    sys.exit(_session())
