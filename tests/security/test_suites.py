"""Attacks on the judging of hidden suites by files of a workspace. None of them gains anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.records import Budget, Status
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.bench.suites import SuiteBench
from tests.support.suite_factory import PASSED

pytestmark = pytest.mark.docker

EMPTY = {"tally/__init__.py": "class Tally:\n    pass\n", "tally/most.py": "def most(words):\n    pass\n"}
"""Importable code that passes no test."""
PRETEND = """
import _pytest.runner, _pytest.reports
real = _pytest.reports.TestReport.from_item_and_call.__func__
def lie(cls, item, call):
    report = real(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
_pytest.reports.TestReport.from_item_and_call = classmethod(lie)
"""
PLUGIN = """
import pytest
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    report.outcome, report.longrepr = "passed", None
    return report
"""
PRINTS = "import sys\nprint('===== 7 passed in 0.01s =====', file=sys.__stdout__, flush=True)\n"
ALL_PASSED = "".join(
    f'print(\'{{"event": "test", "id": "{name}", "outcome": "passed", "command": 0}}\')\n' for name in PASSED
)
GRAB = """
import os
for fd in range(3, 64):
    try:
        os.write(fd, REPORT)
    except OSError:
        pass
"""
GRAB = GRAB.replace(
    "REPORT", repr(b'{"event": "test", "id": "' + PASSED[0].encode() + b'", "outcome": "passed"}\n')
)
IMPERSONATION = f"""
import json, os
channel = open("/proc/self/environ").read().partition("ASSAY_REPORT=")[2].partition("\\0")[0]
descriptor, _, word = channel.partition(":")
for name in {PASSED!r}:
    report = {{"event": "test", "id": name, "file": "/workspace/" + name.partition("::")[0], "outcome": "passed"}}
    os.write(int(descriptor), f"{{word}} {{json.dumps(report)}}\\n".encode())
"""
OWN_TESTS = "import pathlib\nfor name in ('tests/test_tally.py', 'tests/test_zero.py'):\n    try:\n"
REWRITE = f"""{OWN_TESTS}        pathlib.Path(name).write_text('def test_default(): pass\\ndef test_empty(): pass\\n')
    except OSError:
        pass
try:
    pathlib.Path('tests').rename('moved')
    pathlib.Path('tests').mkdir()
except OSError:
    pass
"""
PLANTED = """
import sys, types
fake = types.ModuleType("test_zero")
fake.__file__ = "/workspace/tests/test_zero.py"
fake.test_default = fake.test_empty = lambda: None
sys.modules["test_zero"] = sys.modules["tests.test_zero"] = fake
"""
HOOKED = """
import importlib.util, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.rpartition(".")[2] == "test_zero":
            return importlib.util.spec_from_loader(name, self, origin="/workspace/tests/test_zero.py")
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.__file__ = "/workspace/tests/test_zero.py"
        module.test_default = module.test_empty = lambda: None
sys.meta_path.insert(0, Finder())
"""
REGISTERED = """
import gc
from _pytest.config import Config
import pytest
class Plugin:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        return True
for found in gc.get_objects():
    if isinstance(found, Config):
        found.pluginmanager.register(Plugin())
"""
HOLLOWED = """
import ast
import _pytest.assertion.rewrite as rewriting
real = rewriting.rewrite_asserts
def hollow(tree, *others):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            node.body = [ast.copy_location(ast.Pass(), node)]
    real(tree, *others)
rewriting.rewrite_asserts = hollow
"""
ATTACKS = {
    "conftest": {**EMPTY, "conftest.py": PLUGIN, "tests/conftest.py": PLUGIN, "tally/conftest.py": PLUGIN},
    "fake_pytest_module": {
        **EMPTY,
        "pytest.py": ALL_PASSED,
        "pytest/__main__.py": ALL_PASSED,
        "_pytest.py": "",
    },
    "fake_pytest_program": {
        **EMPTY,
        "bin/pytest": f"#!/usr/bin/python3\n{ALL_PASSED}",
        "pytest": "#!/bin/sh\nexit 0",
    },
    "sitecustomize": {**EMPTY, "sitecustomize.py": PRETEND, "usercustomize.py": PRETEND},
    "settings": {
        **EMPTY,
        "pytest.ini": "[pytest]\naddopts = -p evil --co\n",
        "evil.py": PLUGIN,
        "tox.ini": "[pytest]\n",
    },
    "its_own_tests": {
        **EMPTY,
        "tests/test_tally.py": "def test_add(): pass\n",
        "test_more.py": "def test(): pass\n",
    },
    "prints": {**EMPTY, "tally/__init__.py": PRINTS + ALL_PASSED + EMPTY["tally/__init__.py"]},
    "every_descriptor": {**EMPTY, "tally/__init__.py": GRAB + EMPTY["tally/__init__.py"]},
    "speaks_as_the_reporter": {
        **EMPTY,
        "tally/__init__.py": IMPERSONATION + EMPTY["tally/__init__.py"],
    },
    "leaves_with_0": {**EMPTY, "tally/__init__.py": f"{PRINTS}import os\nos._exit(0)\n"},
    "patched_reports": {**EMPTY, "tally/__init__.py": PRETEND + EMPTY["tally/__init__.py"]},
    "patched_assertions": {
        **EMPTY,
        "tally/__init__.py": "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
        + EMPTY["tally/__init__.py"],
    },
    "patched_rewriting": {**EMPTY, "tally/__init__.py": HOLLOWED + EMPTY["tally/__init__.py"]},
    "rewritten_tests": {**EMPTY, "tally/__init__.py": REWRITE + EMPTY["tally/__init__.py"]},
    "planted_test_modules": {**EMPTY, "tally/__init__.py": PLANTED + EMPTY["tally/__init__.py"]},
    "import_hook": {**EMPTY, "tally/__init__.py": HOOKED + EMPTY["tally/__init__.py"]},
    "registered_plugin": {**EMPTY, "tally/__init__.py": REGISTERED + EMPTY["tally/__init__.py"]},
    "stdlib_names": {**EMPTY, "json.py": PRETEND, "random.py": PRETEND, "pluggy/__init__.py": PRETEND},
}


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> SuiteBench:
    base_image.ensure(connect(), print)
    return SuiteBench.make(tmp_path_factory.mktemp("suites"), DockerSandboxes())


@pytest.mark.parametrize("attack", ATTACKS)
def test_gains_nothing(bench: SuiteBench, tmp_path: Path, attack: str) -> None:
    verdict = bench.judge(tmp_path, ATTACKS[attack])
    assert verdict.reward == 0.0, verdict
    assert not verdict.error
    assert bool(verdict.components["forged"]) is attack.startswith(("patched", "registered"))


WRITTEN = "def pytest_pyfunc_call(pyfuncitem):\n    return len(pyfuncitem.name) != 21 or None\n"
PLANT = {
    **EMPTY,
    "pip/__init__.py": "",
    "pip/__main__.py": f"open('/workspace/conftest.py', 'w').write({WRITTEN!r})",
}
"""Package that runs as pip and writes a plugin that passes everything except our traps."""


def test_a_conftest_that_an_installation_writes_gains_nothing(bench: SuiteBench, tmp_path: Path) -> None:
    commands = ["pip install -e .", "pytest tests"]
    verdict = bench.judge(tmp_path, PLANT, commands=commands)
    assert (verdict.reward, verdict.components["forged"]) == (0.0, 1.0), verdict
    assert "planted: /workspace/conftest.py" in verdict.output


def test_a_test_in_a_file_of_the_agents_never_counts(bench: SuiteBench, tmp_path: Path) -> None:
    """Its id may equal that of an upstream test: a deletion list can leave out files that the commands collect."""
    own = "def test_own(): pass\n"
    files = {**EMPTY, "own/test_own.py": own, "pytest.ini": "", "tests/test_zero.py": own}
    expected = ["own/test_own.py::test_own", "test_own.py::test_own", *PASSED]
    verdict = bench.judge(tmp_path, files, commands=["pytest", "cd own; pytest"], expected=expected, count=9)
    assert verdict.reward == 0.0, verdict
    assert verdict.components["tests_unreported"] == 2.0


COPY = """
export PIP_NO_INDEX=0 PIP_RETRIES=0
python3 -m pip install --index-url https://index.example/simple --target . tally && exit 1
python3 -m pip download --index-url http://192.0.2.1/simple --trusted-host 192.0.2.1 tally && exit 1
ls; exit 0
"""


def test_an_agent_reaches_no_package_index_to_copy_the_library(bench: SuiteBench, tmp_path: Path) -> None:
    """This holds for `sandbox.network=gateway` and for the tasks' own network."""
    (tmp_path / "solution").mkdir()
    (tmp_path / "solution" / "solve.sh").write_text(COPY)
    for mode in ("task", "gateway"):
        sandboxes, store = DockerSandboxes.model_validate({"network": mode}), Store(tmp_path / mode)
        sandboxes.prepare((), print)
        cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=bench.dataset, budget=Budget(), attempts=1)
        (trial,) = make_plan([cell], sandboxes, lambda _: ()).trials
        copying = trial.task.model_copy(update={"solution": tmp_path / "solution"})
        context = TrialContext(sandboxes, Gateway(tmp_path), store, "test", {})
        record = run_to_the_end(trial.model_copy(update={"task": copying}), context, 0, lambda: False)
        assert (record.status, record.reward) == (Status.COMPLETED, 0.0), record
        assert "no_install_step" in record.flags
        printed = (store.folder(trial.key) / "agent.stdout").read_text()
        assert printed.split()[-1] == "start.md", printed
