"""One trial's session at the gateway, with its key, socket, budget and ledger."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from runner.gateway.account import Account, Entry
from runner.gateway.answer_checks import is_crowded
from runner.gateway.budget import Hold, Meter, Refusal
from runner.gateway.call import Answer, Call
from runner.gateway.large_calls import Lane
from runner.gateway.ledger import Ledger
from runner.gateway.provider import back_off
from runner.gateway.request_shapes import RequestError
from runner.gateway.request_sizes import pieces
from runner.gateway.transport import Flight, Outlet
from runner.records import HUNG_UP, Budget, Endpoint, ErrorInfo, HelperSpend, Model, ModelCall, Record
from runner.sandbox.inside import BASE_URL

if TYPE_CHECKING:
    from runner.gateway.api import Api, Json, Outbound
    from runner.gateway.cassette import Cassette
    from runner.gateway.provider import Provider, Reply

log = logging.getLogger(__name__)
PAUSE_SECONDS = 0.05
"""Pause between two refusals to one trial. Without it, an agent that retries forever would fill the ledger."""
LARGE_BYTES = 128 * 2**10
LARGE_VALUES = 1_000
"""Bytes and values from which a request counts as large. Its trial gets a lane: litellm would block a loop for 50
ms."""
MANY_CALLS = 4
"""Number of calls under way from which a trial gets a lane."""
P = ParamSpec("P")
T = TypeVar("T")


class SessionSpec(Record):
    """The settings of one session."""

    trial: str
    task: str
    """Name of the task, by which a scripted model chooses its turns."""
    model: Model
    helper: Model | None = None
    """Second model, which only our own process can ask; None: there is none."""
    budget: Budget = Budget()
    """Caps for both models together."""
    seconds: float | None = None
    """Deadline, counted from the trial's first call, so that a slow start of its sandbox does not shorten it."""
    ledger: Path
    """JSONL file, to which each call is appended while the trial runs."""
    cassette: Path | None = None
    """Recorded trial that a cassette model replays."""


