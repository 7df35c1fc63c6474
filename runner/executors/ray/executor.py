"""`executor=ray`: crews on the nodes of a Ray cluster, or of a local one."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pydantic import Field

from runner import __version__
from runner.executors.crew import CrewSettings, run_trials
from runner.executors.ray.messages import Kit, Secrets, address_of
from runner.protocols import helper_of
from runner.records import TrialRecord
from runner.sweeps.yaml_files import leaves

if TYPE_CHECKING:
    from runner.executors.desk import Desk
    from runner.sweeps.cells import Sweep

_NAMES_A_VARIABLE = re.compile(r"(^|\.)(api_)?key_env$|^dataset\.env\b")


class RayExecutor(CrewSettings):
    """Runs trials on every node of a Ray cluster that offers the custom resource `docker`, which counts trials."""

    address: str | None = None
    """Address of the cluster, HOST:PORT; None starts Ray on this machine for the time of the sweep."""
    nodes: int | None = Field(default=None, ge=1)
    """Largest number of nodes to use; None for all that take trials, later ones included."""

    def run(self, desk: Desk, cancel: Event) -> Generator[TrialRecord]:
        """See `protocols.Executor`."""
        from runner.executors.ray.cluster import connected  # noqa: PLC0415 - only a sweep that runs needs Ray

        if self.address and os.environ.get("RAY_AUTH_MODE") != "token":
            desk.display.note(
                "This cluster asks for no token: whoever reaches it can run programs on its nodes, and sandboxes with "
                "sandbox.network=open may. RAY_AUTH_MODE=token and RAY_AUTH_TOKEN close it."
            )
        with connected(self.address, self.at_once):
            from runner.executors.ray.team import RayTeam  # noqa: PLC0415 - imports Ray

            with RayTeam(desk, self._kit(desk), secrets_of(desk.sweep), self.nodes) as team:
                yield from run_trials(desk, team, cancel)

    def _kit(self, desk: Desk) -> Kit:
        todo = desk.plan.todo
        return Kit(
            version=__version__,
            composed=desk.sweep.composed,
            sweep=desk.settings.name,
            folder=str(Path.cwd()),
            width=self.workers or 0,
            retries=self.retries,
            samples=tuple(address_of(t) for t in {t.cell.name: t for t in todo}.values()),
            trials=tuple({(trial.cell.name, trial.task.name): None for trial in todo}),
        )


def secrets_of(sweep: Sweep) -> Secrets:
    """Return the variables that hold the keys of providers, and those of this machine that tasks read."""
    judges = [judge for cell in sweep.cells if (judge := cell.dataset.verifier.judge)]
    helpers = [helper for cell in sweep.cells if (helper := helper_of(cell.agent))]
    models = [*(cell.model for cell in sweep.cells), *(judge.model for judge in judges), *helpers]
    names = {model.api_key_env for model in models if model.api_key_env}
    for node in sweep.composed:
        for path, value in leaves(node):
            if _NAMES_A_VARIABLE.search(path):
                names |= {value} if isinstance(value, str) else set(value or ())
    return Secrets({name: os.environ[name] for name in sorted(names) if name in os.environ})
