"""The wire beneath litellm: every request to a provider passes here, so that each is counted, waits its turn, and is
known to have been answered or not, whatever litellm and the clients beneath it repeat unseen.

A streamed answer passes through here as well (`model.stream=through`): the provider is asked for a stream, its events
go to the agent as they come, and litellm gets the finished object that they make, as if nothing had been streamed. So
a call that passes through is metered, priced and recorded by the same code as one that is collected.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from http import HTTPStatus
from types import ModuleType

import aiohttp
import httpx

from runner.gateway.api import Api, Json, Stream

NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
"""Failures before anything of a request has reached the provider, as the client beneath litellm's transport names them:
of what they become above it, `httpx.ConnectError` is also a connection that was reset while the provider worked."""
OF_A_BODY = frozenset({"content-length", "content-encoding", "content-type", "transfer-encoding"})
"""Headers that say how the body is written."""


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
        self.arrived = asyncio.get_running_loop().create_future()
        """Done as soon as there is something to take."""

    def put(self, events: bytes) -> None:
        """Pass something on; empty is nothing."""
        if not events:
            return
        self.begun = True
        self._events.append(events)
        if not self.arrived.done():
            self.arrived.set_result(None)

    def take(self) -> list[bytes]:
        """All that came since the last time."""
        taken, self._events = self._events, []
        if self.arrived.done():
            self.arrived = asyncio.get_running_loop().create_future()
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
        self.limit = asyncio.timeout(None)
        """On the try, set while it does not wait for its turn."""
        self.clean: Callable[[Json], Json] = lambda event: event
        """Takes the provider's key out of what is passed on."""
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
        self.open = True
        try:
            return await self._received(await onward(_streaming(request, self._api) if streamed else request))
        except httpx.RequestError as error:
            self.open = self.open and not isinstance(error.__cause__, NOT_SENT)
            self.failure = error
            raise

    async def _received(self, response: httpx.Response) -> httpx.Response:
        """The whole answer, read here, so that one that breaks off is known to have."""
        self.open = response.is_success
        self.retry_after = response.headers.get("retry-after", "")
        try:
            if self._outlet and "text/event-stream" in response.headers.get("content-type", ""):
                return await self._passed(response, self._outlet)
            await response.aread()
        finally:
            await response.aclose()
        return response

    async def _passed(self, response: httpx.Response, outlet: Outlet) -> httpx.Response:
        """The finished object of a stream, whose events are passed on meanwhile."""
        self._stream = stream = self._api.stream(outlet.request)
        async for data in _events(response):
            event = self.clean(data)
            if failure := _failure(event):
                raise httpx.ReadError(f"the provider's stream says: {json.dumps(failure)}")
            outlet.put(stream.pass_on(event))
        if stream.ending is None:
            raise httpx.ReadError("the provider's stream broke off before its end")
        outlet.ending = stream.ending
        kept = {name: value for name, value in response.headers.items() if name not in OF_A_BODY}
        return httpx.Response(HTTPStatus.OK, headers=kept, json=stream.answer, request=response.request)


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


async def _events(response: httpx.Response) -> AsyncIterator[Json]:
    """The objects in a stream's `data:` lines, which are the whole of each event in all three APIs.

    Split at newlines only: the texts within may hold other separators of lines.
    """
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            data = line.removeprefix(b"data:").strip()
            if line.startswith(b"data:") and data.startswith(b"{"):
                yield json.loads(data)
