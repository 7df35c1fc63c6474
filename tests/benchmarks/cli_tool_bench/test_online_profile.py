"""The profile `online`: real trials whose tools have dependencies, from the index of this machine's own clients."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

import pytest

from runner.agents.bounds import Oracle
from runner.benchmarks.cli_tool_bench.dataset import CliToolBench
from runner.benchmarks.cli_tool_bench.indexes import ADDRESS
from runner.benchmarks.cli_tool_bench.verifier import ATTEMPTS
from runner.benchmarks.sources.task_files import tree_digest
from runner.errors import ConfigError
from runner.gateway import Gateway
from runner.protocols import SandboxProvider
from runner.records import Budget, EgressAttempt, TrialRecord
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.local import LocalSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import Plan, make_plan
from runner.sweeps.refusals import check_trials
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tool_task_factory import (
    PROJECT,
    TOOL,
    furnished,
    make_tool_task,
    tool_dataset,
    write_cases,
)

Profile = Literal["sealed", "online"]
PROFILES: tuple[Profile, ...] = ("sealed", "online")
BUSY_SECONDS = 1800
"""Limit for trials with downloads: seconds on an idle machine, minutes on a busy one."""
INDEX = {"python": ("https://index.example/simple", "files.example")}


def online(root: Path, cache: Path, **fields: object) -> CliToolBench:
    dataset = tool_dataset(root, cache, profile="online")
    return CliToolBench.model_validate({**dict(dataset), **fields})


def planned(dataset: CliToolBench, sandboxes: SandboxProvider) -> Plan:
    cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=dataset, budget=Budget(), attempts=1)
    return make_plan([cell], sandboxes, lambda _: ())


def test_the_profile_is_a_dataset_of_its_own(tmp_path: Path) -> None:
    """Neither its cells nor its trials are taken for sealed ones, while both run on one image."""
    make_tool_task(tmp_path)
    cache, sandboxes = tmp_path / "cache", DockerSandboxes()
    plans = [
        planned(dataset, sandboxes).trials[0]
        for dataset in (
            tool_dataset(tmp_path, cache),
            online(tmp_path, cache, indexes=INDEX),
            online(tmp_path, cache, indexes={"python": ("https://other.example/simple",)}),
        )
    ]
    assert [trial.row().dataset for trial in plans] == ["made", "made_online", "made_online"]
    assert len({trial.key for trial in plans}) == 3
    assert len({trial.task.environment.digest for trial in plans}) == 1
    sealed, opened, _ = (trial.task for trial in plans)
    assert (sealed.environment.network, sealed.environment.env) == ("no-network", {})
    assert opened.environment.allowed_hosts == ("index.example", "files.example")
    assert opened.environment.env["PIP_INDEX_URL"] == "https://index.example/simple"
    assert opened.instruction.startswith(sealed.instruction)
    assert "package index of Python" in opened.instruction


def test_the_index_is_that_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool_task(tmp_path)
    monkeypatch.setenv("PIP_INDEX_URL", "https://Mine.Example./simple")
    dataset = online(tmp_path, tmp_path / "cache")
    (task,) = dataset.tasks()
    assert task.environment.trusted_hosts == ("mine.example",)
    monkeypatch.setenv("PIP_INDEX_URL", "https://theirs.example/simple")
    (other,) = dataset.tasks()
    assert other.digest == task.digest, "a mirror has the same packages"


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("https://me:secret@index.example/simple", "contains a user or a password"),
        ("file:///srv/packages", "it takes addresses"),
        ("https://index.example:8443/simple", "it takes addresses"),
        ("not a host", "takes host names"),
    ],
)
def test_an_index_that_no_sandbox_can_use_is_refused(tmp_path: Path, entry: str, reason: str) -> None:
    make_tool_task(tmp_path)
    with pytest.raises(
        ConfigError, match=rf"dataset\.indexes.*{reason}|{reason}.*dataset\.indexes"
    ) as refused:
        online(tmp_path, tmp_path / "cache", indexes={"python": (entry,)}).tasks()
    assert "secret" not in str(refused.value)


def test_a_machine_that_names_no_index_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tool_task(tmp_path)
    for name in ADDRESS["python"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ConfigError, match=r"names no package index for python\. Set dataset\.indexes\.python"
    ):
        online(tmp_path, tmp_path / "never-fetched").tasks()


@pytest.mark.parametrize(
    "sandboxes",
    [
        LocalSandboxes(),
        LocalSandboxes(network="task"),
        *(DockerSandboxes(network=mode) for mode in ("gateway", "open")),
    ],
    ids=["local", "local, as the task says", "gateway", "open"],
)
def test_a_sandbox_that_does_not_lead_to_the_index_alone_is_refused(
    tmp_path: Path, sandboxes: SandboxProvider
) -> None:
    make_tool_task(tmp_path)
    plan = planned(online(tmp_path, tmp_path / "cache", indexes=INDEX), sandboxes)
    with pytest.raises(ConfigError, match=r"profile=online needs sandbox=docker and sandbox\.network=task"):
        check_trials(plan.trials, sandboxes)


Trial = Callable[[Path, str, Profile], tuple[TrialRecord, Path]]


@pytest.fixture
def trial(tmp_path: Path, common: Path) -> Trial:
    """Return a function that runs a trial of a task, whose agent is a shell script, and returns record and folder."""
    base_image.ensure(connect(), print)

    def run(root: Path, script: str, profile: Profile) -> tuple[TrialRecord, Path]:
        cache = furnished(tmp_path / f"cache-{profile}", common, "results")
        dataset = tool_dataset(root, cache, profile=profile)
        dataset.prepare(print)
        sandboxes, outputs = DockerSandboxes(), Store(tmp_path / f"outputs-{profile}")
        (one,) = planned(dataset, sandboxes).trials
        check_trials([one], sandboxes)
        work = tmp_path / f"work-{profile}"
        work.mkdir()
        hosts = " ".join(one.task.environment.allowed_hosts)
        (work / "solve.sh").write_text(f"HOSTS='{hosts}'\n{script}")
        reference = one.task.solution
        assert reference
        (work / "source").symlink_to(reference / "source")
        one = one.model_copy(update={"task": one.task.model_copy(update={"solution": work})})
        context = TrialContext(sandboxes, Gateway(tmp_path), outputs, "test", {})
        return run_to_the_end(one, context, 0, lambda: False), outputs.folder(one.key)

    return run


def asked(attempts: Collection[EgressAttempt]) -> set[tuple[str, bool]]:
    """Return the hosts that were asked for, and whether they were allowed."""
    return {(one.host, one.allowed) for one in attempts if one.way == "proxy"}


DEPENDENT = PROJECT.replace('version = "1.0"', 'version = "1.0"\ndependencies = ["six==1.17.0"]')
GREEDY = """
import os, socket, urllib.request

