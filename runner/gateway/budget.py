"""What one trial has spent at the gateway, and whether it may make another call.

A call is *refused* when its worst case does not fit beside what is spent, and *waits* when it does not fit beside what
calls under way hold: so parallel calls cannot overrun a budget together, and none is refused for money that in the end
was not spent.

What a call reads is counted by its provider, afterwards; the worst case is what the request answered last came to, and
one token in two bytes of all that is new since then, none of it from a cache. New is each message or tool that is not
exactly one of that request as it was sent on: else an agent could have a text counted where it is not read, in a field
that is dropped or has no meaning, and then send it where it is. What the call may write is bounded by the rest. (A
token has at least one byte; but those of code and prose have four and more, so that with all bytes a first request of
100 kB would not fit into a cap of 0.25 USD. Encoded data come near; a picture lies far below, or far above where it is
of few colours, so it counts for some tokens at least; a file of many pages in few bytes is not seen through.)
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from metrics.cost import call_cost, price_tier
from runner.errors import ConfigError
from runner.gateway.api import Json
from runner.records import Budget, Model, Prices, Rates, Record, Usage

PER_MILLION = 1e-6
LEAST_OUTPUT = 16
"""Tokens. Below this a bound on output is no answer, and some providers refuse it."""
MOST_OUTPUT = 128_000
"""Tokens that an answer is held to have at worst where neither request, model nor budget bounds it. Few models write
more; whose does has a `max_output_tokens` in its YAML."""
BYTES_PER_NEW_TOKEN = 2
"""At worst, of a request's JSON that no provider has counted yet."""
PICTURE = re.compile(
    rb'"type":"(?:image|image_url|input_image|document|file|input_file|video_url|input_audio)"'
)
PICTURE_BYTES = 10_000
"""That each picture, document or film counts for beside its own: one of 500 may cost thousands of tokens."""
UNITS = {
    "turns": "model calls",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "usd": "USD",
    "deadline": "seconds",
}


class Refusal(Record):
    """Why a call was not sent."""

    kind: str
    """usd, input_tokens, output_tokens, turns or deadline."""
    spent: float
    limit: float

    @property
    def message(self) -> str:
        """Told to the agent: which budget, what was spent, what the limit is."""
        name = "deadline" if self.kind == "deadline" else f"budget of {UNITS[self.kind]}"
        figures = f"{self.spent:.6g} of {self.limit:.6g} {UNITS[self.kind]}"
        if self.spent < self.limit:
            return (
                f"The {name} of this trial is spent but for a rest that does not cover this call: {figures}."
            )
        return f"The {name} of this trial is spent: {figures}. No further model call is served."


class _Level(NamedTuple):
    """How far one budget is spent."""

    kind: str
    spent: float
    held: float
    """By calls under way."""
    limit: float
    need: float
    """Of the next call, at worst what it reads and at least what it writes: with less left it is not sent."""


class Hold(Record):
    """What a call under way may still spend at worst."""

    request: tuple[bytes, ...]
    """In its `pieces`."""
    input_tokens: int
    """At worst."""
    output_tokens: int
    """At worst: the bound of the request, the model or the budget; without one the context window, or `MOST_OUTPUT`."""
    usd: float
    max_output: int | None
    """What the provider is told as its maximum; None leaves it to the provider."""


class Stopwatch:
    """Time in which at least one of several overlapping intervals runs."""

    def __init__(self) -> None:
        self._before, self._open, self._since = 0.0, 0, 0.0

    @property
    def seconds(self) -> float:
        """So far, the running interval included."""
        return self._before + (time.monotonic() - self._since if self._open else 0.0)

    @property
    def runs(self) -> bool:
        """Whether an interval is open."""
        return self._open > 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """One interval."""
        if not self._open:
            self._since = time.monotonic()
        self._open += 1
        try:
            yield
        finally:
            total = self.seconds
            self._open -= 1
            if not self._open:
                self._before = total


