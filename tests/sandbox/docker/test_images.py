"""Origins of images; everybody gets the same one."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest

from runner.errors import EngineError, ImageError
from runner.records import Environment, SandboxSpec
from runner.sandbox.docker import base_image, images
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.terminal.escaping import step

pytestmark = pytest.mark.docker


@pytest.fixture
def digest() -> Iterator[str]:
    """Return the digest of an environment that no other test has, and remove the image that it tags."""
    digest = uuid4().hex
    yield f"sha256:{digest}"
    api = connect().api
    for image in api.images(images.REPOSITORY):
        if any(digest[:24] in tag for tag in image["RepoTags"]):
            api.remove_image(image["Id"], force=True)


def context(folder: Path, dockerfile: str) -> Path:
    (folder / "Dockerfile").write_text(dockerfile)
    return folder


def on_base(folder: Path, instructions: str, digest: str, **more: object) -> Environment:
    """Return an environment on this machine's base image, named by its build argument."""
    path = context(folder, f"ARG BASE\nFROM $BASE\n{instructions}\n")
    given = {"context": path, "build_args": {"BASE": "assay-base"}, "digest": digest, **more}
    return Environment.model_validate(given)


def test_a_local_image_counts(provider: DockerSandboxes) -> None:
    image = provider.image(Environment(image=base_image.tag()))
    assert (image.origin, image.reference, image.note) == ("local", base_image.tag(), "")
    assert image.id.startswith("sha256:")


def test_a_dockerfile_is_built_once_for_all_who_ask_and_kept(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    environment = on_base(tmp_path, "RUN sleep 1; cat /proc/sys/kernel/random/uuid > /id", digest)
    heard: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(lambda _: provider.image(environment, partial(step, heard.append, what="it")), range(4))
        )
    assert heard[0] == "Building it"
    assert re.fullmatch(r"Building it took 0:\d\d", heard[1])
    assert len(heard) == 2, "of those who ask at once, one builds"
    assert len({image.id for image in found}) == len({image.seconds for image in found}) == 1
    assert found[0].origin == "built"
    again = DockerSandboxes().image(environment)
    assert (again.id, again.origin) == (found[0].id, "built")
    assert again.seconds < found[0].seconds


def test_two_runs_that_needed_one_image_at_once_each_built_it_and_the_first_lost_its_name(
    tmp_path: Path, digest: str
) -> None:
    environment = on_base(tmp_path, "RUN sleep 1; cat /proc/sys/kernel/random/uuid > /id", digest)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: DockerSandboxes().image(environment), range(2)))
    assert found[0].id == found[1].id