def fetched(address):
    try:
        return urllib.request.urlopen(address, timeout=5).status
    except OSError as error:
        return error
"""
CURIOUS = TOOL.replace("import sys\n", f"import sys\nimport six\n{GREEDY}").replace(
    "    command, file =",
    """\
    found = [name for name in os.environ if "PROXY" in name.upper() or "INDEX_URL" in name or "CERT" in name]
    found += [] if os.environ["PIP_NO_INDEX"] == "1" else ["PIP_NO_INDEX"]
    found += [path for path in ("/run/assay/gateway/egress.sock", "/run/assay/gateway/ca.crt") if os.path.exists(path)]
    found += [port for port in (4180, 4181) if not socket.socket().connect_ex(("127.0.0.1", port))]
    os.environ.update(https_proxy="http://127.0.0.1:4181")
    found += [host for host in HOSTS if not isinstance(fetched("https://" + host), OSError)]
    if found:
        print("The network is here:", *found)
    command, file =""",
)
"""The tool with a dependency. In each case it looks for a way to the index, and says so if there is one."""
GREEDY_SETUP = f"""\
{GREEDY}
print(fetched("https://install.example/"))
try:
    socket.create_connection(("192.0.2.7", 443), 2)
except OSError as error:
    print(error)
from setuptools import setup
setup()
"""
"""An installation that asks for another host, by name and by address."""


def written(files: dict[str, str]) -> str:
    """Return a script that writes files, with the hosts of the index in Python's spelling as HOSTS."""
    script = "set -e\nLIST=$(for host in $HOSTS; do printf '\"%s\",' $host; done)\n"
    for name, text in files.items():
        script += f"cat > {name} <<'END'\n{text}\nEND\nsed -i \"s/in HOSTS/in ($LIST)/\" {name}\n"
    return script


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_python_tool_with_a_dependency_reaches_the_index_and_nothing_else(
    trial: Trial, tmp_path: Path, profile: Profile
) -> None:
    make_tool_task(tmp_path / "tasks")
    at_work = textwrap.dedent("""
        pip install --quiet --target /tmp/tried six==1.17.0 && echo HAVE SIX || echo NO SIX
        python3 -c 'import urllib.request as r; r.urlopen("https://work.example/", timeout=5)' || true
    """)
    files = {"tally.py": CURIOUS, "pyproject.toml": DEPENDENT, "setup.py": GREEDY_SETUP}
    record, folder = trial(tmp_path / "tasks", written(files) + at_work, profile)
    assert record.status == "completed", record
    assert record.verdict
    said, output = (folder / "agent.stdout").read_text(), record.verdict.output
    if profile == "sealed":
        assert (record.reward, record.verdict.components["build"]) == (0.0, 0.0)
        assert "NO SIX" in said
        assert (record.egress, record.verdict.egress) == ((), ())
        assert not {"online_profile", "egress_refused", "install_egress_refused"} & set(record.flags)
        assert not (folder / ATTEMPTS).exists()
        return
    assert record.reward == 1.0, output
    assert "HAVE SIX" in said
    assert {allowed for host, allowed in asked(record.egress) if host != "work.example"} == {True}
    assert ("work.example", False) in asked(record.egress)
    assert ("install.example", False) in asked(record.verdict.egress)
    assert {allowed for host, allowed in asked(record.verdict.egress) if host != "install.example"} == {True}
    assert any(one.way == "direct" and not one.allowed for one in record.verdict.egress)
    assert set(record.flags) >= {"online_profile", "egress_refused", "install_egress_refused"}
    assert record.dataset == "made_online"
    assert {"candidate"} <= set(json.loads((folder / ATTEMPTS).read_text()))


