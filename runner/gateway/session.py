"""One trial at the gateway: its key, its socket, its budget, its ledger."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from runner.gateway.answers import is_crowded
from runner.gateway.budget import Hold, Meter, Refusal, pieces
from runner.gateway.lane import Lane
from runner.gateway.ledger import Ledger
from runner.gateway.provider import back_off
from runner.gateway.shapes import RequestError
from runner.gateway.wire import Flight, Outlet
from runner.records import HUNG_UP, Budget, Endpoint, ErrorInfo, Model, ModelCall, Record, Usage

if TYPE_CHECKING:
    from runner.gateway.api import Api, Json, Outbound
    from runner.gateway.cassette import Cassette
    from runner.gateway.limits import Gate
    from runner.gateway.provider import Provider, Reply

log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.05
"""Between two answers to one trial that are none of its model's: an agent that asks on and on for what it is refused
would else fill the disk with lines, and the memory of whoever reads them.
"""


LARGE_BYTES = 128 * 2**10
LARGE_VALUES = 1_000
"""Of a request, from which on its trial has a lane: translating it holds a loop for some 50 ms."""
MANY_CALLS = 4
"""Calls of one trial under way, from which on it has a lane."""
P = ParamSpec("P")
T = TypeVar("T")


class SessionSpec(Record):
    """What a trial may ask of the gateway."""

    trial: str
    task: str
    """Name of the task, which a scripted model plays."""
    model: Model
    budget: Budget = Budget()
    seconds: float | None = None
    """Deadline, counted from the trial's first call, so that a slow start of its sandbox takes none of it."""
    ledger: Path
    """JSONL file, appended call by call while the trial runs."""
    cassette: Path | None = None
    """The recording that a cassette model replays."""


class Answer(Record):
    """What the agent gets."""

    status_code: int
    body: dict[str, object]


class Call:
    """One call under way."""

    task: asyncio.Task[Answer]
    """Serves it; cancelling it cancels the call upstream and records it."""

    def __init__(self, api: Api, request: Json, *, index: int, streamed: bool) -> None:
        self.api, self.request, self.index, self.streamed = api, request, index, streamed
        self.outlet: Outlet | None = None
        """Where its events go, if they are to pass through."""
        self.recorded = False
        """Whether it has its line on the ledger."""
        self.attempts = self.lost = 0
        self.waited_seconds = 0.0
        self.dropped: tuple[str, ...] = ()
        self.usage: Usage | None = None
        self.cost_usd: float | None = None
        self._started_at, self._started = datetime.now(UTC), time.monotonic()

    def ended(self, model: Model, status_code: int, **outcome: Any) -> ModelCall:
        """Its line on the ledger; `outcome` are the fields of `ModelCall` that it came to."""
        return ModelCall(
            index=self.index,
            api=self.api.name,
            model=model.id,
            scripted=model.scripted,
            replayed=model.replayed,
            started_at=self._started_at,
            latency_seconds=time.monotonic() - self._started,
            waited_seconds=self.waited_seconds,
            streamed=self.streamed,
            attempts=self.attempts,
            lost=self.lost,
            dropped=self.dropped,
            request=self.request,
            usage=self.usage,
            cost_usd=self.cost_usd,
            status_code=status_code,
            **outcome,
        )


