"""The removals of `job=clean job.all=true`, tested under labels and in a repository of the test's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from uuid import uuid4

import pytest
from docker import DockerClient

from runner.errors import ConfigError
from runner.records import BuildSpec
from runner.sandbox.docker import agent_builds
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.docker.purge import purge
from tests.sandbox.registry import registry

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