REFERENCE_JS = """#!/usr/bin/env node
const units = { s: 1000, m: 60000, h: 3600000, d: 86400000 };
const [, number, unit] = /^([0-9]+)([smhd])$/.exec(process.argv[2]) ?? process.exit(1);
console.log(number * units[unit]);
"""
DEPENDENT_JS = """#!/usr/bin/env node
const ms = require("ms");
if (!/^[0-9]+[smhd]$/.test(process.argv[2])) process.exit(1);
console.log(ms(process.argv[2]));
"""
TASK_JS = """\
tool = "tally"
language = "javascript"
category = "Utility Libraries"

[reference]
source = "folder"
package = "reference"
digest = "{digest}"
license = "MIT"
lines = 4

[classes]
MS = "milliseconds"
"""


@pytest.mark.docker
@pytest.mark.timeout(BUSY_SECONDS)
@pytest.mark.parametrize("profile", PROFILES)
def test_a_javascript_tool_with_a_dependency(trial: Trial, tmp_path: Path, profile: Profile) -> None:
    """Sealed, it can be installed all the same: npm links a folder, and takes no notice of what it requires."""
    folder = tmp_path / "tasks" / "tally"
    (folder / "reference").mkdir(parents=True)
    package = {"name": "tally", "version": "1.0.0", "bin": {"tally": "tally.js"}}
    (folder / "reference" / "package.json").write_text(json.dumps(package))
    (folder / "reference" / "tally.js").write_text(REFERENCE_JS)
    (folder / "instruction.md").write_text("Write `tally`.\n")
    write_cases(
        folder, [{"class": "MS", "command": f"tally {time}"} for time in ("2d", "90m", "7s", "often")]
    )
    (folder / "task.toml").write_text(TASK_JS.format(digest=tree_digest(folder / "reference")))
    project = json.dumps(package | {"dependencies": {"ms": "2.1.3"}})
    record, _ = trial(folder.parent, written({"tally.js": DEPENDENT_JS, "package.json": project}), profile)
    assert record.status == "completed", record
    assert record.verdict
    is_online = profile == "online"
    assert (record.reward, record.verdict.components["build"]) == (float(is_online), 1.0), (
        record.verdict.output
    )
    assert {allowed for _, allowed in asked(record.verdict.egress)} == ({True} if is_online else set())
