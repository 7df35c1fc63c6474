"""Containers of dead owners are removed, those of living owners stay."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from runner.records import BuildSpec, Environment
from runner.resources import ROOT
from runner.sandbox.docker import base_image, reaper
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes

OWNER = """
import sys, time
from runner.records import Environment, SandboxSpec
from runner.sandbox.docker.provider import DockerSandboxes
provider = DockerSandboxes()
image = provider.image(Environment(image=sys.argv[1]))
sandbox = provider.open(SandboxSpec(name="owned", image=image, fresh_dirs=("/tests",))).__enter__()
snapshot = sandbox.snapshot()
print(sandbox._id, snapshot.id, flush=True)
time.sleep(600)
"""


@pytest.fixture
def owner(provider: DockerSandboxes) -> Iterator[subprocess.Popen[str]]:
    """Start another runner with a container, its volume and a snapshot."""
    image = provider.image(Environment(image=base_image.tag())).reference
    command = [sys.executable, "-c", OWNER, image]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


@pytest.mark.docker
def test_what_a_living_owner_has_stays_and_what_a_killed_one_had_goes(
    provider: DockerSandboxes, owner: subprocess.Popen[str]
) -> None:
    api = connect().api
    container, snapshot = (owner.stdout.readline() if owner.stdout else "").split()
    volume = api.inspect_container(container)["Mounts"][0]["Name"]
    provider.reap()
    assert api.inspect_container(container)["Id"] == container
    assert api.images(filters={"label": reaper.OWNER_PID})
    owner.send_signal(signal.SIGKILL)
    while owner.poll() is None:
        time.sleep(0.01)
    heard: list[str] = []
    provider.reap(heard.append)
    for text in heard:  # empty if another runner on this machine was faster
        assert re.fullmatch(r"removing \d+ containers? that a dead run left", text)
    assert container not in {left["Id"] for left in api.containers(all=True)}
    assert volume not in {left["Name"] for left in api.volumes()["Volumes"] or ()}
    assert snapshot not in {left["Id"] for left in api.images(all=True)}


@pytest.mark.docker
def test_owners_that_a_dockerfile_makes_up_stop_nobody(provider: DockerSandboxes) -> None:
    """The remains of one such failed build ended every later command on this machine with a traceback."""
    name = f"test.{uuid4().hex[:8]}"
    made_up = f"LABEL {name}=x {reaper.OWNER_PID}=me {reaper.LEASE}=always\nRUN false\n"
    environment = Environment(build_args={"BASE": "assay-base"})
    dockerfile = f"ARG BASE\nFROM ${{BASE}}\n{made_up}"
    with provider.build(
        BuildSpec(name="test", dockerfile=dockerfile, environment=environment, timeout_seconds=60)
    ) as build:
        assert build.error
    api = connect().api
    assert api.images(filters={"label": name})
    provider.reap()
    assert not api.images(filters={"label": name})


def test_a_reused_pid_is_another_owner() -> None:
    ours = reaper.owner_labels()
    assert not reaper.is_abandoned(ours)
    assert reaper.is_abandoned(ours | {reaper.OWNER_START: "another-boot/1"})


def test_a_trial_longer_than_a_day_was_removed_by_the_next_runner_to_start() -> None:
    """This happened when the clock was put forward."""
    assert not reaper.is_abandoned(reaper.owner_labels() | {reaper.LEASE: str(int(time.time()) - 1)})


def test_a_zombie_owns_nothing() -> None:
    process = subprocess.Popen(["sleep", "600"])
    labels = reaper.owner_labels() | {
        reaper.OWNER_PID: str(process.pid),
        reaper.OWNER_START: reaper._start(process.pid) or "",
    }
    assert not reaper.is_abandoned(labels)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert reaper.is_abandoned(labels)
    process.wait()
    assert reaper.is_abandoned(labels)


def test_another_nodes_owner_is_believed_until_its_lease_ends() -> None:
    theirs = reaper.owner_labels() | {reaper.NODE: "elsewhere/1", reaper.OWNER_START: "its-boot/1"}
    assert not reaper.is_abandoned(theirs)
    assert reaper.is_abandoned(theirs | {reaper.LEASE: str(int(time.time()) - 1)})
