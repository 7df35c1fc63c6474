"""The wire beneath litellm: every request to a provider passes here, so that each is counted, waits its turn, and is
known to have been answered or not, whatever litellm and the clients beneath it repeat unseen.

A streamed answer passes through here as well (`model.stream=through`): the provider is asked for a stream, its events
go to the agent as they come, and litellm gets the finished object that they make, as if nothing had been streamed. So
a call that passes through is metered, priced and recorded by the same code as one that is collected.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from http import HTTPStatus
from types import ModuleType

import aiohttp
import httpx

from runner.gateway.answers import NotAnAnswer, api_of, check, countable, read, shown, with_arguments
from runner.gateway.api import Api, Json, Stream

NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
"""Failures before anything of a request has reached the provider, as the client beneath litellm's transport names them:
of what they become above it, `httpx.ConnectError` is also a connection that was reset while the provider worked."""
OF_A_BODY = frozenset({"content-length", "content-encoding", "transfer-encoding"})
"""Headers that say how the body was sent, which is not how it is handed on."""
ANSWER_BYTES = 32 * 2**20
"""Cap on an unpacked answer, and on one line of a stream. Some providers repeat the request in it, which has half."""
STREAM_BYTES = 256 * 2**20
"""Cap on all that comes of a streamed answer. A token takes some hundred bytes of it, and is not kept."""
ERROR_BYTES = 8 * 2**10
"""What is read of an error: litellm searches its text by expressions that take seconds a megabyte."""
ANSWER_SECONDS = 3600.0
"""Longest time from the head of an answer to its end: one that comes a byte a second is never silent."""
PIECE_BYTES = 2**16
"""Unpacked at once: a few packed bytes may hold millions."""
UNPACKED = {"": None, "identity": None, "gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS}
"""How an answer may be packed -> zlib's name for it. Only `gzip` is asked for, since it can be unpacked bit by bit."""
ODD_EVENT = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""What reading an event raises that has not the shape of one."""


class Outlet:
    """Where the events of a call go that passes through: to the agent, while the call is under way."""

    def __init__(self, request: Json) -> None:
        self.request = request
        """The agent's body."""
        self.begun = False
        """Whether anything has been passed on: from there on nothing can be tried again."""
        self.ending = b""
        """What ends the agent's stream; sent when the ledger has the call."""
        self._events: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self.arrived = self._loop.create_future()
        """Done as soon as there is something to take."""

    def put(self, events: bytes) -> None:
        """Pass something on, from whatever loop; empty is nothing."""
        if not events:
            return
        self.begun = True
        if asyncio.get_running_loop() is self._loop:
            self._put(events)
        else:
            self._loop.call_soon_threadsafe(self._put, events)

    def _put(self, events: bytes) -> None:
        self._events.append(events)
        if not self.arrived.done():
            self.arrived.set_result(None)

    def take(self) -> list[bytes]:
        """All that came since the last time."""
        taken, self._events = self._events, []
        if self.arrived.done():
            self.arrived = self._loop.create_future()
        return taken


