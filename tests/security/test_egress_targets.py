"""A request at the proxy has exactly one reading, whose target is checked, counted and connected to.

Servers and proxies read odd requests differently: one may find an allowed host where the other finds another.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from runner.gateway import egress as module
from runner.gateway.egress import Egress
from runner.gateway.sockets import GATEWAY_SOCKET
from tests.support.serving import serving

GOOD, EVIL = "good.example", "evil.example"


class Site(BaseHTTPRequestHandler):
    """A handler that returns all requests of a connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        reply = (
            f"{self.command} {self.path} {self.headers.get_all('Host')} {body!r} {self.headers['Upgrade']};"
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply.encode())
        self.close_connection = False  # like a server that ignores `Connection: close`

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[int]:
    with serving(Site) as port:
        yield port


@pytest.fixture(scope="module")
def proxy(site: int) -> Iterator[Egress]:
    """Open a proxy to one allowed host, at any address; each name is an address of this machine."""
    resolve = socket.getaddrinfo

    def here(_: str, port: int, **options: int) -> object:
        return resolve("127.0.0.1", port, **options)

    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(module, "PORTS", {site, 80, 443})
        patch.setattr(socket, "getaddrinfo", here)
        folder = Path(stack.enter_context(TemporaryDirectory()))
        yield stack.enter_context(Egress(folder, (GOOD, "2606:4700::1", "1.2.3.4"), lambda _: True))


