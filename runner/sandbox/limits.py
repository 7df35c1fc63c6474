"""Limits on what a sandbox may use and on what is taken out of it: the fields of `conf/sandbox/*.yaml`."""

from __future__ import annotations

import os
from typing import Self

from pydantic import Field

from runner.records import Environment, Record

MEGABYTE = 1 << 20


class Caps(Record):
    """Limits on what is stored of a sandbox's output and files."""

    output_mb: int = Field(default=10, ge=1)
    """MiB that are stored of each of a command's stdout and stderr. The rest is read, counted and dropped."""
    workspace_mb: int = Field(default=200, ge=1)
    """MiB of one tar taken out of a sandbox."""
    workspace_files: int = Field(default=20_000, ge=1)
    """Regular files in one tar taken out of a sandbox. The same limit holds for all other entries together."""


class Limits(Caps):
    """Limits of one container, where its task sets none."""

    cpus: float = Field(default=1.0, gt=0)
    """Processor cores. A task that asks for more than this machine has gets all of them."""
    memory_mb: int = Field(default=2048, ge=1)
    """MiB of memory, tmpfs included. There is no swap."""
    task_memory_mb: int | None = Field(default=None, ge=1, exclude_if=lambda mb: mb is None)
    """MiB of memory for every sandbox of a task, which replaces the task's own value; None keeps that value. An agent
    that needs more gets more. Part of a trial's key only if it is set."""
    disk_mb: int = Field(default=4096, ge=1)
    """MiB in the container's writable layer, and the largest single file. Holes in files count as if they were full."""
    files: int = Field(default=500_000, ge=1)
    """Largest number of files and folders that are new, changed or deleted in the container's writable layer."""
    pids: int = Field(default=512, ge=1)
    """Largest number of processes and threads."""

    def memory_of(self, environment: Environment) -> int:
        """See `protocols.SandboxProvider`."""
        return self.task_memory_mb or environment.memory_mb or self.memory_mb

    def of_task(self, environment: Environment) -> Self:
        """Return these limits with the task's own values in their place."""
        cpus = min(environment.cpus or self.cpus, float(os.cpu_count() or 1))
        memory_mb = self.memory_of(environment)
        disk_mb = environment.storage_mb or self.disk_mb
        return self.model_copy(update={"cpus": cpus, "memory_mb": memory_mb, "disk_mb": disk_mb})
