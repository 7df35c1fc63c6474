"""What happened: calls, verdicts and trials."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal

from runner.records.base import ErrorInfo, Record

SCHEMA_VERSION: Final = 1
"""Of `TrialRecord` on disk. Raised whenever a field changes its meaning."""


class Status(StrEnum):
    """How a trial ended. Never mixed with its reward."""

    COMPLETED = "completed"
    """The agent ended by itself with exit code 0."""
    AGENT_ERROR = "agent_error"
    """The agent ended by itself with another exit code, was ended for what it did (disk), or left what no test can run
    on (workspace caps, a machine that does not start)."""
    TIMEOUT = "timeout"
    """The deadline of the task or the budget passed; verified all the same."""
    BUDGET_EXCEEDED = "budget_exceeded"
    """The gateway refused a call because the budget was spent; verified all the same."""
    INFRA_INVALID = "infra_invalid"
    """Our side failed (image, engine, provider, judge model): says nothing about the configuration."""
    CANCELLED = "cancelled"
    """The user stopped the run."""

    @property
    def finished(self) -> bool:
        """Whether the ending is the configuration's own doing; an unfinished trial runs again on resume."""
        return self not in (Status.INFRA_INVALID, Status.CANCELLED)


class Usage(Record):
    """Token counts of one or more model calls (AgentMeter section 3.2). A count that a response lacks is 0."""

    input_tokens: int = 0
    """X: all input, caches included."""
    cache_creation_tokens: int = 0
    """A: part of X."""
    cache_hit_tokens: int = 0
    """H: part of X."""
    output_tokens: int = 0
    """Y: reasoning included."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            cache_hit_tokens=self.cache_hit_tokens + other.cache_hit_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class OwnUsage(Record):
    """Token counts as an agent gives them, or a difference between such counts; None is what it does not say."""

    input_tokens: int | None = None
    cache_creation_tokens: int | None = None
    cache_hit_tokens: int | None = None
    output_tokens: int | None = None

    def beyond(self, counted: Usage) -> OwnUsage:
        """Count by count what it says beyond `counted`; negative where it says less."""
        return OwnUsage(
            **{name: said - getattr(counted, name) for name, said in self if said is not None},
        )


ApiName = Literal["chat", "responses", "messages"]
"""Wire formats that agents speak: `/v1/chat/completions`, `/v1/responses`, `/v1/messages`."""
HUNG_UP = 499
"""Status on the ledger of a call whose agent did not wait for the answer."""


class ModelCall(Record):
    """One line of the ledger: one call that the agent made, answered or not."""

    index: int
    """0, 1, 2.. in the order in which calls arrived at the trial's socket."""
    api: ApiName
    model: str
    """What was asked of the provider (litellm id), not what the agent named."""
    scripted: bool = False
    replayed: bool = False
    started_at: datetime
    latency_seconds: float
    """From the request's arrival to the finished answer, retries and waits included."""
    waited_seconds: float = 0.0
    """Of the latency, what it waited for the limits on calls."""
    streamed: bool = False
    """Whether the agent asked for SSE."""
    attempts: int = 1
    """Requests to the provider, those that failed and those that litellm repeats unseen included."""
    lost: int = 0
    """Of these, how many were sent and have no whole answer, cut off by the provider, the agent or the deadline: they
    may have been charged, which nobody knows. The caps count the most that it can be."""
    request: dict[str, Any]
    """The agent's body as it came; left out (`{}`) of calls without an answer, once a trial has had 64 MiB of those."""
    dropped: tuple[str, ...] = ()
    """Fields and tools (`tools:<type>`) of it that were not sent on; also marks on its parts (`is_error`) and earlier
    thoughts (`reasoning items`) that the provider's own API has no place for; and `stream` for an answer that was to
    pass through and was collected."""
    response: dict[str, Any] | None = None
    """The finished object as it was answered; None if there was none, or not to its end."""
    status_code: int
    """What the agent got."""
    usage: Usage | None = None
    """Of an answer that broke off on its way to the agent: what the provider had counted until then."""
    cost_usd: float | None = None
    """Of `usage`; None when the model has no price or there is no usage."""
    refused: str | None = None
    """Budget that refused it: usd, input_tokens, output_tokens, turns, deadline."""
    error: ErrorInfo | None = None

    @property
    def cut(self) -> bool:
        """Whether some of it may have been charged that is not in `cost_usd`."""
        return self.lost > 0


