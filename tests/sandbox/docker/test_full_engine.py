"""An engine that fails at a machine for a reason of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from runner.errors import EngineError
from runner.records import Environment, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from tests.support.second_engine import SecondEngine

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("dockerd") is None, reason="needs a second engine"),
]


def fill(disk: Path) -> Path:
    """Write a file until the disk is full, and return it."""
    fill = f"exec head -c 1G /dev/zero > {disk}/fill"
    assert (
        "No space left"
        in subprocess.run(["sh", "-c", fill], capture_output=True, text=True, check=False).stderr
    )
    return disk / "fill"


@pytest.mark.timeout(180)
def test_an_engine_without_room_made_an_agent_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an agent made did not start, so its reward was 0."""
    base_image.ensure(connect(), print)
    with SecondEngine(state_megabytes=4) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        provider, environment = DockerSandboxes(), Environment(image=base_image.tag())
        spec = SandboxSpec(name="agents", image=provider.image(environment), environment=environment)
        with provider.open(spec) as machine:
            machine.exec(ExecSpec(argv=("touch", "/tmp/made")))
            judges = spec.model_copy(update={"name": "judges", "image": machine.snapshot()})
            filled = fill(engine.state)
            with pytest.raises(EngineError, match="no space left on device"), provider.open(judges):
                pass
            filled.unlink()
            with provider.open(judges) as judge:
                assert judge.exec(ExecSpec(argv=("ls", "/tmp"))).stdout == "made\n"
