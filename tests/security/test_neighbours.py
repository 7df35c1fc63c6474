"""Two sandboxes with an open network do not reach each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from runner.errors import EngineError
from runner.records import BuildSpec, Environment, ExecResult, ExecSpec, SandboxSpec
from runner.sandbox.docker import base_image, open_network
from runner.sandbox.docker.container import DockerSandbox
from runner.sandbox.docker.engine import connect
from runner.sandbox.docker.provider import DockerSandboxes

pytestmark = pytest.mark.docker

LISTEN = """
import os, socket, threading
tcp, udp = socket.create_server(("0.0.0.0", 8000)), socket.socket(type=socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", 8000))
if os.fork(): raise SystemExit
os.setsid()
for fd in range(3): os.close(fd)
def answer():
    while True:
        _, asker = udp.recvfrom(100); udp.sendto(b"reached", asker)
threading.Thread(target=answer, daemon=True).start()
while True: tcp.accept()[0].sendall(b"reached")
"""
ASK = """
import socket, sys
kind, host = sys.argv[1:]
try:
    with socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as s:
        s.settimeout(1.5); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.connect((host, 8000)); kind == "udp" and s.send(b"x"); print(s.recv(100).decode())
except OSError as error: print(error)
"""


class Pair(NamedTuple):
    """A listening sandbox, an attacking one, and the names of the first."""

    listening: DockerSandbox
    attacking: DockerSandbox
    places: dict[str, str]

    def ask(self, sandbox: DockerSandbox, kind: str, host: str) -> str:
        return python(sandbox, ASK, kind, host).stdout.strip()


def python(sandbox: DockerSandbox, script: str, *arguments: str) -> ExecResult:
    return sandbox.exec(ExecSpec(argv=("python3", "-c", script, *arguments), timeout_seconds=30))


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    base_image.ensure(connect(), print)
    provider, environment = DockerSandboxes(), Environment(image=base_image.tag(), workdir="/")
    image = provider.image(environment)
    with ExitStack() as stack:
        listening, attacking = (
            stack.enter_context(
                provider.open(
                    SandboxSpec(name=name, image=image, environment=environment, user="root", network="open")
                )
            )
            for name in ("listening", "attacking")
        )
        assert isinstance(listening, DockerSandbox)
        assert isinstance(attacking, DockerSandbox)
        assert python(listening, LISTEN).exit_code == 0
        found = connect().api.inspect_container(listening._id)
        (network,) = found["NetworkSettings"]["Networks"].values()
        prefix = network["IPAddress"].rsplit(".", 2)[0]
        places = {
            "address": network["IPAddress"],
            "name": found["Name"].lstrip("/"),
            "id": listening._id[:12],
            "gateway": network["Gateway"],
            "broadcast": f"{prefix}.255.255",
            "everybody": "255.255.255.255",
        }
        yield Pair(listening, attacking, places)


@pytest.mark.parametrize("kind", ["tcp", "udp"])
@pytest.mark.parametrize("place", ["address", "name", "id", "gateway", "broadcast", "everybody"])
def test_a_port_of_a_neighbour_is_out_of_reach(pair: Pair, kind: str, place: str) -> None:
    assert pair.ask(pair.attacking, kind, pair.places[place]) != "reached"


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_the_listener_answers_itself(pair: Pair, kind: str) -> None:
    """Otherwise the refusals above would prove nothing."""
    assert pair.ask(pair.listening, kind, pair.places["address"]) == "reached"


def test_no_second_protocol_leads_around(pair: Pair) -> None:
    assert python(pair.attacking, "print(open('/proc/net/if_inet6').read())").stdout.strip() == ""


def test_a_build_step_reaches_no_sandbox(pair: Pair) -> None:
    # The name makes the step a new one: an address comes again, and the builder's cache would answer.
    ask = (
        f": {pair.places['id']}; timeout 3 bash -c 'exec 3<>/dev/tcp/{pair.places['address']}/8000; cat <&3'"
    )
    spec = BuildSpec(
        name="neighbour",
        dockerfile=f"ARG BASE\nFROM ${{BASE}}\nRUN {ask} || echo refused\n",
        environment=Environment(build_args={"BASE": "assay-base"}),
        timeout_seconds=60,
    )
    with DockerSandboxes().build(spec) as build:
        assert build.image, build
        assert "refused" in build.output.splitlines()


def test_a_network_of_that_name_that_isolates_nobody_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    api = connect().api
    monkeypatch.setattr(open_network, "NAME", "assay-test-open")
    network = api.create_network("assay-test-open", labels={"assay.test": "neighbours"})["Id"]
    try:
        with pytest.raises(EngineError, match="docker network rm"):
            open_network.ensure(api)
    finally:
        api.remove_network(network)
