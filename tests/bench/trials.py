"""Whole trials against bare calls to Docker: eight trivial tasks, four at a time, no image there before.

    python -m tests.bench.trials

There are two floors. One judges in the agent's machine; it is the least that a run can cost, and its reward can be
forged. The other does what must be done to trust the reward: it ends the agent's processes and judges in a new
machine on a copy of the agent's. Ours and both floors run in turn, alone and then beside two busy loops. Measures;
asserts only that every reward is 1.
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from uuid import uuid4

from docker import DockerClient
from docker.models.containers import Container

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.records import Budget
from runner.sandbox.docker import base_image, engine
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tasks_factory import dataset, make_task

TASKS, WORKERS, PAIRS, LOOPS = 8, 4, 9, 2
BOUND, BOUND_BESIDE = 1.15, 1.5
"""Greatest ratio on a quiet machine, and beside as many busy loops as the machine has cores."""
REWARD = "/logs/verifier/reward.txt"


class _Seconds(NamedTuple):
    """What one round took, on each side."""

    in_place: float
    anew: float
    ours: float


def main(folder: Path) -> None:
    """Print each round, then the medians of the ratios, alone and beside busy loops."""
    client = engine.connect()
    base_image.ensure(client, print)
    tags = _write_tasks(folder / "tasks")
    _print_rounds(client, folder, tags, f"alone (bound {BOUND} on a quiet machine)")
    with _busy_loops():
        _print_rounds(client, folder, tags, f"beside {LOOPS} busy loops (bound {BOUND_BESIDE})")


def _write_tasks(folder: Path) -> set[str]:
    """Write tasks whose image layers no earlier run has left. Return the tags of our images."""
    run = uuid4().hex
    for number in range(TASKS):
        make_task(
            folder,
            f"t{number}",
            test=f"echo 1 > {REWARD}",
            dockerfile=f"ARG BASE\nFROM ${{BASE}}\nRUN mkdir /app && echo {run}{number} > /app/n\nWORKDIR /app\n",
            toml="[agent]\ntimeout_sec = 60\n",
        )
    return {
        f"assay-task:{task.name}-{task.environment.digest.removeprefix('sha256:')[:24]}"
        for task in dataset(folder).tasks()
    }


def _print_rounds(client: DockerClient, folder: Path, tags: set[str], where: str) -> None:
    rounds = []
    for number in range(PAIRS):
        tag = f"assay-bench:{uuid4().hex}"
        took = []
        for judge in (_judge_in_place, judge_anew):
            took.append(_timed(partial(bare, client, folder / "tasks", tag, judge)))
            remove_images(client, {tag})
        took.append(_timed(partial(_ours, folder)))
        remove_images(client, tags)
        rounds.append(_Seconds(*took))
        print(
            f"  round {number + 1}: bare {took[0]:.2f} s, bare with a new judge's machine {took[1]:.2f} s, "
            f"ours {took[2]:.2f} s (load {os.getloadavg()[0]:.0f})",
            flush=True,
        )
    anew = statistics.median(one.ours / one.anew for one in rounds)
    in_place = statistics.median(one.ours / one.in_place for one in rounds)
    print(
        f"trials over bare calls that judge in a new machine, {where}: {anew:.2f}; in place: {in_place:.2f}"
    )


def remove_images(client: DockerClient, tags: set[str]) -> None:
    """Remove every image with such a tag, so that each side builds all of its images."""
    for image in client.images.list():
        if any(tag.startswith(tuple(tags)) for tag in image.tags):
            client.images.remove(str(image.id), force=True)


def bare(
    client: DockerClient,
    tasks: Path,
    tag: str,
    judge: Callable[[DockerClient, Container, Path], None],
    network: Literal["none", "bridge"] = "none",
) -> None:
    """Build, run, copy, exec, judge and remove through the same client library."""

    def one(folder: Path) -> None:
        image, _ = client.images.build(
            path=str(folder / "environment"),
            buildargs={"BASE": base_image.tag()},
            tag=f"{tag}{folder.name}",
            rm=True,
            network_mode="host",
        )
        container = _started(client, str(image.id), network)
        try:
            _execute(container, folder, "solution/solve.sh")
            judge(client, container, folder)
        finally:
            container.remove(force=True)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, sorted(tasks.iterdir())))


def _judge_in_place(_: DockerClient, container: Container, task: Path) -> None:
    _execute(container, task, "tests/test.sh")
    container.get_archive(REWARD)


def judge_anew(client: DockerClient, container: Container, task: Path) -> None:
    """End every process of the agent's, then judge in a new machine on a copy of its files."""
    container.kill()
    copy = container.commit()
    judge = _started(client, str(copy.id), container.attrs["HostConfig"]["NetworkMode"])
    try:
        _judge_in_place(client, judge, task)
    finally:
        judge.remove(force=True)
        client.images.remove(str(copy.id))


def _started(client: DockerClient, image: str, network: str) -> Container:
    return client.containers.run(image, ["sleep", "infinity"], detach=True, network_mode=network, init=True)


def _execute(container: Container, task: Path, script: str) -> None:
    part = script.partition("/")[0]
    container.put_archive("/", _tar(task / part, part))
    container.exec_run(["bash", "-c", f"mkdir -p /logs/verifier; bash /{script}"])


def _ours(folder: Path) -> None:
    sandboxes = DockerSandboxes()
    tasks = dataset(folder / "tasks")
    cell = Cell(agent=Oracle(), model=NO_MODEL, dataset=tasks, budget=Budget(), attempts=1)
    plan = make_plan([cell], sandboxes, lambda _: ())
    with tempfile.TemporaryDirectory(dir=folder) as outputs:
        context = TrialContext(sandboxes, Gateway(folder), Store(Path(outputs)), "bench", {})
        work = partial(run_to_the_end, context=context, retries=0, cancelled=lambda: False)
        with ThreadPoolExecutor(WORKERS) as pool:
            records = list(pool.map(work, plan.trials))
    if wrong := [record for record in records if record.reward != 1.0]:
        raise SystemExit(f"a measured trial did not pass: {wrong[0]}")


@contextmanager
def _busy_loops() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _tar(folder: Path, name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, arcname=name)
    return buffer.getvalue()


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        main(Path(scratch))