class ToolCall(Record):
    """A tool call that the model made, read from an answered call."""

    id: str
    name: str
    arguments: str
    """As the model wrote them: JSON text, or free text for freeform tools."""
    result: str | None = None
    """What it gave back, where an agent in our process says so; else a later request repeats it."""


class ChangedPrograms(Record):
    """What the agent changed of the programs and start-up files that the tests of its own machine run or read.

    It is information and no verdict: an honest installation of a package is listed as well.
    """

    count: int | None
    """Number of such files and folders; None if the engine could not list what has changed."""
    paths: tuple[str, ...] = ()
    """The first of them, in the order of their names."""


class Verdict(Record):
    """What the verifier said of the final workspace."""

    reward: float | None
    """In [0, 1]; None when our side could not judge, and `error` says why. What could not be judged for what the agent
    left is worth 0, and has an `error` too."""
    components: dict[str, float] = {}
    """Every key of the verifier's `reward.json`."""
    exit_code: int | None = None
    """Of the verifier's script; recorded, and no part of the reward (Harbor's rule)."""
    mode: Literal["shared", "separate", "live", "pristine"] = "shared"
    """In the machine that the agent left, in one of the task's with declared artifacts, in the agent's running one, or,
    of a second verdict, in one of the task's with the agent's work laid over it."""
    image: str = ""
    """Id of the image that the judge ran in: the task's, or the snapshot of the agent's machine."""
    output: str = ""
    """End of what the verifier printed."""
    error: ErrorInfo | None = None
    seconds: float = 0.0
    """Wall seconds; those of `again` included."""
    flags: tuple[str, ...] = ()
    """What a reader of the verdict must know; among the flags of the trial's record."""
    left_out: tuple[str, ...] = ()
    """Artifacts, or parts of them, that did not travel to a separate verifier: the first 50 paths."""
    programs: ChangedPrograms | None = None
    """None where the tests ran in a machine that the agent never touched."""
    again: Verdict | None = None
    """The second verdict that was asked for (`dataset.verifier.again`); never part of the reward."""


class PhaseSeconds(Record):
    """Wall seconds of each phase of one trial; `environment` includes waiting for a shared image build."""

    environment: float = 0.0
    agent: float = 0.0
    waiting: float = 0.0
    """Of `agent`, what a model call waited for the limits on calls, or for a gateway that stood still; its deadline is
    that much later.
    """
    collect: float = 0.0
    verify: float = 0.0


class Retry(Record):
    """An earlier try at the same trial that our side spoiled, with what it spent."""

    reason: ErrorInfo
    usage: Usage = Usage()
    cost_usd: float | None = 0.0
    judge_usd: float | None = 0.0
    turns: int = 0
    lost: int = 0
    """Of its calls and its judge's, as `ModelCall.lost`, and those under way when its runner died: their cost is
    unknown."""
    wall_seconds: float = 0.0


class EgressAttempt(Record):
    """What a rollout asked of the network beyond its model: a request at the proxy, a lookup of a name, or connections
    and packets to bare addresses, which lead nowhere.
    """

    host: str
    """Name or address as asked for; `(others)` stands for all beyond the first 256, `(unreadable)` for lookups of what
    is no host's name, `(addresses)` for all bare addresses, of which only the number is known."""
    port: int
    """53 of a lookup, 0 of what is not known."""
    way: Literal["proxy", "dns", "direct"] = "proxy"
    allowed: bool
    """Whether it may be reached through the proxy; a lookup is told in any case that there is no such name."""
    count: int
    """Requests, or questions (one lookup asks two, for both kinds of address); fewer than there were in a flood."""


AXES = ("agent", "model", "dataset", "budget")
"""What a cell has one of each of; everything else belongs to the sweep."""
CELL_SEPARATOR = "·"
"""Stands between the axes in the name of a cell."""


class TrialName(Record):
    """Identity of a trial: its cell, task and attempt, and what tables group by."""

    key: str
    agent: str
    model: str
    dataset: str
    budget: str
    task: str
    attempt: int
    tier: str
    category: str
    language: str
    scripted: bool = False
    """The model is a script, not a language model."""
    replayed: bool = False
    """The model's answers are those of an earlier run."""

    @property
    def cell(self) -> str:
        """Name of its cell: `agent·model·dataset·budget`."""
        return CELL_SEPARATOR.join(getattr(self, axis) for axis in AXES)


