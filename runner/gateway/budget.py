"""The spend of one trial at the gateway, and the decision whether it may make another call.

Each call holds its worst case while it is under way and settles its real cost at the end. A call is *refused* if its
worst case does not fit beside what is spent; it *waits* if it does not fit beside what other calls hold. So parallel
calls cannot overrun a budget together, and none is refused because of money that is not spent in the end.

The provider counts the tokens that a call reads, but only afterwards. The worst case is the input of the last answered
request plus one token for every two bytes of everything new since then, with nothing read from a cache. A message or
tool is new unless the last request had exactly the same one as it was sent on. Otherwise an agent could have a text
counted in a field that is dropped, and then send it in one that is read. The rest of the budget bounds the output.

"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from runner.errors import ConfigError
from runner.gateway.call_limits import Stopwatch
from runner.gateway.call_prices import capped, most_output, paid_seconds, price, worst
from runner.gateway.request_sizes import new_tokens, weight
from runner.records import Budget, HelperSpend, Model, Record, Usage

LEAST_OUTPUT = 16
"""Smallest useful bound on output, in tokens. Some providers refuse a lower bound."""
MOST_OUTPUT = 128_000
"""Worst case of an answer's length, in tokens, where neither request, model nor budget bounds it. Few models write
more; those have a `max_output_tokens` in their YAML."""
UNITS = {
    "turns": "model calls",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "usd": "USD",
    "deadline": "seconds",
}


class Refusal(Record):
    """The reason for not sending a call."""

    kind: str
    """Budget that refused: usd, input_tokens, output_tokens, turns or deadline."""
    spent: float
    limit: float

    @property
    def message(self) -> str:
        """The message for the agent, with the name of the budget, its spend and its limit."""
        name = "deadline" if self.kind == "deadline" else f"budget of {UNITS[self.kind]}"
        figures = f"{self.spent:.6g} of {self.limit:.6g} {UNITS[self.kind]}"
        if self.spent < self.limit:
            return f"The {name} of this trial is spent, and the rest does not cover this call: {figures}."
        return f"The {name} of this trial is spent: {figures}. No further model call is served."


class _Level(NamedTuple):
    """The state of one budget."""

    kind: str
    spent: float
    held: float
    """Worst case of the calls under way."""
    limit: float
    need: float
    """Amount that the next call needs at least: the worst case of its input and the smallest output."""


class Hold(Record):
    """The worst case of a call under way."""

    request: tuple[bytes, ...]
    """The request in `request_sizes.pieces`."""
    input_tokens: int
    output_tokens: int
    """Bound on output from the request, the model or the budget; else the context window, or else `MOST_OUTPUT`."""
    usd: float
    max_output: int | None
    """Maximum sent to the provider; None leaves the maximum to the provider."""
    seconds: float | None = None
    """Longest time at a server that is priced by the hour: what the rest of the budget pays for. None: no limit."""
    helper: bool = False
    """True if the call goes to the helper model."""


class Meter:
    """The spend of one trial, counted in the gateway's event loop; other threads may read it."""

    def __init__(
        self, budget: Budget, model: Model, seconds: float | None, helper: Model | None = None
    ) -> None:
        """`seconds` is the deadline, counted from the first call. The budget is for `model` and `helper` together.

        Raises `ConfigError` for a cap in USD on a model without prices.
        """
        self._budget, self._seconds = budget, seconds
        self._models = {False: model, True: helper or model}
        for one in self._models.values():
            if budget.usd is not None and not one.prices.known:
                raise ConfigError(
                    f"Budget {budget.name!r} caps USD, but model {one.name!r} has no price for input or output tokens. "
                    "Set model.prices.input and model.prices.output (USD per million), model.prices.gpu_hour or "
                    "model.prices=free, or budget.usd=null."
                )
        self.usage = Usage()
        """Tokens of all answered calls."""
        self.cost_usd: float | None = 0.0
        """USD of all answered calls; None if one of them has no price."""
        self.turns = 0
        """Number of answered calls."""
        self.helper = HelperSpend()
        """The helper model's part of these three."""
        self.refusal: str | None = None
        """The first budget that refused a call: usd, input_tokens, output_tokens, turns or deadline."""
        self._started: float | None = None
        self._usd = 0.0
        self._held: list[Hold] = []
        self._uncounted = Usage()
        self._answered: dict[bool, tuple[tuple[bytes, ...], int]] = {}
        self._cut = 0
        self._waits = Stopwatch()
        self._stalled = 0.0
        self._settled = asyncio.Event()

    @property
    def deadline(self) -> float | None:
        """The end of the trial's calls by `time.monotonic()`; None without a limit or before the first call.

        Moves on by `waited_seconds`.
        """
        if self._started is None or self._seconds is None:
            return None
        return self._started + self._seconds + self.waited_seconds

    @property
    def waited_seconds(self) -> float:
        """Seconds in which a call waited for the limits on calls or a stalled gateway, not by the agent's fault."""
        return self._waits.seconds + self._stalled

    @property
    def waits(self) -> bool:
        """Return whether a call is waiting for the limits on calls now."""
        return self._waits.runs

    @property
    def charged(self) -> dict[str, float]:
        """Kind of budget -> spend as the caps count it.

        Calls that may have been charged count at their worst case, a missing cache rate as fresh input, and a call
        without any price as 0 USD.
        """
        tokens = self.usage + self._uncounted
        return {
            "usd": self._usd,
            "input_tokens": tokens.input_tokens,
            "output_tokens": tokens.output_tokens,
            "turns": self.turns + self._cut,
        }

    @property
    def held(self) -> dict[str, float]:
        """Kind of budget -> worst case of the calls under way."""
        return {
            "usd": sum(hold.usd for hold in self._held),
            "input_tokens": sum(hold.input_tokens for hold in self._held),
            "output_tokens": sum(hold.output_tokens for hold in self._held),
            "turns": len(self._held),
        }

    def waiting(self) -> AbstractContextManager[None]:
        """Return a context in which a call waits its turn. This time does not count against the deadline."""
        return self._waits.running()

    def stalled(self, seconds: float) -> None:
        """Count time during which the gateway stalled, unless a call waited for the limits: that is counted already."""
        if not self.waits:
            self._stalled += seconds

    async def admit(
        self, request: tuple[bytes, ...], wanted: int | None, *, helper: bool = False
    ) -> Hold | Refusal:
        """Hold the worst case of a call, after waiting for calls under way if they might spend the rest.

        `request` has its `request_sizes.pieces`; `wanted` is its own bound on output tokens. `helper` says whether the
        call goes to the helper model.
        """
        self._started = time.monotonic() if self._started is None else self._started
        weights = {piece: weight(piece) for piece in request}
        while True:
            known, known_input = self._answered.get(helper, ((), 0))
            input_tokens = known_input + new_tokens(request, known, weights)
            levels = tuple(self._levels(input_tokens, self._models[helper]))
            over = next((one for one in levels if one.spent + one.need > one.limit), None)
            if over:
                return self._refuse(Refusal(kind=over.kind, spent=over.spent, limit=over.limit))
            if all(one.spent + one.held + one.need <= one.limit for one in levels):
                hold = self._hold(request, input_tokens, wanted, helper=helper)
                self._held.append(hold)
                return hold
            await self._wait()

    def expired(self, *, paid: bool = False) -> Refusal:
        """Refuse a call that its deadline cut off: the session's or, with `paid`, the one that its hold pays for."""
        if paid:
            return self._refuse(Refusal(kind="usd", spent=self._usd, limit=self._budget.usd or 0.0))
        limit = self._seconds or 0.0
        return self._refuse(Refusal(kind="deadline", spent=limit, limit=limit))

    def settle(self, hold: Hold, usage: Usage | None, seconds: float = 0.0) -> float | None:
        """Count the spend of an answered call and release its hold. Returns its USD, or None without a price.

        An answer without usage counts as its hold in the caps. Its cost is unknown, unless the model is priced by the
        hour: then the `seconds` at its server are the cost.
        """
        self.release(hold)
        self.turns += 1
        if hold.helper:
            self.helper = self.helper.model_copy(update={"turns": self.helper.turns + 1})
        by_time = self._of_time(seconds, hold)
        if usage is None:
            self._uncounted += Usage(input_tokens=hold.input_tokens, output_tokens=hold.output_tokens)
            self._usd += hold.usd if by_time is None else by_time
            self._add(by_time, hold)
            return by_time
        self._answered[hold.helper] = hold.request, usage.input_tokens
        cost = self._count(usage, by_time, hold)
        self._usd += capped(usage, self._models[hold.helper]) if cost is None else cost
        return cost

    def release(self, hold: Hold) -> None:
        """Release the hold of a try that cost nothing: it was not sent, or the provider refused it."""
        self._held.remove(hold)
        self._settled.set()

    def abandon(self, hold: Hold, known: Usage | None, *, turn: bool, seconds: float = 0.0) -> float | None:
        """Count a try that was sent and has no whole answer. Returns the USD of `known`, the part of its usage seen.

        The provider's charge is unknown. The cost counts only `known`, but the caps count the whole hold: otherwise
        an agent that hangs up just before each answer would spend without limit. `turn` says whether the agent or the
        deadline cut the call off, so that it counts as a turn. `seconds` at a server that is priced by the hour are the
        whole charge.
        """
        self.release(hold)
        self._cut += turn
        known, by_time = known or Usage(), self._of_time(seconds, hold)
        cost = self._count(known, by_time, hold) if known != Usage() or by_time is not None else None
        self._uncounted += Usage(
            input_tokens=max(0, hold.input_tokens - known.input_tokens),
            output_tokens=max(0, hold.output_tokens - known.output_tokens),
        )
        most = max(hold.usd, capped(known, self._models[hold.helper]))
        self._usd += most if by_time is None else by_time
        return cost

    def forget(self) -> None:
        """Drop the last request, since no call follows and a meter lives as long as its sweep."""
        self._answered.clear()

    def _count(self, usage: Usage, by_time: float | None, hold: Hold) -> float | None:
        cost = price(usage, self._models[hold.helper].prices) if by_time is None else by_time
        self.usage = self.usage + usage
        if hold.helper:
            self.helper = self.helper.model_copy(update={"usage": self.helper.usage + usage})
        self._add(cost, hold)
        return cost

    def _add(self, cost: float | None, hold: Hold) -> None:
        self.cost_usd = _sum(self.cost_usd, cost)
        if hold.helper:
            self.helper = self.helper.model_copy(update={"cost_usd": _sum(self.helper.cost_usd, cost)})

    def _of_time(self, seconds: float, hold: Hold) -> float | None:
        """Return the USD of so many seconds at the server; None for a model that is priced by tokens."""
        rate = self._models[hold.helper].prices.per_second
        return None if rate is None else rate * seconds

    def _refuse(self, refusal: Refusal) -> Refusal:
        self.refusal = self.refusal or refusal.kind
        return refusal

    def _levels(self, input_tokens: int, model: Model) -> Iterator[_Level]:
        """Yield the state of each limited budget, for a call of this model with this much input."""
        limits, held, charged = self._budget, self._held, self.charged
        if self._started is not None and self._seconds is not None:
            passed = time.monotonic() - self._started - self.waited_seconds
            yield _Level("deadline", passed, 0.0, self._seconds, 0.0)
        if limits.turns is not None:
            yield _Level("turns", charged["turns"], len(held), limits.turns, 1)
        if limits.usd is not None:
            need = worst(input_tokens, LEAST_OUTPUT, model)
            yield _Level("usd", self._usd, sum(hold.usd for hold in held), limits.usd, need)
        if limits.input_tokens is not None:
            under_way = sum(hold.input_tokens for hold in held)
            yield _Level(
                "input_tokens", charged["input_tokens"], under_way, limits.input_tokens, input_tokens
            )
        if limits.output_tokens is not None:
            under_way = sum(hold.output_tokens for hold in held)
            need = min(LEAST_OUTPUT, limits.output_tokens or 1)
            yield _Level("output_tokens", charged["output_tokens"], under_way, limits.output_tokens, need)

    def _hold(
        self, request: tuple[bytes, ...], input_tokens: int, wanted: int | None, *, helper: bool
    ) -> Hold:
        """Return the hold of a call: its output is bounded by what all budgets have left and the model can write."""
        model = self._models[helper]
        most = model.max_output_tokens
        left = {one.kind: one.limit - one.spent - one.held for one in self._levels(input_tokens, model)}
        tokens = int(left["output_tokens"]) if "output_tokens" in left else None
        paid = most_output(left["usd"], input_tokens, model) if "usd" in left else None
        affordable = None if paid is None else max(LEAST_OUTPUT, paid)
        bounds = [bound for bound in (wanted, tokens, affordable, most) if bound is not None]
        at_most = min(bounds, default=model.context_window or MOST_OUTPUT)
        # The model's own maximum need not be sent. If we do not know it, a provider may refuse the rest of the budget
        # as too much; but without a bound nothing would enforce the cap.
        binding = wanted is not None or tokens is not None or at_most != most
        seconds = paid_seconds(left.get("usd"), model)
        return Hold(
            request=request,
            input_tokens=input_tokens,
            output_tokens=at_most,
            usd=worst(input_tokens, at_most, model) if seconds is None else left["usd"],
            max_output=at_most if bounds and binding else None,
            seconds=seconds,
            helper=helper,
        )

    async def _wait(self) -> None:
        self._settled.clear()
        try:
            async with asyncio.timeout_at(self.deadline):
                await self._settled.wait()
        except TimeoutError:
            return  # `admit` then refuses the call for the deadline


def _sum(known: float | None, more: float | None) -> float | None:
    return None if known is None or more is None else known + more
