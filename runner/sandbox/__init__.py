"""Sandboxes: where agents and verifiers run.

    docker    DockerSandboxes: images, containers, reaping      local  LocalSandboxes: plain folders, no isolation
    launch    what a container is created with                  inside what it looks like from inside
    execution a command's output, deadline and disk             archive tar streams in and out
    engine, base, bundles    what must be there first           images, reaper  its helpers

Nothing outside this package knows Docker.
"""
