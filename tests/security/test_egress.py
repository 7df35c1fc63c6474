"""The proxy to allowed hosts, over its socket, in front of real servers on this machine."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pydantic import ValidationError

from runner.errors import GatewayError
from runner.gateway import egress as module
from runner.gateway.addresses import Address
from runner.gateway.egress import CONNECTIONS, Egress, egress, outside
from runner.records import EgressAttempt, Environment
from runner.sandbox.docker.provider import DockerSandboxes
from runner.sandbox.network import allowed, canonical, permits
from tests.support.serving import serving
from tests.support.waiting import until


class Site(BaseHTTPRequestHandler):
    """A handler that echoes its request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        hosts = ",".join(self.headers.get_all("Host", []))
        body = f"{self.path} {hosts} {self.headers['Proxy-Authorization']}".encode()
        self.send_response(302 if self.path == "/redirect" else 200)
        self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Serve a web site on this machine, whose port is allowed."""
    with serving(Site) as port:
        monkeypatch.setattr(module, "PORTS", {port})
        yield port


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Callable[..., Egress]]:
    with ExitStack() as stack:

        def start(*hosts: str, reachable: Callable[[Address], bool] = lambda _: True) -> Egress:
            return stack.enter_context(Egress(tmp_path, hosts, reachable))

        yield start


def ask(proxy: Egress, request: str, *, as_it_is: bool = False) -> str:
    """Send a request with correct line ends, and return the whole reply."""
    lines = request if as_it_is else request.replace("\n", "\r\n")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(proxy.folder / "egress.sock"))
        client.sendall(lines.encode() + b"\r\n\r\n")
        return b"".join(iter(lambda: client.recv(65_536), b"")).decode()


def test_an_allowed_host_is_reached_through_a_tunnel(proxy: Callable[..., Egress], site: int) -> None:
    tunnel = proxy("localhost")
    answer = ask(
        tunnel, f"CONNECT localhost:{site} HTTP/1.1\n\nGET /x HTTP/1.1\nHost: here\nConnection: close"
    )
    assert answer.startswith("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert answer.endswith("/x here None")
    assert tunnel.attempts == (EgressAttempt(host="localhost", port=site, allowed=True, count=1),)


def test_a_plain_request_is_passed_on_without_what_was_the_proxys(
    proxy: Callable[..., Egress], site: int
) -> None:
    head = f"GET http://LOCALHOST:{site}/a?b HTTP/1.1\nHost: here\nProxy-Authorization: Basic x"
    assert ask(proxy("localhost"), head).endswith(f"/a?b localhost:{site} None")


def test_only_a_trusted_host_may_lie_in_a_private_network(
    tmp_path: Path, site: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And even that is never this machine."""
    request = f"CONNECT localhost:{site} HTTP/1.1"
    with Egress(tmp_path, ("localhost",), trusted=("localhost",)) as server:
        assert ask(server, request).startswith("HTTP/1.1 403 ")
    monkeypatch.setattr(module, "near", lambda _: True)
    with Egress(tmp_path, ("localhost",), trusted=("other.example",)) as server:
        assert ask(server, request).startswith("HTTP/1.1 403 ")
    with Egress(tmp_path, ("localhost",), trusted=("localhost",)) as server:
        assert ask(server, f"{request}\n\nGET / HTTP/1.1\nConnection: close").startswith("HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "line",
    [
        "CONNECT other.example:443 HTTP/1.1",
        "CONNECT localhost:22 HTTP/1.1",
        "CONNECT 127.0.0.1:443 HTTP/1.1",
        "CONNECT [::1]:443 HTTP/1.1",
        "CONNECT 2130706433:443 HTTP/1.1",
        "GET http://other.example/ HTTP/1.1",
    ],
)
def test_anything_else_is_refused_and_counted(proxy: Callable[..., Egress], line: str) -> None:
    server = proxy("localhost")
    assert ask(server, line).startswith("HTTP/1.1 403 ")
    assert ask(server, line).startswith("HTTP/1.1 403 ")
    (attempt,) = server.attempts
    assert (attempt.allowed, attempt.count) == (False, 2)


