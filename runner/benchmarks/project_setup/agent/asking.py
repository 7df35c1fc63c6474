"""Ask the model for its next step such that it fits: into the context window, and into what is left to spend.

The paper asks for JSON, takes any answer for a command, and knows neither window nor budget. Each of its choices is
still there, as a value of `Manners`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from runner.benchmarks.project_setup.agent import response
from runner.benchmarks.project_setup.agent.prompts import Manner, Shown, Step
from runner.benchmarks.project_setup.agent.response import Refused, Response
from runner.benchmarks.project_setup.agent.schemas import schemas
from runner.benchmarks.project_setup.agent.summary import CHARACTERS_PER_TOKEN, ends
from runner.errors import RequestRefused
from runner.records import Left, ModelReply, Record

if TYPE_CHECKING:
    from runner.protocols import Bench
    from runner.records import Prices

Messages = list[dict[str, Any]]

ANSWER_TOKENS: Final = 50
"""Number of tokens of an invalid answer that the model is shown again."""
CHARACTERS_A_TOKEN: Final = 3.0
"""Estimate for prompts before a provider has counted one. Logs and code have fewer characters a token than prose."""
LEAST_VERBATIM: Final = 200
"""Number of tokens below which the newest result is not cut further."""
SKIPPED_AT_ONCE: Final = 5
"""Number of steps that are left out together. Each time, the provider's cache has to begin anew."""
LENGTH_TRIES: Final = 4
"""Number of ever shorter prompts that are sent after a refusal for length."""
SHORTER: Final = 0.7
"""Length of the next prompt as a share of one that was refused."""
DELIVERY_TOKENS: Final = 4000
"""Number of output tokens that are kept for the last answer, with both files."""
DELIVERY_SECONDS: Final = 120.0
"""Time that is kept for the last answer."""
NATIVE, JSON = "tools", "json"


class Manners(Record):
    """Settings for how the model is asked. The comments say which value is the paper's."""

    protocol: Literal["tools", "json"] = "tools"
    """tools: the provider's own tool calls. json: a JSON object in the model's words, as in the paper."""
    more_tools: bool = True
    """True if there are `edit_file`, `check_scripts` and ranges of lines; False in the paper."""
    format_retries: int = Field(default=5, ge=0)
    """Number of invalid answers of an attempt that cost no command; 0 in the paper."""
    parallel_calls: int = Field(default=5, ge=1)
    """Number of tool calls of one answer that are carried out."""
    last_result_tokens: int = Field(default=6000, ge=0)
    """Number of tokens of the newest result that the model reads verbatim; 0, as in the paper: a long one is summarised
    at once."""
    context_share: float = Field(default=0.8, ge=0, le=1)
    """Share of the context window that a prompt may fill; 0, as in the paper: the window is not looked at."""
    tell_left: bool = True
    """True if the model is told what money and time are left, beside commands; False in the paper."""
    final_delivery: bool = True
    """True if a last answer is kept for files that are missing when something runs out; False in the paper."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the tools."""
        return tuple(name for name in response.TOOLS if self.more_tools or name not in response.MORE)


class Window:
    """The model's context window, as far as it is known, and the length of prompts in tokens."""

    def __init__(self, size: int | None, output: int | None, share: float) -> None:
        room = None if size is None else min(share * size, max(0.5 * share * size, size - (output or 0)))
        self._most = room if share else None
        self._per_token = CHARACTERS_A_TOKEN

    def fits(self, messages: Messages) -> bool:
        """Return whether a prompt fits."""
        return self._most is None or self.tokens(messages) <= self._most

    def room(self, most: int) -> int:
        """Return how many tokens of a text fit into a short question, at most `most`."""
        return most if self._most is None else int(min(most, 0.7 * self._most))

    def tokens(self, messages: Messages) -> float:
        """Estimate the tokens of a prompt."""
        return _characters(messages) / self._per_token

    def counted(self, messages: Messages, tokens: int | None) -> None:
        """Learn from what the provider counted. Schemas and other overhead make the estimate a little too high."""
        if tokens and _characters(messages) > 2000:  # noqa: PLR2004 - below, overhead is most of it
            self._per_token = min(CHARACTERS_A_TOKEN, max(1.0, _characters(messages) / tokens))

    def refused(self, messages: Messages) -> None:
        """Learn that a prompt is too long."""
        known = self.tokens(messages)
        self._most = SHORTER * min(known, known if self._most is None else self._most)


def _characters(messages: Messages) -> int:
    contents = (message["content"] for message in messages)
    return sum(
        len(one) if isinstance(one, str) else sum(len(part["text"]) for part in one) for one in contents
    )


