"""`job=setup`: what a sweep's trials need and would otherwise wait for: base image, runtime, agent bundles,
and what datasets fetch.
"""

from __future__ import annotations

from functools import partial

from runner.sweeps.cells import Job, Sweep, datasets_of


class Setup(Job):
    """Prepares the sandboxes of the composed cells' agents, and their datasets; runs nothing."""

    def run(self, sweep: Sweep) -> int:
        """Exit code 0 once everything is there. Raises `EngineError` with what is missing or failed."""
        recipes = {cell.agent.bundle: None for cell in sweep.cells if cell.agent.bundle}
        say = partial(print, flush=True)
        for name, bundle in sweep.settings.sandbox.prepare(list(recipes), say).items():
            print(f"ready: bundle {name} ({bundle.recipe[:12]}), content {bundle.content[:12]}")
        for dataset in datasets_of(sweep.cells):
            dataset.prepare(say)
        return 0
