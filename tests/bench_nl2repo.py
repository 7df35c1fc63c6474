"""Speed of verification with hidden suites. Measures; asserts nothing.

    python -m tests.bench_nl2repo DIR [TASK ...]

`DIR` holds the public folders. For each shipped task, in turn and three times: the verifier on what `oracle` leaves,
and the same commands by hand in a container of the same image. Bound: 1.2 times that and 2 s.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from runner.datasets.nl2repo import Nl2RepoBench
from runner.door import ROOT
from runner.records import ExecSpec, SandboxSpec, Task
from runner.sandbox.docker import DockerSandboxes
from runner.suites import HIDDEN, Suite, packaging
from runner.verifiers.judged_copy import write_copy
from runner.verifiers.nl2repo import UID, USER, WORKSPACE, SuiteVerifier, suite_of
from tests.cases_factory import prepared

ROUNDS = 3


def main(root: Path, names: tuple[str, ...]) -> None:
    """One line a task."""
    place = ROOT / "tasks" / "nl2repo"
    dataset = Nl2RepoBench(
        name="nl2repo",
        root=root,
        sources=place / "sources",
        image=place / "image",
        published=place / "Dockerfile.published",
        build_args={"BASE": "assay-base"},
        include=names,
        verifier=SuiteVerifier(cache=ROOT / "outputs" / "references"),
    )
    dataset.prepare(print)
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
            verdict = dataset.verifier.verify(task, agent, sandboxes, Path(folder))
            seconds = time.monotonic() - began
            pairs.append((seconds, _by_hand(task, suite_of(task), sandboxes, Path(folder))))
    ours, bare = (statistics.median(values) for values in zip(*pairs, strict=True))
    over = f"beyond 1.2 x: {ours - 1.2 * bare:.1f} s (bound 2)"
    print(f"{task.name}: reward {verdict.reward}; {ours:.1f} s, by hand {bare:.1f} s; {over}", flush=True)


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
    main(Path(sys.argv[1]), tuple(sys.argv[2:]))