class Asker:
    """Asks for the steps of one rollout."""

    def __init__(self, manners: Manners, bench: Bench) -> None:
        self._manners, self._bench = manners, bench
        self.window = Window(bench.model.context_window, bench.model.max_output_tokens, manners.context_share)
        self._format = manners.protocol == JSON
        self.free = manners.format_retries
        """Number of invalid answers that cost no command any more."""

    @property
    def manner(self) -> Manner:
        """Manner of prompts. Anthropic's models need marks for their cache and take content in parts."""
        model = f"{self._bench.model.id}".lower()
        return Manner(
            native=self._manners.protocol == NATIVE,
            more_tools=self._manners.more_tools,
            marked="anthropic" in model or "claude" in model,
        )

    def steps(
        self, prompt: Callable[[Shown], Messages], steps: Sequence[Step], newest: int
    ) -> list[Response | Refused]:
        """Return the steps that the model asks for, after these; the `newest` of them were asked for last.

        Raises `ValueError` with a sentence for the model when its answers stay invalid, `Stopped` and `ModelFailed`.
        """
        shown = Shown(newest=newest, verbatim=self._manners.last_result_tokens)
        added: Messages = []
        while True:
            reply = self.asked(_followed(prompt, added), steps, shown, self._fields())
            try:
                return response.asked_for(reply, self._manners.tool_names)
            except ValueError as error:
                if not self.free:
                    raise ValueError(f"{error}\nIt was: {_told(reply)}") from error
                self.free -= 1
                self._bench.log(f"  no valid answer, asked once more: {error}")
                added = [
                    {"role": "assistant", "content": _told(reply) or "(nothing)"},
                    {
                        "role": "user",
                        "content": f"Nothing was done, because your answer is not valid. {error}",
                    },
                ]

    def asked(
        self, prompt: Callable[[Shown], Messages], steps: Sequence[Step], shown: Shown, fields: dict[str, Any]
    ) -> ModelReply:
        """Return the answer to a prompt that is shortened until it fits. `steps` are those in it.

        Raises what `Bench.converse` raises.
        """
        for left in reversed(range(LENGTH_TRIES)):
            messages = self._fitting(prompt, steps, shown)
            try:
                reply = self._bench.converse(messages, fields)
            except RequestRefused as refused:
                if refused.too_long and left and self._manners.context_share:
                    self._bench.log("  the prompt is too long for the model: asked again with a shorter one")
                    self.window.refused(messages)
                elif "response_format" in fields and not refused.too_long:
                    self._bench.log("  the provider refuses response_format: asked without it")
                    self._format, fields = False, {}
                else:
                    raise
            else:
                self.window.counted(messages, reply.input_tokens)
                return reply
        raise AssertionError(LENGTH_TRIES)

    def _fitting(self, prompt: Callable[[Shown], Messages], steps: Sequence[Step], shown: Shown) -> Messages:
        """Return the prompt that fits. What is longer gives way: the newest results, or the oldest steps."""
        last = len(steps) - max(1, shown.newest)
        while True:
            messages = prompt(shown)
            if self.window.fits(messages):
                return messages
            older = sum(len(step.shown()) for step in steps[shown.skipped : max(0, last)])
            newest = sum(len(step.output) for step in steps[max(0, last) :])
            is_cut = shown.verbatim > LEAST_VERBATIM
            if is_cut and (
                min(newest, shown.verbatim * CHARACTERS_PER_TOKEN) > older or shown.skipped >= last
            ):
                shown = shown._replace(verbatim=shown.verbatim // 2)
            elif shown.skipped < last:
                shown = shown._replace(skipped=min(last, shown.skipped + SKIPPED_AT_ONCE))
            else:
                return messages

    def _fields(self) -> dict[str, Any]:
        """Return the fields of a request beside its messages."""
        if self._manners.protocol == NATIVE:
            return {"tools": schemas(self._manners.tool_names)}
        return {"response_format": {"type": "json_object"}} if self._format else {}

    def told(self, commands: int) -> str:
        """Return what is left, in sentences for the model."""
        parts = [f"{commands} commands are left of this attempt, the next one included."]
        left = self._bench.left
        if self._manners.tell_left:
            amounts = [
                f"{left.usd:.2f} USD" if left.usd is not None else "",
                f"{left.seconds / 60:.0f} minutes" if left.seconds is not None else "",
                f"{left.turns} model calls" if left.turns is not None else "",
            ]
            if named := ", ".join(filter(None, amounts)):
                parts.append(f"Left of all attempts together: {named}.")
        return " ".join(parts)

    def short_of(self, messages: Messages) -> str:
        """Return what would be gone after this question, so that no other could be asked; empty if nothing would."""
        tokens = 2 * self.window.tokens(messages)
        return (
            shortage(self._bench.left, tokens, self._bench.model.prices)
            if self._manners.final_delivery
            else ""
        )


def shortage(left: Left, tokens: float, prices: Prices) -> str:
    """Return which budget does not cover two questions of so many tokens and their answers; empty if all do.

    The gateway admits a call only if its worst case fits: all of it read uncached, or written to a cache.
    """
    read, written = max(prices.input or 0, prices.cache_creation or 0), prices.output or 0
    one = (tokens * read + DELIVERY_TOKENS * written) / 1e6
    short = {
        "The money": left.usd is not None and left.usd < 2 * one,
        "The number of model calls": left.turns is not None and left.turns < 2,  # noqa: PLR2004 - this one and the last
        "The number of input tokens": left.input_tokens is not None and left.input_tokens < 2 * tokens,
        "The number of output tokens": left.output_tokens is not None
        and left.output_tokens < 2 * DELIVERY_TOKENS,
        "The time": left.seconds is not None and left.seconds < DELIVERY_SECONDS,
    }
    return next(
        (f"{what} of this trial is nearly spent." for what, is_short in short.items() if is_short), ""
    )


def _followed(prompt: Callable[[Shown], Messages], added: Messages) -> Callable[[Shown], Messages]:
    return lambda shown: [*prompt(shown), *added]


def _told(reply: ModelReply) -> str:
    """Return the beginning and end of an answer, as it is shown to the model again."""
    calls = "\n".join(f"{call.name} {call.arguments}" for call in reply.calls)
    return ends("\n".join(part for part in (reply.text, calls) if part), ANSWER_TOKENS)
