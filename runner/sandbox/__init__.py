"""Sandboxes: the machines in which agents and verifiers run.

    docker             containers:
      provider, connection      the provider of containers, and its connection to the engine
      container, files          one container and its file system
      launch                    the arguments with which a container is created
      images, agent_builds      images of tasks, and of Dockerfiles that agents wrote
      base_image, bundles       the base image and the installed agents, built once per machine
      engine, reaper            the engine itself, and the removal of what dead runners left
    local              LocalSandboxes: plain folders, no isolation
    command_output     a command's output and deadline
    tar_streams        tar streams in and out
    inside, supervise  what a sandbox looks like from inside, and the program that runs commands there
    cases              many short commands, each on a clean machine

Nothing outside this package knows Docker.
"""