class Meter:
    """The spend of one trial, counted in the gateway's event loop; other threads may read it."""

    def __init__(self, budget: Budget, model: Model, seconds: float | None) -> None:
        """`seconds` is the deadline, counted from the first call. Raises `ConfigError` for a cap nobody can count."""
        self._budget, self._model, self._seconds = budget, model, seconds
        if budget.usd is not None and not model.prices.known:
            message = (
                f"Budget {budget.name!r} caps USD, but model {model.name!r} has no price for input or output tokens. "
                "Set model.prices.input and model.prices.output (USD per million), or budget.usd=null."
            )
            raise ConfigError(message)
        self.usage = Usage()
        self.cost_usd: float | None = 0.0
        self.turns = 0
        self.refusal: Refusal | None = None
        self._started: float | None = None
        self._usd = 0.0
        self._held: list[Hold] = []
        self._lost: list[Usage] = []
        self._answered: tuple[bytes, ...] = ()
        self._counted = 0
        self._cut = 0
        self._waits = Stopwatch()
        self._stalled = 0.0
        self._settled = asyncio.Event()

    @property
    def deadline(self) -> float | None:
        """`time.monotonic()` at which the trial's calls end; None without a limit or before the first call.

        Moves on with all that is waited for the limits on calls, and for a gateway that stands still.
        """
        if self._started is None or self._seconds is None:
            return None
        return self._started + self._seconds + self.waited_seconds

    @property
    def waited_seconds(self) -> float:
        """Time in which at least one call waited for the limits on calls, or for a gateway that stood still."""
        return self._waits.seconds + self._stalled

    @property
    def waits(self) -> bool:
        """Whether a call waits for the limits just now."""
        return self._waits.runs

    @property
    def charged(self) -> dict[str, float]:
        """Kind of budget -> spent, as the caps count: what may have been charged at its worst case, a missing cache
        rate as fresh input, a call without any price as 0 USD.
        """
        return {
            "usd": self._usd,
            "input_tokens": self._spent_input,
            "output_tokens": self._spent_output,
            "turns": self.turns + self._cut,
        }

    def waiting(self) -> AbstractContextManager[None]:
        """A call waits its turn: no time of the trial's."""
        return self._waits.running()

    def stalled(self, seconds: float) -> None:
        """Count time in which the gateway stood still; what was waited for the limits on calls is counted already."""
        if not self.waits:
            self._stalled += seconds

    async def admit(self, request: tuple[bytes, ...], wanted: int | None) -> Hold | Refusal:
        """Take hold of what a call may spend, after waiting for calls under way if they might spend it all.

        `request` is its `pieces`, `wanted` the output that it asks for at most.
        """
        self._started = time.monotonic() if self._started is None else self._started
        weights = {piece: _weight(piece) for piece in request}
        while True:
            new = _new_bytes(request, self._answered, weights)
            input_tokens = self._counted + math.ceil(new / BYTES_PER_NEW_TOKEN)
            levels = tuple(self._levels(input_tokens))
            over = next((one for one in levels if one.spent + one.need > one.limit), None)
            if over:
                return self._refuse(Refusal(kind=over.kind, spent=over.spent, limit=over.limit))
            if all(one.spent + one.held + one.need <= one.limit for one in levels):
                hold = self._hold(request, input_tokens, wanted)
                self._held.append(hold)
                return hold
            await self._wait()

    def expired(self) -> Refusal:
        """The refusal of a call that the deadline cut off. Only for sessions with a deadline."""
        limit = self._seconds or 0.0
        return self._refuse(Refusal(kind="deadline", spent=limit, limit=limit))

    def settle(self, hold: Hold, usage: Usage | None) -> float | None:
        """Count what an answered call really spent and let the next one go on; returns its USD, None without a price.

        An answer without usage is charged to the caps as it was held, and its cost is unknown.
        """
        self.release(hold)
        self.turns += 1
        if usage is None:
            self._usd += hold.usd
            self._lost.append(Usage(input_tokens=hold.input_tokens, output_tokens=hold.output_tokens))
            self.cost_usd = None
            return None
        self._answered, self._counted = hold.request, usage.input_tokens
        cost = self._count(usage)
        self._usd += self._capped(usage) if cost is None else cost
        return cost

    def release(self, hold: Hold) -> None:
        """Let go of what a try held that cost nothing: it was not sent, or refused by the provider."""
        self._held.remove(hold)
        self._settled.set()

    def abandon(self, hold: Hold, known: Usage | None, *, turn: bool) -> float | None:
        """Count a try that was sent and has no whole answer; returns the USD of what is known of its usage.

        What its provider charges is not known: its cost is not counted beyond `known`, but the caps count all that
        it held. Else an agent that always hangs up just before the answer would spend without end. `turn`: it was the
        agent, or the deadline, that cut it off.
        """
        self.release(hold)
        self._cut += turn
        known = known or Usage()
        cost = self._count(known) if known != Usage() else None
        self._lost.append(
            Usage(
                input_tokens=max(0, hold.input_tokens - known.input_tokens),
                output_tokens=max(0, hold.output_tokens - known.output_tokens),
            )
        )
        self._usd += max(hold.usd, self._capped(known))
        return cost

    def forget(self) -> None:
        """No call follows: drop what the next one would be compared with, since a meter lives as long as its sweep."""
        self._answered, self._counted = (), 0

    def _count(self, usage: Usage) -> float | None:
        cost = price(usage, self._model.prices)
        self.usage = self.usage + usage
        self.cost_usd = None if cost is None or self.cost_usd is None else self.cost_usd + cost
        return cost

    def _refuse(self, refusal: Refusal) -> Refusal:
        self.refusal = self.refusal or refusal
        return refusal

    def _levels(self, input_tokens: int) -> Iterator[_Level]:
        """Each budget that has a limit, and what a call with so much input means to it."""
        limits, held = self._budget, self._held
        if self._started is not None and self._seconds is not None:
            passed = time.monotonic() - self._started - self.waited_seconds
            yield _Level("deadline", passed, 0.0, self._seconds, 0.0)
        if limits.turns is not None:
            yield _Level("turns", self.charged["turns"], len(held), limits.turns, 1)
        if limits.usd is not None:
            need = self._worst(input_tokens, LEAST_OUTPUT)
            yield _Level("usd", self._usd, sum(hold.usd for hold in held), limits.usd, need)
        if limits.input_tokens is not None:
            under_way = sum(hold.input_tokens for hold in held)
            yield _Level("input_tokens", self._spent_input, under_way, limits.input_tokens, input_tokens)
        if limits.output_tokens is not None:
            need = min(LEAST_OUTPUT, limits.output_tokens or 1)
            yield _Level("output_tokens", self._spent_output, self._held_output, limits.output_tokens, need)

    @property
    def _spent_input(self) -> int:
        return self.usage.input_tokens + sum(usage.input_tokens for usage in self._lost)

    @property
    def _spent_output(self) -> int:
        return self.usage.output_tokens + sum(usage.output_tokens for usage in self._lost)

    @property
    def _held_output(self) -> int:
        return sum(hold.output_tokens for hold in self._held)

    def _hold(self, request: tuple[bytes, ...], input_tokens: int, wanted: int | None) -> Hold:
        """What a call may spend: of output, no more than all budgets have left and the model can write."""
        limits, most = self._budget, self._model.max_output_tokens
        left = affordable = None
        if limits.output_tokens is not None:
            left = limits.output_tokens - self._spent_output - self._held_output
        rate = _rates(Usage(input_tokens=input_tokens), self._model.prices).output
        if limits.usd is not None and rate:
            usd = limits.usd - self._usd - sum(hold.usd for hold in self._held) - self._worst(input_tokens, 0)
            affordable = max(LEAST_OUTPUT, int(usd / rate / PER_MILLION))
        bounds = [bound for bound in (wanted, left, affordable, most) if bound is not None]
        at_most = min(bounds, default=self._model.context_window or MOST_OUTPUT)
        # What the model itself cannot exceed need not be said. Where we do not know what that is, a provider may refuse
        # what the budget leaves for being too much; but without it nothing would keep the cap.
        binding = wanted is not None or left is not None or at_most != most
        return Hold(
            request=request,
            input_tokens=input_tokens,
            output_tokens=at_most,
            usd=self._worst(input_tokens, at_most),
            max_output=at_most if bounds and binding else None,
        )

    def _worst(self, input_tokens: int, output_tokens: int) -> float:
        """USD at most: nothing from a cache, and all written to it where that is dearer."""
        tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        return max(
            self._capped(Usage(**tokens, cache_creation_tokens=cached)) for cached in (0, input_tokens)
        )

    def _capped(self, usage: Usage) -> float:
        """USD that the cap counts: a missing cache rate counts as fresh input, which a cost never does."""
        rates = _rates(usage, self._model.prices)
        filled = {
            name: rates.input for name in ("cache_creation", "cache_hit") if getattr(rates, name) is None
        }
        return _charge(usage, rates.model_copy(update=filled)) or 0.0

    async def _wait(self) -> None:
        self._settled.clear()
        try:
            async with asyncio.timeout_at(self.deadline):
                await self._settled.wait()
        except TimeoutError:
            return  # the next look at the levels refuses for the deadline