class Flight:
    """One try at a call."""

    def __init__(
        self,
        api: Api,
        turn: Callable[[], Awaitable[None]],
        deadline: Callable[[], float | None],
        outlet: Outlet | None = None,
    ) -> None:
        """`turn` counts a request and waits for its turn, which moves `deadline` (monotonic seconds) on."""
        self.turn, self.deadline = turn, deadline
        self.open = False
        """A request is sent that has no whole answer: the provider may charge it."""
        self.sent = False
        """A request was made of the provider, whatever came of it."""
        self.limit = asyncio.timeout(None)
        """On the try, set while it does not wait for its turn."""
        self.clean: Callable[[Json], Json] = lambda event: event
        """Takes the provider's key out of what is passed on."""
        self.secret = b""
        """The provider's key, taken out of what came before anything is cut there: half of it would be left."""
        self.retry_after = ""
        """What the provider said last of when to try again, as it wrote it."""
        self.failure: httpx.RequestError | None = None
        """Why there is no answer, which some of the clients above leave out of their errors."""
        self._api, self._outlet = api, outlet
        self._stream: Stream | None = None

    @property
    def begun(self) -> bool:
        """Whether the agent has seen something of an answer, so that there is no other try."""
        return self._outlet is not None and self._outlet.begun

    @property
    def answer(self) -> Json:
        """What is known of an answer that broke off."""
        return self._stream.answer if self._stream else {}

    def moved(self) -> None:
        """Keep to the deadline, which has moved on. Called in the loop of the try."""
        if self.limit.when() is not None:
            with suppress(RuntimeError):  # it is over
                self.limit.reschedule(self.deadline())

    async def send(
        self, request: httpx.Request, onward: Callable[[httpx.Request], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """One request, and its answer. One that failed without an answer is not repeated unseen, as litellm would."""
        if self.failure:
            raise self.failure
        self.limit.reschedule(None)
        try:
            await self.turn()
        finally:
            self.limit.reschedule(self.deadline())
        streamed = self._outlet is not None and request.url.path.endswith(self._api.path.removeprefix("/v1"))
        request.headers["accept-encoding"] = "gzip"
        self.sent = self.open = True
        try:
            return await self._received(await onward(_streaming(request, self._api) if streamed else request))
        except httpx.RequestError as error:
            self.open = self.open and not isinstance(error.__cause__, NOT_SENT)
            self.failure = error
            raise

    async def _received(self, response: httpx.Response) -> httpx.Response:
        """The whole answer, read here, so that one that breaks off is known to have, and one that is none is not taken
        for one.
        """
        self.open = response.is_success
        self.retry_after = response.headers.get("retry-after", "")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._read(response)
        except NotAnAnswer:
            # Nothing is known to have been written. Once the agent has seen something of it, something was.
            self.open = self.begun
            raise
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"The answer had no end after {ANSWER_SECONDS:g} seconds.") from error
        finally:
            await response.aclose()

    async def _read(self, response: httpx.Response) -> httpx.Response:
        status, api = response.status_code, api_of(response.request.url.path)
        kept = {name: value for name, value in response.headers.items() if name not in OF_A_BODY}
        if status >= HTTPStatus.BAD_REQUEST:
            content = await _beginning(response, ERROR_BYTES + len(self.secret))
            content = content.replace(self.secret, b"[key]") if self.secret else content
            return _handed_on(response, kept, content[:ERROR_BYTES])
        if not response.is_success:
            raise NotAnAnswer(_redirection(response))
        if self._outlet and "text/event-stream" in response.headers.get("content-type", ""):
            answer = await self._passed(response, self._outlet)
        else:
            content = await _whole(response)
            if not api:  # one of the provider's own, which litellm knows
                return _handed_on(response, kept, content)
            answer = read(content.replace(self.secret, b"[key]") if self.secret else content)
        check(answer, str(api))
        carried = with_arguments(countable(answer, str(api)), str(api), objects=self._api.name == "messages")
        content = json.dumps(carried).encode()
        return _handed_on(response, kept | {"content-type": "application/json"}, content)

    async def _passed(self, response: httpx.Response, outlet: Outlet) -> Json:
        """The finished object of a stream, whose events are passed on meanwhile."""
        self._stream = stream = self._api.stream(outlet.request)
        async for event in _events(response, self.secret):
            if failure := _failure(event):
                raise NotAnAnswer(f"its stream says: {shown(json.dumps(self.clean({'error': failure})))}")
            try:
                outlet.put(stream.pass_on(self.clean(event)))
            except ODD_EVENT as error:
                raise NotAnAnswer(f"an event is not one: {shown(json.dumps(event))!r}") from error
        if stream.ending is None:
            raise NotAnAnswer("its stream broke off before its end")
        outlet.ending = stream.ending
        return stream.answer


FLIGHT: ContextVar[Flight | None] = ContextVar("FLIGHT", default=None)
"""The try under way; as `SCRIPT`, a context variable belongs to one call."""


class Wire(httpx.AsyncBaseTransport):
    """A transport that leads each request through the flight it belongs to, onto litellm's own beneath it."""

    def __init__(self, beneath: httpx.AsyncBaseTransport) -> None:
        self._beneath = beneath
        self._under_way = 0
        # litellm looks at `_pool.connections` of a transport before it closes a client that fell out of its cache; it
        # takes one without for idle. This one stands for all of its connections.
        self._pool, self.connections = self, [self]

    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._under_way

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Called by the clients that litellm makes. With a flight, it returns when the whole answer is there."""
        flight, onward = FLIGHT.get(), self._beneath.handle_async_request
        self._under_way += 1
        try:
            return await (flight.send(request, onward) if flight else onward(request))
        finally:
            self._under_way -= 1

    async def aclose(self) -> None:
        """Called with the client that it is beneath."""
        await self._beneath.aclose()


def install(litellm: ModuleType) -> None:
    """Put a wire beneath every client that litellm makes. It takes a client of ours for some providers only."""
    handler = litellm.AsyncHTTPHandler
    handler.create_async_transport = staticmethod(
        lambda **settings: Wire(handler.create_aiohttp_transport(**settings))
    )


def _streaming(request: httpx.Request, api: Api) -> httpx.Request:
    """The same request, for a stream."""
    content = json.dumps(api.streaming(json.loads(request.content))).encode()
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx.Request(
        request.method, request.url, headers=headers, content=content, extensions=request.extensions
    )


def _failure(event: Json) -> object:
    """What an event says went wrong: an error, or a whole response that carries one."""
    response = event.get("response")
    within = response.get("error") if isinstance(response, dict) else None
    named = event if event.get("type") in ("error", "response.failed") else None
    return event.get("error") or within or named


def _handed_on(response: httpx.Response, headers: dict[str, str], content: bytes) -> httpx.Response:
    """What the clients above get of a response that was read here."""
    return httpx.Response(response.status_code, headers=headers, content=content, request=response.request)


def _redirection(response: httpx.Response) -> str:
    """What is said of a status that is neither success nor error. A provider's key goes where it was meant to go."""
    with suppress(httpx.InvalidURL, ValueError):
        host = response.request.url.join(response.headers.get("location", "")).host
        return f"status {response.status_code}, which leads to {host!r} and is not followed"
    return f"status {response.status_code}"


async def _unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """The bytes of a body, in pieces that are as small as they came. Raises `NotAnAnswer`."""
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in UNPACKED:
        raise NotAnAnswer(f"it is packed by {shown(packing)!r}, which was not asked for")
    bits = UNPACKED[packing]
    if bits is None:
        async for piece in response.aiter_raw():
            yield piece
        return
    unpacking = zlib.decompressobj(bits)
    async for piece in response.aiter_raw():
        rest = piece
        while rest and not unpacking.eof:
            try:
                yield unpacking.decompress(rest, PIECE_BYTES)
            except zlib.error as error:
                raise NotAnAnswer(f"it cannot be unpacked: {error}") from None
            rest = unpacking.unconsumed_tail
        if unpacking.eof:  # what follows would be gathered in memory, and copied with each piece
            return
    yield unpacking.flush()


async def _whole(response: httpx.Response) -> bytes:
    """A body, unless it is too long. Raises `NotAnAnswer`."""
    content = bytearray()
    async for piece in _unpacked(response):
        content += piece
        if len(content) > ANSWER_BYTES:
            raise NotAnAnswer(f"it is longer than {ANSWER_BYTES} bytes: {shown(bytes(content[:5000]))!r}")
    return bytes(content)


async def _beginning(response: httpx.Response, most: int) -> bytes:
    """Of a body, so many bytes at most; what is packed in a way that was not asked for is left out."""
    content = bytearray()
    with suppress(NotAnAnswer):
        async for piece in _unpacked(response):
            content += piece
            if len(content) >= most:
                break
    return bytes(content[:most])


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """The lines of a stream. Split at newlines only: the texts within may hold other separators of lines."""
    line, came = bytearray(), 0
    async for piece in _unpacked(response):
        came += len(piece)
        *ended, rest = piece.split(b"\n")
        for one in ended:
            yield bytes(line + one)
            line.clear()
        line += rest
        if len(line) > ANSWER_BYTES or came > STREAM_BYTES:
            raise NotAnAnswer(f"its stream, or a line of it, is too long: {shown(bytes(line[:5000]))!r}")
    yield bytes(line)


async def _events(response: httpx.Response, secret: bytes) -> AsyncIterator[Json]:
    """The objects in a stream's `data:` lines, which are the whole of each event in all three APIs."""
    async for line in _lines(response):
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data.startswith(b"{"):
            yield read(data.replace(secret, b"[key]") if secret else data)
