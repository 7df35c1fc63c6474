"""Images of a registry that asks for a password are pulled as `docker pull` does it, once for all trials."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Condition
from typing import NamedTuple

import pytest
from docker.errors import APIError

from runner.errors import ImageError
from runner.records import Environment
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.image_registry import RegistryMissingError, image_registry

pytestmark = pytest.mark.docker

USER, PASSWORD = "reader", "open sesame"
PASSWORDS = f"{USER}:$2b$04$iwHEcCuNM5QLPJENCTRnFuaZWcpbhLbCksjYKOQjFhgjO5kaX4JoW\n"


class Private(NamedTuple):
    """An image of the registry, which is not on this machine."""

    registry: str
    reference: str
    digest: str


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Private]:
    api = connect().api
    base_image.ensure(connect(), print)
    try:
        with image_registry(tmp_path, PASSWORDS) as address:
            name = f"{address}/private/task"
            api.tag(base_image.tag(), name, "1")
            known = {"username": USER, "password": PASSWORD}
            events = [*api.push(name, "1", auth_config=known, stream=True, decode=True)]
            digest = next(event["aux"]["Digest"] for event in events if "aux" in event)
            api.remove_image(f"{name}:1")
            yield Private(address, f"{name}:1", f"{name}@{digest}")
            with suppress(APIError):
                api.remove_image(f"{name}:1")
    except RegistryMissingError as error:
        pytest.skip(str(error))


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return Docker's configuration of a user who has not logged in."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    (tmp_path / "docker").mkdir()
    file = tmp_path / "docker" / "config.json"
    file.write_text("{}")
    return file


def log_in(configuration: Path, registry: str, password: str = PASSWORD) -> None:
    known = base64.b64encode(f"{USER}:{password}".encode()).decode()
    configuration.write_text(json.dumps({"auths": {registry: {"auth": known}}}))


def test_who_has_not_logged_in_is_told_to(private: Private, configuration: Path) -> None:
    with pytest.raises(ImageError, match=r"no basic auth credentials.*log in to its registry") as caught:
        DockerSandboxes().image(Environment(image=private.reference))
    log_in(configuration, private.registry, "guessed wrong")
    with pytest.raises(ImageError) as refused:
        DockerSandboxes().image(Environment(image=private.reference))
    for error in (caught, refused):
        assert "guessed wrong" not in str(error.value)


def test_many_trials_share_one_pull_which_is_shown_and_recorded(
    private: Private, configuration: Path
) -> None:
    log_in(configuration, private.registry)
    provider, shown = DockerSandboxes(), list[str]()

    def progress(doing: str) -> AbstractContextManager[object]:
        shown.append(doing)
        return nullcontext()

    environments = [Environment(image=private.reference, digest=f"sha256:{number}") for number in range(6)]
    with ThreadPoolExecutor(6) as trials:
        images = list(trials.map(lambda environment: provider.image(environment, progress), environments))
    assert shown == ["pulling"]
    assert {image.digest for image in images} == {private.digest}
    assert len({image.id for image in images}) == 1


@pytest.mark.parametrize("limit", [1, 2])
def test_only_so_many_images_are_pulled_at_the_same_time(
    private: Private, configuration: Path, limit: int
) -> None:
    log_in(configuration, private.registry)
    names = [f"{private.registry}/private/task:{number}" for number in range(2, 6)]
    with having_pushed(names):
        provider, pulling = DockerSandboxes(pulls=limit), Pulling(limit)
        with ThreadPoolExecutor(len(names)) as trials:
            found = trials.map(lambda name: provider.image(Environment(image=name), pulling.progress), names)
            assert [image.origin for image in found] == ["pulled"] * len(names)
    assert pulling.most == limit


@contextmanager
def having_pushed(names: list[str]) -> Iterator[None]:
    """Give the registry images that are not on this machine."""
    api = connect().api
    for name in names:
        repository, _, tag = name.rpartition(":")
        api.tag(base_image.tag(), repository, tag)
        api.push(repository, tag, auth_config={"username": USER, "password": PASSWORD})
        api.remove_image(name)
    yield
    for name in names:
        api.remove_image(name)


class Pulling:
    """Counts the images that are pulled at one time. Each waits until the allowed number is there, or a while."""

    def __init__(self, limit: int) -> None:
        self.now = self.most = 0
        self._limit, self._changed = limit, Condition()

    @contextmanager
    def progress(self, doing: str) -> Iterator[None]:
        assert doing == "pulling"
        with self._changed:
            self.now += 1
            self.most = max(self.most, self.now)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.now > self._limit, timeout=1)
        yield
        with self._changed:
            self.now -= 1


def test_a_credential_helper_is_asked(
    private: Private, configuration: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    helper = tmp_path / "bin" / "docker-credential-test"
    helper.parent.mkdir()
    answer = json.dumps({"ServerURL": private.registry, "Username": USER, "Secret": PASSWORD})
    helper.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(helper.parent), prepend=":")
    configuration.write_text(json.dumps({"credHelpers": {private.registry: "test"}}))
    assert DockerSandboxes().image(Environment(image=private.reference)).digest == private.digest


def test_an_image_that_was_built_here_has_no_digest_of_a_registry(tmp_path: Path) -> None:
    base_image.ensure(connect(), print)
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM $BASE\n")
    environment = Environment(context=tmp_path, build_args={"BASE": "assay-base"}, digest="sha256:private")
    assert DockerSandboxes().image(environment).digest == ""