def price(usage: Usage, prices: Prices) -> float | None:
    """USD of one call's usage at the rates of its length; None when a rate that it needs was not published."""
    return _charge(usage, _rates(usage, prices))


def _rates(usage: Usage, prices: Prices) -> Rates:
    tier: int = price_tier(usage.input_tokens, [tier.above_input_tokens for tier in prices.tiers])
    return (prices, *prices.tiers)[tier]


def _charge(usage: Usage, rates: Rates) -> float | None:
    cost = call_cost(
        usage.input_tokens,
        usage.cache_creation_tokens,
        usage.cache_hit_tokens,
        usage.output_tokens,
        p_in=_per_token(rates.input),
        p_out=_per_token(rates.output),
        p_create=_per_token(rates.cache_creation),
        p_hit=_per_token(rates.cache_hit),
    )
    return None if math.isnan(cost) else float(cost)


def pieces(fields: Json) -> tuple[bytes, ...]:
    """A request as it is sent on, as JSON: its settings, then each text and each item of a list under its name."""
    settings = {name: value for name, value in fields.items() if not isinstance(value, str | list)}
    lists = {name: [value] if isinstance(value, str) else value for name, value in fields.items()}
    read = [[name, item] for name in lists.keys() - settings for item in lists[name]]
    return tuple(
        json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() for one in (settings, *read)
    )


def _new_bytes(request: tuple[bytes, ...], known: tuple[bytes, ...], weights: dict[bytes, int]) -> int:
    """Of a request beyond a known one; all with other settings, which may have had some of the same pieces left out."""
    new = Counter(request) - Counter(known if request[:1] == known[:1] else ())
    return sum(weights[piece] * times for piece, times in new.items())


def _weight(piece: bytes) -> int:
    """Bytes that a piece of a request counts for."""
    return len(piece) + PICTURE_BYTES * len(PICTURE.findall(piece))


def _per_token(rate: float | None) -> float:
    return math.nan if rate is None else rate * PER_MILLION