def test_a_snapshot_took_the_image_of_its_container_with_it_which_another_run_had_built_again(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    """The other run's image has the name now. This one is still in use by its id."""
    image = provider.image(on_base(tmp_path, "RUN cat /proc/sys/kernel/random/uuid > /id", digest))
    api = connect().api
    repository, version = image.reference.split(":")
    api.tag(base_image.tag(), repository, version, force=True)
    try:
        for _ in range(2):
            spec = SandboxSpec(name="nameless", image=image, environment=Environment())
            with provider.open(spec) as machine:
                machine.snapshot()
    finally:
        api.remove_image(image.reference, noprune=True)
        api.remove_image(image.id)


def test_a_scheduled_prune_spoiled_every_later_trial_of_a_task(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    """A process asked for the image once, and then used its id to the end."""
    environment = on_base(tmp_path, "RUN cat /proc/sys/kernel/random/uuid > /id", digest)
    first = provider.image(environment)
    connect().api.remove_image(first.reference)
    second = provider.image(environment)
    assert second.id != first.id
    with provider.open(SandboxSpec(name="second", image=second, environment=environment)):
        pass


def test_an_agent_was_blamed_for_a_copy_of_its_machine_that_a_prune_removed(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    """An `ImageError` of a judge's machine is reward 0; this one is the engine's, and the judge tries again."""
    image = provider.image(on_base(tmp_path, "RUN true", digest))
    with provider.open(SandboxSpec(name="agents", image=image, environment=Environment())) as machine:
        copy = machine.snapshot()
        connect().api.remove_image(copy.reference, noprune=True)
        spec = SandboxSpec(name="judges", image=copy, environment=Environment())
        with pytest.raises(EngineError, match=r"vanished .*`docker system prune`"), provider.open(spec):
            pass


def test_the_tag_of_a_build_names_its_base(provider: DockerSandboxes, tmp_path: Path, digest: str) -> None:
    """Otherwise a machine with a new base image would still use images built on the old one."""
    image = provider.image(on_base(tmp_path, "RUN true", digest))
    assert image.reference.endswith(base_image.tag().rpartition(":")[2])


def test_the_tag_of_a_build_names_the_base_of_an_earlier_suite(digest: str) -> None:
    """Otherwise a new base image of that suite alone would go unnoticed."""
    environment = Environment(digest=digest, build_args={"BASE": "assay-base-bullseye"})
    assert images._recipe(environment)[1].endswith(f"-{base_image.tag('bullseye').rpartition(':')[2]}")
    assert images._recipe(Environment(digest=digest))[1] == digest.removeprefix("sha256:")[:24]


def test_an_image_that_cannot_be_pulled_is_built_and_says_so(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    environment = on_base(tmp_path, "RUN true", digest, image="registry.invalid/no/image:1")
    for known in (provider, DockerSandboxes()):
        image = known.image(environment)
        assert image.origin == "built"
        assert "registry.invalid/no/image:1 could not be pulled; its Dockerfile was built" in image.note


def test_two_tasks_that_name_one_image_and_have_two_dockerfiles_got_the_first_ones_build(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    """The image cannot be pulled, so each task has its own built. The registry is asked once."""
    built = []
    for folder, mark in ((tmp_path / "one", digest), (tmp_path / "other", f"sha256:{uuid4().hex}")):
        folder.mkdir()
        environment = on_base(
            folder, f"RUN echo {folder.name} > /which", mark, image="registry.invalid/one/image:1"
        )
        built.append(provider.image(environment))
    connect().api.remove_image(built[1].reference, force=True)
    assert built[0].id != built[1].id
    assert all("could not be pulled; its Dockerfile was built" in image.note for image in built)


def test_an_image_that_can_be_neither_pulled_nor_built_is_an_error_at_once(provider: DockerSandboxes) -> None:
    began = time.monotonic()
    with pytest.raises(ImageError, match=r"registry\.invalid/no/image.*docker load"):
        provider.image(Environment(image="registry.invalid/no/image"))
    assert time.monotonic() - began < 20


def test_a_registry_that_accepts_and_says_nothing_is_given_up(
    provider: DockerSandboxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PULL_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"127.0.0.1:{silent.getsockname()[1]}/silent/image:1"
        began = time.monotonic()
        with pytest.raises(ImageError, match="no answer from its registry"):
            provider.image(Environment(image=name))
    assert time.monotonic() - began < 20


def test_a_failing_build_is_an_error_with_the_end_of_its_output(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    environment = on_base(tmp_path, "RUN seq 1000; echo the reason; exit 7", digest)
    with pytest.raises(ImageError, match=r"returned a non-zero code: 7(.|\n)*\n1000\nthe reason") as caught:
        provider.image(environment)
    assert "\n10\n" not in str(caught.value)


@pytest.mark.parametrize("dockerfile", ["NONSENSE", "FROM registry.invalid/no/image", ""])
def test_a_dockerfile_that_is_none_is_an_error(
    provider: DockerSandboxes, tmp_path: Path, digest: str, dockerfile: str
) -> None:
    with pytest.raises(ImageError, match="could not be built"):
        provider.image(Environment(context=context(tmp_path, dockerfile), digest=digest))


def test_neither_image_nor_dockerfile_is_an_error(provider: DockerSandboxes, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="no Dockerfile"):
        provider.image(Environment(context=tmp_path))


def test_a_broken_dockerfile_was_built_anew_for_every_trial(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    """Callers that wait fail with it, later calls of the same run hear the same, and another run tries again."""
    environment = on_base(tmp_path, "COPY start /start\nRUN sleep 1; cat /nothing", digest)
    (tmp_path / "start").write_text(digest)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(provider.image, environment) for _ in range(3)]
        failures = {id(future.exception()) for future in waiting}
    assert len(failures) == 1
    on_base(tmp_path, "RUN true", digest)
    with pytest.raises(ImageError, match=r"cat /nothing(.|\n)*tried once, for all trials of this run"):
        provider.image(environment)
    assert DockerSandboxes().image(environment).origin == "built"


def test_what_a_build_tells_a_terminal_is_no_part_of_its_error(
    provider: DockerSandboxes, tmp_path: Path, digest: str
) -> None:
    coloured = on_base(
        tmp_path, r"RUN printf '\033[31mred\033[0m \033]0;title\007plain \033(B\a\n'; exit 7", digest
    )
    with pytest.raises(ImageError) as caught:
        provider.image(coloured)
    assert r"red plain \x07" in str(caught.value).splitlines()
    assert "\x1b" not in str(caught.value)


def test_an_images_name_is_its_tasks(provider: DockerSandboxes, tmp_path: Path, digest: str) -> None:
    """Trials and their keys are unchanged: no digest contains the name."""
    unnamed = on_base(tmp_path, "RUN true", digest)
    reference = provider.image(unnamed).reference
    assert reference.startswith(f"{images.REPOSITORY}:{digest.removeprefix('sha256:')[:24]}-")
    named = unnamed.model_copy(update={"name": f"org/Some task!{'x' * 200}"})
    reference = DockerSandboxes().image(named).reference
    assert reference.startswith(f"{images.REPOSITORY}:org-Some-task-xxx")
    assert len(reference.partition(":")[2]) <= 128
    assert named.model_dump() == unnamed.model_dump()


@pytest.mark.parametrize("instruction", ["RUN sleep 600", "RUN while :; do echo still; sleep 0.2; done"])
def test_a_build_ends_at_its_limit(
    provider: DockerSandboxes, tmp_path: Path, digest: str, instruction: str
) -> None:
    environment = on_base(tmp_path, instruction, digest, build_timeout_seconds=2.0)
    began = time.monotonic()
    with pytest.raises(ImageError, match="limit of 2 s"):
        provider.image(environment)
    assert time.monotonic() - began < 60


def test_what_dockerignore_excludes_stays_out(provider: DockerSandboxes, tmp_path: Path, digest: str) -> None:
    for name in ("kept", "secret"):
        (tmp_path / name).write_text(name)
    (tmp_path / ".dockerignore").write_text("# none of these\nsecret\n")
    environment = on_base(tmp_path, "COPY . /in\nRUN test -e /in/kept && ! test -e /in/secret", digest)
    assert provider.image(environment).origin == "built"
