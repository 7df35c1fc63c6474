"""The transport beneath litellm, through which every request to a provider passes.

Each request is counted, waits for its turn, and is known to be answered or not, even those that litellm or its clients
repeat unseen.

With `model.stream=through` the provider is asked for a stream. Its events go to the agent as they come, and litellm
gets the complete answer as if nothing had been streamed. So the same code meters and prices both kinds of calls.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from http import HTTPStatus
from types import ModuleType

import aiohttp
import httpx

from runner.gateway.answer_checks import NotAnAnswer, api_of, check, countable, excerpt, read, with_arguments
from runner.gateway.api import Api, Json, Stream

NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
"""Failures before any byte of a request has reached the provider, as raised beneath litellm's transport. The
`httpx.ConnectError` above it also covers a connection that was reset while the provider worked."""
OBJECTS = frozenset({"messages", "gemini"})
"""APIs in which a call's arguments are an object."""
OF_A_BODY = frozenset({"content-length", "content-encoding", "transfer-encoding"})
"""Headers about the transfer of the provider's body, which do not fit the body passed on."""
ANSWER_BYTES = 32 * 2**20
"""Limit, in bytes, on an unpacked answer and on one line of a stream. Some providers repeat the request, which may have
half of that."""
STREAM_BYTES = 256 * 2**20
"""Limit on a whole stream, which takes some hundred bytes per token and is not stored."""
ERROR_BYTES = 8 * 2**10
"""Limit on the text of an error: litellm searches it with expressions that take seconds per megabyte."""
ANSWER_SECONDS = 3600.0
"""Longest time from the head of an answer to its end: an answer of one byte per second is never silent."""
PIECE_BYTES = 2**16
"""Limit on the bytes unpacked at once: a few packed bytes may hold millions."""
GEMINI_STREAM = ":streamGenerateContent"
"""End of the path for streams of Gemini's API, which has no field for that."""
UNPACKED = {"": None, "identity": None, "gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS}
"""Accepted content encoding -> zlib's window bits. Only gzip is asked for, since it can be unpacked piece by piece."""
ODD_EVENT = (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError)
"""Exceptions from reading an event that does not have the shape of one."""


class Outlet:
    """A queue of events from the provider to the agent while a call is under way."""

    def __init__(self, request: Json) -> None:
        self.request = request
        """The agent's request."""
        self.begun = False
        """True once an event was passed on; if so, the call is not retried."""
        self.ending = b""
        """End of the agent's stream, sent once the call is on the ledger."""
        self._events: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self.arrived = self._loop.create_future()
        """Future that is done as soon as there are events to take."""

    def put(self, events: bytes) -> None:
        """Queue events, from any loop. Empty bytes are ignored."""
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
        """Remove and return all queued events."""
        events, self._events = self._events, []
        if self.arrived.done():
            self.arrived = self._loop.create_future()
        return events


class Flight:
    """One try at a call."""

    def __init__(
        self,
        api: Api,
        turn: Callable[[], Awaitable[None]],
        deadline: Callable[[], float | None],
        outlet: Outlet | None = None,
        longest: float | None = None,
    ) -> None:
        """`turn` counts a request and waits for its turn, which moves `deadline` (monotonic seconds) on.

        `longest` is the time limit in seconds from the moment at which the try is sent.
        """
        self.turn, self._deadline, self._longest = turn, deadline, longest
        self._sent_at: float | None = None
        self.open = False
        """True if a request was sent that has no whole answer, so that the provider may charge it."""
        self.sent = False
        """True once any request was sent to the provider."""
        self.limit = asyncio.timeout(None)
        """Time limit of the try, suspended while it waits for its turn."""
        self.clean: Callable[[Json], Json] = lambda event: event
        """Function that takes the provider's key out of a value."""
        self.secret = b""
        """Provider's key, taken out of a body before it is cut: half of the key would remain otherwise."""
        self.retry_after = ""
        """Provider's last Retry-After header."""
        self.failure: httpx.RequestError | None = None
        """Reason for a missing answer, which some clients above leave out of their errors."""
        self.requests = 0
        """Number of requests sent."""
        self.wire: Wire | None = None
        self.request: httpx.Request | None = None
        """The last request, and the wire that it was sent over."""
        self.whole: Json | None = None
        """The provider's last answer, if it is an object of one of the APIs."""
        self.received: httpx.Response | None = None
        """An answer that litellm shall read in place of sending its request."""
        self._api, self._outlet = api, outlet
        self._stream: Stream | None = None

    @property
    def begun(self) -> bool:
        """Return whether the agent has seen a part of the answer, so that there is no other try."""
        return self._outlet is not None and self._outlet.begun

    @property
    def streamed(self) -> bool:
        """Return whether the provider answered with a stream, which may be a single event."""
        return self._stream is not None

    @property
    def answer(self) -> Json:
        """The part of a streamed answer that has come so far."""
        return self._stream.answer if self._stream else {}

    def deadline(self) -> float | None:
        """Return the end of the try by `time.monotonic()`; None without a limit."""
        ends = (self._deadline(), self._cut_off)
        return min((end for end in ends if end is not None), default=None)

    @property
    def seconds(self) -> float:
        """Seconds since the try was sent; 0 if it was not."""
        return 0.0 if self._sent_at is None else time.monotonic() - self._sent_at

    @property
    def overlong(self) -> bool:
        """Return whether the try has taken as long as it may, whatever its session's deadline is."""
        return self._cut_off is not None and time.monotonic() >= self._cut_off

    @property
    def _cut_off(self) -> float | None:
        return None if self._longest is None or self._sent_at is None else self._sent_at + self._longest

    def moved(self) -> None:
        """Adopt the deadline after it has been extended. Called in the loop of the try."""
        if self.limit.when() is not None:
            with suppress(RuntimeError):  # the try is over
                self.limit.reschedule(self.deadline())

    async def send(
        self, request: httpx.Request, onward: Callable[[httpx.Request], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """Send a request and return its answer. After a failure, raise it again instead of letting litellm retry."""
        if self.failure:
            raise self.failure
        if self.received:
            received, self.received = self.received, None
            return received
        self.limit.reschedule(None)
        try:
            await self.turn()
            self._sent_at = self._sent_at or time.monotonic()
        finally:
            self.limit.reschedule(self.deadline())
        streamed = self._outlet is not None and api_of(request.url.path) == api_of(self._api.path)
        request.headers["accept-encoding"] = "gzip"
        self.request, self.requests, self.whole = request, self.requests + 1, None
        self.sent = self.open = True
        try:
            sent = _streaming(request, self._api) if streamed else request
            return await self._receive(await onward(sent), api_of(request.url.path))
        except httpx.RequestError as error:
            self.open = self.open and not isinstance(error.__cause__, NOT_SENT)
            self.failure = error
            raise

    async def _receive(self, response: httpx.Response, api: str | None) -> httpx.Response:
        """Read the whole answer of an API, to notice one that breaks off or is not an answer."""
        self.open = response.is_success
        self.retry_after = response.headers.get("retry-after", "")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._read(response, api)
        except NotAnAnswer:
            # The provider has written nothing that we know of, unless the agent has seen a part of it.
            self.open = self.begun
            raise
        except TimeoutError as error:
            raise httpx.ReadTimeout(f"The answer had no end after {ANSWER_SECONDS:g} seconds.") from error
        finally:
            await response.aclose()

    async def _read(self, response: httpx.Response, api: str | None) -> httpx.Response:
        status = response.status_code
        headers = {name: value for name, value in response.headers.items() if name not in OF_A_BODY}

        def replaced(content: bytes) -> httpx.Response:
            return httpx.Response(status, headers=headers, content=content, request=response.request)

        if status >= HTTPStatus.BAD_REQUEST:
            content = await _beginning(response, ERROR_BYTES + len(self.secret))
            return replaced(self._without_key(content)[:ERROR_BYTES])
        if not response.is_success:
            raise NotAnAnswer(_redirection(response))
        if self._outlet and api and "text/event-stream" in response.headers.get("content-type", ""):
            answer = await self._pass_on(response, self._outlet)
        else:
            content = await _whole(response)
            if not api:  # a provider's own API, which litellm knows
                return replaced(content)
            answer = read(self._without_key(content))
        check(answer, str(api))
        answer = with_arguments(countable(answer, str(api)), str(api), objects=self._api.name in OBJECTS)
        self.whole = answer
        headers["content-type"] = "application/json"
        return replaced(json.dumps(answer).encode())

    def _without_key(self, content: bytes) -> bytes:
        return content.replace(self.secret, b"[key]") if self.secret else content

    async def _pass_on(self, response: httpx.Response, outlet: Outlet) -> Json:
        """Pass the events of a stream on, and return the complete answer."""
        self._stream = stream = self._api.stream(outlet.request)
        async for data in _events(response):
            event = read(self._without_key(data))
            if failure := _failure(event):
                raise NotAnAnswer(f"its stream says: {excerpt(json.dumps(self.clean({'error': failure})))}")
            try:
                outlet.put(stream.pass_on(self.clean(event)))
            except ODD_EVENT as error:
                raise NotAnAnswer(f"an event is malformed: {excerpt(json.dumps(event))!r}") from error
        if stream.ending is None:
            raise NotAnAnswer("its stream broke off before its end")
        outlet.ending = stream.ending
        return stream.answer


FLIGHT: ContextVar[Flight | None] = ContextVar("FLIGHT", default=None)
"""The try under way. A context variable belongs to one call; see `scripted.SCRIPT`."""


class Wire(httpx.AsyncBaseTransport):
    """A transport that sends each request through its flight, over litellm's own transport beneath."""

    def __init__(self, beneath: httpx.AsyncBaseTransport) -> None:
        self._beneath = beneath
        self._under_way = 0
        # Before litellm closes a client that fell out of its cache, it asks whether the connections in its transport's
        # `_pool` are idle; a transport without a pool counts as idle. This object stands for all of its connections.
        self._pool, self.connections = self, [self]

    def is_idle(self) -> bool:
        """Return whether no call is under way."""
        return not self._under_way

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request of litellm's. With a flight, return once the whole answer has come."""
        flight, onward = FLIGHT.get(), self._beneath.handle_async_request
        self._under_way += 1
        if flight:
            flight.wire = self
        try:
            return await (flight.send(request, onward) if flight else onward(request))
        finally:
            self._under_way -= 1

    async def aclose(self) -> None:
        """Close the transport beneath."""
        await self._beneath.aclose()


def install(litellm: ModuleType) -> None:
    """Put a wire beneath every client that litellm makes. Only some of its providers take a client from outside."""
    handler = litellm.AsyncHTTPHandler
    handler.create_async_transport = staticmethod(
        lambda **settings: Wire(handler.create_aiohttp_transport(**settings))
    )


def _streaming(request: httpx.Request, api: Api) -> httpx.Request:
    """Return the request, changed so that it asks for a stream, in its body or by its address."""
    url, end = request.url, api_of(api.path)
    if api.stream_path and end:
        path = url.path.removesuffix(end) + GEMINI_STREAM
        url = url.copy_with(path=path).copy_merge_params({"alt": "sse"})
    content = json.dumps(json.loads(request.content) | api.streaming).encode()
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    return httpx.Request(request.method, url, headers=headers, content=content, extensions=request.extensions)


def _failure(event: Json) -> object:
    """Return the error that an event reports, by itself or within a whole response."""
    response = event.get("response")
    within = response.get("error") if isinstance(response, dict) else None
    named = event if event.get("type") in ("error", "response.failed") else None
    return event.get("error") or within or named


def _redirection(response: httpx.Response) -> str:
    """Describe a redirection, which is not followed because a provider's key goes nowhere else."""
    with suppress(httpx.InvalidURL, ValueError):
        host = response.request.url.join(response.headers.get("location", "")).host
        return f"status {response.status_code}, which leads to {host!r} and is not followed"
    return f"status {response.status_code}"


async def _unpacked(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the unpacked bytes of a body in small pieces. Raises `NotAnAnswer`."""
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in UNPACKED:
        raise NotAnAnswer(f"it is packed by {excerpt(packing)!r}, which was not asked for")
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
        if unpacking.eof:  # anything that follows would collect in memory and be copied with each piece
            return
    yield unpacking.flush()


async def _whole(response: httpx.Response) -> bytes:
    """Return a whole body. Raises `NotAnAnswer` if it is too long."""
    content = bytearray()
    async for piece in _unpacked(response):
        content += piece
        if len(content) > ANSWER_BYTES:
            raise NotAnAnswer(f"it is longer than {ANSWER_BYTES} bytes: {excerpt(bytes(content[:5000]))!r}")
    return bytes(content)


async def _beginning(response: httpx.Response, most: int) -> bytes:
    """Return at most `most` bytes of a body, stopping where it cannot be unpacked."""
    content = bytearray()
    with suppress(NotAnAnswer):
        async for piece in _unpacked(response):
            content += piece
            if len(content) >= most:
                break
    return bytes(content[:most])


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the lines of a stream. Splits at newlines only: texts may hold other line separators."""
    line, came = bytearray(), 0
    async for piece in _unpacked(response):
        came += len(piece)
        *ended, rest = piece.split(b"\n")
        for one in ended:
            yield bytes(line + one)
            line.clear()
        line += rest
        if len(line) > ANSWER_BYTES or came > STREAM_BYTES:
            raise NotAnAnswer(f"its stream, or a line of it, is too long: {excerpt(bytes(line[:5000]))!r}")
    yield bytes(line)


async def _events(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the objects in a stream's `data:` lines, which are the whole event in all APIs."""
    async for line in _lines(response):
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data.startswith(b"{"):
            yield data
