"""`job=import_da_code`: write the tasks of a checkout of DA-Code as folders in Harbor's format."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pydantic import Field

from runner.benchmarks.harbor.da_code.checkout import read_checkout
from runner.benchmarks.harbor.da_code.folders import Image, write_task
from runner.benchmarks.harbor.jobs.task_folders import check_root, choose, import_tasks
from runner.sweeps.cells import Job, Sweep


class ImportDaCode(Job):
    """Writes a folder for each task. Those that cannot be written are named with the reason."""

    root: Path
    """Folder of the checkout."""
    path: Path
    """Folder for the tasks. Imported tasks of the same name are replaced."""
    source: Path | None = None
    """Folder with the files of the tasks; None: that of the checkout."""
    gold: Path | None = None
    """Folder with the right results; None: that of the checkout."""
    tasks: tuple[str, ...] = ()
    """Names of the tasks to import; empty: all."""
    base: str
    """Image that the tasks' images start from. It must have Python."""
    packages: tuple[str, ...]
    """Python packages in the tasks' images."""
    agent_seconds: float = Field(gt=0)
    """Time limit of an agent on a task, in seconds."""
    test_seconds: float = Field(gt=0)
    """Time limit of a task's tests, in seconds."""

    def run(self, sweep: Sweep) -> int:  # noqa: ARG002 - see Job
        """Import all chosen tasks and return exit code 0. Raises `ConfigError` as `import_tasks` does."""
        check_root(self.root)
        found = read_checkout(self.root, self.source, self.gold)
        image = Image(self.base, self.packages, self.agent_seconds, self.test_seconds)
        chosen = choose(found, self.tasks, self.root)
        import_tasks(chosen, self.path, partial(write_task, image=image))
        return 0
