"""The removals of `job=clean job.all=true`, tested under labels and in a repository of the test's own."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient

from runner.errors import ConfigError
from runner.records import BuildSpec
from runner.resources import ROOT
from runner.sandbox.docker import agent_builds, base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.docker.purge import purge
from tests.sandbox.registry import registry
from tests.support.sweeps import Cli

pytestmark = pytest.mark.docker


@pytest.fixture
def label() -> str:
    return f"purge-test.{uuid4().hex[:8]}"


@pytest.fixture
def engine() -> Iterator[DockerClient]:
    client = connect()
    yield client
    client.close()


def test_what_is_kept_goes_and_nothing_else(engine: DockerClient, label: str) -> None:
    image = build(engine, label)
    engine.api.create_container(image, ["x"], labels={label: "bundle"})
    other = f"{label}.other"
    engine.images.build(fileobj=io.BytesIO(b'FROM scratch\nCMD ["y"]\n'), tag=f"{label}:task", rm=True)
    bystander = engine.api.create_container(build(engine, other), ["x"], labels={other: "bundle"})["Id"]
    try:
        assert purge(label=label, tasks=label, pulled=f"{label}.pulled", owned=f"{label}.owner") == (1, 2)
        assert purge(label=label, tasks=label, pulled=f"{label}.pulled", owned=f"{label}.owner") == (0, 0)
        assert engine.containers.get(bystander).status == "created"
    finally:
        purge(label=other, tasks=label, pulled=f"{label}.pulled", owned=f"{label}.owner")


def test_the_volume_of_a_bundle_stayed_for_ever(engine: DockerClient, label: str) -> None:
    host = engine.api.create_host_config(binds=[f"{label}:/bundle"])
    engine.api.create_container(build(engine, label), ["x"], labels={label: "bundle"}, host_config=host)
    assert engine.volumes.list(filters={"name": label})
    assert purge(label=label, tasks=label, pulled=f"{label}.pulled", owned=f"{label}.owner") == (1, 1)
    assert not engine.volumes.list(filters={"name": label})


def test_nothing_goes_while_a_runner_is_at_work(engine: DockerClient, label: str) -> None:
    image = build(engine, label)
    at_work = engine.api.create_container(image, ["x"], labels={f"{label}.owner": "1"})["Id"]
    try:
        with pytest.raises(ConfigError, match="A runner is at work"):
            purge(label=label, tasks=label, pulled=f"{label}.pulled", owned=f"{label}.owner")
        assert engine.images.get(image).id == image
    finally:
        engine.api.remove_container(at_work)
        purge(label=label, tasks=label, pulled=f"{label}.pulled", owned=f"{label}.owner")


STARTING = """
import sys, time
from pathlib import Path
from runner.sandbox.docker import base_image
from runner.sandbox.docker.provider import DockerSandboxes
base_image.IN_USE = Path(sys.argv[1])
DockerSandboxes().prepare([], print)
print("prepared", flush=True)
time.sleep(600)
"""


def test_what_a_starting_run_had_prepared_went_before_its_first_container(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a run built its images it had no container that told of it, and its bundles were removed."""
    monkeypatch.setattr(base_image, "IN_USE", tmp_path / "lock")
    monkeypatch.setattr("runner.sandbox.docker.purge.purge", lambda: (0, 0))
    command = [sys.executable, "-c", STARTING, str(tmp_path / "lock")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        while "prepared" not in run.stdout.readline():
            pass
        ended = cli("job=clean", "job.all=true")
        run.kill()
    assert (ended.code, "A runner is at work" in ended.err) == (2, True), ended
    assert "0 bundles and 0 images removed" in cli("job=clean", "job.all=true").out


def test_what_a_dockerfile_pulled_and_built_goes(
    engine: DockerClient, label: str, provider: DockerSandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image that an agent's `FROM` had named used to stay forever."""
    monkeypatch.setattr(agent_builds, "PULLED", label)
    monkeypatch.setattr(agent_builds, "CACHED", (f"{label}.role", "rerun"))
    known = {image["Id"] for image in engine.api.images(all=True)}
    with registry(label) as reference:
        dockerfile = f"FROM {reference}\nENV A={label}\n"
        built = BuildSpec(name="test", dockerfile=dockerfile, timeout_seconds=60)
        for _ in range(2):
            with provider.build(built) as build:
                assert build.error is None
        assert engine.images.list(reference)
        purge(label=f"{label}.role", tasks=label, pulled=label, owned=f"{label}.owner")
    left = [image for image in engine.api.images(all=True) if image["Id"] not in known]
    assert not [image for image in left if label in str((image["RepoTags"], image["Labels"]))]


def build(engine: DockerClient, label: str) -> str:
    """Build an image with nothing in it but a label."""
    dockerfile = f'FROM scratch\nLABEL {label}=task\nCMD ["x"]\n'
    image, _ = engine.images.build(fileobj=io.BytesIO(dockerfile.encode()), rm=True)
    return str(image.id)