def ask(proxy: Egress, request: bytes, *, ends: bool = True) -> str:
    """Return the whole reply; with `ends`, end the sending side first."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(proxy.folder / "egress.sock"))
        client.sendall(request)
        if ends:
            client.shutdown(socket.SHUT_WR)
        try:
            return b"".join(iter(lambda: client.recv(65_536), b"")).decode("latin-1")
        except ConnectionResetError:
            return ""


TUNNELS = [
    # A path, a query, a user beside the authority.
    "good.example:443/", "good.example:443/evil.example:443", "good.example:443/@evil.example:443",
    "good.example:443?x",
    "good.example:443#@evil.example", "evil.example@good.example:443", "good.example@evil.example:443",
    "good.example:443@evil.example:443", "good.example:x@evil.example:443", "http://good.example:443",
    "https://good.example:443/", "//good.example:443", "/good.example:443", "good.example\\@evil.example:443",
    "good.example:443\\evil.example:443", "good.example;evil.example:443", "good.example,evil.example:443",
    # Ports.
    "good.example", "good.example:", "good.example:0", "good.example:00443", "good.example:0443", "good.example:65536",
    "good.example:65979", "good.example:99999", "good.example:100443", "good.example:+443", "good.example:-443",
    "good.example:443:443", "good.example:4_43", "good.example:0x1bb", "good.example:https", "good.example:443.0",
    "good.example:\xb2", ":443", "443",
    # Blanks.
    "good.example:443 evil.example:443", "good.example :443", "good.example: 443", " good.example:443",
    "good.example:443 ", "good.example\t:443", "\tgood.example:443", "good.example\x0b:443", "good.example\xa0:443",
    "good.example\x00.evil.example:443", "good.example\x00:443", "good.example:443\x00",
    # Line ends.
    "good.example:443\r\nHost: evil.example", "good.example:443\n", "good.example:443\r",
    "good.example:443 HTTP/1.1\nX:", "good.example%0d%0aHost:evil.example:443",
    # Names.
    "good.example%2eevil.example:443", "%67ood.example:443", "good.example%00.evil.example:443", "g%6fod.example:443",
    "good..example:443", ".good.example:443", "good.example..:443", "-good.example:443", "good-.example:443",
    "*:443", "*.example:443", "g\xf6\xf6d.example:443", "good.ex\xe4mple:443", "\xad.good.example:443",
    "good.example\u3002evil:443", "a" * 64 + ".example:443", "a." * 127 + "example:443", "good.example" * 30 + ":443",
    # Brackets.
    "[good.example]:443", "[good.example:443", "good.example]:443", "[]:443", "[:]:443", "[::1%25lo]:443",
    "[::1%lo]:443", "[fe80::1%1]:443", "[v1.x]:443", "[127.0.0.1]:443", "[[::1]]:443", "[::1]x:443", "x[::1]:443",
    "::1:443", "[::1]443", "[::ffff:1.2.3.256]:443", "[1::2::3]:443", "[12345::]:443", "[::1]:",
]  # fmt: skip


@pytest.mark.parametrize("target", TUNNELS, ids=ascii)
def test_a_tunnel_to_what_can_be_read_in_several_ways_is_refused(proxy: Egress, target: str) -> None:
    before = proxy.attempts
    answer = ask(
        proxy, f"CONNECT {target} HTTP/1.1\r\n\r\n".encode("utf-8" if "\u3002" in target else "latin-1")
    )
    assert answer.startswith("HTTP/1.1 400 "), answer
    assert proxy.attempts == before


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "good.example.evil.example", "evil-good.example", "xgood.example", "good.examplex"),
        *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1"),
        *("127.0.0.01", "0x7F.0.0.1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "16909060", "0x01020304", "1.2.772", "0"),
        *("01.2.3.4", "1.2.3.0x4", "0x", "1.2.3.0x"),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:1.2.3.4]", "[64:ff9b::102:304]", "[2606:4700::2]"),
        *("localhost", "LOCALHOST.", "metadata.google.internal", "xn--gd-fkaa.example"),
    ],
)  # fmt: skip
def test_a_host_that_is_not_allowed_is_refused_and_counted(proxy: Egress, host: str) -> None:
    answers = [ask(proxy, f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())]
    answers.append(ask(proxy, f"GET http://{host}/ HTTP/1.1\r\nHost: {GOOD}\r\n\r\n".encode()))
    assert all(answer.startswith("HTTP/1.1 403 ") for answer in answers)
    assert any(not one.allowed and one.host in host.lower() for one in proxy.attempts)


@pytest.mark.parametrize(
    "line",
    [
        "GET http://evil.example@good.example/ HTTP/1.1",
        "GET http://good.example@evil.example/ HTTP/1.1",
        "GET http://good.example:80@evil.example/ HTTP/1.1",
        "GET http://good.example:@evil.example/ HTTP/1.1",
        "GET http://good.example\\@evil.example/ HTTP/1.1",
        "GET http://good.example#@evil.example/ HTTP/1.1",
        "GET http://good.example/#@evil.example HTTP/1.1",
        "GET http://good.example?@evil.example/ HTTP/1.1",
        "GET http:///good.example/ HTTP/1.1",
        "GET http:good.example/ HTTP/1.1",
        "GET http:/good.example/ HTTP/1.1",
        "GET HTTP://good.example/ HTTP/1.1",
        "GET https://good.example/ HTTP/1.1",
        "GET ftp://good.example/ HTTP/1.1",
        "GET //good.example/ HTTP/1.1",
        "GET good.example/ HTTP/1.1",
        "GET good.example:443 HTTP/1.1",
        "GET / HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET http://good.example:00080/ HTTP/1.1",
        "GET http://good.example:0/ HTTP/1.1",
        "GET http://good.example:65616/ HTTP/1.1",
        "GET http://good.example:/ HTTP/1.1",
        "GET http://good.example/ http://evil.example/ HTTP/1.1",
        "GET http://good.example/a b HTTP/1.1",
        "GET http://good.example/\ta HTTP/1.1",
        "GET http://good.example/\x00 HTTP/1.1",
        "GET http://good.example/\xe4 HTTP/1.1",
        "GET http://good.example/\x7f HTTP/1.1",
        "GET  http://good.example/ HTTP/1.1",
        "GET\thttp://good.example/ HTTP/1.1",
        " GET http://good.example/ HTTP/1.1",
        "get http://good.example/ HTTP/1.1",
        "G\x00T http://good.example/ HTTP/1.1",
        "CONNECT http://good.example/ HTTP/1.1",
        "CONNECTX good.example:443 HTTP/1.1",
        "connect good.example:443 HTTP/1.1",
        f"{'A' * 21} http://good.example/ HTTP/1.1",
        "GET http://good.example/",
        "GET http://good.example/ HTTP/0.9",
        "GET http://good.example/ HTTP/2",
        "GET http://good.example/ HTTP/2.0",
        "GET http://good.example/ HTTP/1.2",
        "GET http://good.example/ HTTP/1.10",
        "GET http://good.example/ http/1.1",
        "GET http://good.example/ HTTP/1.1 ",
        "GET http://good.example/ HTTP/1.1\t",
        "PRI * HTTP/2.0",
        "\r\nGET http://good.example/ HTTP/1.1",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "\x05\x01\x00",
    ],
    ids=ascii,
)
def test_a_first_line_that_can_be_read_in_several_ways_is_refused(proxy: Egress, line: str) -> None:
    before = proxy.attempts
    answer = ask(proxy, f"{line}\r\nHost: good.example\r\n\r\n".encode("latin-1"))
    assert answer.startswith("HTTP/1.1 400 "), answer
    assert proxy.attempts == before


@pytest.mark.parametrize(
    "fields",
    [
        "Content-Length: 5\r\nContent-Length: 0",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 0",
        "Content-Length: +5",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length: ",
        "Content-Length: five",
        "Content-Length: 5\x0b",
        "Content-Length: \xb2",
        "Content-Length: " + "9" * 30,
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding:\tchunked",
        "TRANSFER-ENCODING: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        " Transfer-Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\x00\r\nHost: evil.example",
        "Host: evil.example\rX: y",
        "Transf\xe9r-Encoding: chunked",
        "Content-Length",
        ": 5",
    ],
    ids=ascii,
)
def test_a_body_whose_end_is_a_matter_of_opinion_is_refused(proxy: Egress, site: int, fields: str) -> None:
    """Otherwise a second request could hide in the body, for another host at the same address."""
    head = f"POST http://good.example:{site}/ HTTP/1.1\r\n{fields}\r\n\r\n".encode("latin-1")
    answer = ask(proxy, head + b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert answer.startswith(("HTTP/1.1 400 ", "HTTP/1.1 411 ")), answer


HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n"


@pytest.mark.parametrize(
    ("request_", "answered"),
    [
        (b"GET http://good.example:%d/seen HTTP/1.1\r\n\r\n", "GET /seen"),
        (b"GET http://good.example:%d/seen HTTP/1.0\r\n\r\n", "GET /seen"),
        (b"GET http://good.example:%d/seen HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "GET /seen"),
        (b"POST http://good.example:%d/seen HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", "POST /seen"),
        (b"GET http://good.example:%d/seen HTTP/1.1\r\nConnection: keep-alive\r\n\r\n", "GET /seen"),
        (b"GET http://good.example:%d/seen HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", "GET /seen"),
    ],
    ids=["no body", "HTTP 1.0", "empty body", "a body", "kept open", "upgraded"],
)  # fmt: skip
def test_nothing_follows_a_request(proxy: Egress, site: int, request_: bytes, answered: str) -> None:
    answer = ask(proxy, request_ % site + HIDDEN)
    assert f"{answered} ['good.example:{site}']" in answer
    assert "None;" in answer, "no upgrade"
    assert "hidden" not in answer


@pytest.mark.parametrize(
    "host",
    [
        "Host: evil.example",
        "Host: good.example\r\nHost: evil.example",
        "Host: evil.example\r\nHost: good.example",
        "Host:\tevil.example",
        "HOST: evil.example",
        "Host: ",
        "Host: good.example@evil.example",
        "Host: evil.example\r\nConnection: Host",
    ],
)
def test_the_host_header_says_nothing(proxy: Egress, site: int, host: str) -> None:
    """The host in the first line replaces it."""
    answer = ask(proxy, f"GET http://good.example:{site}/ HTTP/1.1\r\n{host}\r\n\r\n".encode())
    assert f"['good.example:{site}']" in answer
    assert "evil" not in answer


@pytest.mark.parametrize(
    "target", ["good.example", "GOOD.example", "good.example.", "1.2.3.4", "[2606:4700::1]"]
)
def test_an_allowed_host_is_reached_in_its_usual_spellings(proxy: Egress, site: int, target: str) -> None:
    answer = ask(
        proxy, f"CONNECT {target}:{site} HTTP/1.1\r\nHost: x\r\n\r\nGET /in HTTP/1.0\r\n\r\n".encode()
    )
    assert answer.startswith("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK")
    assert any(
        one.allowed and one.host == target.lower().strip("[]").removesuffix(".") for one in proxy.attempts
    )


@pytest.mark.parametrize(
    "path", ["/", "/a?b=http://evil.example/", "/a//b/../c", "/%2e%2e/%23", "/:443@evil.example"]
)
def test_a_path_arrives_as_it_is(proxy: Egress, site: int, path: str) -> None:
    assert f"GET {path} " in ask(proxy, f"GET http://good.example:{site}{path} HTTP/1.1\r\n\r\n".encode())


def test_a_body_in_chunks_still_reaches_the_trials_own_gateway(proxy: Egress) -> None:
    """The name server answers nobody else, and some clients send their questions so."""
    body = b"4\r\nbody\r\n0\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as gateway:
        gateway.bind(str(proxy.folder / GATEWAY_SOCKET))
        gateway.listen()
        gateway.settimeout(20)
        received = []

        def serve() -> None:
            connection, _ = gateway.accept()
            with connection:
                received.append(b"".join(iter(lambda: connection.recv(65_536), b"")))

        thread = Thread(target=serve, daemon=True)
        thread.start()
        ask(
            proxy,
            b"POST http://127.0.0.1:4180/v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body,
        )
        thread.join(20)
    assert received[0].endswith(body)
