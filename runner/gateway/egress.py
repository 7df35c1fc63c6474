"""One trial's way to named hosts: an HTTP proxy on a socket of its own, beside the gateway's and apart from its loop.

A sandbox has no network, so whatever it asks of the world and is not its model comes here as CONNECT, or as a plain
request with an absolute address, and is counted. Names are resolved on this side, once, and the connection goes to
exactly the address that was checked. Programs that ignore HTTP(S)_PROXY reach nothing; the names that they look up come
here too and are counted. Connections to bare addresses fail at once inside, where the kernel counts them and keeps no
address (to hear of those takes a route, and so NET_ADMIN, in each sandbox). What cannot be seen, as everywhere behind
CONNECT, is what an allowed host is asked for.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, Self

from runner.errors import GatewayError
from runner.gateway.addresses import Address, is_public
from runner.gateway.lookups import Lookups
from runner.gateway.server import SOCKET
from runner.records import EgressAttempt, Record
from runner.sandbox.inside import DNS_SOCKET, EGRESS_SOCKET, GATEWAY_PORT
from runner.sandbox.network import permits

PORTS = frozenset({80, 443})
LAST_PORT = 65_535
CONNECTIONS = 64
"""At once for one trial; more are hung up on, so that an agent cannot take the runner's file descriptors."""
RESOLVERS = 4
HEAD_BYTES = 16_384
HEAD_SECONDS = 10.0
CONNECT_SECONDS = 15.0
CHUNK = 65_536
ROWS = 256
"""Different (host, port) that are told apart; an agent can make up names for ever, the rest is one row."""
OTHERS = "(others)"
ADDRESSES = "(addresses)"
GATEWAY = ("127.0.0.1", GATEWAY_PORT)
"""Asked of the proxy by agents that do not know NO_PROXY: led to the trial's own gateway, and no attempt to leave."""
HOST = r"\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_][A-Za-z0-9._-]{0,252}"
PORT = r"[1-9][0-9]{0,4}"
TUNNEL = re.compile(rf"(CONNECT) ({HOST}):({PORT})() HTTP/1\.[01]")
"""The authority and nothing else, with its port."""
PLAIN = re.compile(rf"(?!CONNECT )([A-Z]{{1,20}}) http://({HOST})(?::({PORT}))?(/[!-\"$-~]*)? HTTP/1\.[01]")
"""An absolute address without a user, in which the path begins with a slash, and no fragment."""
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of an IPv4 address, in whichever of its spellings."""
FIELD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*")
"""A header's line. Without a blank before the colon, a second line, or a bare line feed, which servers read in ways of
their own."""
OURS = frozenset(
    {b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te", b"trailer"}
    | {b"upgrade", b"http2-settings"}
)
"""Headers that are not passed on as they come: a host other than the one that was checked is nobody's to name, and what
is agreed upon for one connection is between its two ends."""
LENGTH = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*")
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
DOORS = (EGRESS_SOCKET, DNS_SOCKET)
Way = Literal["proxy", "dns", "direct"]
DNS_PORT = 53


class Target(Record):
    """What one request at the proxy asks for."""

    method: str
    host: str
    port: int
    path: str
    length: int | None = None
    """Bytes of the body, which are all that is passed on; None where there is no end to them, as in a tunnel."""

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.host}:{self.port}"

    @property
    def tunnel(self) -> bool:
        """Whether bytes are carried both ways untouched."""
        return self.method == "CONNECT"


class RefusedError(Exception):
    """Why a request is answered with `status` and goes nowhere."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def outside(address: Address) -> bool:
    """Whether an address is of the public internet, and not one of this machine's."""
    return is_public(address) and not _is_own(address)


@contextmanager
def egress(hosts: tuple[str, ...], socket_dir: Path | None = None) -> Iterator[Egress]:
    """A proxy in the folder of a trial's gateway, or in a new one. Raises `GatewayError`."""
    with ExitStack() as stack:
        if socket_dir is None:
            # Two levels: the outer one keeps other users of this machine out, the inner one is what sandboxes mount.
            socket_dir = Path(stack.enter_context(TemporaryDirectory(prefix="assay-"))) / "egress"
            socket_dir.mkdir()
            socket_dir.chmod(0o755)
        yield stack.enter_context(Egress(socket_dir, hosts))


