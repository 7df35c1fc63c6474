"""`job=clean`: remove what dead runs left; with `job.all=true`, also what the next run could use."""

from __future__ import annotations

from runner.sweeps.cells import Job, Sweep


class Clean(Job):
    """Removes leftovers of dead runs, but neither records nor anything that a living runner uses."""

    all: bool = False
    """True to remove also the bundles, the base image, the task images that were built here, and the images that
    agents' Dockerfiles pulled and built. The next run makes them again."""

    def run(self, sweep: Sweep) -> int:
        """Remove them and return 0. Raises `ConfigError` for `all` while a runner is at work, and `EngineError`."""
        reaped = sweep.settings.sandbox.reap(lambda text: print(text, flush=True))
        print(f"{reaped.removed} containers of dead runs removed")
        if reaped.complaint:
            print(reaped.complaint)
        if self.all:
            from runner.sandbox.docker.purge import alone, purge  # noqa: PLC0415 - loads docker

            with alone():
                containers, images = purge()
            print(f"{containers} bundles and {images} images removed")
        return 0