@pytest.mark.parametrize(
    "line",
    [
        "GET /v1/models HTTP/1.1",
        "GET http://user:word@localhost/ HTTP/1.1",
        "CONNECT http://localhost:443 HTTP/1.1",
        "GET http://localhost/ HTTP/1.1 x",
        "x" * 100_000,
        "",
    ],
)
def test_what_is_no_request_to_a_proxy_is_refused(proxy: Callable[..., Egress], line: str) -> None:
    server = proxy("localhost")
    assert ask(server, line).startswith("HTTP/1.1 400 ")
    assert server.attempts == ()


@pytest.mark.parametrize(
    "header",
    [
        "Host : other.example",
        "X: y\\nHost: other.example",
        "X: y\\rHost: other.example",
        " Host: other.example",
        "X: y\n Host: other.example",
        "Host",
        ": x",
        "X: \0",
    ],
)
def test_a_header_that_can_be_read_in_several_ways_is_refused(
    proxy: Callable[..., Egress], site: int, header: str
) -> None:
    server = proxy("localhost")
    # Only the test's own line feeds become line ends; an escaped one stays bare.
    lines = f"GET http://localhost:{site}/ HTTP/1.1\n{header}".replace("\n", "\r\n")
    answer = ask(server, lines.replace("\\n", "\n").replace("\\r", "\r"), as_it_is=True)
    assert answer.startswith("HTTP/1.1 400 "), answer
    assert server.attempts == ()


def test_the_host_that_was_checked_is_the_host_that_is_named(proxy: Callable[..., Egress], site: int) -> None:
    """Otherwise one allowed host of many at an address would open all of them, uncounted."""
    head = f"GET http://localhost:{site}/ HTTP/1.1\nhOST: other.example\nHost: another.example"
    assert ask(proxy("localhost"), head).endswith(f"/ localhost:{site} None")


def test_a_second_request_on_a_connection_has_no_answer(proxy: Callable[..., Egress], site: int) -> None:
    get = f"GET http://localhost:{site}/%s HTTP/1.1\nHost: x\nConnection: keep-alive"
    answer = ask(proxy("localhost"), f"{get % 1}\n\n{get % 2}")
    assert "/1 localhost" in answer
    assert "/2" not in answer


@pytest.mark.parametrize("head", ["CONNECT localhost:%d HTTP/1.1", "PUT http://localhost:%d/ HTTP/1.1"])
def test_an_answer_that_comes_before_the_requests_end_arrives(
    proxy: Callable[..., Egress], monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    """The agent got a broken connection instead, in 197 of 200 large uploads that a host refused."""
    with socket.create_server(("127.0.0.1", 0)) as host:
        port = host.getsockname()[1]
        monkeypatch.setattr(module, "PORTS", {port})
        server = proxy("localhost")
        for _ in range(10):
            with socket.socket(socket.AF_UNIX) as agent:
                agent.settimeout(20)
                agent.connect(str(server.folder / "egress.sock"))
                agent.sendall(f"{head % port}\r\n\r\n".encode())
                connection, _ = host.accept()
                connection.sendall(b"too large")
                Thread(target=_refuse, args=(connection,), daemon=True).start()
                agent.sendall(bytes(4_000_000))
                agent.shutdown(socket.SHUT_WR)
                assert b"".join(iter(partial(agent.recv, 100), b"")).endswith(b"too large")


def _refuse(connection: socket.socket) -> None:
    with connection:
        connection.recv(100)


EVERYTHING = ("0.0.0.0/0", "::/0", "*.example")


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "169.254.169.254", "10.0.0.1", "168.63.129.16", "0.0.0.0"),
        *("[::1]", "[::]", "[::127.0.0.1]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "[fe80::1]"),
        *("[64:ff9b::a9fe:a9fe]", "[2002:7f00:1::1]", "[0:0:0:0:0:0:0:1]"),
    ],
)
def test_not_even_a_list_of_everything_leads_inside(proxy: Callable[..., Egress], host: str) -> None:
    server = proxy(*EVERYTHING, reachable=outside)
    for line in (f"CONNECT {host}:443 HTTP/1.1", f"GET http://{host}/latest/meta-data/ HTTP/1.1"):
        assert ask(server, line).startswith("HTTP/1.1 403 ")
    assert {attempt.allowed for attempt in server.attempts} == {False}


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.1.", "localhost"]
)
def test_an_address_in_another_spelling_is_no_entry(proxy: Callable[..., Egress], host: str) -> None:
    server = proxy(*EVERYTHING, reachable=outside)
    assert ask(server, f"CONNECT {host}:443 HTTP/1.1").startswith("HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00:ec2::254"]
)
def test_an_allowed_name_that_is_bound_to_the_inside_is_refused(
    proxy: Callable[..., Egress], monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    server = proxy("*.example", reachable=outside)
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, port, **options: resolve(address, port, **options))
    assert ask(server, "CONNECT rebound.example:443 HTTP/1.1").startswith("HTTP/1.1 403 ")
    assert [attempt.allowed for attempt in server.attempts] == [False]


