"""Many short trials of nothing over eight crews of Ray, against the time that they would take without a desk."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import ray

from runner.executors.crew import Crew, run_trials
from runner.executors.desk import Desk
from runner.executors.ray.crew import NodeCrew
from runner.executors.ray.far_desk import FarStore
from runner.executors.ray.hired import HiredCrew
from runner.executors.ray.messages import Address, Ended
from runner.gateway import Gateway
from runner.records import ExecResult, Verdict
from runner.report.progress import Progress
from runner.sweeps.plan import PlannedTrial, make_plan
from runner.sweeps.store import Store
from runner.trials.state import TrialState, make_record
from tests.support.crew_trials import crew_sweep
from tests.support.ray_cluster import Cluster

CREWS, TRIALS, SECONDS = 8, 10_000, 0.05
DONE = ExecResult(exit_code=0, stdout="", stderr="", seconds=SECONDS, ended="exited")
HIRE_SECONDS = 300.0
"""Longest time for all crews to start."""


class FakeCrew(NodeCrew):
    """A crew whose trials wait and leave a record."""

    async def know(self, planned: Sequence[PlannedTrial], folder: str) -> None:
        """Take the trials instead of planning them."""
        self._planned = {trial.key: trial for trial in planned}
        self._store = FarStore(self._line, Path(folder))

        self._pool = ThreadPoolExecutor(1)

    def _run(self, address: Address) -> Ended:
        started = datetime.now(UTC)
        folder, retries = self._store.begin(address.key)
        time.sleep(SECONDS)
        (folder / "agent.stdout").write_text("Nothing to do.\n")
        state = TrialState(folder, result=DONE, verdict=Verdict(reward=1.0, mode="separate"))
        record = make_record(self._planned[address.key], state, {}, retries, started)
        self._store.write(record)
        return Ended(record=record)


class Present:
    """A team of crews that are there from the beginning. See `crew.Team`."""

    look_seconds = None

    def __init__(self, crews: Sequence[Crew]) -> None:
        self._crews = crews

    def crews(self) -> Sequence[Crew]:
        """See `crew.Team`."""
        return self._crews

    def dismiss(self, crew: Crew, why: Exception) -> None:  # noqa: ARG002 - the protocol's
        """See `crew.Team`."""
        raise why


class Cost(NamedTuple):
    """Cost of many trials."""

    share: float
    """Ideal time as a share of the measured time."""
    desk: float
    """Seconds of processors that this process used for each trial."""
    cluster: float
    """Seconds of processors that crews and Ray used for each trial."""


def measured(trials: int, cluster: Cluster) -> Cost:
    """Run so many trials and return their cost. This process is connected to the cluster."""
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as name:
        folder = Path(name)
        sweep = crew_sweep(folder / "outputs", f"dataset.number={trials}", "executor=ray")
        plan = make_plan(sweep.cells, sweep.settings.sandbox, lambda _: ())
        desk = Desk(sweep, plan, Store(folder / "outputs"), Gateway(folder / "g"), Progress(trials))
        loop = asyncio.new_event_loop()
        Thread(target=loop.run_forever, daemon=True).start()
        hiring = asyncio.run_coroutine_threadsafe(_hire(desk, folder), loop)
        crews = hiring.result(HIRE_SECONDS)
        began, desk_began, cluster_began = time.monotonic(), time.process_time(), cluster.cpu_seconds()
        ended = list(run_trials(desk, Present(crews), Event()))
        took, used = time.monotonic() - began, time.process_time() - desk_began
        cluster_used = cluster.cpu_seconds() - cluster_began
        assert len({record.key for record in ended}) == trials
        asyncio.run_coroutine_threadsafe(_leave(crews), loop).result(HIRE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
    return Cost(trials * SECONDS / CREWS / took, used / trials, cluster_used / trials)


async def _hire(desk: Desk, folder: Path) -> list[HiredCrew]:
    node = next(each["NodeID"] for each in ray.nodes() if each["Resources"].get("docker", 0) >= CREWS)
    crews = [HiredCrew(node, "here", 1, desk, FakeCrew) for _ in range(CREWS)]
    for number, crew in enumerate(crews):
        crew.employment = asyncio.create_task(_employed(crew))
        await crew._actor.know.remote(desk.plan.todo, str(folder / str(number)))
    return crews


async def _employed(crew: HiredCrew) -> None:
    await crew.serve()


async def _leave(crews: Sequence[HiredCrew]) -> None:
    for crew in crews:
        await crew.leave(5.0)
        ray.kill(crew._actor)


def main(trials: int = TRIALS) -> None:
    """Measure on a cluster of one node, and print a line. `tests.bench.crews` sets the token that Ray reads."""
    with Cluster() as cluster:
        cluster.node(CREWS)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="CRITICAL")
        cost, load = measured(trials, cluster), os.getloadavg()[0]
        ray.shutdown()
    print(f"{trials} trials of {SECONDS} s over {CREWS} crews: {cost.share:.0%} of the ideal (bound 90%)")
    print(
        f"each took {1000 * cost.desk:.1f} ms of CPU at the desk, {1000 * cost.cluster:.1f} ms of crews and Ray (load "
        f"{load:.0f}, no bound)"
    )
