"""`job=setup`: install the base image, the runtime, agent bundles and data of datasets before any trial needs them."""

from __future__ import annotations

from functools import partial

from runner.sweeps.cells import Job, Sweep, datasets_of


class Setup(Job):
    """Prepares the sandboxes and the datasets of the composed cells. Runs nothing."""

    def run(self, sweep: Sweep) -> int:
        """Return 0 once everything is there. Raises `EngineError` that names what is missing or failed."""
        recipes = {cell.agent.bundle: None for cell in sweep.cells if cell.agent.bundle}
        say = partial(print, flush=True)
        for name, bundle in sweep.settings.sandbox.prepare(list(recipes), say).items():
            print(f"ready: bundle {name} ({bundle.recipe[:12]}), content {bundle.content[:12]}")
        for dataset in datasets_of(sweep.cells):
            dataset.prepare(say)
        return 0
