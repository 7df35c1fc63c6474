"""One trial's HTTP proxy to allowed hosts, on its own socket beside the gateway's, in its own thread and loop.

A sandbox has no network. Every request that is not for its model comes here as CONNECT, or as a plain request with an
absolute address, and is counted. Names are resolved on this side, once, and the connection goes to exactly the address
that was checked. Programs that ignore HTTP(S)_PROXY reach nothing; the names that they look up come here too and are
counted. Connections to bare addresses fail at once inside, where the kernel counts them without the address (seeing the
address would need a route, and so NET_ADMIN, in each sandbox). As behind every CONNECT, the requests to an allowed host
cannot be seen.
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
from runner.gateway.addresses import Address, is_inner, is_public
from runner.gateway.name_server import Lookups
from runner.gateway.sockets import GATEWAY_SOCKET, listen
from runner.records import EgressAttempt, Record
from runner.sandbox import certificates
from runner.sandbox.inside import AUTHORITIES, DNS_SOCKET, EGRESS_SOCKET, GATEWAY_PORT
from runner.sandbox.network import permits

PORTS = frozenset({80, 443})
LAST_PORT = 65_535
CONNECTIONS = 64
"""Limit on one trial's connections. Further ones are closed, so an agent cannot use up the runner's descriptors."""
RESOLVERS = 4
HEAD_BYTES = 16_384
HEAD_SECONDS = 10.0
CONNECT_SECONDS = 15.0
CHUNK = 65_536
ROWS = 256
"""Limit on counted pairs of host and port. An agent can invent names without end, so all others share one row."""
OTHERS = "(others)"
ADDRESSES = "(addresses)"
GATEWAY = ("127.0.0.1", GATEWAY_PORT)
"""Address that agents without support for NO_PROXY ask the proxy for. It leads to the trial's own gateway and is not
counted as an attempt to leave."""
HOST = r"\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9_][A-Za-z0-9._-]{0,252}"
PORT = r"[1-9][0-9]{0,4}"
TUNNEL = re.compile(rf"(CONNECT) ({HOST}):({PORT})() HTTP/1\.[01]")
"""A request for a tunnel: host and port, and nothing else."""
PLAIN = re.compile(rf"(?!CONNECT )([A-Z]{{1,20}}) http://({HOST})(?::({PORT}))?(/[!-\"$-~]*)? HTTP/1\.[01]")
"""A plain request: an absolute address without user and fragment, whose path begins with a slash."""
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of an IPv4 address in any of its spellings."""
FIELD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*")
"""A header's line. Servers disagree about a blank before the colon, a continued line and a bare line feed."""
OURS = frozenset(
    {b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te", b"trailer"}
    | {b"upgrade", b"http2-settings"}
)
"""Headers that are not passed on: the host must be the one that was checked, and the others concern one connection."""
LENGTH = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]*")
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
SOCKETS = (EGRESS_SOCKET, DNS_SOCKET)
Way = Literal["proxy", "dns", "direct"]
DNS_PORT = 53


class Target(Record):
    """The target of one request at the proxy."""

    method: str
    host: str
    port: int
    path: str
    length: int | None = None
    """Bytes of the body to pass on; None without a limit, as in a tunnel."""

    @property
    def name(self) -> str:
        """The host and port as people write them."""
        return f"{self.host}:{self.port}"


