"""Whole trials of made tasks in Harbor's format whose agent, the oracle's script, attacks its own judgement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runner.agents.bounds import Oracle
from runner.gateway import Gateway
from runner.records import Budget, TrialRecord
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sweeps.cells import NO_MODEL, Cell
from runner.sweeps.plan import make_plan
from runner.sweeps.store import Store
from runner.trials.context import TrialContext
from runner.trials.run import run_to_the_end
from tests.support.tasks_factory import dataset, make_task

SECRET = "what only the tests have"


def trial(
    folder: Path,
    solve: str,
    options: dict[str, Any] | None = None,
    *,
    seconds: int = 20,
    mode: str = "shared",
    user: str = "root",
    **parts: Any,
) -> TrialRecord:
    """Run one task whose tests have a file `secret`; `seconds` is the limit of its tests, `agent_seconds` that of
    the agent, and `toml` more of its file.
    """
    toml = f"""
[agent]
timeout_sec = {parts.pop("agent_seconds", 60)}
user = "{user}"
[environment]
network_mode = "no-network"
storage_mb = {parts.pop("storage_mb", 4096)}
[verifier]
timeout_sec = {seconds}
environment_mode = "{mode}"
"""
    make = parts.pop("make", make_task)
    task = make(folder / "tasks", "made", solve, toml=parts.pop("toml", "") + toml, **parts)
    (task / "tests" / "secret").write_text(SECRET)
    cell = Cell(
        agent=Oracle(),
        model=NO_MODEL,
        dataset=dataset(folder / "tasks", **(options or {})),
        budget=Budget(),
        attempts=1,
    )
    sandboxes = DockerSandboxes()
    sandboxes.prepare((), print)
    (planned,) = make_plan([cell], sandboxes, lambda _: ()).trials
    context = TrialContext(sandboxes, Gateway(folder), Store(folder / "outputs"), "test", {})
    return run_to_the_end(planned, context, 0, lambda: False)
