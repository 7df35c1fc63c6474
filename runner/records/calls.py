"""Model calls, what they use, and what may still be used."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from runner.records.base import ApiName, ErrorInfo, Record


class Usage(Record):
    """Token counts of one or more model calls (AgentMeter section 3.2). A count that a response lacks is 0."""

    input_tokens: int = 0
    """X: all input tokens, caches included."""
    cache_creation_tokens: int = 0
    """A: tokens written to a cache, part of X."""
    cache_hit_tokens: int = 0
    """H: tokens read from a cache, part of X."""
    output_tokens: int = 0
    """Y: output tokens, reasoning included."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            cache_hit_tokens=self.cache_hit_tokens + other.cache_hit_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class HelperSpend(Record):
    """Spend on the helper model of an agent in our process, a part of the trial's."""

    model: str = ""
    """Name of the helper model."""
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    """Cost in USD; None when any price is missing."""
    turns: int = 0
    """Number of answered calls."""


class OwnUsage(Record):
    """Token counts reported by an agent, or differences between such counts. None: not reported."""

    input_tokens: int | None = None
    """X, as in `Usage`; likewise A, H and Y below."""
    cache_creation_tokens: int | None = None
    cache_hit_tokens: int | None = None
    output_tokens: int | None = None

    def beyond(self, counted: Usage) -> OwnUsage:
        """Return each reported count less the one in `counted`; negative where the agent reports less."""
        return OwnUsage(
            **{name: count - getattr(counted, name) for name, count in self if count is not None},
        )


HUNG_UP = 499
"""Status code on the ledger for a call whose agent did not wait for the answer."""


class ModelCall(Record):
    """One line of the ledger: one call that the agent made, answered or not."""

    index: int
    """Position among the calls of the trial in order of their arrival, from 0."""
    api: ApiName
    """API by which the agent called."""
    model: str
    """Model that the provider was asked for (litellm id). The agent may have named another."""
    scripted: bool = False
    """True if the answer comes from a script instead of a language model."""
    replayed: bool = False
    """True if the answer comes from an earlier run."""
    started_at: datetime
    """Time of the request's arrival."""
    latency_seconds: float
    """Seconds from the request's arrival to the finished answer, including retries and waits."""
    waited_seconds: float = 0.0
    """Seconds of the latency spent waiting for the limits on calls."""
    streamed: bool = False
    """True if the agent asked for SSE."""
    attempts: int = 1
    """Requests sent to the provider, including failed ones and those that litellm repeats by itself."""
    lost: int = 0
    """Requests that were sent but got no complete answer, because the provider, the agent or the deadline cut them off.
    Nobody knows whether they were charged; the caps count the most that they can have cost."""
    request: dict[str, Any]
    """The agent's body as it came. Left out (`{}`) for unanswered calls, once a trial has had 64 MiB of those."""
    dropped: tuple[str, ...] = ()
    """Parts of the request that were not passed on: fields, tools (`tools:<type>`), and marks (`is_error`) or earlier
    thoughts (`reasoning items`) that the provider's own API cannot express. `stream` means that an answer to be passed
    through was collected instead."""
    response: dict[str, Any] | None = None
    """The finished response object; None if there was none, or not all of it."""
    status_code: int
    """Status that the agent got."""
    usage: Usage | None = None
    """Tokens of the call. If the answer broke off on its way to the agent, those that the provider had counted until
    then."""
    cost_usd: float | None = None
    """Cost of `usage`; None when the model has no price or there is no usage. Cost of `server_seconds` if that is
    known."""
    server_seconds: float | None = Field(default=None, exclude_if=lambda seconds: seconds is None)
    """Seconds from sending to end of all tries that were charged, for a model that is priced by the hour."""
    refused: str | None = None
    """Budget that refused the call: usd, input_tokens, output_tokens, turns or deadline."""
    error: ErrorInfo | None = None
    """Failure that left the call without an answer, or without all of it."""

    @property
    def cut(self) -> bool:
        """Return whether part of the call may have been charged without being in `cost_usd`."""
        return self.lost > 0

    def without_content(self) -> ModelCall:
        """Return the call without what was said in it; whether it was answered can still be told."""
        return self.model_copy(update={"request": {}, "response": None if self.response is None else {}})


class ToolCall(Record):
    """A tool call that the model made, read from an answered call."""

    id: str
    """Identifier that the model gave the call; a result refers to it."""
    name: str
    """Name of the tool."""
    arguments: str
    """Arguments as the model wrote them: JSON text, or free text for freeform tools."""
    result: str | None = None
    """Result, where an agent in our process reports it. For other agents a later request repeats it."""


class ModelReply(Record):
    """Answer of the model to an agent in our process."""

    text: str = ""
    """Words of the answer."""
    calls: tuple[ToolCall, ...] = ()
    """Tool calls, in the model's order."""
    input_tokens: int | None = None
    """Tokens that the provider counted in the question; None if it counts none."""


class Left(Record):
    """Remainder of a rollout's budget and time; None where nothing limits it."""

    usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    turns: int | None = None
    """Model calls."""
    seconds: float | None = None
