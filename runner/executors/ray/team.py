"""The crews of a sweep on a Ray cluster: hired one a node, watched, and given up when they are lost."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any, Self

import ray
from ray.exceptions import RayTaskError

from runner.errors import EngineError
from runner.executors.crew import Crew, CrewFailed, CrewLost, CrewRefused
from runner.executors.ray.cluster import RESOURCE
from runner.executors.ray.hired import HiredCrew
from runner.executors.ray.messages import Address, Kit, Secrets, address_of

if TYPE_CHECKING:
    from runner.executors.desk import Desk

LOOK_SECONDS = 0.5
"""Interval between two looks for new nodes."""
NODES_SECONDS = 60.0
"""Longest time without any node that takes trials: one may still be joining."""
LOSSES = 3
"""Number of crews in a row that a node may lose without ending a trial. Then it gets no more crews."""
STOP_SECONDS = 30.0
"""Longest wait for trials that were stopped, and for crews to clean up."""


class RayTeam:
    """See `crew.Team`. A context manager: its own thread and event loop serve the crews."""

    look_seconds = 0.1

    def __init__(self, desk: Desk, kit: Kit, secrets: Secrets, most: int | None) -> None:
        """`most` is the largest number of crews; None for one on each node that offers `RESOURCE`."""
        self._desk, self._kit, self._secrets, self._most = desk, kit, secrets, most
        self._crews: dict[str, HiredCrew] = {}
        self._losses: Counter[str] = Counter()
        self._retired: dict[str, str] = {}
        self._alone_since = time.monotonic()
        self._concerned = _concerned(desk)
        self._searching = asyncio.Lock()
        self._found: dict[str, bytes] | None = None if self._concerned else {}
        self._searched = self._asked = False
        self._over = False
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="team", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._hiring = self.call(self._hire())
        return self

    def __exit__(self, *exc: object) -> None:
        self._over = True
        self._hiring.cancel()
        self.call(self._close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Do something in the team's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    # --- for `run_trials` ---

    def crews(self) -> Sequence[Crew]:
        """See `crew.Team`. Returns no crew before models have answered and answers in reach are known."""
        if self._hiring.done() and (failure := self._hiring.exception()):
            raise EngineError(f"The Ray cluster is gone ({failure}); the same command resumes.")
        if not self._asked:
            if not any(crew.is_sound for crew in tuple(self._crews.values())):
                return self._none()
            self._desk.ask_models()
            self._asked = True
        if not self._searched:
            if self._found is None:
                return self._none()
            self._keep(self._found)
        ready = [crew for crew in tuple(self._crews.values()) if crew.ready]
        return ready or self._none()

    def dismiss(self, crew: Crew, why: EngineError | CrewRefused | CrewLost) -> None:
        """See `crew.Team`. A crew that was lost is out already."""
        assert isinstance(crew, HiredCrew)  # noqa: S101 - there are no others here
        if (isinstance(why, CrewLost) and not isinstance(why, CrewFailed)) or not crew.ready:
            return
        crew.ready = False
        self._retire(crew.node, str(why))
        if isinstance(why, EngineError) and not any(other.ready for other in self._crews.values()):
            raise why

    # --- in the loop ---

    async def _hire(self) -> None:
        """Hire a crew on each node that takes trials and has none."""
        while True:
            for node in await asyncio.to_thread(ray.nodes):
                name, width = node["NodeID"], int(node["Resources"].get(RESOURCE, 0)) if node["Alive"] else 0
                if width and name not in self._crews and name not in self._retired and self._has_room():
                    width = min(width, self._kit.width) if self._kit.width else width
                    crew = self._crews[name] = HiredCrew(name, node["NodeManagerHostname"], width, self._desk)
                    crew.employment = asyncio.create_task(self._employ(crew))
            await asyncio.sleep(LOOK_SECONDS)

    def _has_room(self) -> bool:
        return self._most is None or len(self._crews) < self._most

    async def _employ(self, crew: HiredCrew) -> None:
        """Open a crew and serve it until it is lost or dismissed."""
        opening = asyncio.create_task(self._open(crew))
        why = await crew.serve()
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        self._losses[crew.node] = 0 if crew.has_delivered else self._losses[crew.node] + 1
        if crew.unfit:
            self._retire(crew.node, crew.unfit)
        elif self._losses[crew.node] >= LOSSES:
            self._retire(crew.node, f"Node {crew.host} lost {LOSSES} crews before a trial ended: {why}")
        elif not self._over and crew.node not in self._retired:
            self._desk.display.note(f"The crew on {crew.host} is lost: {why}")
        self._leave(crew)
        await crew.give_up(CrewLost(f"{crew.host}: {why}"))

    async def _open(self, crew: HiredCrew) -> None:
        width = self._kit.width or crew.width
        try:
            kit = self._kit.model_copy(update={"width": width})
            wrong = await crew.check(kit, self._secrets) or await crew.prepare()
            if not wrong:
                await self._search(crew)
        except RayTaskError as error:  # a bug, or an engine that failed at the search
            wrong = f"Node {crew.host} takes no trials: unexpected {str(error).strip()[-1000:]}"
        if wrong:
            self._retire(crew.node, wrong)
        crew.ready = crew.is_sound and not wrong

    async def _search(self, crew: HiredCrew) -> None:
        """Let a crew look for answers in reach, unless another one has done so."""
        async with self._searching:
            if self._found is None:
                cache = self._desk.store.cache
                known = {path.name: path.read_bytes() for path in cache.glob("*.json")}
                self._found = await crew.search(self._concerned, known)

    def _keep(self, found: dict[str, bytes]) -> None:
        """Keep the findings of the first crew, and apply them."""
        cache = self._desk.store.cache
        for name, content in found.items():
            cache.mkdir(parents=True, exist_ok=True)
            (cache / name).write_bytes(content)
        self._desk.searched()
        self._searched = True

    def _retire(self, node: str, why: str) -> None:
        """Stop giving a node trials, and say why."""
        if node not in self._retired:
            self._retired[node] = why
            self._desk.display.note(why)

    def _leave(self, crew: HiredCrew) -> None:
        crew.ready = False
        del self._crews[crew.node]

    def _none(self) -> Sequence[Crew]:
        """Return no crews. Raises `EngineError` if there will be none."""
        if self._alone():
            raise EngineError(self._why_alone())
        return ()

    def _alone(self) -> bool:
        """Return whether there has been no crew for too long, or no node is left for one."""
        working = [crew for crew in tuple(self._crews.values()) if crew.node not in self._retired]
        if working or any(crew.running for crew in tuple(self._crews.values())):
            self._alone_since = time.monotonic()
            return False
        return bool(self._retired) or time.monotonic() - self._alone_since > NODES_SECONDS

    def _why_alone(self) -> str:
        if self._retired:
            return "No node takes trials. " + " ".join(self._retired.values())
        return (
            f"No node of the cluster has offered to take trials for {NODES_SECONDS:g} s. Start each with "
            f"`ray start --address=HEAD:6379 --resources='{{\"{RESOURCE}\": 8}}'`, where 8 is its trials at a time."
        )

    async def _close(self) -> None:
        """Stop the trials under way, wait for their records, and end the crews."""
        crews = tuple(self._crews.values())
        await asyncio.gather(*(crew.leave(STOP_SECONDS) for crew in crews))


def _concerned(desk: Desk) -> tuple[Address, ...]:
    """Return a trial of each agent and task with an answer that may lie in the agent's reach."""
    found = {
        (trial.cell.agent.name, trial.task.name): address_of(trial)
        for trial in desk.plan.todo
        if trial.task.answer is not None and trial.cell.agent.uses_model
    }
    return tuple(found.values())