class Session:
    """A trial's access to its model, open until `close`. Any thread may read its properties and `meter` at any time."""

    def __init__(
        self,
        spec: SessionSpec,
        socket_dir: Path,
        providers: tuple[Provider | Cassette, Provider | Cassette],
        close: Callable[[Session], None],
        account: Account,
    ) -> None:
        """`providers` serve the model and its helper.

        `close` belongs to the gateway, which owns the loop that calls run in. Raises `ConfigError`, `OSError`.
        """
        self.spec, self.socket_dir, self.key = spec, socket_dir, secrets.token_urlsafe(32)
        self._models = spec.model, spec.helper or spec.model
        self._providers, self._close = providers, close
        self._provider = providers[0]
        # Nobody is charged for a script or a recording, and no limit is for them.
        self._account = account if spec.model.backend == "provider" else None
        self._id, self._vendor = secrets.token_hex(8), _vendor(spec.model)
        self.meter = Meter(spec.budget, spec.model, spec.seconds, spec.helper)
        self._ledger = Ledger(spec.ledger, self.key)
        self._calls: set[asyncio.Task[Answer]] = set()
        self._flights: set[Flight] = set()
        self._turns_down = asyncio.Lock()
        self._arrived = self._entries = self._ended = 0
        self.reading = asyncio.Lock()
        """Lock held while a large request is read."""
        self._lane: Lane | None = None
        self._dead = False
        self.unwritten: OSError | None = None
        """Failure to write a call to the ledger, after which the ledger is incomplete."""
        self.changed: Callable[[int, ModelCall | None], None] = lambda *_: None
        """Function that is called when a call arrives or ends, with the number of calls under way and the call that has
        ended. It is called in the gateway's event loop, so it must be quick and must not raise."""

    # --- the trial's side ---

    @property
    def endpoint(self) -> Endpoint:
        """The agent's access to its model, as seen from inside its sandbox."""
        model = self.spec.model
        return Endpoint(
            base_url=BASE_URL,
            key=self.key,
            model=self._provider.model_name,
            context_window=model.context_window,
            max_output_tokens=model.max_output_tokens,
        )

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """Every call that has ended, in the order of arrival, read from the ledger."""
        return self._ledger.calls()

    @property
    def helper_spend(self) -> HelperSpend | None:
        """Part of the spend that the helper model took; None if there is none."""
        helper = self.spec.helper
        return None if helper is None else self.meter.helper.model_copy(update={"model": helper.name})

    @property
    def limited(self) -> bool:
        """Return whether calls may have to wait for those of other trials."""
        account = self._account
        return account is not None and any(account.limits(_vendor(model)) for model in self._models)

    def close(self) -> None:
        """Revoke key and socket, cancel calls under way and wait until they are on the ledger. Idempotent."""
        self._close(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- the gateway's side, in its event loop ---

    def opens(self, key: str) -> bool:
        """Return whether this is the trial's key and the trial is not over."""
        return not self._dead and secrets.compare_digest(key.encode(), self.key.encode())

    def stalled(self, seconds: float) -> None:
        """Extend the deadline by the time of a stall, if a call was under way."""
        if not self._calls:
            return
        self.meter.stalled(seconds)
        for flight in self._flights:
            if self._lane:
                self._lane.soon(flight.moved)
            else:
                flight.moved()

    def expect(self, *, large: bool) -> None:
        """Give the trial a lane if its next call could hold up all other trials."""
        if not self._lane and not self._dead and (large or len(self._calls) >= MANY_CALLS):
            self._lane = Lane(self._provider.close)

    async def apart(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the trial's lane, if it has one, and return its result."""
        return await self._lane.call(work, *args, **kwargs) if self._lane else work(*args, **kwargs)

    def start(self, api: Api, request: Json, *, streamed: bool, helper: bool = False) -> Call:
        """Start serving one request. `helper` sends it to the helper model, if there is one."""
        self.expect(large=is_crowded(request, LARGE_VALUES))
        to_helper = helper and self.spec.helper is not None
        call = Call(api, request, index=self._arrived, streamed=streamed, helper=to_helper)
        self._arrived += 1
        if streamed and self.spec.model.stream == "through":
            call.outlet = Outlet(request)
        self.changed(self._arrived - self._ended, None)
        call.task = asyncio.get_running_loop().create_task(self._answered(call))
        self._calls.add(call.task)
        call.task.add_done_callback(self._calls.discard)
        return call

    async def reject(self, api: Api, status_code: int, message: str) -> Answer:
        """Answer a request that cannot be read, and write it to the ledger."""
        call = Call(api, {}, index=self._arrived, streamed=False)
        self._arrived += 1
        return await self._unhurried(await self._malformed(call, status_code, message))

    async def die(self) -> None:
        """Serve no further call, and cancel those under way."""
        if self._dead:
            return
        self._dead = True
        for task in self._calls:
            task.cancel("the trial ended")
        await asyncio.gather(*self._calls, return_exceptions=True)
        lane, self._lane = self._lane, None
        if lane:
            await lane.close()
        self.meter.forget()
        if self._account:
            self._account.closed(self._entry(self._arrived))
        self._ledger.close()
        shutil.rmtree(self.socket_dir, ignore_errors=True)

    async def _answered(self, call: Call) -> Answer:
        return await self._unhurried(await self._serve(call))

    async def _unhurried(self, answer: Answer) -> Answer:
        """Return the answer; delay a refusal or failure until its turn."""
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
            await self._end(call, HUNG_UP, {}, error=reason)
            raise
        # The boundary of one gateway call: whatever an agent's request causes in here, the agent gets an answer.
        except Exception as error:
            log.exception("model call %d of trial %s", call.index, self.spec.trial)
            if accepted is None:  # the request alone is at fault
                return await self._malformed(call, 400, "The request cannot be read.")
            body = call.api.error("The gateway failed at this call.", "internal_error")
            return await self._end(call, 500, body, error=ErrorInfo.of(error, "gateway", unexpected=True))

    async def _admitted(self, call: Call, accepted: Outbound) -> Answer:
        """Try until answered, refused for good, out of tries, or at the deadline. The budget admits each try anew."""
        params = self._models[call.helper].params
        request = await self.apart(lambda: pieces(call.api.outbound(accepted, params, None).fields))
        for tries in count(1):
            wanted = call.api.wanted_output(call.request)
            hold = await self.meter.admit(request, wanted, helper=call.helper)
            if isinstance(hold, Refusal):
                return await self._refused(call, hold)
            reply = await self._try(call, accepted, hold)
            wait = back_off(reply, tries, self.meter.deadline)
            if wait is None:
                break
            await asyncio.sleep(wait)
        if reply.late:
            return await self._refused(call, self.meter.expired(paid=reply.overlong))
        if reply.response is None:
            return await self._failed(call, reply)
        return await self._end(call, 200, reply.response, response=reply.response, error=reply.error)

    async def _try(self, call: Call, accepted: Outbound, hold: Hold) -> Reply:
        lane = self._lane
        turn = (lambda: lane.back(self._turn(call))) if lane else (lambda: self._turn(call))
        flight = Flight(call.api, turn, lambda: self.meter.deadline, call.outlet, hold.seconds)
        reply = None
        self._flights.add(flight)
        try:
            outbound = call.api.outbound
            params = self._models[call.helper].params
            sent = await self.apart(outbound, accepted, params, hold.max_output)
            call.dropped = sent.dropped
            async with self._place(call):
                asked = partial(self._providers[call.helper].call, call.api, sent.fields, flight)
                reply = await (lane.run(asked) if lane else asked())
            collected = ("stream",) if call.outlet and reply.response and not flight.streamed else ()
            call.dropped = tuple(sorted({*call.dropped, *reply.dropped, *collected}))
            return reply
        finally:
            self._flights.discard(flight)
            self._book(call, hold, flight, reply)

    def _book(self, call: Call, hold: Hold, flight: Flight, reply: Reply | None) -> None:
        """Count the spend of a try, however it ended."""
        answer = (reply and reply.response) or flight.answer
        call.usage = None
        if answer:
            with suppress(AttributeError, TypeError, ValueError, OverflowError):  # invalid counts
                call.usage = call.api.usage(answer)
        seconds = flight.seconds
        by_time = self._models[call.helper].prices.per_second is not None
        charged = partial(call.charged, seconds if by_time else None)
        if reply and reply.response:
            charged(self.meter.settle(hold, call.usage, seconds))
        elif flight.open:
            call.lost += 1
            late = reply is None or reply.late
            charged(self.meter.abandon(hold, call.usage, turn=late, seconds=seconds))
        else:
            call.usage = None
            self.meter.release(hold)

    @asynccontextmanager
    async def _place(self, call: Call) -> AsyncIterator[None]:
        """Wait for a place among the calls that may be under way at once, and occupy it."""
        async with AsyncExitStack() as stack:
            if self._account:
                with self._waiting(call):
                    await stack.enter_async_context(self._account.place(self._id, self._vendor_of(call)))
            yield

    async def _turn(self, call: Call) -> None:
        """Wait for the turn of a request to the provider, and count it."""
        if self._account:
            with self._waiting(call):
                await self._account.sending(self._entry(call.index, self._vendor_of(call)))
            self._ledger.sending(call.index)
        call.attempts += 1

    @contextmanager
    def _waiting(self, call: Call) -> Iterator[None]:
        began = time.monotonic()
        with self.meter.waiting():
            try:
                yield
            finally:
                call.waited_seconds += time.monotonic() - began if self.limited else 0.0

    def _vendor_of(self, call: Call) -> str:
        return _vendor(self._models[call.helper])

    def _entry(self, number: int, vendor: str = "") -> Entry:
        """Return an entry for the account with the session's spend and the worst case of its calls under way."""
        self._entries += 1
        return Entry(
            session=self._id,
            trial=self.spec.trial,
            ledger=self.spec.ledger.name,
            provider=vendor or self._vendor,
            number=number,
            at=self._entries,
            charged=self.meter.charged,
            held=self.meter.held,
        )

    async def _refused(self, call: Call, refusal: Refusal) -> Answer:
        body = call.api.error(refusal.message, "budget_exceeded", "budget_exceeded")
        return await self._end(call, 403, body, refused=refusal.kind)

    async def _failed(self, call: Call, reply: Reply) -> Answer:
        reason = reply.error.message if reply.error else "It sent no answer."
        if reply.unsent:
            return await self._malformed(call, reply.status_code, reason)
        body = call.api.error(f"The model's provider failed: {reason}", "upstream_error", reply.code)
        return await self._end(call, reply.status_code, body, error=reply.error)

    async def _malformed(self, call: Call, status_code: int, message: str) -> Answer:
        error = ErrorInfo(type="BadRequest", message=message, phase="gateway")
        body = call.api.error(message, "invalid_request_error")
        return await self._end(call, status_code, body, error=error)

    async def _end(self, call: Call, status_code: int, body: Json, **outcome: Any) -> Answer:
        """Write a call to the ledger and return its answer. Writes once: it may be cancelled while it is written."""

        def write() -> ModelCall:
            line = call.ended(self._models[call.helper], status_code, **outcome)
            self._ledger.append(line)
            call.on_ledger = True
            return line

        if not call.on_ledger:
            try:
                line = await self.apart(write)
            except OSError as error:
                self.unwritten = error
                raise
            if self._account and call.attempts:
                self._account.ended(self._entry(call.index), line)
            self._ended += 1
            self.changed(self._arrived - self._ended, line)
        return Answer(status_code=status_code, body=body)


def _vendor(model: Model) -> str:
    """Return the provider of a model, as limits name it."""
    return model.id.split("/")[0]