class Session:
    """A trial's door to its model, open until `close`. Its properties may be read from any thread at any time."""

    def __init__(
        self,
        spec: SessionSpec,
        socket_dir: Path,
        provider: Provider | Cassette,
        close: Callable[[Session], None],
        gates: tuple[Gate, ...] = (),
    ) -> None:
        """`close` is the gateway's, which owns the loop that calls run in. Raises `ConfigError`, `OSError`."""
        self.spec, self.socket_dir, self.key = spec, socket_dir, secrets.token_urlsafe(32)
        self._provider, self._close, self._gates = provider, close, gates
        self._meter = Meter(spec.budget, spec.model, spec.seconds)
        self._ledger = Ledger(spec.ledger, self.key)
        self._calls: set[asyncio.Task[Answer]] = set()
        self._flights: set[Flight] = set()
        self._turns_down = asyncio.Lock()
        self._arrived = 0
        self.reading = asyncio.Lock()
        """Held by whoever reads a large request."""
        self._lane: Lane | None = None
        self._dead = False
        self.unwritten: OSError | None = None
        """Why a call is not on the ledger, which then is not whole: there was no room for it."""

    # --- the trial's side ---

    @property
    def endpoint(self) -> Endpoint:
        """What the agent is told, as seen through the forwarder in its sandbox."""
        from runner.sandbox.inside import BASE_URL  # noqa: PLC0415 - the one thing the gateway knows of sandboxes

        model = self.spec.model
        return Endpoint(
            base_url=BASE_URL,
            key=self.key,
            model=self._provider.told,
            context_window=model.context_window,
            max_output_tokens=model.max_output_tokens,
        )

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every call that has ended so far, in the order of arrival, read from the ledger."""
        return self._ledger.calls()

    @property
    def usage(self) -> Usage:
        """Tokens of all answered calls."""
        return self._meter.usage

    @property
    def cost_usd(self) -> float | None:
        """USD of all answered calls; None when one of them has no price."""
        return self._meter.cost_usd

    @property
    def turns(self) -> int:
        """Answered calls."""
        return self._meter.turns

    @property
    def limited(self) -> bool:
        """Whether its calls may have to wait for other trials' calls."""
        return bool(self._gates)

    @property
    def waited_seconds(self) -> float:
        """Time so far in which a call waited for the limits on calls, or for a gateway that stood still: no time of the
        agent's.
        """
        return self._meter.waited_seconds

    @property
    def waiting(self) -> bool:
        """Whether a call waits for the limits just now."""
        return self._meter.waits

    @property
    def charged(self) -> dict[str, float]:
        """Kind of budget -> spent, as caps count; see `Meter`."""
        return self._meter.charged

    @property
    def refusal(self) -> str | None:
        """The first budget that refused a call: usd, input_tokens, output_tokens, turns or deadline."""
        return self._meter.refusal.kind if self._meter.refusal else None

    def close(self) -> None:
        """Kill key and socket, cancel calls under way and wait until they are on the ledger. Idempotent."""
        self._close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- the gateway's side, in its event loop ---

    def opens(self, key: str) -> bool:
        """Whether this key is the trial's, and the trial is not over."""
        return not self._dead and secrets.compare_digest(key.encode(), self.key.encode())

    def stalled(self, seconds: float) -> None:
        """Move the deadline on by time in which the gateway stood still, if a call was under way meanwhile."""
        if not self._calls:
            return
        self._meter.stalled(seconds)
        for flight in self._flights:
            if self._lane:
                self._lane.soon(flight.moved)
            else:
                flight.moved()

    def expect(self, *, large: bool) -> None:
        """Give the trial a lane if what it asks now could hold all others up."""
        if not self._lane and not self._dead and (large or len(self._calls) >= MANY_CALLS):
            self._lane = Lane(self._provider.close)

    async def apart(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function returns, which is called in the trial's lane if it has one."""
        return await self._lane.call(work, *args, **kwargs) if self._lane else work(*args, **kwargs)

    def start(self, api: Api, request: Json, *, streamed: bool) -> Call:
        """Serve one request."""
        self.expect(large=is_crowded(request, LARGE_VALUES))
        call = Call(api, request, index=self._arrived, streamed=streamed)
        self._arrived += 1
        if streamed and self.spec.model.stream == "through":
            call.outlet = Outlet(request)
        call.task = asyncio.get_running_loop().create_task(self._answered(call))
        self._calls.add(call.task)
        call.task.add_done_callback(self._calls.discard)
        return call

    async def reject(self, api: Api, status_code: int, message: str) -> Answer:
        """Answer and record a request that cannot be read."""
        call = Call(api, {}, index=self._arrived, streamed=False)
        self._arrived += 1
        return await self._unhurried(await self._malformed(call, status_code, message))

    async def die(self) -> None:
        """No call is served from here on, and none is under way."""
        if self._dead:
            return
        self._dead = True
        for task in self._calls:
            task.cancel("the trial ended")
        await asyncio.gather(*self._calls, return_exceptions=True)
        lane, self._lane = self._lane, None
        if lane:
            await lane.close()
        self._meter.forget()
        self._ledger.close()
        shutil.rmtree(self.socket_dir, ignore_errors=True)

    async def _answered(self, call: Call) -> Answer:
        return await self._unhurried(await self._serve(call))

    async def _unhurried(self, answer: Answer) -> Answer:
        """The answer, at its turn if it is none of the model's."""
        if answer.status_code != HTTPStatus.OK:
            async with self._turns_down:
                await asyncio.sleep(PAUSE_SECONDS)
        return answer

    async def _serve(self, call: Call) -> Answer:
        accepted = None
        try:
            accepted = await self.apart(call.api.accept, call.request)
            return await self._admitted(call, accepted)
        except RequestError as error:
            return await self._malformed(call, 400, str(error))
        except asyncio.CancelledError as cancelled:
            reason = ErrorInfo(type="Cancelled", message=" ".join(map(str, cancelled.args)), phase="gateway")
            await self._record(call, HUNG_UP, error=reason)
            raise
        # The boundary of one gateway call: whatever an agent's request sets off in here, the agent gets an answer.
        except Exception as error:
            log.exception("model call %d of trial %s", call.index, self.spec.trial)
            if accepted is None:  # only the request was looked at
                return await self._malformed(call, 400, "The request cannot be read.")
            await self._record(call, 500, error=ErrorInfo.of(error, "gateway", unexpected=True))
            return Answer(
                status_code=500, body=call.api.error("The gateway failed at this call.", "internal_error")
            )

    async def _admitted(self, call: Call, accepted: Outbound) -> Answer:
        """Try until answered, refused for good, out of tries, or at the deadline; the budget admits each try anew."""
        params = self.spec.model.params
        request = await self.apart(lambda: pieces(call.api.outbound(accepted, params, None).fields))
        for tries in count(1):
            hold = await self._meter.admit(request, call.api.wanted_output(call.request))
            if isinstance(hold, Refusal):
                return await self._refused(call, hold)
            reply = await self._try(call, accepted, hold)
            wait = back_off(reply, tries, self._meter.deadline)
            if wait is None:
                break
            await asyncio.sleep(wait)
        if reply.late:
            return await self._refused(call, self._meter.expired())
        if reply.response is None:
            return await self._failed(call, reply)
        await self._record(call, 200, response=reply.response, error=reply.error)
        return Answer(status_code=200, body=reply.response)

    async def _try(self, call: Call, accepted: Outbound, hold: Hold) -> Reply:
        lane = self._lane
        turn = (lambda: lane.back(self._turn(call))) if lane else (lambda: self._turn(call))
        flight = Flight(call.api, turn, lambda: self._meter.deadline, call.outlet)
        reply = None
        self._flights.add(flight)
        try:
            outbound = call.api.outbound
            sent = await self.apart(outbound, accepted, self.spec.model.params, hold.max_output)
            call.dropped = sent.dropped
            async with self._place(call):
                asked = partial(self._provider.call, call.api, sent.fields, flight)
                reply = await (lane.run(asked) if lane else asked())
            collected = ("stream",) if call.outlet and reply.response and not flight.begun else ()
            call.dropped = tuple(sorted({*call.dropped, *reply.dropped, *collected}))
            return reply
        finally:
            self._flights.discard(flight)
            self._book(call, hold, flight, reply)

    def _book(self, call: Call, hold: Hold, flight: Flight, reply: Reply | None) -> None:
        """Count what a try came to, however it ended."""
        answer = (reply and reply.response) or flight.answer
        call.usage = None
        if answer:
            with suppress(AttributeError, TypeError, ValueError, OverflowError):  # counts that are no numbers
                call.usage = call.api.usage(answer)
        if reply and reply.response:
            call.cost_usd = self._meter.settle(hold, call.usage)
        elif flight.open:
            call.lost += 1
            call.cost_usd = self._meter.abandon(hold, call.usage, turn=reply is None or reply.late)
        else:
            call.usage = None
            self._meter.release(hold)

    @asynccontextmanager
    async def _place(self, call: Call) -> AsyncIterator[None]:
        """A place among the calls that may be under way at once, after waiting for it."""
        async with AsyncExitStack() as stack:
            with self._waiting(call):
                for gate in self._gates:
                    await stack.enter_async_context(gate.place())
            yield

    async def _turn(self, call: Call) -> None:
        """Wait for the turn of one more request to the provider, and count it."""
        with self._waiting(call):
            for gate in self._gates:
                await gate.turn()
        if self.spec.model.backend == "provider":  # nobody is charged for a script or a recording
            self._ledger.sending(call.index)
        call.attempts += 1

    @contextmanager
    def _waiting(self, call: Call) -> Iterator[None]:
        began = time.monotonic()
        with self._meter.waiting():
            try:
                yield
            finally:
                call.waited_seconds += time.monotonic() - began if self._gates else 0.0

    async def _refused(self, call: Call, refusal: Refusal) -> Answer:
        await self._record(call, 403, refused=refusal.kind)
        return Answer(
            status_code=403, body=call.api.error(refusal.message, "budget_exceeded", "budget_exceeded")
        )

    async def _failed(self, call: Call, reply: Reply) -> Answer:
        if reply.unsent and reply.error:
            return await self._malformed(call, reply.status_code, reply.error.message)
        await self._record(call, reply.status_code, error=reply.error)
        message = f"The model's provider failed: {reply.error.message}" if reply.error else "No answer."
        return Answer(
            status_code=reply.status_code, body=call.api.error(message, "upstream_error", reply.code)
        )

    async def _malformed(self, call: Call, status_code: int, message: str) -> Answer:
        error = ErrorInfo(type="BadRequest", message=message, phase="gateway")
        await self._record(call, status_code, error=error)
        return Answer(status_code=status_code, body=call.api.error(message, "invalid_request_error"))

    async def _record(self, call: Call, status_code: int, **outcome: Any) -> None:
        """Put a call on the ledger, once: it may be cancelled while it is written there."""

        def written() -> None:
            self._ledger.append(call.ended(self.spec.model, status_code, **outcome))
            call.recorded = True

        if call.recorded:
            return
        try:
            await self.apart(written)
        except OSError as error:
            self.unwritten = error
            raise