class RefusedError(Exception):
    """The reason for refusing a request with `status`."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def outside(address: Address) -> bool:
    """Return whether an address belongs to the public internet and not to this machine."""
    return is_public(address) and not _is_own(address)


def near(address: Address) -> bool:
    """Return whether an address belongs to the public internet or to a private network, and not to this machine."""
    return (is_public(address) or is_inner(address)) and not _is_own(address)


@contextmanager
def egress(
    hosts: tuple[str, ...], socket_dir: Path | None = None, trusted: tuple[str, ...] = ()
) -> Iterator[Egress]:
    """Open a proxy in the folder of a trial's gateway, or in a new one. Raises `GatewayError`.

    For `trusted` hosts the folder also gets the certificates of this machine's authorities.
    """
    with ExitStack() as stack:
        if socket_dir is None:
            # Two levels: the outer folder keeps other users of this machine out, the inner one is for sandboxes.
            socket_dir = Path(stack.enter_context(TemporaryDirectory(prefix="assay-"))) / "egress"
            socket_dir.mkdir()
            socket_dir.chmod(0o755)
        if trusted and (authorities := certificates.host_file()):
            file = socket_dir / AUTHORITIES
            stack.callback(file.unlink, missing_ok=True)
            file.write_bytes(authorities.read_bytes())
            file.chmod(0o644)
        yield stack.enter_context(Egress(socket_dir, hosts, trusted=trusted))


class Egress:
    """The proxy of one trial. A context manager; the server lives in its own thread."""

    def __init__(
        self,
        folder: Path,
        hosts: tuple[str, ...],
        reachable: Callable[[Address], bool] = outside,
        trusted: tuple[str, ...] = (),
    ) -> None:
        """`folder` is mounted into the sandbox; `hosts` are as in `sandbox.network`; `reachable` checks addresses.

        Hosts in `trusted` may also have an address that is `near`.
        """
        self.folder, self._hosts, self._reachable, self._trusted = folder, hosts, reachable, trusted
        self._counts: Counter[tuple[str, int, Way, bool]] = Counter()
        self._lookups = Lookups(self._count_lookup)
        self._open_now = 0
        self._resolvers = ThreadPoolExecutor(RESOLVERS)

    @property
    def attempts(self) -> tuple[EgressAttempt, ...]:
        """Attempts to leave the sandbox so far, the most frequent first."""
        return tuple(
            EgressAttempt(host=host, port=port, way=way, allowed=allowed, count=count)
            for (host, port, way, allowed), count in self._counts.copy().most_common()
        )

    def unrouted(self, count: int | None) -> None:
        """Set the number of unrouted connections so far, from `protocols.Sandbox.counted`."""
        if count:
            self._counts[ADDRESSES, 0, "direct", False] = count

    @property
    def hears_lookups(self) -> bool:
        """Return whether a sandbox ever connected to the name server. If not, a count of zero lookups means nothing."""
        return self._lookups.connected

    def __enter__(self) -> Self:
        """Open the sockets and start serving. Raises `GatewayError`."""
        try:
            with ExitStack() as undo:
                proxy, names = (undo.enter_context(listen(self.folder / name)) for name in SOCKETS)
                undo.pop_all()
        except OSError as error:
            raise GatewayError(f"The egress proxy cannot open a socket in {self.folder}: {error}.") from error
        started: Future[None] = Future()
        run = self._run(proxy, names, started)
        self._thread = threading.Thread(target=asyncio.run, args=(run,), name="egress", daemon=True)
        self._thread.start()
        started.result()
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._resolvers.shutdown(wait=False, cancel_futures=True)  # a lookup may fail only after minutes
        for name in SOCKETS:
            (self.folder / name).unlink(missing_ok=True)

    async def _run(self, proxy: socket.socket, names: socket.socket, started: Future[None]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        servers = [
            await asyncio.start_unix_server(partial(self._serve, exchange), sock=sock, limit=HEAD_BYTES)
            for sock, exchange in ((proxy, self._exchange), (names, self._lookups.serve))
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
            pass  # one end has hung up
        except asyncio.CancelledError:
            writer.transport.abort()  # the trial is over; `close` would wait until someone reads the rest
        finally:
            self._open_now -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target, rest = await _read(reader)
        with await self._connect(target) as host:
            if target.method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await self._loop.sock_sendall(host, rest)
            await _together(_request(reader, host, target.length), _answer(host, writer))

    async def _connect(self, target: Target) -> socket.socket:
        """Return a connection to the target. Raises `RefusedError`, `OSError`."""
        if (target.host, target.port) == GATEWAY:
            return await _connected(socket.AF_UNIX, str(self.folder / GATEWAY_SOCKET))
        if target.port not in PORTS or _is_disguised(target.host) or not permits(self._hosts, target.host):
            self._count(target.host, target.port, "proxy", allowed=False)
            raise RefusedError("403 Forbidden", f"{target.name} is not among this trial's allowed hosts.")
        found = await self._resolve(target)
        reachable = near if permits(self._trusted, target.host) else self._reachable
        addresses = [address for address in found if reachable(address)]
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

    def _count_lookup(self, name: str) -> None:
        self._count(name, DNS_PORT, "dns", allowed=permits(self._hosts, name))

    def _count(self, host: str, port: int, way: Way, *, allowed: bool) -> None:
        key = (host, port, way, allowed)
        has_row = key in self._counts or len(self._counts) < ROWS
        self._counts[key if has_row else (OTHERS, 0, way, allowed)] += 1


async def _read(reader: asyncio.StreamReader) -> tuple[Target, bytes]:
    """Read the head of a request. Return its target and the head for the origin server. Raises `RefusedError`."""
    try:
        async with asyncio.timeout(HEAD_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise RefusedError("400 Bad Request", "This is not a request to a proxy.") from error
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    start = first.decode("latin-1")
    match = TUNNEL.fullmatch(start) or PLAIN.fullmatch(start)
    name = match and _name(match[2])
    if not match or not name or int(match[3] or 80) > LAST_PORT:
        raise RefusedError("400 Bad Request", "This is not a request to a proxy.")
    if not all(map(FIELD.fullmatch, lines)):
        raise RefusedError("400 Bad Request", "A header of this request can be read in several ways.")
    method, port, path = match[1], int(match[3] or 80), match[4] or "/"
    fields = [(field.lower(), value, line) for line in lines for field, _, value in [line.partition(b":")]]
    bounded = method != "CONNECT" and (name, port) != GATEWAY
    length = _length([(field, value) for field, value, _ in fields]) if bounded else None
    target = Target(method=method, host=name, port=port, path=path, length=length)
    passed = [line for field, _, line in fields if field not in OURS]
    host = f"{f'[{name}]' if ':' in name else name}{f':{port}' if match[3] else ''}"
    begin = f"{method} {path} HTTP/1.1\r\nHost: {host}".encode()
    # Only one request per connection: a second one could be for another host.
    return target, b"\r\n".join((begin, *passed, b"Connection: close", b"", b""))


def _name(host: str) -> str:
    """Return a host in its canonical spelling (lower case, no brackets, no final dot), or empty if it is not valid."""
    if host.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host[1:-1]))
        except ValueError:
            return ""
    name = host.lower().removesuffix(".")
    return name if all(map(LABEL.fullmatch, name.split("."))) else ""


def _is_disguised(name: str) -> bool:
    """Return whether a name is an IPv4 address in an unusual spelling, such as 127.1 or 0x7f000001."""
    if not NUMBER.fullmatch(name.rpartition(".")[2]):
        return False
    try:
        return str(ipaddress.IPv4Address(name)) != name
    except ValueError:
        return True


def _length(fields: list[tuple[bytes, bytes]]) -> int:
    """Return the length of a request's body in bytes. Raises `RefusedError` where servers could disagree about it."""
    if any(field == b"transfer-encoding" for field, _ in fields):
        raise RefusedError("411 Length Required", "A body needs a Content-Length here.")
    lengths = [LENGTH.fullmatch(value) for field, value in fields if field == b"content-length"]
    if not all(lengths) or len(lengths) > 1:
        raise RefusedError("400 Bad Request", "The length of this request can be read in several ways.")
    return int(lengths[0][1]) if lengths and lengths[0] else 0


