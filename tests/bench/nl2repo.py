"""Speed of verification with hidden suites: part of `make bench`. Measures; asserts nothing.

The suite is the tests' own, which needs nothing from outside, with a thousand tests more. For the authors' tasks:

    python -m tests.bench.nl2repo DIR [TASK ...]

`DIR` holds the public folders; without a name each shipped task is measured. In turn and five times: the verifier on
what `oracle` leaves, and the same commands by hand in a container of the same image. Bound: 1.2 times that.

    python -m tests.bench.nl2repo --oracles DIR [TASK ...]

or `make bench` with `ASSAY_NL2REPO=DIR`, runs `oracle` on all of these tasks, two trials at a time: first with empty
folders for archives, packages and records, then again with what is there. Bounds for fifty tasks on two cores: twenty
minutes, then five. Layers of images that the engine still has from before are used, so only a machine that has none of
them is wholly cold.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runner.benchmarks.nl2repo.dataset import Nl2RepoBench
from runner.benchmarks.nl2repo.judged_copy import write_copy
from runner.benchmarks.nl2repo.suite import HIDDEN, WORKSPACE, Suite, packaging
from runner.benchmarks.nl2repo.verifier import UID, USER, SuiteVerifier, suite_of
from runner.protocols import Submission
from runner.records import ExecSpec, SandboxSpec, Task
from runner.resources import ROOT
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.cases_factory import prepared
from tests.support.suite_factory import PASSED, UPSTREAM, add_truth, add_upstream, make_folder, suite_dataset

ROUNDS, MANY = 5, 1000
ROOT_OF_TASKS = "ASSAY_NL2REPO"
"""Variable that names the authors' folders for `make bench`, which measures the oracles too if it is set."""
MORE = f"""\
import pytest
from tally import Tally


@pytest.mark.parametrize("times", range({MANY}))
def test_many(times):
    assert Tally().add("a", times=times) == times
"""


def main() -> None:
    """The tests' own suite, one line, then the oracles of the authors' tasks, if their folders are named."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        commands = json.dumps(["pip install -e .", "pytest --continue-on-collection-errors tests"])
        passing = (*PASSED, *(f"tests/test_many.py::test_many[{times}]" for times in range(MANY)))
        changed = {"test_commands.json": commands, "test_case_count.txt": str(len(passing))}
        folder = make_folder(Path(scratch, "tasks"), **changed)
        add_upstream(folder, {**UPSTREAM, "tests/test_many.py": MORE})
        dataset = suite_dataset(folder.parent, Path(scratch, "cache"))
        add_truth(dataset, folder, passing)
        _measure(dataset)
    if root := os.environ.get(ROOT_OF_TASKS):
        oracles(Path(root), ())
    else:
        print(
            f"oracles: not measured; {ROOT_OF_TASKS}=DIR names the authors' test_files/, which have the tasks"
        )


def published(root: Path, names: tuple[str, ...]) -> None:
    """One line for each of the authors' tasks."""
    verifier = SuiteVerifier(cache=ROOT / "outputs" / "references")
    sources = ROOT / "tasks" / "nl2repo" / "sources"
    _measure(suite_dataset(root, verifier.cache, sources=sources, include=names, verifier=verifier))


def oracles(root: Path, names: tuple[str, ...]) -> None:
    """One line for all of the authors' tasks that run, cold and warm."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        words = [
            "agent=oracle",
            "dataset=nl2repo",
            f"dataset.root={root}",
            "executor.workers=2",
            "tracker=none",
        ]
        words += [f"dataset.include=[{','.join(names)}]", f"outputs={scratch}/outputs", "name=oracles"]
        env = os.environ | {"UV_CACHE_DIR": f"{scratch}/uv"}
        seconds = []
        for more in ((), ("fresh=true",)):
            began = time.monotonic()
            subprocess.run([sys.executable, "-m", "runner", *words, *more], cwd=ROOT, env=env, check=False)
            seconds.append(time.monotonic() - began)
        records = [json.loads(file.read_bytes()) for file in Path(scratch).rglob("record.json")]
        passed = sum(record.get("reward") == 1.0 for record in records)
    load = os.getloadavg()[0]
    print(
        f"{len(records) // len(seconds)} oracles, two at a time: {seconds[0] / 60:.1f} min cold (bound 20 for fifty), "
        f"{seconds[1] / 60:.1f} min warm (bound 5); {passed} of {len(records)} trials score 1; load {load:.0f} on "
        f"{os.cpu_count()} cores",
        flush=True,
    )


def _measure(dataset: Nl2RepoBench) -> None:
    dataset.prepare(lambda _: None)
    sandboxes = prepared()
    for task in dataset.tasks():
        if not task.refused:
            _compare(dataset, task, sandboxes)


def _compare(dataset: Nl2RepoBench, task: Task, sandboxes: DockerSandboxes) -> None:
    spec = SandboxSpec(
        name="bench", image=sandboxes.image(task.environment), environment=task.environment, user="agent"
    )
    solution = task.solution or Path()
    with tempfile.TemporaryDirectory() as folder, sandboxes.open(spec) as agent:
        agent.exec(ExecSpec(argv=("bash", "/solution/solve.sh"), uploads={"/solution": solution}))
        agent.kill()
        pairs = []
        for _ in range(ROUNDS):
            began = time.monotonic()
            verdict = dataset.verifier.verify(Submission(task, agent, sandboxes, Path(folder)))
            seconds = time.monotonic() - began
            pairs.append((seconds, _by_hand(task, suite_of(task), sandboxes, Path(folder))))
    ours, bare = (statistics.median(values) for values in zip(*pairs, strict=True))
    times = statistics.median(ours / bare for ours, bare in pairs)
    tests = f"{task.name}, {len(suite_of(task).expected or ())} tests, reward {verdict.reward}"
    took = f"{ours:.1f} s, by hand {bare:.1f} s: {times:.2f} times (bound 1.2)"
    print(f"hidden suite of {tests}: {took}; load {os.getloadavg()[0]:.0f}", flush=True)


def _by_hand(task: Task, suite: Suite, sandboxes: DockerSandboxes, folder: Path) -> float:
    """Seconds of a container's start, the copy, and the commands by a plain shell with a plain pytest."""
    environment = task.verifier.environment or task.environment
    spec = SandboxSpec(
        name="by-hand", image=sandboxes.image(environment), environment=environment, user="root"
    )
    hidden = (task.verifier.tests or Path()) / HIDDEN
    write_copy(folder / "workspace.tar", hidden, folder / "copy.tar", suite.deleted, packaging, UID)
    began = time.monotonic()
    with sandboxes.open(spec) as place:
        place.put(folder / "copy.tar", "/")
        for command in suite.commands:
            place.exec(ExecSpec(argv=("bash", "-c", command), cwd=WORKSPACE, user=USER))
        return time.monotonic() - began


if __name__ == "__main__":
    if sys.argv[1:2] == ["--oracles"]:
        oracles(Path(sys.argv[2]), tuple(sys.argv[3:]))
    elif sys.argv[1:]:
        published(Path(sys.argv[1]), tuple(sys.argv[2:]))
    else:
        main()
