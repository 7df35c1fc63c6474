"""What `job=clean job.all=true` removes, tried under labels and in a repository of the test's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from uuid import uuid4

import pytest
from docker import DockerClient

from runner.errors import ConfigError
from runner.sandbox.engine import connect
from runner.sandbox.purge import purge

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
        assert purge(kept=label, tasks=label, owned=f"{label}.owner") == (1, 2)
        assert purge(kept=label, tasks=label, owned=f"{label}.owner") == (0, 0)
        assert engine.containers.get(bystander).status == "created"
    finally:
        purge(kept=other, tasks=label, owned=f"{label}.owner")


def test_nothing_goes_while_a_runner_is_at_work(engine: DockerClient, label: str) -> None:
    image = build(engine, label)
    at_work = engine.api.create_container(image, ["x"], labels={f"{label}.owner": "1"})["Id"]
    try:
        with pytest.raises(ConfigError, match="A runner is at work"):
            purge(kept=label, tasks=label, owned=f"{label}.owner")
        assert engine.images.get(image).id == image
    finally:
        engine.api.remove_container(at_work)
        purge(kept=label, tasks=label, owned=f"{label}.owner")


def build(engine: DockerClient, label: str) -> str:
    """An image with nothing in it but a label."""
    dockerfile = f'FROM scratch\nLABEL {label}=task\nCMD ["x"]\n'
    image, _ = engine.images.build(fileobj=io.BytesIO(dockerfile.encode()), rm=True)
    return str(image.id)