async def _connected(family: socket.AddressFamily, address: str | tuple[str, int]) -> socket.socket:
    """Connect a bare socket. Raises `OSError`.

    A transport would lose the answer of a server that hangs up before it has read the whole request.
    """
    with ExitStack() as undo:
        host = undo.enter_context(socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK))
        if family != socket.AF_UNIX:
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(host, address)
        undo.pop_all()
    return host


async def _together(*directions: Coroutine[None, None, None]) -> None:
    """Copy in both directions until both have ended; if one fails, the other is cancelled."""
    pumps = [asyncio.create_task(direction) for direction in directions]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _request(client: asyncio.StreamReader, host: socket.socket, length: int | None) -> None:
    """Copy a request to its host, at most `length` bytes, and then end the sending side.

    The rest is read even if the host has answered and hung up, as the forwarder inside (`sandbox.supervise`) does.
    """
    loop, is_open = asyncio.get_running_loop(), True
    while data := await client.read(CHUNK):
        passed = data if length is None else data[:length]
        length = length and length - len(passed)
        try:
            if is_open:
                await loop.sock_sendall(host, passed)
        except OSError:
            is_open = False
    with suppress(OSError):
        host.shutdown(socket.SHUT_WR)


async def _answer(host: socket.socket, client: asyncio.StreamWriter) -> None:
    """Copy an answer to the client and end it. A host that has not read the whole request resets the connection."""
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
    """Return whether an address belongs to this machine: packets to it would then leave from it. Sends nothing."""
    with socket.socket(FAMILIES[address.version], socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))
        except OSError:
            return False  # there is no route
        return ipaddress.ip_address(probe.getsockname()[0]) == address
