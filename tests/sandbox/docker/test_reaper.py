"""Containers of dead owners are removed, those of living owners stay."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from uuid import uuid4

import pytest
from docker.errors import NotFound

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
        assert "/bin/sh -c false" in build.error.message  # so an image with these labels was made
    api = connect().api
    provider.reap()  # unless another runner on this machine was faster
    assert not api.images(filters={"label": name})


@pytest.mark.docker
def test_a_dead_runs_snapshot_took_the_nameless_image_beneath_it_which_a_living_run_used(
    provider: DockerSandboxes,
) -> None:
    """The image had lost its name to a newer one. The living run has no container of it at that moment."""
    api = connect().api
    beneath = uuid4().hex[:12]
    labels = reaper.owner_labels() | {reaper.OWNER_START: "another-boot/1"}
    made: list[str] = []
    for image, changes in ((base_image.tag(), [f"LABEL test={beneath}"]), (None, _labelled(labels))):
        container = api.create_container(image or made[0], ["true"])["Id"]
        made.append(api.commit(container, changes=changes)["Id"])
        api.remove_container(container)
    try:
        provider.reap()
        assert [image["Id"] for image in api.images(filters={"label": f"test={beneath}"})] == [made[0]]
    finally:
        for image in reversed(made):
            with suppress(NotFound):
                api.remove_image(image, noprune=True)


def _labelled(labels: Mapping[str, str]) -> list[str]:
    return [f"LABEL {name}={value}" for name, value in labels.items()]


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


HIDDEN = """
import os, subprocess
from runner.sandbox.docker import reaper

def become_nobody():
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

process = subprocess.Popen(["sleep", "600"])
owner = {reaper.OWNER_PID: str(process.pid), reaper.OWNER_START: reaper._start(process.pid)}
labels = reaper.owner_labels() | owner
if not os.fork():
    become_nobody()
    print(reaper.is_abandoned(labels), reaper.is_abandoned(labels | {reaper.LEASE: "1"}), flush=True)
    os._exit(0)
os.wait()
process.kill()
process.wait()
if not os.fork():
    become_nobody()
    print(reaper.is_abandoned(labels), flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting /proc needs root")
@pytest.mark.parametrize("hidepid", [1, 2])
def test_containers_of_another_users_living_run_were_removed_where_proc_hides_its_processes(
    hidepid: int,
) -> None:
    script = f'mount -t proc -o hidepid={hidepid} proc /proc && exec "$0" -c "$1"'
    command = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, sys.executable, HIDDEN]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.split() == ["False", "True", "True"], done.stderr


def test_another_nodes_owner_is_believed_until_its_lease_ends() -> None:
    theirs = reaper.owner_labels() | {reaper.NODE: "elsewhere/1", reaper.OWNER_START: "its-boot/1"}
    assert not reaper.is_abandoned(theirs)
    assert reaper.is_abandoned(theirs | {reaper.LEASE: str(int(time.time()) - 1)})
