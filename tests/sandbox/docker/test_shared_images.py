"""Images are built once and shared through a real registry of Debian's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from uuid import uuid4

import pytest
from docker.errors import ImageNotFound

from runner.errors import ImageError
from runner.records import Environment, Image
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.image_registry import RegistryMissingError, image_registry

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the folder of a test in a registry, whose images are removed from the engine afterwards."""
    base_image.ensure(connect(), print)
    try:
        with image_registry(tmp_path_factory.mktemp("registry")) as address:
            yield f"{address}/shared"
            api = connect().api
            for image in api.images():
                for name in image["RepoTags"] or ():
                    if name.startswith(address):
                        api.remove_image(name)
    except RegistryMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    """Return an environment whose builds all differ."""
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM $BASE\nRUN cat /proc/sys/kernel/random/uuid > /id\n")
    digest = uuid4().hex
    yield Environment(context=tmp_path, build_args={"BASE": "assay-base"}, digest=f"sha256:{digest}")
    _forget(digest)


def _forget(digest: str) -> None:
    """Remove an image with all its names, so that this machine is as one that never had it."""
    api = connect().api
    for image in api.images():
        if any(digest[:24] in tag for tag in image["RepoTags"] or ()):
            api.remove_image(image["Id"], force=True)


def _id(reference: str) -> str | None:
    try:
        return connect().images.get(reference).id
    except ImageNotFound:
        return None


def _next_machine(environment: Environment, first: Image) -> None:
    _forget(environment.digest.removeprefix("sha256:"))
    assert _id(first.id) is None


def test_machines_that_share_a_registry_run_the_same_image(environment: Environment, registry: str) -> None:
    first = DockerSandboxes(registry=registry).image(environment)
    _next_machine(environment, first)
    other = DockerSandboxes(registry=registry).image(environment)
    assert (other.id, other.reference) == (first.id, first.reference)
    _next_machine(environment, first)
    assert DockerSandboxes().image(environment).id != first.id, "without it, each machine builds its own"


def test_a_machine_that_built_its_own_takes_the_shared_one(environment: Environment, registry: str) -> None:
    shared = DockerSandboxes(registry=registry).image(environment)
    _next_machine(environment, shared)
    own = DockerSandboxes().image(environment)
    assert own.id != shared.id
    sharing = DockerSandboxes(registry=registry)
    assert sharing.image(environment).id == shared.id
    assert DockerSandboxes(registry=registry).image(environment).id == shared.id
    assert _id(own.reference) == shared.id


def test_an_image_that_is_there_is_neither_built_nor_sent_again(
    environment: Environment, registry: str
) -> None:
    heard: list[str] = []
    done: list[str] = []

    def progress(doing: str) -> AbstractContextManager[object]:
        heard.append(doing)
        return nullcontext()

    for expected in (["building", "pushing"], ["pulling"], []):
        image = DockerSandboxes(registry=registry).image(environment, progress)
        assert heard == expected
        heard.clear()
        done.append(image.id)
        if expected == ["building", "pushing"]:
            _next_machine(environment, image)
    assert len(set(done)) == 1


def test_the_base_image_is_shared_too(registry: str) -> None:
    provider = DockerSandboxes(registry=registry)
    said: list[str] = []
    provider.prepare([], said.append)
    assert any(text.startswith("Pushing the base image") for text in said)
    here = _id(base_image.tag())
    said.clear()
    DockerSandboxes(registry=registry).prepare([], said.append)
    assert said == []
    assert _id(base_image.tag()) == here


def test_a_registry_that_does_not_answer_is_a_sentence(environment: Environment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        closed = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ImageError, match=f"The registry {closed}/x cannot be used .*docker login"):
        DockerSandboxes(registry=f"{closed}/x").image(environment)


@pytest.mark.parametrize(
    "text", ["https://example.org/x", "example.org/X y", "", "example.org/x:tag@", "-/", "a/../b"]
)
def test_what_is_no_registry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="registry"):
        DockerSandboxes(registry=text)


def test_a_registry_is_not_part_of_a_trials_key() -> None:
    assert DockerSandboxes(registry="example.org/x").model_dump() == DockerSandboxes().model_dump()
