"""Containers for the tests that concern Docker alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from runner.records import Environment, ExecResult, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes


@pytest.fixture
def limits() -> dict[str, Any]:
    """Return no limits; tests of a limit override this."""
    return {}


@pytest.fixture
def provider(limits: dict[str, Any]) -> DockerSandboxes:
    base_image.ensure(connect(), print)
    return DockerSandboxes(**limits)


@pytest.fixture(scope="module")
def plain() -> Iterator[DockerSandbox]:
    """Return one container without special limits, shared by all tests that leave it unchanged."""
    base_image.ensure(connect(), print)
    with ExitStack() as stack:
        yield _start(stack, DockerSandboxes())


@pytest.fixture
def start(provider: DockerSandboxes) -> Iterator[Callable[..., DockerSandbox]]:
    """Start containers of the base image as root in /workspace; the test's end removes them."""
    with ExitStack() as stack:
        yield lambda **spec: _start(stack, provider, **spec)


def _start(stack: ExitStack, provider: DockerSandboxes, **spec: object) -> DockerSandbox:
    environment = Environment(image=base_image.tag(), workdir="/workspace")
    image = spec.get("image") or provider.image(environment)
    given = {"name": "test", "environment": environment, "user": "root", **spec, "image": image}
    return stack.enter_context(provider.open(SandboxSpec.model_validate(given)))  # type: ignore[return-value]


@pytest.fixture
def bash() -> Callable[..., ExecResult]:
    """Run a script in a sandbox."""

    def bash(sandbox: DockerSandbox, script: str, **spec: object) -> ExecResult:
        return sandbox.exec(ExecSpec.model_validate({"argv": ("bash", "-c", script), **spec}))

    return bash
