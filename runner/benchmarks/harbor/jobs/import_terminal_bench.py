"""`job=import_terminal_bench`: write the tasks of a checkout of Terminal-Bench 1 as folders in Harbor's format."""

from __future__ import annotations

from pathlib import Path

from runner.benchmarks.harbor.jobs.task_folders import check_root, choose, import_tasks
from runner.benchmarks.harbor.terminal_bench import TASK, write_task
from runner.errors import ConfigError
from runner.sweeps.cells import Job, Sweep


class ImportTerminalBench(Job):
    """Writes a folder for each task. Those that cannot be written are named with the reason."""

    root: Path
    """Folder of the checkout whose children are the tasks."""
    path: Path
    """Folder for the tasks. Imported tasks of the same name are replaced."""
    tasks: tuple[str, ...] = ()
    """Names of the tasks to import; empty: all."""

    def run(self, sweep: Sweep) -> int:  # noqa: ARG002 - see Job
        """Import all chosen tasks and return exit code 0. Raises `ConfigError` as `import_tasks` does."""
        check_root(self.root)
        found = {child.name: child for child in sorted(self.root.iterdir()) if (child / TASK).is_file()}
        if not found:
            raise ConfigError(
                f"job.root: no folder in {self.root} has a {TASK}. Name the folder of the tasks."
            )
        import_tasks(choose(found, self.tasks, self.root), self.path, write_task)
        return 0
