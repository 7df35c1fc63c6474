"""Sandboxes: the machines in which agents and verifiers run.

    docker, host       the provider of containers, and its connection to the engine
    container, files   one container and its file system
    launch             the arguments with which a container is created
    images, builds     images of tasks, and of Dockerfiles that agents wrote
    base, bundles      the base image and the installed agents, built once per machine
    engine, reaper     the engine itself, and the removal of what dead runners left
    local              LocalSandboxes: plain folders, no isolation
    execution          a command's output, deadline and disk
    archive            tar streams in and out
    inside, supervise  what a sandbox looks like from inside, and the program that runs commands there
    cases, casebox     many short commands, each on a clean machine

Nothing outside this package knows Docker.
"""