def test_of_several_addresses_only_those_outside_are_tried(
    proxy: Callable[..., Egress], site: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The site is at the address that is not public."""
    server = proxy("*.example", reachable=lambda address: str(address) == "127.0.0.9")
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda _, port, **options: [
            found for host in ("127.0.0.1", "127.0.0.9") for found in resolve(host, port, **options)
        ],
    )
    answer = ask(server, f"GET http://two.example:{site}/ HTTP/1.1\nHost: x")
    assert answer.startswith("HTTP/1.1 502 "), answer


def test_a_redirect_inside_is_passed_on_and_leads_nowhere(proxy: Callable[..., Egress], site: int) -> None:
    """The client that follows it asks again, and is checked again."""
    server = proxy("localhost", reachable=lambda address: str(address) in ("127.0.0.1", "::1"))
    answer = ask(server, f"GET http://localhost:{site}/redirect HTTP/1.1\nHost: x")
    (location,) = (line[10:] for line in answer.split("\r\n") if line.startswith("Location: "))
    assert ask(server, f"GET {location} HTTP/1.1").startswith("HTTP/1.1 403 ")


def test_a_name_that_leads_to_this_machine_is_refused_though_allowed(proxy: Callable[..., Egress]) -> None:
    """Others choose the address of a name, and can choose this machine's."""
    names = ("localhost", socket.gethostname().lower())
    server = proxy(*names, reachable=outside)
    for name in names:
        assert ask(server, f"CONNECT {name}:443 HTTP/1.1").startswith("HTTP/1.1 403 ")
    assert {attempt.allowed for attempt in server.attempts} == {False}


def test_the_name_is_resolved_once_and_the_checked_address_is_used(
    proxy: Callable[..., Egress], site: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name server that answers differently the second time is not asked a second time."""
    asked = []
    resolve = socket.getaddrinfo

    def rebinding(host: str, port: int, **options: Any) -> object:
        asked.append(host)
        return resolve("127.0.0.1" if len(asked) == 1 else "192.0.2.1", port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    answer = ask(proxy("rebinding.example"), f"GET http://rebinding.example:{site}/ HTTP/1.1\nHost: x")
    assert "200 OK" in answer
    assert asked[0] == "rebinding.example"
    assert "rebinding.example" not in asked[1:]


def test_an_allowed_name_without_an_address_is_no_refusal(proxy: Callable[..., Egress]) -> None:
    server = proxy("*.invalid")
    assert ask(server, "CONNECT nowhere.invalid:443 HTTP/1.1").startswith("HTTP/1.1 502 ")
    assert server.attempts[0].allowed


OURS = (
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "172.17.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
)
DISGUISED = (
    "::1",
    "::",
    "fe80::1",
    "fd00::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
)


@pytest.mark.parametrize("address", [*OURS, *DISGUISED, "224.0.0.1", "ff02::1"])
def test_private_addresses_are_not_outside(address: str) -> None:
    assert not outside(ipaddress.ip_address(address))


def test_this_machines_public_address_is_not_outside_either() -> None:
    """Services of this machine listen on it, too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("198.51.100.1", 9))
        own = probe.getsockname()[0]
    assert not outside(ipaddress.ip_address(own))
    assert outside(ipaddress.ip_address("1.1.1.1"))


@pytest.mark.parametrize(
    ("host", "permitted"),
    [
        ("example.org", True),
        ("EXAMPLE.org.", True),
        ("sub.example.org", False),
        ("a.b.example.net", True),
        ("example.net", False),
        ("badexample.net", False),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("198.51.100.200", True),
        ("2001:db8::5", True),
        ("a.example.net.other.example", False),
        ("example.org.other.example", False),
        ("*.example.net", True),  # a name like others, without an address
        ("198.51.100.0/24", True),
    ],
)
def test_entries_of_a_list(host: str, *, permitted: bool) -> None:
    hosts = canonical(("Example.org.", "*.example.net", "192.0.2.7", "198.51.100.0/24", "2001:db8::/32"))
    assert permits(hosts, host) is permitted


def test_an_agent_that_knows_no_exceptions_still_reaches_its_model(
    proxy: Callable[..., Egress], tmp_path: Path
) -> None:
    server = proxy()
    with socket.socket(socket.AF_UNIX) as gateway:
        gateway.bind(str(tmp_path / "gateway.sock"))
        gateway.listen()
        gateway.settimeout(20)

        def serve() -> None:
            connection, _ = gateway.accept()
            with connection:
                connection.sendall(b"got " + connection.recv(65_536))

        Thread(target=serve, daemon=True).start()
        answer = ask(server, "POST http://127.0.0.1:4180/v1/messages HTTP/1.1\nHost: x")
    assert answer == "got POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:4180\r\nConnection: close\r\n\r\n"
    assert server.attempts == ()


def test_names_without_end_take_no_memory_without_end(proxy: Callable[..., Egress]) -> None:
    server = proxy()
    for number in range(module.ROWS + 20):
        ask(server, f"CONNECT n{number}.example:443 HTTP/1.1")
    assert len(server.attempts) == module.ROWS + 1
    assert server.attempts[0] == EgressAttempt(host="(others)", port=0, allowed=False, count=20)


def test_too_many_connections_are_hung_up_on(proxy: Callable[..., Egress]) -> None:
    server = proxy()
    with ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(server.folder / "egress.sock"))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            ask(server, "CONNECT x.example:443 HTTP/1.1")

    def answered() -> bool:
        with suppress(ConnectionResetError, BrokenPipeError):
            return ask(server, "CONNECT x.example:443 HTTP/1.1").startswith("HTTP/1.1 403 ")
        return False

    until(answered)


