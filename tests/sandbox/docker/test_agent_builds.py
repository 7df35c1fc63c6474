"""Builds of Dockerfiles that an agent wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from socketserver import UnixStreamServer
from threading import Event, Thread, Timer
from typing import ClassVar
from uuid import uuid4

import pytest
from docker import APIClient

from runner.errors import EngineError
from runner.records import Build, BuildSpec, Environment, ExecSpec, SandboxSpec
from runner.sandbox.docker.agent_builds import CACHED, _Steps, marked
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.inside import PYTHON
from tests.sandbox.registry import registry
from tests.support.serving import serving

pytestmark = pytest.mark.docker

FROM = "ARG BASE\nFROM ${BASE}\n"
ENVIRONMENT = Environment(build_args={"BASE": "assay-base"}, storage_mb=64, memory_mb=256)


def spec(dockerfile: str, seconds: float = 120.0, **folders: Path) -> BuildSpec:
    return BuildSpec(
        name="test", dockerfile=dockerfile, folders=folders, environment=ENVIRONMENT, timeout_seconds=seconds
    )


def failed(provider: DockerSandboxes, dockerfile: str, seconds: float = 120.0) -> tuple[str, Build]:
    """Return the kind of error, after checking that nothing of the build runs any more."""
    with provider.build(spec(f"{FROM}{dockerfile}", seconds)) as build:
        assert build.image is None
        assert build.error
        left = connect().containers.list(all=True, filters={"label": "=".join(CACHED)}, ignore_removed=True)
        assert not [one for one in left if dockerfile.strip() in str(one.attrs)]
        return build.error.type, build


def test_an_image_is_there_as_long_as_the_context(provider: DockerSandboxes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "out").symlink_to("/etc/hostname")
    dockerfile = f'{FROM}COPY project /p\nUSER nobody\nWORKDIR /p\nENTRYPOINT ["false"]\nCMD ["false"]\n'
    provider.prepare((), print)
    with provider.build(spec(dockerfile, project=tmp_path)) as build:
        assert build.image
        opened = SandboxSpec(name="built", image=build.image, user="root", network="open", runtime=True)
        with provider.open(opened) as sandbox:
            found = sandbox.exec(ExecSpec(argv=("sh", "-c", "id -u; cat a.txt; readlink out; ls /opt/assay")))
        assert found.stdout.split() == ["0", "hello/etc/hostname", "python"]
        assert connect().images.list(build.image.reference)
    assert not connect().images.list(build.image.reference)


def test_nothing_of_an_agents_image_is_loaded_into_a_program_of_ours(provider: DockerSandboxes) -> None:
    """Its preloaded library once answered in place of the program that watches its tests."""
    ways = "RUN echo /no.so > /etc/ld.so.preload\nENV LD_PRELOAD=/no.so LD_AUDIT=/no.so\nVOLUME /etc\n"
    provider.prepare((), print)
    program = ExecSpec(argv=(PYTHON, "-c", "print('ours')"))
    with provider.build(spec(f"{FROM}{ways}")) as build:
        assert build.image
        opened = SandboxSpec(name="built", image=build.image, user="root", network="open", runtime=True)
        with provider.open(opened) as sandbox:
            found = sandbox.exec(program)
    assert (found.stdout, found.stderr) == ("ours\n", "")


def test_an_image_with_triggers_brings_a_build_nothing_of_this_machine(provider: DockerSandboxes) -> None:
    """Such a trigger can be an `ADD`, which the engine fetches from its own machine."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(Path(__file__).parent))
    with serving(handler) as port:
        name = f"test-{uuid4().hex[:8]}"
        with registry(name, f"ADD http://127.0.0.1:{port}/registry.py /x") as reference:
            dockerfile = f"FROM {reference} AS theirs\n{FROM}COPY --from=theirs /x /x\nRUN cat /x\n"
            with provider.build(spec(dockerfile)) as build:
                assert build.error
    connect().api.remove_image(reference, force=True)
    assert "ONBUILD" in build.error.message
    assert "Running in" not in build.output


def test_a_build_that_fails_says_how_and_is_not_on_this_machines_network(provider: DockerSandboxes) -> None:
    kind, build = failed(provider, "RUN cat /proc/net/dev; exit 3\n")
    assert kind == "BuildFailed"
    assert build.error
    assert "returned a non-zero code: 3" in build.error.message
    assert "eth0" in build.output
    assert "docker0" not in build.output


