"""`job=clean`: remove what dead runs left; with `job.all=true` also what is kept for the next run."""

from __future__ import annotations

from runner.sweeps.cells import Job, Sweep


class Clean(Job):
    """Never touches what a living runner uses, nor any record."""

    all: bool = False
    """Also the bundles, the base image, the task images that were built here, and what agents' Dockerfiles pulled and
    built: the next run makes them anew.
    """

    def run(self, sweep: Sweep) -> int:
        """Raises `ConfigError` if all is to go while a runner is at work, `EngineError`."""
        reaped = sweep.settings.sandbox.reap(lambda text: print(text, flush=True))
        print(f"{reaped.removed} containers of dead runs removed")
        if reaped.complaint:
            print(reaped.complaint)
        if self.all:
            from runner.sandbox.docker.purge import purge  # noqa: PLC0415 - loads docker

            containers, images = purge()
            print(f"{containers} bundles and {images} images removed")
        return 0
