"""What a sandbox may use, and how much of it comes back: the fields of `conf/sandbox/*.yaml`."""

from __future__ import annotations

import os
from typing import Self

from pydantic import Field

from runner.records import Environment, Record

MEGABYTE = 1 << 20


class Caps(Record):
    """How much of what a sandbox produced is kept."""

    output_mb: int = Field(default=10, ge=1)
    """MiB of each of stdout and stderr that are kept of one command; the rest is drained and counted."""
    workspace_mb: int = Field(default=200, ge=1)
    """MiB of one tar taken out of a sandbox."""
    workspace_files: int = Field(default=20_000, ge=1)
    """Regular files in one tar taken out of a sandbox; of folders, links and the like as many again."""


class Limits(Caps):
    """What one container may use, where its task does not say."""

    cpus: float = Field(default=1.0, gt=0)
    """Cores; a task that asks for more than this machine has gets all of them."""
    memory_mb: int = Field(default=2048, ge=1)
    """MiB, tmpfs included; there is no swap beside it."""
    task_memory_mb: int | None = Field(default=None, ge=1, exclude_if=lambda mb: mb is None)
    """MiB for every sandbox of a task, in place of what the task declares; None: as declared. An agent that needs more
    gets more. Part of a trial's key only if it is set."""
    disk_mb: int = Field(default=4096, ge=1)
    """MiB in the container's writable layer, and the largest single file. Holes in files count as if they were full."""
    files: int = Field(default=500_000, ge=1)
    """Files and folders that are new, changed or gone in the container's writable layer."""
    pids: int = Field(default=512, ge=1)
    """Processes and threads."""

    def memory_of(self, environment: Environment) -> int:
        """See `protocols.SandboxProvider`."""
        return self.task_memory_mb or environment.memory_mb or self.memory_mb

    def of_task(self, environment: Environment) -> Self:
        """The same, with what the task declares in their place."""
        cpus = min(environment.cpus or self.cpus, float(os.cpu_count() or 1))
        memory_mb = self.memory_of(environment)
        disk_mb = environment.storage_mb or self.disk_mb
        return self.model_copy(update={"cpus": cpus, "memory_mb": memory_mb, "disk_mb": disk_mb})