class Egress:
    """Serves one trial's proxy, in a thread of its own, while its context is open."""

    def __init__(
        self, folder: Path, hosts: tuple[str, ...], reachable: Callable[[Address], bool] = outside
    ) -> None:
        """`folder` is mounted into the sandbox; `hosts` as in `sandbox.network`; `reachable` has the last word."""
        self.folder, self._hosts, self._reachable = folder, hosts, reachable
        self._seen: Counter[tuple[str, int, Way, bool]] = Counter()
        self._lookups = Lookups(self._heard)
        self._open_now = 0
        self._resolvers = ThreadPoolExecutor(RESOLVERS)

    @property
    def attempts(self) -> tuple[EgressAttempt, ...]:
        """What was asked for so far, most often first."""
        return tuple(
            EgressAttempt(host=host, port=port, way=way, allowed=allowed, count=count)
            for (host, port, way, allowed), count in self._seen.copy().most_common()
        )

    def unrouted(self, count: int | None) -> None:
        """What a sandbox's kernel has counted until now, as `protocols.Sandbox.counted` has it."""
        if count:
            self._seen[ADDRESSES, 0, "direct", False] = count

    @property
    def hears_lookups(self) -> bool:
        """Whether a sandbox ever was in touch to tell of them; else that none is counted says nothing."""
        return self._lookups.connected

    def __enter__(self) -> Self:
        """Raises `GatewayError`."""
        with ExitStack() as undo:
            proxy, names = (undo.enter_context(_door(self.folder / name)) for name in DOORS)
            undo.pop_all()
        started: Future[None] = Future()
        run = self._run(proxy, names, started)
        self._thread = threading.Thread(target=asyncio.run, args=(run,), name="egress", daemon=True)
        self._thread.start()
        started.result()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._resolvers.shutdown(wait=False, cancel_futures=True)  # a lookup can take long to fail
        for name in DOORS:
            (self.folder / name).unlink(missing_ok=True)

    async def _run(self, proxy: socket.socket, names: socket.socket, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        servers = [
            await asyncio.start_unix_server(partial(self._serve, exchange), sock=door, limit=HEAD_BYTES)
            for door, exchange in ((proxy, self._exchange), (names, self._lookups.serve))
        ]
        started.set_result(None)
        await self._stop.wait()
        for server in servers:
            server.close()  # connections end with the loop

    async def _serve(
        self, exchange: Exchange, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._open_now += 1
        try:
            if self._open_now <= CONNECTIONS:
                await exchange(reader, writer)
        except RefusedError as refusal:
            writer.write(_response(refusal.status, str(refusal)))
        except OSError:
            pass  # one of the ends is gone
        except asyncio.CancelledError:
            writer.transport.abort()  # the trial is over; `close` would wait for what nobody reads
        finally:
            self._open_now -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target, rest = await _read(reader)
        with await self._connect(target) as host:
            if target.tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await self._loop.sock_sendall(host, rest)
            await _together(_request(reader, host, target.length), _answer(host, writer))

    async def _connect(self, target: Target) -> socket.socket:
        """A connection to what was asked for. Raises `RefusedError`, `OSError`."""
        if (target.host, target.port) == GATEWAY:
            return await _connected(socket.AF_UNIX, str(self.folder / SOCKET))
        if target.port not in PORTS or _is_disguised(target.host) or not permits(self._hosts, target.host):
            self._count(target.host, target.port, "proxy", allowed=False)
            raise RefusedError("403 Forbidden", f"{target.name} is not among this trial's allowed hosts.")
        found = await self._resolve(target)
        addresses = [address for address in found if self._reachable(address)]
        self._count(target.host, target.port, "proxy", allowed=bool(addresses) or not found)
        if found and not addresses:
            raise RefusedError("403 Forbidden", f"{target.name} is at an address that no sandbox may reach.")
        for address in addresses:
            with suppress(OSError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await _connected(FAMILIES[address.version], (str(address), target.port))
        raise RefusedError(
            "502 Bad Gateway", f"{target.name} {'does not answer' if found else 'has no address'}."
        )

    async def _resolve(self, target: Target) -> list[Address]:
        ask = partial(socket.getaddrinfo, target.host, target.port, type=socket.SOCK_STREAM)
        try:
            found = await self._loop.run_in_executor(self._resolvers, ask)
        except (OSError, UnicodeError):
            return []
        return [ipaddress.ip_address(str(address[0])) for *_, address in found]

    def _heard(self, name: str) -> None:
        self._count(name, DNS_PORT, "dns", allowed=permits(self._hosts, name))

    def _count(self, host: str, port: int, way: Way, *, allowed: bool) -> None:
        key = (host, port, way, allowed)
        known = key in self._seen or len(self._seen) < ROWS
        self._seen[key if known else (OTHERS, 0, way, allowed)] += 1


def _door(path: Path) -> socket.socket:
    """A socket at this path that any user of the sandbox may write to. Raises `GatewayError`."""
    with ExitStack() as undo:
        door = undo.enter_context(socket.socket(socket.AF_UNIX))
        try:
            door.bind(str(path))
            path.chmod(0o666)
            door.listen()
        except OSError as error:
            raise GatewayError(f"The egress proxy cannot open {path}: {error}.") from error
        undo.pop_all()
    return door


async def _read(reader: asyncio.StreamReader) -> tuple[Target, bytes]:
    """The target, and what an origin server is sent in its place. Raises `RefusedError`."""
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise RefusedError("400 Bad Request", "This is no request to a proxy.") from error
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    start = first.decode("latin-1")
    match = TUNNEL.fullmatch(start) or PLAIN.fullmatch(start)
    name = match and _name(match[2])
    if not match or not name or int(match[3] or 80) > LAST_PORT:
        raise RefusedError("400 Bad Request", "This is no request to a proxy.")
    if not all(map(FIELD.fullmatch, lines)):
        raise RefusedError("400 Bad Request", "A header of this request can be read in several ways.")
    method, port, path = match[1], int(match[3] or 80), match[4] or "/"
    fields = [(field.lower(), value, line) for line in lines for field, _, value in [line.partition(b":")]]
    bounded = method != "CONNECT" and (name, port) != GATEWAY
    length = _length([(field, value) for field, value, _ in fields]) if bounded else None
    target = Target(method=method, host=name, port=port, path=path, length=length)
    kept = [line for field, _, line in fields if field not in OURS]
    host = f"{f'[{name}]' if ':' in name else name}{f':{port}' if match[3] else ''}"
    begin = f"{method} {path} HTTP/1.1\r\nHost: {host}".encode()
    # One request a connection: a second one could be for another host.
    return target, b"\r\n".join((begin, *kept, b"Connection: close", b"", b""))


def _name(host: str) -> str:
    """A host in its one spelling: lower case, without brackets and the last dot; empty if it is none."""
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            return ""
    name = host.lower().removesuffix(".")
    return name if all(map(LABEL.fullmatch, name.split("."))) else ""


def _is_disguised(name: str) -> bool:
    """Whether a name is an IPv4 address in another spelling than its own, such as 127.1 or 0x7f000001."""
    if not NUMBER.fullmatch(name.rpartition(".")[2]):
        return False
    try:
        return str(ipaddress.IPv4Address(name)) != name
    except ValueError:
        return True


def _length(fields: list[tuple[bytes, bytes]]) -> int:
    """How many bytes a request's body has. Raises `RefusedError` where servers could be of several opinions."""
    if any(field == b"transfer-encoding" for field, _ in fields):
        raise RefusedError("411 Length Required", "A body needs a Content-Length here.")
    lengths = [LENGTH.fullmatch(value) for field, value in fields if field == b"content-length"]
    if not all(lengths) or len(lengths) > 1:
        raise RefusedError("400 Bad Request", "The length of this request can be read in several ways.")
    return int(lengths[0][1]) if lengths and lengths[0] else 0


async def _connected(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    """A bare socket: where the other side hangs up on what it is sent, a transport forgets what it has said before.

    Raises `OSError`.
    """
    with ExitStack() as undo:
        host = undo.enter_context(socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
        if family != socket.AF_UNIX:
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(host, address)
        undo.pop_all()
    return host


async def _together(*ways: Coroutine[None, None, None]) -> None:
    """Both ways until both have ended; a broken one ends the other."""
    pumps = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _request(client: asyncio.StreamReader, host: socket.socket, length: int | None) -> None:
    """Copy until end of file, or so many bytes, and pass the end on.

    As the forwarder inside (`sandbox.supervise`) does for the gateway's answers, the rest of what a host has answered
    already is read all the same.
    """
    loop, hears = asyncio.get_running_loop(), True
    while data := await client.read(CHUNK):
        passed = data if length is None else data[:length]
        length = length and length - len(passed)
        try:
            if hears:
                await loop.sock_sendall(host, passed)
        except OSError:
            hears = False
    with suppress(OSError):
        host.shutdown(socket.SHUT_WR)


async def _answer(host: socket.socket, client: asyncio.StreamWriter) -> None:
    """Copy until end of file and pass that on; a host that has not read all that it was sent resets at its end."""
    loop = asyncio.get_running_loop()
    with suppress(ConnectionResetError):
        while data := await loop.sock_recv(host, CHUNK):
            client.write(data)
            await client.drain()
    client.write_eof()


def _response(status: str, reason: str) -> bytes:
    body = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def _is_own(address: Address) -> bool:
    """Whether it is an address of this machine: then packets to it would leave from it. Sends none."""
    with socket.socket(FAMILIES[address.version], socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))
        except OSError:
            return False  # no way there at all
        return ipaddress.ip_address(probe.getsockname()[0]) == address
