"""`make bench`: speed as ratios from one run, medians of pairs. Measures; asserts nothing.

Absolute times depend on the machine and its neighbours, so every figure here is either a ratio of two things done in
turn, or printed beside the bound it is meant to keep.
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
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4

from docker import DockerClient

from runner.agents.bounds import Oracle
from runner.cli import arguments as cli
from runner.cli.compose import compose
from runner.cli.config import load
from runner.gateway import Gateway
from runner.records import Budget
from runner.sandbox.docker import base_image, engine
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.bench import (
    cases,
    construction,
    crews,
    nl2repo,
    planning,
    scoring,
    starting,
    stores,
    tables,
    tracing,
)
from tests.bench import gateway as bench_gateway
from tests.bench.planning import write_records
from tests.support.tasks_factory import dataset, make_task

ROOT = Path(__file__).resolve().parents[2]
TASKS, WORKERS, PAIRS = 8, 4, 9


def main() -> None:
    """Run every measurement, one line each."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as scratch:
        folder = Path(scratch)
        starting.main()
        _resume(folder / "resume")
        planning.main(folder / "planning")
        _overhead(folder / "overhead")
        _memory(folder / "memory")
    bench_gateway.main()
    scoring.main()
    tables.main()
    tracing.main()
    stores.main()
    cases.main()
    construction.main()
    nl2repo.main()
    crews.main()


def _resume(folder: Path) -> None:
    """Resume finished sweeps of some 2,000 trials: a cell of 500 tasks, and 24 cells of 21, each with 4 attempts."""
    for cells, tasks in ((1, 500), (24, 21)):
        place = folder / str(cells)
        for number in range(tasks):
            make_task(place / "tasks", f"t{number:03d}")
        turns = ",".join(str(50 + cell) for cell in range(cells))
        arguments = (
            *(
                "-m",
                f"budget.turns={turns}",
                "agent=oracle",
                "dataset=harbor",
                f"dataset.root={place / 'tasks'}",
            ),
            *("dataset.build_args.BASE=assay-base", "attempts=4", f"outputs={place / 'outputs'}"),
            *("tracker=none", "name=resume"),
        )
        # The first run only makes the records: written directly, with the keys that the command plans.
        sweep = load(compose(cli.check(list(arguments))))
        plan = make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ())
        write_records(plan, Store(place / "outputs"))
        _run(*arguments)
        seconds = _median(partial(_run, *arguments), 3)
        print(f"resume of {len(plan.trials)} finished trials in {cells} cells: {seconds:.2f} s (bound 3 s)")


def _overhead(folder: Path) -> None:
    """Run eight trivial tasks, four at a time, without images: ours against bare calls that judge in place."""
    client = engine.connect()
    base_image.ensure(client, print)
    run = uuid4().hex  # layers of an earlier run may be parts of other images, and then are there already
    for number in range(TASKS):
        make_task(
            folder / "tasks",
            f"t{number}",
            test="echo 1 > /logs/verifier/reward.txt",
            dockerfile=f"ARG BASE\nFROM ${{BASE}}\nRUN mkdir /app && echo {run}{number} > /app/n\nWORKDIR /app\n",
            toml="[agent]\ntimeout_sec = 60\n",
        )
    tasks = dataset(folder / "tasks").tasks()
    ours_tags = {
        f"assay-task:{task.name}-{task.environment.digest.removeprefix('sha256:')[:24]}" for task in tasks
    }
    ratios = []
    for pair in range(PAIRS):
        bare = _timed(partial(_bare, client, folder / "tasks", f"assay-bench:{run}"))
        _remove_images(client, {f"assay-bench:{run}"})
        ours = _timed(partial(_ours, folder, pair))
        _remove_images(client, ours_tags)
        ratios.append(ours / bare)
        print(f"  pair {pair + 1}: bare {bare:.2f} s, ours {ours:.2f} s, ratio {ours / bare:.2f}")
    print(f"overhead over bare Docker calls: {statistics.median(ratios):.2f} (bound 1.15 on a quiet machine)")


def _remove_images(client: DockerClient, tags: set[str]) -> None:
    """Remove every image with such a tag, so that each side builds all of its images."""
    for image in client.images.list():
        if any(tag.startswith(tuple(tags)) for tag in image.tags):
            client.images.remove(str(image.id), force=True)


def _bare(client: DockerClient, tasks: Path, tag: str) -> None:
    """Build, run, copy, exec, copy, exec and remove through the same client library, without isolating the verdict."""

    def one(folder: Path) -> None:
        image, _ = client.images.build(
            path=str(folder / "environment"),
            buildargs={"BASE": base_image.tag()},
            tag=f"{tag}{folder.name}",
            rm=True,
            network_mode="host",
        )
        container = client.containers.run(
            str(image.id), ["sleep", "infinity"], detach=True, network_mode="none", init=True
        )
        try:
            for part, script in (("solution", "solve.sh"), ("tests", "test.sh")):
                container.put_archive("/", _tar(folder / part, part))
                container.exec_run(["bash", "-c", f"mkdir -p /logs/verifier; bash /{part}/{script}"])
            container.get_archive("/logs/verifier/reward.txt")
        finally:
            container.remove(force=True)

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, sorted(tasks.iterdir())))


def _ours(folder: Path, pair: int) -> None:
    sandboxes = DockerSandboxes()
    cell = Cell(
        agent=Oracle(), model=NO_MODEL, dataset=dataset(folder / "tasks"), budget=Budget(), attempts=1
    )
    plan = make_plan([cell], sandboxes, lambda _: ())
    context = TrialContext(sandboxes, Gateway(folder), Store(folder / f"outputs{pair}"), "bench", {})
    work = partial(run_to_the_end, context=context, retries=0, cancelled=lambda: False)
    with ThreadPoolExecutor(WORKERS) as pool:
        records = list(pool.map(work, plan.trials))
    if wrong := [record for record in records if record.reward != 1.0]:
        raise SystemExit(f"a measured trial did not pass: {wrong[0]}")


def _memory(folder: Path) -> None:
    """Measure the peak resident memory of the runner until the last of 16 trials in flight at once ends."""
    for number in range(16):
        make_task(folder / "tasks", f"t{number:02d}", toml='[agent]\nuser = "1000"\ntimeout_sec = 120\n')
    outputs = folder / "outputs"
    arguments = (
        *(
            "agent=mini_swe_agent",
            "model=scripted_careful",
            "dataset=harbor",
            f"dataset.root={folder / 'tasks'}",
        ),
        *("dataset.build_args.BASE=assay-base", "executor.workers=16", f"outputs={outputs}", "tracker=none"),
    )
    command = [sys.executable, "-m", "runner", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"CI": "true"}, stdout=subprocess.DEVNULL
    ) as process:
        peak = 0
        while process.poll() is None and len(list(outputs.glob("trials/*/*/record.json"))) < 16:
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = next(
                (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), peak
            )
            time.sleep(0.1)
    print(f"peak memory of the runner, 16 trials in flight: {peak / 1024:.0f} MB (bound 400 MB)")


def _run(*arguments: str) -> None:
    environment = os.environ | {"CI": "true"}
    command = [sys.executable, "-m", "runner", *arguments]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(
            f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}\n{ended.stderr}"
        )


def _tar(folder: Path, name: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, arcname=name)
    return buffer.getvalue()


def _median(work: Callable[[], None], times: int) -> float:
    return statistics.median(_timed(work) for _ in range(times))


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


if __name__ == "__main__":
    main()