class PlannedRow(TrialName):
    """One planned trial in `sweep.json`: the denominator, whether it ever ran or not."""

    refused: str | None = None
    """Why its task cannot be run here, or not by this agent; such a trial contributes zero."""


class TrialRecord(TrialName):
    """One trial: one (cell, task, attempt). Written once, atomically; the truth that everything else projects."""

    schema_version: Literal[1] = SCHEMA_VERSION
    status: Status
    reward: float | None = None
    passed: bool | None = None
    """reward >= the dataset's `pass_threshold`; None when there is no reward."""
    verdict: Verdict | None = None
    error: ErrorInfo | None = None
    warnings: tuple[ErrorInfo, ...] = ()
    """What else went wrong and did not end the trial: behind the flag `calls_undescribed`."""
    flags: tuple[str, ...] = ()
    """What a reader must know: no_model_call, empty_rollout (it used no tool, or changed nothing and said nothing),
    agent_usage_differs, agent_usage_unreadable, image_built_instead_of_pulled, verified_live, forged_results (a hidden
    suite's judge was tampered with), no_verdict (tests ended without a usable reward, which counts as failed),
    programs_changed and programs_unknown (`Verdict.programs`), verdicts_differ (`Verdict.again`), artifacts_left_out
    (`Verdict.left_out`), out_of_memory (the kernel ended a process of the rollout's for want of it),
    memory_raised (the task allows less than its agent needs, and the rollout had `memory_mb`), calls_cut (what
    some calls cost is not known), collect_unfinished (the task's own collecting was ended by its time limit),
    answer_in_reach (the agent could have copied the answer out of its own installation), calls_undescribed (what a call
    holds could not be read: no tool calls are counted), commands_cut (some commands are longer than what is read of
    them, so `programs` may lack some), time_limit_cut (the budget's wall clock is shorter than the task's own limit),
    entrypoint_ended (the image's ENTRYPOINT did not come up again where the tests ran),
    artifacts_not_kept (what lay in `/logs/artifacts` is not, or not as a whole, in the trial's folder), ..."""
    agent_exit_code: int | None = None
    memory_mb: int | None = None
    """MiB that the rollout's sandbox could use; None without a limit, and in records of earlier versions."""

    usage: Usage = Usage()
    """All model calls made for it, those of retries included."""
    agent_usage: OwnUsage | None = None
    """What the agent itself says of its tokens in the last try; None if it says nothing, or nothing readable."""
    usage_difference: OwnUsage | None = None
    """`agent_usage` less what the gateway counted in the same try, which is the truth: 0 where both agree."""
    cost_usd: float | None = None
    """All model calls made for it, retries included; None when any price is missing."""
    judge_usd: float | None = 0.0
    """What the verifier's judge model cost, retries included: no part of `cost_usd`. None as there."""
    turns: int = 0
    """U: model calls that answered."""
    interactions: int = 0
    """I: tool calls the model made."""
    tool_calls: dict[str, int] = {}
    """Tool name -> calls."""
    tool_kinds: tuple[str, ...] = ()
    """Kind of each tool call in their order, by the agent's own table (`agent.tools`)."""
    tool_phases: tuple[str, ...] = ()
    """Phase of each tool call in their order (`metrics.terminal.phase`)."""
    programs: tuple[str, ...] = ()
    """What the commands ran that the model gave to a terminal, in their order (`metrics.terminal.programs`)."""
    own_finish: bool | None = None
    """Whether the agent ended its work itself; None without a model. See `runner.trials.behaviour`."""

    started_at: datetime
    finished_at: datetime
    wall_seconds: float
    seconds: PhaseSeconds = PhaseSeconds()
    retries: tuple[Retry, ...] = ()
    egress: tuple[EgressAttempt, ...] = ()
    """Of the last try; empty also where the sandbox had no proxy (`sandbox.network=open`, agents without a model)."""
    workspace_files: int | None = None
    workspace_lines: int | None = None
    host_env: tuple[str, ...] = ()
    """Names of this machine's environment variables that the task could read, as `dataset.env` allows; no values."""
    digests: dict[str, str] = {}
    """What ran: task, image, verifier_image, bundle:<name> (its recipe), bundle_content:<name> (what its installation
    left), agent, model, prices, budget, assay."""

    @property
    def judged(self) -> bool:
        """Whether it says something about its configuration: it ended by that's own doing, and has a reward."""
        return self.status.finished and self.reward is not None
