"""Sweeps on a cluster of this machine, while its processes, networks and engines fail at random.

Every trial asks a fake provider, so that each call can be accounted for: on a record, or as a lost call of a try.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Self

import docker

from runner.gateway.fake_upstream import Behaviour, FakeUpstream
from runner.records import TrialRecord
from runner.sandbox.docker.reaper import OWNER_PID, reap
from runner.sweeps.store import Store
from tests.chaos.account import CALL_USD, Account, Caps, account
from tests.support.crew_trials import CONF
from tests.support.networks import DESK, PROVIDER, Network, forget
from tests.support.ray_cluster import ROOT, TOKEN, Cluster
from tests.support.second_engine import SecondEngine
from tests.support.tasks_factory import make_task
from tests.support.waiting import until

ANSWER_SECONDS = 0.5
"""Time of the fake provider for an answer."""
WIDTH = 2
"""Trials at a time on each node."""
NODES = 2
QUESTIONS = 4
"""Calls that a trial may make, which is one less than its agent wants."""
TRY_USD = 0.15
"""Budget of a try, which pays for as many calls: another one could cost more than is left."""
COMMANDS = 3
"""A command may spend so small a part of what the sweep costs. The same command goes on."""
AT_ONCE = 3
"""Calls that may be under way, which is one less than the trials."""
SHORT_SECONDS, LONG_SECONDS = 2.0, 24.0
"""Freezes that are to be survived, and freezes after which a crew is given up (`SILENT_SECONDS`)."""
LOOK_SECONDS = 0.5
"""Interval of looking at all processes of the machine."""
SLOW_SECONDS, STOPPED_SECONDS, RUNNING_SECONDS = 8.0, 0.4, 0.1
"""Time for which a desk is slow: it stops and runs by turns."""
KINDS = (
    "crew",
    "crew",
    "crew",
    "node",
    "driver",
    "freeze_crew",
    "freeze_raylet",
    "freeze_driver",
    "slow_driver",
)
"""Targets of faults; some are hit more often than others."""


class Campaign:
    """One sweep under fire. A context manager."""

    def __init__(
        self,
        folder: Path,
        trials: int,
        seed: int,
        nodes: int = NODES,
        *,
        apart: bool = False,
        engine: SecondEngine | None = None,
    ) -> None:
        """Each node of a campaign `apart` has a network of its own, which can be cut. `engine` is the last node's."""
        self.trials, self.random, self.engine = trials, random.Random(seed), engine
        self.folder, self.outputs, self.log = folder, folder / "outputs", folder / "log"
        self.faults: Counter[str] = Counter()
        self.caps = Caps(at_once=WIDTH * max(nodes, NODES), turns=QUESTIONS, try_usd=TRY_USD)
        self._stack = ExitStack()
        self.networks = [Network(number) if apart else None for number in range(1, nodes + 1)]
        self.cluster = Cluster(DESK if apart else "127.0.0.1")
        self.upstream: FakeUpstream
        self.kinds = (*KINDS, *(("cut", "cut") if apart else ()), *(("engine", "engine") if engine else ()))
        self._drivers: list[subprocess.Popen[bytes]] = []
        self._command: list[str] = []
        self._asked: list[int] = []
        self._crews: set[int] = set()
        self._lasting: list[Thread] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for network in self.networks:
                if network:
                    stack.enter_context(network)
                    stack.callback(forget)
            host = PROVIDER if any(self.networks) else "127.0.0.1"
            self.upstream = FakeUpstream(Behaviour(text="ok", seconds=ANSWER_SECONDS), host=host)
            stack.enter_context(self.upstream)
            stack.enter_context(self.cluster)
            stack.callback(self.stop)
            self.nodes = [self._new_node(number) for number in range(len(self.networks))]
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def _new_node(self, number: int) -> subprocess.Popen[bytes]:
        of_its_own = {"DOCKER_HOST": self.engine.host} if self.engine and number == NODES - 1 else {}
        return self.cluster.node(WIDTH, self.networks[number], **of_its_own)

    @property
    def driver(self) -> subprocess.Popen[bytes]:
        """The driver that was started last."""
        return self._drivers[-1]

    def stop(self) -> None:
        """Kill the driver, if one runs."""
        for driver in self._drivers[-1:]:
            driver.kill()
            driver.wait()

    def begin_anew(self, folder: Path) -> None:
        """Have the next sweep write into this folder, and forget what the provider saw of earlier ones."""
        self.stop()
        self.outputs, self.log = folder / "outputs", folder / "log"
        self.upstream.requests.clear()
        self.upstream.served.clear()
        self.upstream.most_at_once = 0

    def in_containers(self) -> tuple[str, ...]:
        """Return the words that choose as many tasks, in containers."""
        tasks = self.folder / "tasks"
        for number in range(self.trials):
            make_task(tasks, f"t{number}", toml='[agent]\nuser = "1000"\ntimeout_sec = 900\n')
        return (
            "dataset=harbor",
            f"dataset.root={tasks}",
            "dataset.build_args.BASE=assay-base",
            "sandbox=docker",
        )

    def start(
        self, *words: str, code: str = "", dataset: Sequence[str] = (), model: Sequence[str] = ()
    ) -> None:
        """Start the driver, or `code` in its place.

        `dataset` are the words that choose other tasks and a sandbox, `model` those that choose another model.
        """
        chosen = dataset or ("dataset=numbered", f"dataset.number={self.trials}", "sandbox=local")
        self._command = [
            *(sys.executable, *(("-c", code) if code else ("-m", "runner"))),
            *("--config-dir", str(CONF), "agent=asker", "tracker=none", *chosen),
            *(model or ("model=faked", f"model.api_base={self.upstream.url}")),
            *("agent.questions=4", "agent.seconds=0.5", "gateway.preflight=false", "name=made"),
            *("executor=ray", "executor.retries=50", f"executor.address={self.cluster.address}"),
            *(f"outputs={self.outputs}", *words),
        ]
        self._asked.clear()
        self.resume()

    def resume(self) -> None:
        """Start the driver with the same command again."""
        self._asked.append(len(self.upstream.requests))
        environment = os.environ | TOKEN | {"ASSAY_FAKED_KEY": "a-key", "PYTHONPATH": str(ROOT), "CI": "true"}
        with self.log.open("ab") as log:
            driver = subprocess.Popen(self._command, cwd=ROOT, env=environment, stdout=log, stderr=log)
        self._drivers.append(driver)

    def fire_at(self, faults: int, *words: str, dataset: Sequence[str] = (), pause: float = 3.0) -> Account:
        """Run a sweep with caps, inject so many faults at random times, and account for it once it has ended."""
        trial_usd = QUESTIONS * CALL_USD
        budget = self.trials * trial_usd / COMMANDS
        self.caps = self.caps._replace(usd=budget + WIDTH * len(self.nodes) * trial_usd)
        caps = (
            f"gateway.concurrency={AT_ONCE}",
            f"sweep_budget.usd={budget:.3f}",
            f"budget.usd={TRY_USD}",
            f"budget.turns={QUESTIONS}",
            f"agent.questions={QUESTIONS + 1}",
        )
        self.start(*caps, *words, dataset=dataset)
        self.fire(faults, pause)
        return self.end()

    def fire(self, faults: int, pause: float = 3.0) -> None:
        """Inject faults at random times until there were so many, or the sweep has ended. Some last at a time."""
        while self.faults.total() < faults:
            until(lambda: self._working() or self.driver.poll() is not None, 300, LOOK_SECONDS)
            time.sleep(self.random.uniform(0, pause))
            if self.driver.poll() is not None:
                if self._is_done():
                    break
                self.resume()  # no node was left that takes trials
                continue
            kind = self.random.choice(self.kinds)
            if getattr(self, f"_{kind}")():
                self.faults[kind] += 1
        for lasting in self._lasting:
            lasting.join()

    def _is_done(self) -> bool:
        records = self.records().values()
        return len(records) == self.trials and all(each.judged for each in records)

    def end(self, seconds: float = 900.0) -> Account:
        """Wait until the sweep has ended, start it again where something was lost, and return what it left."""
        for _ in range(5 + COMMANDS):
            until(lambda: (self._working(), self.driver.poll() is not None)[1], seconds, LOOK_SECONDS)
            if self._is_done():
                break
            self.resume()
        records = self.records()
        asked = [*self._asked, len(self.upstream.requests)]
        most = max(after - before for before, after in pairwise(asked)) * CALL_USD
        found = Account(self.trials, dict(self.faults), self._containers_left(), most_usd=most)
        return account(found, records, self.upstream, self.caps)

    def records(self) -> dict[Path, TrialRecord]:
        """Return the records by their folders."""
        keys = [path.parent.name for path in self.outputs.glob("trials/*/*/record.json")]
        store = Store(self.outputs)
        return {store.folder(key): record for key, record in store.load(keys).items()}

    def _working(self) -> list[int]:
        """Return the processes of crews, and remember them. Replace nodes that have ended."""
        for number, node in enumerate(self.nodes):
            if node.poll() is not None:
                self.cluster.kill(node)
                self.nodes[number] = self._new_node(number)
        crews = self.cluster.crews()
        self._crews.update(crews)
        return crews

    def _containers_left(self) -> int:
        """Return how many containers of crews are left once the dead ones' are removed, as the next sweep does."""
        until(lambda: not self._working(), 60, LOOK_SECONDS)
        left = 0
        for client in self._engines():
            reap(client.api)
            found = client.api.containers(all=True, filters={"label": OWNER_PID})
            left += sum(int(each["Labels"][OWNER_PID]) in self._crews for each in found)
        return left

    def _engines(self) -> Iterator[docker.DockerClient]:
        with contextlib.closing(docker.from_env()) as client:
            yield client
        if self.engine:
            with contextlib.closing(self.engine.client()) as client:
                yield client

    # --- faults; each returns whether it found what to hit ---

    def _crew(self) -> bool:
        return bool(crews := self._working()) and _hit(self.random.choice(crews), signal.SIGKILL)

    def _node(self) -> bool:
        number = self.random.randrange(len(self.nodes))
        with suppress(StopIteration):
            _hit(self.cluster.raylet(self.nodes[number]), signal.SIGKILL)
            time.sleep(1.0)
        self.cluster.kill(self.nodes[number])
        return True

    def _driver(self) -> bool:
        self.stop()
        self.resume()
        return True

    def _freeze_crew(self) -> bool:
        crews = self._working()
        return bool(crews) and self._frozen(self.random.choice(crews))

    def _freeze_raylet(self) -> bool:
        number = self.random.randrange(len(self.nodes))
        try:
            return self._frozen(self.cluster.raylet(self.nodes[number]))
        except StopIteration:  # it has just ended
            return False

    def _freeze_driver(self) -> bool:
        return self.driver.poll() is None and self._frozen(self.driver.pid)

    def _slow_driver(self) -> bool:
        pid = self.driver.pid

        def slow() -> None:
            end = time.monotonic() + SLOW_SECONDS
            while time.monotonic() < end and _hit(pid, signal.SIGSTOP):
                time.sleep(STOPPED_SECONDS)
                _hit(pid, signal.SIGCONT)
                time.sleep(RUNNING_SECONDS)

        return self.driver.poll() is None and self._lasts(slow)

    def _cut(self) -> bool:
        number = self.random.randrange(len(self.nodes))
        network = self.networks[number]
        assert network
        network.cut()
        return self._lasts(network.mend, self._long_or_short())

    def _engine(self) -> bool:
        assert self.engine
        self.engine.restart()
        return True

    def _frozen(self, pid: int) -> bool:
        if not _hit(pid, signal.SIGSTOP):
            return False
        return self._lasts(lambda: _hit(pid, signal.SIGCONT), self._long_or_short())

    def _lasts(self, work: Callable[[], object], seconds: float = 0.0) -> bool:
        """Do this after so many seconds, in a thread of its own, and return True."""

        def later() -> None:
            time.sleep(seconds)
            work()

        thread = Thread(target=later)
        thread.start()
        self._lasting.append(thread)
        return True

    def _long_or_short(self) -> float:
        return self.random.choice((SHORT_SECONDS, SHORT_SECONDS, LONG_SECONDS))


def _hit(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