@pytest.mark.parametrize(
    "dockerfile", ["", "FROM", "NOTHING here", "FROM registry.example/x:1\n", "\x00\x1b[31m"]
)
def test_a_dockerfile_that_is_none_is_a_build_that_fails(provider: DockerSandboxes, dockerfile: str) -> None:
    with provider.build(spec(dockerfile)) as build:
        assert build.error
        assert build.error.type == "BuildFailed"


def test_a_silent_build_ends_at_its_limit(provider: DockerSandboxes) -> None:
    assert failed(provider, "RUN sleep 1001\n", seconds=1)[0] == "deadline"


def test_a_flood_of_output_ends_at_the_limit_and_its_end_is_kept(provider: DockerSandboxes) -> None:
    kind, build = failed(provider, "RUN yes flood\n", seconds=1)
    assert kind == "deadline"
    assert len(build.output) < 500_000


def test_a_build_that_fills_its_disk_is_ended(provider: DockerSandboxes) -> None:
    kind, build = failed(provider, "RUN for n in 1 2 3; do head -c 40M /dev/zero > /$n; done; sleep 1002\n")
    assert kind == "disk"
    assert build.error
    assert "64 MiB" in build.error.message


def test_a_build_that_is_cancelled_ends(provider: DockerSandboxes) -> None:
    cancelled = Event()
    Timer(1.0, cancelled.set).start()
    with provider.build(spec(f"{FROM}RUN sleep 1003\n"), cancelled.is_set) as build:
        assert build.error
        assert build.error.type == "cancelled"


class TestLimits:
    @pytest.fixture
    def limits(self) -> dict[str, int]:
        return {"pids": 40}

    def test_a_build_has_no_more_processes_than_a_sandbox(self, provider: DockerSandboxes) -> None:
        many = "RUN for n in $(seq 3000); do sleep 100 & sleep 0.02; done\n"
        kind, build = failed(provider, many)
        assert kind == "BuildFailed"
        assert "fork" in build.output


def test_every_layer_is_marked_as_ours() -> None:
    dockerfile = "# escape=`\nARG X\nFROM a `\n  AS one\nRUN x `\nFROM b\n\nFrom one\nRUN y"
    lines = marked(dockerfile, {"owner": "me"}).splitlines()
    label = 'LABEL assay.role="rerun"'
    assert lines == [
        "# escape=`", "ARG X", "FROM a `", "  AS one", label, "RUN x `", "FROM b", "", "From one", label, "RUN y",
        'LABEL owner="me"',
    ]  # fmt: skip


class ForgetfulEngine(BaseHTTPRequestHandler):
    """An engine that limits nothing, and lists a step's container at the first few looks."""

    listed: ClassVar[list[int]]

    def do_POST(self) -> None:
        self._say(500, {"message": "container not running"})

    def do_GET(self) -> None:
        self._say(200, [{"Id": "ended"}] if self.listed.pop(0) else [])

    def _say(self, code: int, answer: object) -> None:
        content = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def address_string(self) -> str:
        return "a Unix socket's client has none"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the library's name
        pass


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Callable[..., _Steps]]:
    """Return the steps of a build by an engine that lists a step's container at these looks."""
    api = APIClient(base_url=f"unix://{tmp_path}/engine", version="1.41", timeout=5)

    def steps(*listed: int) -> _Steps:
        ForgetfulEngine.listed = list(listed)
        return _Steps(api, 100)

    with UnixStreamServer(f"{tmp_path}/engine", ForgetfulEngine) as server, closing(api):
        Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield steps
        server.shutdown()


def test_a_step_that_ends_while_it_is_bounded_is_no_fault_of_the_engines(
    forgetful: Callable[..., _Steps],
) -> None:
    """The container is listed for a moment after its end, so a short step of an honest Dockerfile ended as
    our error.
    """
    forgetful(1, 1, 0)._start("ended")
    assert not ForgetfulEngine.listed


def test_a_step_that_cannot_be_bounded_does_not_run_for_long(
    forgetful: Callable[..., _Steps], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.sandbox.docker.agent_builds.UNBOUND_SECONDS", 0.5)
    with pytest.raises(EngineError, match=r"cannot be limited.*container not running"):
        forgetful(*[1] * 1000)._start("running")