def test_the_end_comes_at_once_and_closes_what_is_open(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        port = silent.getsockname()[1]
        patch.setattr(module, "PORTS", {port})
        with Egress(tmp_path, ("127.0.0.1",), lambda _: True), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "egress.sock"))
            client.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            began = time.monotonic()
        assert time.monotonic() - began < 10
    assert not (tmp_path / "egress.sock").exists()


def test_without_a_gateway_it_has_a_folder_that_other_users_cannot_enter() -> None:
    with egress(()) as server:
        folder = server.folder
        assert folder.stat().st_mode & 0o777 == 0o755
        assert folder.parent.stat().st_mode & 0o777 == 0o700
    assert not folder.parent.exists()


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(GatewayError, match="cannot open"), Egress(tmp_path / "no", ()):
        pass


def test_a_list_of_hosts_belongs_to_its_mode() -> None:
    sandboxes = DockerSandboxes(network="allowlist", allowed_hosts=("Example.ORG.", "10.0.0.0/8"))
    assert allowed(sandboxes, Environment()) == ("example.org", "10.0.0.0/8")
    with pytest.raises(ValidationError, match="needs network=allowlist"):
        DockerSandboxes(allowed_hosts=("example.org",))
    with pytest.raises(ValidationError, match="takes host names"):
        DockerSandboxes(network="allowlist", allowed_hosts=("https://example.org",))


@pytest.mark.parametrize(
    ("mode", "declared", "hosts"),
    [
        ("open", "no-network", None),
        ("task", "public", None),
        ("task", "no-network", ()),
        ("task", "allowlist", ("a.example",)),
        ("gateway", "public", ()),
        ("gateway", "allowlist", ()),
        ("allowlist", "public", ()),
    ],
)
def test_what_a_mode_makes_of_what_a_task_declares(
    mode: str, declared: str, hosts: tuple[str, ...] | None
) -> None:
    task = {"network": declared} | ({"allowed_hosts": ("a.example",)} if declared == "allowlist" else {})
    sandboxes = DockerSandboxes.model_validate({"network": mode})
    assert allowed(sandboxes, Environment.model_validate(task)) == hosts
